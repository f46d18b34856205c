"Properties that fuzzing tests: readers of replies, readers of files, renderers; with the inputs they start from and earlier findings."

import bz2, csv, dataclasses, functools, gzip, io, json, lzma, re, tempfile, unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import recorded_replies
from hypothesis import strategies as st

from fuzz import FAULTS, MARKS, ODD, GetsThrough, Property, damaged, encoded, json_changed, json_changes, mutated

from treekit.config import UsageError, load_profile
from treekit.core.prompts import load_prompts
from treekit.core.method import Trace

ROOT = recorded_replies.ROOT
FIXTURES = ROOT / "data" / "fixtures"
PAGES = ("official/*.json*", "alce/*.json", "longbench/*.jsonl", "hub/*/*/*.json*")


@functools.cache
def folder():
    "Where inputs lie as files; in memory, where the machine has a place for that."
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz", dir=memory if memory.is_dir() else None))


def written(name, data):
    path = folder() / name
    path.write_bytes(data)
    return path


# --- replies


@functools.cache
def replies():
    "Real replies: all that are recorded, else those that come with the kit."
    rows = recorded_replies.recorded() or [
        json.loads(l) for l in (ROOT / "data" / "words" / "cassette.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return [row["reply"] for row in rows]


def sound(value):
    "Whether all texts of a value can be written as UTF-8, and all numbers as JSON."
    json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")


def read_reply(prompt):
    "A reader of replies: never raises, says what it assumed in words, and what it reads can be written again."

    def run(text):
        got = prompt.read(text)
        assert isinstance(got.note, str)
        sound([got.value, got.note])
        if got.value is not None:
            assert isinstance(prompt.format.render(got.value), str)

    return run


def read_body(text):
    "A reply as the client takes it apart."
    from treekit.llm.openai_client import split_thinking

    sound(split_thinking(dict(content=text)))


def reply_readers():
    from treekit.papers.rdr2.public_code import CODE_FORMATS
    from treekit.core.prompts import Prompt

    known = recorded_replies.prompts()
    found = {name: read_reply(known[name]) for name in sorted(recorded_replies.every_reader())}
    found |= {
        f"rdr2.code_{name}": read_reply(Prompt(f"code_{name}", "route", "x", form))
        for name, form in CODE_FORMATS.items()
    }
    return found | dict(thinking=read_body)


SLOW_REPLIES = {  # a reader, and a reply that took it seconds to minutes
    "a score's name and dots": ("toq.evaluate.en", "answerability" + "." * 40_000),
    "a span of dots": ("toq.integrate.en", json.dumps(dict(relevance="relevant", answer_span="." * 40_000 + "x"))),
    "paths between marks": ("paths.generate", "\n.\n-" * 12_000 + "x"),
    "the same list again and again": ("paths.generate", '[["a?", "b?"], ' + '["a?"], ' * 9_000 + "[]]"),
    "outcomes named": ("outcomes.judge", "success  " * 5_000 + "x"),
    "responses": ("baselines.most_consistent", "response " * 9_000 + "x"),
    "marks never closed": ("served.front", "<paragraph>" * 8_000 + "[No support" * 800),
    "actions among thoughts": ("search_r1.turn", "<think></think><search>x</search>" * 3_000),
    "initials": ("flare.next", "A. " * 30_000),
    "a number and blanks": ("arise.verify", "1" + " " * 20_000 + "x"),
    "a fence and blanks": ("served.front", "```\n" + " " * 40_000 + "x"),
    "blanks before no fence": ("rdr2.read_long", "a" + " \t" * 40_000 + "\nx"),
    "the answer is, and blanks": ("baselines.zero_shot", "the answer is" + " " * 40_000 + "\n"),
    "half a tag": ("rdr2.route_tag", "<answer" + " " * 40_000 + "x"),
}
DEEP_REPLIES = [
    "[" * 900 + '"x"' + "]" * 900,
    '{"entities":' * 700 + "{}" + "}" * 700,
    "[" * 50_000,
    '{"id": ' + "9" * 5000 + "}",
]
HALF_PAIRS = ['["Who \\ud83d?"]', "['Who \\ud83d?']", '["Who \ud83d?"]']
LONG_REPLIES = ["<" + " " * 60_000 + "x", "FINAL: Lyon\n" + "so on and on " * 80_000, '{"a": [' * 140_000]
MEANT = [r for _, r in SLOW_REPLIES.values()] + DEEP_REPLIES + HALF_PAIRS + LONG_REPLIES


# --- questions and passages


def questions_of(path):
    "A file of questions: each record is a question, or an error."
    from treekit.corpora.corpus_hash import Passages
    from treekit.corpora.files import open_text
    from treekit.corpora.load import _read

    found = _read(path, "hotpotqa")
    for q in found:
        well_formed(q)
    assert Passages(p for q in found for p in q.paragraphs).fingerprint
    if path.suffix == ".txt":
        return
    with open_text(path) as file:
        text = file.read()
    if path.suffix == ".jsonl":
        assert len(found) == sum(bool(l.strip()) for l in text.split("\n")), "records are lost"
    try:
        data = json.loads(text)
    except ValueError:
        return
    if isinstance(data, list):
        assert len(found) >= len(data), "records are lost"


def texts(values):
    return isinstance(values, tuple) and all(isinstance(v, str) for v in values)


def well_formed(q):
    "Whether a question is what its class says."
    assert texts((q.id, q.dataset, q.question, q.type, q.lang)) and isinstance(q.hops, int) and isinstance(q.meta, dict)
    assert texts(q.answers) and texts(q.long_answers) and texts(q.claims) and texts(q.supporting)
    assert all(texts((p.id, p.title, p.text)) for p in q.paragraphs) and all(map(texts, q.answer_groups))
    assert all(texts((s.question, s.answer, s.support_id)) for s in q.decomposition)
    assert all(
        isinstance(p.question, str) and texts(p.answers) and (p.wikipage is None or isinstance(p.wikipage, str))
        for p in q.qa_pairs
    )
    assert all(texts(t) and len(t) == 3 for t in q.triples), "triples"
    assert all(isinstance(t, str) and isinstance(n, int) for t, n in q.facts), "facts"
    for p in q.paragraphs:
        q.sentences(p)
    sound(dataclasses.asdict(q))


@functools.cache
def records():
    "(file, its records) of every data format, the kit's own and a query log included."
    found = []
    for pattern in PAGES:
        for path in sorted(FIXTURES.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            lines = path.suffix == ".jsonl"
            found.append((path.name, [json.loads(l) for l in text.splitlines()] if lines else json.loads(text)))
    own = lzma.open(ROOT / "data" / "real" / "musique.dev.jsonl.xz", "rt", encoding="utf-8").readlines()[:3]
    qas = [dict(id="k1", question="언제 나왔나?", answers=[dict(text="2001년", answer_start=5)])]
    korquad = dict(title="새", paragraphs=[dict(context="새 책은 2001년에 나왔다.", qas=qas)])
    ramdocs = dict(
        question="Who is Ann Ray?",
        gold_answers=["a singer"],
        wrong_answers=["a cook"],
        disambig_entity=["Ann Ray (singer)"],
        documents=[dict(text="Ann Ray sings.", type="correct", answer="a singer")],
    )
    strategy = dict(
        qid="s1",
        term="Owl",
        description="bird",
        question="Can an owl read?",
        answer=False,
        facts=["Owls can't read."],
        decomposition=["What can owls do?"],
    )
    log = dict(question="Who wrote it?")
    return [
        *found,
        ("own.jsonl", [json.loads(l) for l in own]),
        ("korquad.json", dict(data=[korquad])),
        ("ramdocs.jsonl", [ramdocs]),
        ("strategy.json", [strategy]),
        ("log.jsonl", [log]),
        ("own_keyed.jsonl", [keyed()]),
    ]


def keyed():
    "A record of the kit's own format with every field."
    return dict(
        id="o1",
        dataset="films",
        question="Who filmed it?",
        answers=["Ada"],
        type="bridge",
        hops=2,
        lang="en",
        paragraphs=[dict(id="p1", title="It", text="Ada filmed it. In 1999.", is_supporting=True, sent_ends=[14, 23])],
        supporting=["p1"],
        decomposition=[dict(question="Who?", answer="Ada", support_id="p1")],
        qa_pairs=[dict(question="Who?", answers=["Ada"], wikipage="It")],
        answer_groups=[["Ada"]],
        long_answers=["Ada filmed it."],
        claims=["Ada filmed it."],
        triples=[["it", "director", "Ada"]],
        supporting_facts=[["It", 0]],
    )


@st.composite
def changed_records(draw):
    "A file of records with other values in some places; sometimes its text is changed, too."
    name, data = draw(st.sampled_from(records()))
    value = json_changed(data[: draw(st.integers(1, 3))] if isinstance(data, list) else data, draw(json_changes()))
    some = value if isinstance(value, list) else [value]
    text = (
        "\n".join(map(json.dumps, some))
        if name.endswith(".jsonl")
        else json.dumps(value, ensure_ascii=draw(st.booleans()))
    )
    return name, draw(encoded(st.just(text) | mutated([text])))


def packed(draw, name, data):
    "A file, plain or compressed; what is compressed may be damaged."
    pack = draw(st.sampled_from([None, None, gzip, bz2]))
    if not pack:
        return name, data
    return f"{name}.{'gz' if pack is gzip else 'bz2'}", damaged(pack.compress(data, 1), draw(FAULTS))


@st.composite
def corpus_input(draw):
    "A file of passages: JSONL or DPR's."
    lines = [json.dumps(dict(id=f"p{i}", title=f"T{i}", text=f"Text {i}. " * 5)) for i in range(3)]
    tsv = 'id\ttext\ttitle\n1\t"A text."\tTitle\n2\tAnother "text"\tTitle\n'
    kind, text = draw(st.sampled_from([("jsonl", "\n".join(lines)), ("tsv", tsv)]))
    return packed(draw, f"corpus.{kind}", draw(encoded(mutated([text]))))


def read_passages(value):
    from treekit.corpora.corpus_hash import line
    from treekit.corpora.load import read_corpus

    for p in read_corpus(written(*value)):
        assert texts((p.id, p.title, p.text))
        sound([p.id, p.title, p.text])
        line(p)


# --- pages and dumps


@functools.cache
def pages():
    "Wikitext, HTML and Markdown to start from."
    dump = bz2.decompress((FIXTURES / "enwiki-20181220-pages-articles.xml.bz2").read_bytes()).decode()
    wiki = [re.sub(r"&lt;", "<", re.sub(r"&gt;", ">", t)) for t in re.findall(r"<text[^>]*>(.*?)</text>", dump, re.S)][
        :20
    ]
    wiki.append("""{{Infobox film|name=It|director=[[Ada Lund|Ada]]}}'''It''' is a [[film]] of {{convert|3|km|mi}}
<ref name="a">[http://x Z]</ref>.
== Plot ==
* one\n** two\n# three\n; term : text
{| class="wikitext"\n|+ Cast\n! Name !! Role\n|-\n| rowspan="2" | Ada || ''cook''\n|-\n| colspan=2 | both\n|}
<!-- no --> {{quote|text=Said.}} <math>x^2</math> &nbsp; &#91; <div>block</div>\n=== See also ===\n* [[Category:Films]]\n#REDIRECT""")
    return wiki


def read_page(text):
    from treekit.corpora.wikitext import from_wikitext

    return from_wikitext(text, "It")


@st.composite
def dump_input(draw):
    "A dump, or articles in JSONL."
    page = "<page><title>{0}</title><ns>0</ns><id>{0}</id><revision><text>{1}</text></revision></page>\n"
    if draw(st.booleans()):
        texts = draw(st.lists(mutated(pages(), 4000), min_size=1, max_size=2))
        inner = "".join(page.format(i, t.replace("&", "&amp;").replace("<", "&lt;")) for i, t in enumerate(texts))
        name, text = "dump.xml", f"<mediawiki>\n{inner}</mediawiki>\n"
    else:
        article = [
            dict(title="It", id="1", text="Intro.\n* one", sections=[dict(title="Plot", text="Said.", sections=[])]),
            dict(title="W", wikitext=pages()[-1]),
        ]
        some = draw(st.lists(st.sampled_from(article), min_size=1, max_size=2))
        name, text = "articles.jsonl", "".join(f"{json.dumps(json_changed(a, draw(json_changes())))}\n" for a in some)
    return packed(draw, name, draw(encoded(st.just(text) | mutated([text]))))


def read_dump(value):
    from treekit.corpora.tree_store import _records, _stored

    for record in _records(written(*value)):
        _stored(record)


# --- cassettes

HOSTILE = """CREATE TRIGGER t AFTER INSERT ON call_log BEGIN INSERT INTO call_log SELECT * FROM call_log; END
CREATE TRIGGER t BEFORE DELETE ON predictions BEGIN SELECT RAISE(ABORT, 'no'); END
DROP TABLE calls; CREATE VIEW calls AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS key, 1 AS completion FROM c
DROP TABLE about; CREATE VIEW about AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS name, 1 AS value FROM c
ALTER TABLE calls ADD COLUMN more TEXT
ALTER TABLE calls RENAME COLUMN completion TO said
DROP TABLE requests
CREATE TABLE own (x); CREATE INDEX i ON calls(tokens_in)
CREATE TABLE big AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 3000) SELECT x FROM c
PRAGMA user_version=99
PRAGMA application_id=7
PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = 'CREATE TABLE calls (key)' WHERE name = 'calls'
PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql = replace(sql, 'completion TEXT', 'completion TEXT AS (key)') WHERE name = 'calls'""".split(
    "\n"
)


@functools.cache
def cassette():
    "A good cassette, as bytes."
    from treekit.core.prompts import Completion, Request
    from treekit.store.run_store import Store, canonical_request, sample_keys

    with Store() as store:
        for i in range(3):
            request = Request((dict(role="user", content=f"question {i}"),), n=2, temperature=0.0, max_tokens=9)
            canonical = canonical_request(request, "m", "offline", {})
            said = {
                k: Completion(f"answer {i}", 3, 2, logprobs=(("a", -0.5),)) for k in sample_keys(canonical, request)
            }
            store.put_calls(said, canonical, "m", "offline", dict(method="zero-shot", question=str(i)), [0.1, None])
            store.put_prediction(f"p{i}", dict(answer="x", trace=dict(nodes=[], notes=[])))
        store.put_failure("f", dict(answer="", error="no", usage=dict(calls=1)))
        path = store.pack(folder() / "good.cassette")
    return path.read_bytes()


# --- what strangers send: metadata of cassettes, replies of servers


def places(value, path=()):
    "Paths of all values inside a JSON value."
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


@st.composite
def replaced(draw, whole):
    "A JSON value in which some values are others."
    value = json.loads(json.dumps(whole))
    for path in draw(st.lists(st.sampled_from(list(places(whole))[1:]), min_size=1, max_size=3)):
        at = value
        try:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = draw(json_values(4))
        except (TypeError, LookupError):
            pass  # it was replaced before
    return json.dumps(value)


ABOUT = dict(
    what=["treerare/table1"],
    profile="openai",
    given=dict(n=3, seed=0),
    sets=dict(model="gpt-4o", temperature="0"),
    questions=["q1"],
    data="films",
    parser="default",
    left_out=["endpoint"],
)
REPLY = dict(
    id="x",
    model="m",
    choices=[
        dict(
            index=0,
            finish_reason="stop",
            message=dict(role="assistant", content="Lyon", reasoning="so"),
            logprobs=dict(content=[dict(token="Lyon", logprob=-0.5)]),
        )
    ],
    usage=dict(
        prompt_tokens=9,
        completion_tokens=3,
        total_tokens=12,
        prompt_tokens_details=dict(cached_tokens=0),
        completion_tokens_details=dict(reasoning_tokens=1),
    ),
)


def read_metadata(text):
    from treekit.experiments.cassette_settings import read_about

    sound(list(read_about(text.encode("utf-8", "replace"), "x.cassette")))


def read_envelope(text):
    "A server's reply is one that can be stored, or a failed call."
    import treekit.llm.openai_client as client
    from treekit.core.prompts import CallFailed, Request
    from treekit.store.schema import decode_completion, encode_completion

    request = Request((dict(role="user", content="Where?"),), logprobs=True)
    try:
        found = client._completions(text, request, 0.1)
    except CallFailed:
        return
    assert [decode_completion(encode_completion(c)) for c in found] == found


# --- settings, prompts, prices, records

SETTINGS = (ROOT / "settings.ini").read_text(encoding="utf-8")
PROMPT_FILE = (
    '["treerare.answer"]\ntemplate = """Answer $question from $documents"""\nsystem = "Be brief."\n\n'
    '["baselines.zero_shot"]\ntemplate = "$documents $question"\n'
)


def text_file(name, text, read, declared=(UsageError,), share=0.5):
    "The property of one function that reads a text file."
    return Property(
        f"file {name}", encoded(mutated([text])), {name: lambda data: read(written(name, data))}, declared, share
    )


def read_settings(path):
    from treekit.config import profile_names

    for name in profile_names(path)[:6]:
        hash(load_profile(name, path))


# --- renderers

HOSTILE_TEXT = [
    "<fzx fzon=1>",
    "</td><fzx>",
    "</script><script>fzx()</script>",
    "\"><fzx fzon='1'>",
    "' fzon='1",
    '" fzon="1',
    "<!--",
    "-->",
    "]]>",
    "",
    "<![CDATA[",
    "&lt;fzx&gt;",
    "&#60;fzx&#62;",
    "<a href=javascript:fzx()>",
    "[fz](javascript:fzx)",
    "![fz](http://fz.example/x)",
    "`<fzx>`",
    "```\n<fzx>",
    "\n\n<fzx>\n\n",
    "| fz | fz |\n|---|---|",
    "<fz@fz.example>",
    "https://fz.example",
    "<https://fz.example>",
    "# fz",
    "$\\fz{x}$",
    "$x",
    "\\input{fz}",
    "=fz()",
    "+fz",
    "-fz",
    "@fz",
    "\t=fz",
    "\x1b]8;;http://fz\x07",
    "\x1b[2J",
    "\r=fz",
    "\ufffe",
    "\uffff",
    "\x00",
    "\x0b",
    "\ud800",
    "\u202e",
    "%fz%",
    "{fz}",
    "__fz__",
    "*fz*",
    "~~fz~~",
    "<svg onload=fzx>",
    "\u2028",
    "fz\nfz",
    "    fz",
    "- fz",
    "1. fz",
    "> fz",
    "---",
    "<?fz?>",
    "<!fz>",
    "&fz;",
]


def hostile():
    "A handful of texts for the places of a page."
    marks = st.sampled_from(HOSTILE_TEXT)
    one = st.lists(marks, min_size=1, max_size=4).map("".join) | st.tuples(marks, mutated(replies(), 300), marks).map(
        "".join
    )
    one |= mutated(replies(), 2000) | st.builds(
        lambda odd, mark: odd[:400] + mark, st.sampled_from(ODD), st.sampled_from(MARKS)
    )
    return st.lists(one, min_size=12, max_size=12)


class Skeleton(HTMLParser):
    "A page's elements and attributes, and its links."

    def __init__(self, page):
        super().__init__()
        self.tags, self.odd = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, tuple(k for k, _ in attributes)))
        self.odd += [
            (tag, k, v)
            for k, v in attributes
            if tag.startswith("fz") or k.startswith(("fz", "on")) or (k in ("href", "src") and "fz" in (v or ""))
        ]

    def handle_comment(self, text):
        self.odd.append(("comment", text[:40], ""))

    def unknown_decl(self, text):
        self.odd.append(("declaration", text[:40], ""))

    def handle_pi(self, text):
        self.odd.append(("instruction", text[:40], ""))


def same_page(made, tame):
    "A page of hostile texts has exactly the elements of the same page of tame ones."
    own, other = Skeleton(made), Skeleton(tame)
    if own.odd != other.odd:
        raise GetsThrough(f"markup gets through: {own.odd[:3]}")
    if own.tags != other.tags:
        at = next(
            (i for i, (a, b) in enumerate(zip(own.tags, other.tags)) if a != b), min(len(own.tags), len(other.tags))
        )
        raise GetsThrough(f"another element at {at}: {own.tags[at : at + 2]}, not {other.tags[at : at + 2]}")
    made.encode("utf-8")
    if bad := re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", made):
        raise GetsThrough(f"{bad[0]!r} in a page")


def apart(texts):
    return [f"{t} {i}" for i, t in enumerate(texts)]


def tame(texts):
    return [f"word{i}" if t.strip() else t for i, t in enumerate(texts)]  # the same, without harm


def trace_of(t):
    "A trace that says these texts in every place."
    trace = Trace()
    hits = [dict(id="p1", title=t[4], score=1.0), dict(id=t[5] or "p2", title="", score=0.5)]
    top = trace.add("phrase", t[0], thought=t[1], queries=[t[2], t[3]], hits=hits, evidence=t[6], type=t[7])
    step = trace.add("step", t[8], parent=top, observation=t[9], action="Search", number=1, answer=t[3], response=t[10])
    step.notes.append(t[10])
    trace.add("answer", t[11], explanation=t[1])
    trace.notes.append(t[2])
    return trace


def show_text(t):
    from treekit.utils.sanitize import printable
    from treekit.core.trace_render import show_tree

    for line in [*show_tree(trace_of(t)).split("\n"), *map(printable, t)]:
        if bad := [c for c in line if unicodedata.category(c) in ("Cc", "Cs") or c in "\u2028\u2029\u202e\ufffe\uffff"]:
            raise GetsThrough(f"{bad[0]!r} on a terminal")
        line.encode("utf-8")


def show_html(t):
    from treekit.core.trace_render import node_facts, tree_html

    t = [x or "empty" for x in t]
    made, plain = trace_of(t), trace_of(tame(t))
    if [m for n in made.nodes for m, _ in node_facts(n)] != [m for n in plain.nodes for m, _ in node_facts(n)]:
        return  # equal texts are said once
    same_page(tree_html(made), tree_html(plain))


def frame_of(t):
    import pandas as pd

    texts = {"name": [t[0], t[3]], t[1].encode("utf-8", "replace").decode() or "x": [t[2], t[4]]}
    return pd.DataFrame(
        {k: pd.Series(v, dtype=object) for k, v in texts.items()} | dict(number=[-1.5, float("nan")], count=[-3, 2])
    )


def compared(t):
    import pandas as pd

    row = dict(
        group=t[0],
        method=t[1],
        dataset=t[2],
        metric=t[3],
        published=1.5,
        reproduced=1.25,
        low=1.0,
        high=1.5,
        n=20,
        failures=0,
        verdict="not comparable",
        reason=t[4],
        flag="",
        model=t[5],
        corpus=t[6],
    )
    rows = [
        row,
        row | dict(method=t[7], reproduced=2.0),
        row | dict(method=t[7] + "x", verdict="not run", reproduced=None, reason=t[8]),
    ]
    return pd.DataFrame(
        {k: pd.Series([r[k] for r in rows], dtype=object if isinstance(row[k], str) else None) for k in row}
    )


FORMATTED = ("html_inline", "html_block", "link_open", "image", "code_inline", "fence", "code_block", "hr")


def table_markdown(t):
    from markdown_it import MarkdownIt
    from treekit.figures.tables import to_markdown

    t = apart(t)

    def kinds(page):
        return [
            c.type
            for token in MarkdownIt("commonmark").enable("table").parse(page)
            for c in (token, *(token.children or ()))
        ]

    for make in (frame_of, compared):
        own = kinds(to_markdown(make(t), t[9], t[10]))
        if odd := [k for k in own if k in FORMATTED]:
            raise GetsThrough(f"{odd[0]} in Markdown")
        other = kinds(to_markdown(make(tame(t)), "word", "word"))
        own, other = ([k for k in ks if k != "text"] for ks in (own, other))
        if own != other:
            raise GetsThrough("another Markdown element")


def table_csv(t):
    from treekit.figures.tables import save_csv

    path = folder() / "out.csv"
    save_csv(frame_of(t), path)
    lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    assert len(lines) == 3 and all(len(l) == len(lines[0]) for l in lines), "cells are lost"
    assert lines[1][-2:] == ["-1.500", "-3"], f"numbers stay numbers: {lines[1][-2:]}"
    for cell in (c for l in lines for c in l):
        if cell.lstrip(" \t\r\n\0\ufeff")[:1] in ("=", "+", "-", "@") and not re.fullmatch(r"[+-]?\d+(\.\d+)?", cell):
            raise GetsThrough(f"a formula: {cell[:30]!r}")


def drawing(t):
    "SVG and boxes: the file is XML, and has no element or attribute of the text's."
    from treekit.figures.plots import save_figure
    from treekit.figures.trees import draw_tree
    import matplotlib.pyplot as plt

    fig = draw_tree(trace_of([x[:200] for x in t]))
    try:
        _, svg = save_figure(fig, folder() / "drawn", "tree", t[0][:300], t[1][:300])
    finally:
        plt.close(fig)
    try:
        tree = ElementTree.fromstring(svg.read_bytes())
    except ElementTree.ParseError as e:
        raise GetsThrough(f"the SVG is no XML: {e}") from None
    for element in tree.iter():
        name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else "comment"
        if name.startswith("fz") or name in ("script", "foreignObject", "a", "image"):
            raise GetsThrough(f"<{name}> in an SVG")
        if bad := [k for k, v in element.items() if k.startswith(("fz", "on")) or k.endswith("href") and "fz" in v]:
            raise GetsThrough(f"{bad[0]}= in an SVG")


def explorer_page(t):
    "The explorer's page: its scripts and elements are the page's own, and what it holds is what was said."
    from explorer_store import kept
    from treekit.store.run_store import Store
    from treekit.explorer.page import page_of
    from treekit.explorer.widget import Framed

    def made(texts, name):
        with Store() as store:
            run = kept(store, name, [trace_of(texts)], [texts[0]], texts[1])
            return page_of(store, [run])

    page, plain = made(t, "one"), made(tame(t), "one")
    count = lambda p: Skeleton(p).tags
    same = [x for x in count(page) if x[0] != "script"], [x for x in count(plain) if x[0] != "script"]
    if same[0] != same[1] or Skeleton(page).odd != Skeleton(plain).odd:
        raise GetsThrough("markup in the explorer's page")
    same_page(Framed(page)._repr_html_(), Framed(plain)._repr_html_())


RENDERERS = {
    "text tree": show_text,
    "html tree": show_html,
    "markdown table": table_markdown,
    "csv table": table_csv,
}


# --- structures


def json_values(leaves=12):
    "JSON of any shape, under names that the kit looks for."
    names = sorted(
        {
            k
            for _, data in records()
            for r in (data if isinstance(data, list) else [data])
            if isinstance(r, dict)
            for k in r
        }
    )
    asked = "answer final_answer action arguments name source target title summary score relevance answer_span id tag".split()
    keys = st.sampled_from(names + asked) | st.text(max_size=4)
    said = st.text(max_size=12) | st.sampled_from(["a?", "Ada", "yes", "7", "\ud800"])
    plain = st.none() | st.booleans() | st.integers() | st.floats() | said
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=leaves
    )


def json_replies():
    "JSON, Python's dictionaries, and both among words."
    dressed = st.builds(
        lambda v, dress, around: around.format(dress(v)),
        json_values(),
        st.sampled_from([json.dumps, repr]),
        st.sampled_from(
            ["{}", "```json\n{}\n```", "Here:\n{}\nFINAL: x", "{},", "<think>x</think>{}", "Action Input: {}"]
        ),
    )
    return dressed


DRAWN = [[text] * 12 for text in ("\ufffe\uffff\x00\ud800 <fzx> ]]>", "$ab\\q$ and $x")]


def properties():
    "All properties, with their shares of the time."
    readers = reply_readers()
    names = "graphrag|hipporag|paths|toq|react|zero|judge|chainrag|value|treerare"
    json_readers = {name: run for name, run in readers.items() if re.search(names, name)}

    known = recorded_replies.prompts()

    return [
        Property("reply", mutated(replies()), readers, (), 12.0, examples=MEANT),
        Property("structured reply", json_replies(), json_readers, (), 1.5, examples=DEEP_REPLIES),
        Property(
            "questions", changed_records(), {"questions": lambda v: questions_of(written(*v))}, (UsageError,), 4.0
        ),
        Property("corpus", corpus_input(), {"corpus": read_passages}, (UsageError,), 1.0),
        Property("wikitext", mutated(pages(), 1_000_000), {"read": read_page}, (), 2.0),
        Property("dump", dump_input(), {"dump": read_dump}, (UsageError,), 2.0, 2.0),
        Property(
            "metadata",
            replaced(ABOUT) | mutated([json.dumps(ABOUT)]),
            {"about.json": read_metadata},
            (UsageError,),
            0.5,
        ),
        Property("envelope", replaced(REPLY) | mutated([json.dumps(REPLY)]), {"reply": read_envelope}, (), 1.0),
        text_file("settings.ini", SETTINGS, read_settings, share=1.0),
        text_file("prompts.toml", PROMPT_FILE, lambda p: load_prompts(p, known)),
        Property("renderer", hostile(), RENDERERS, (), 3.0, 2.0),
        Property("drawing", hostile(), {"svg": drawing}, (), 1.0, 8.0, examples=DRAWN),
        Property("explorer", hostile(), {"page": explorer_page}, (), 1.0, 8.0),
    ]
