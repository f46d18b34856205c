"What fuzzing and hostile files have found, each held by the input that showed it; and the fuzzing itself (`make fuzz`)."

import bz2, gzip, json, re, signal, sqlite3, time, zlib
from contextlib import closing

import pytest

from hypothesis import Phase, settings, strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

import fuzz, fuzz_targets, recorded_replies
from fuzz import EVERYTHING, Property

from treekit.config import UsageError, load_profile
from treekit.core.prompts import Completion
from treekit.store.run_store import Store


def seconds(run):
    "CPU seconds of the faster of two runs; each is broken off after five."
    signal.signal(signal.SIGVTALRM, fuzz.interrupt)

    def one():
        began = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, 5)
        try:
            run()
        except fuzz.TooSlow:
            pass
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return time.process_time() - began

    signal.signal(signal.SIGVTALRM, fuzz.interrupt)
    return first if (first := one()) < 0.1 else min(first, one())


def read(prompt, text):
    return recorded_replies.prompts()[prompt].read(text)


@pytest.mark.parametrize("name", fuzz_targets.SLOW_REPLIES)
def test_replies_are_read_in_time_that_grows_with_their_length(name):
    prompt, reply = fuzz_targets.SLOW_REPLIES[name]
    assert seconds(lambda: read(prompt, reply)) < 0.5


JSON_READERS = (
    "graphrag.extract",
    "hipporag.triples",
    "paths.generate",
    "toq.evaluate.en",
    "tree_of_thoughts.value",
    "rdr2.curate",
)


def test_half_a_thinking_tag_is_read_in_time():
    assert seconds(lambda: fuzz_targets.read_body("<" + " " * 60_000 + "x")) < 0.5


def test_a_megabyte_is_read_in_a_second_and_it_is_said():
    got = read("baselines.zero_shot", "FINAL: Lyon\n" + "so on and on " * 80_000)
    assert "1,040,012 characters" in got.note and isinstance(got.value["answer"], str)
    for prompt in JSON_READERS:
        assert seconds(lambda: read(prompt, '{"a": [' * 140_000)) < 1, prompt


@pytest.mark.parametrize("reply", fuzz_targets.DEEP_REPLIES, ids=["lists", "objects", "open", "digits"])
def test_deep_and_endless_replies_are_read(reply):
    for prompt in (*JSON_READERS, "hipporag.entities", "graphrag.map", "react.act", "chainrag.several"):
        read(prompt, reply)


def test_no_half_of_a_pair_comes_out_of_a_reply():
    for reply in fuzz_targets.HALF_PAIRS:
        for prompt in recorded_replies.every_reader():
            fuzz_targets.sound(read(prompt, reply).value)
    assert (
        read("hipporag.entities", '["a \\ud83d\\ude00"]').value
        == ["a 😀"]
        == read("hipporag.entities", "['a \\ud83d\\ude00']").value
    )


# --- files of questions and passages


def file_of(folder, name, value, many=False):
    path = folder / name
    path.write_text("\n".join(map(json.dumps, value)) if many else json.dumps(value), encoding="utf-8")
    return path


def refused(path, *said):
    with pytest.raises(UsageError) as e:
        fuzz_targets.questions_of(path)
    assert "\n" not in str(e.value) and path.name in str(e.value) and all(s in str(e.value) for s in said), str(e.value)


GOOD = dict(
    question="Who wrote it?",
    answer="Ada",
    paragraphs=[dict(title="It", paragraph_text="The qas of it.")],
    answerable=True,
)


def test_no_question_is_dropped_in_silence(tmp_path):
    "A paragraph that speaks of qas is no page of KorQuAD."
    from treekit.corpora.load import Files

    path = file_of(tmp_path, "three.json", [GOOD | dict(id=f"m{i}") for i in range(3)])
    assert [q.id for q in Files(path).questions("musique")] == ["m0", "m1", "m2"]
    page = dict(title="새", paragraphs=[dict(context="새 책.", qas=[])])
    refused(file_of(tmp_path, "pages.json", dict(data=[page])), "record 1", "'qas'")


def keyed(**other):
    return fuzz_targets.keyed() | other


WRONG = {
    "facts": keyed(supporting_facts=[["It"]]),
    "triples": keyed(triples=[1]),
    "short triples": keyed(triples=[["a", "b"]]),
    "groups": keyed(answer_groups=[5]),
    "language": keyed(lang=7),
    "sentence ends": keyed(sent_ends=[1]),
    "ends of a paragraph": keyed(paragraphs=[dict(id="p", text="x", sent_ends=["a"])]),
    "corpus": keyed(corpus=["x"]),
    "context": dict(id="h", question="Who?", answer="A", context=[[1, ["x"]]], supporting_facts=[]),
    "sentences": dict(id="h", question="Who?", answer="A", context=[["T", [None]]], supporting_facts=[]),
    "sentence number": dict(id="h", question="Who?", answer="A", context=[], supporting_facts=[["T", True]]),
    "evidences": dict(id="h", question="Who?", answer="A", context=[], supporting_facts=[], evidences=[None]),
    "answers in groups": dict(id="q", question="Who?", answers=[["A", 3]]),
    "mixed groups": dict(id="q", question="Who?", answers=[["A"], "B"]),
    "a page's questions": dict(title="T", paragraphs=[dict(context="x", qas=[5])]),
    "a page's paragraphs": dict(title="T", paragraphs=[dict(context="x", qas=[]), 5]),
    "half of a pair": keyed(question="Who \ud800?"),
    "deep": keyed(more=json.loads("[" * 200 + "]" * 200)),
}


@pytest.mark.parametrize("name", WRONG)
def test_records_of_wrong_types_are_refused_in_a_line(tmp_path, name):
    refused(file_of(tmp_path, "some.json", [WRONG[name]]), "record 1")
    if "a page" not in name:
        refused(file_of(tmp_path, "some.jsonl", [WRONG[name]], many=True), "line 1")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '[{"id": ' + "9" * 5000 + "}]", '{"a": ' * 2000], ids=["deep", "digits", "open"]
)
def test_json_that_python_refuses_is_refused_in_a_line(tmp_path, text):
    for name in ("some.json", "some.jsonl"):
        (tmp_path / name).write_text(text)
        refused(tmp_path / name)
    (tmp_path / "corpus.jsonl").write_text(text)
    with pytest.raises(UsageError, match="corpus.jsonl, line 1"):
        fuzz_targets.read_passages(("corpus.jsonl", text.encode()))


def test_half_of_a_pair_in_a_passage_is_refused_in_a_line():
    with pytest.raises(UsageError, match="corpus.jsonl, line 1.*surrogate"):
        fuzz_targets.read_passages(("corpus.jsonl", b'{"text": "x\\ud800"}'))


# --- bombs, pages, dumps


def test_a_line_without_end_is_refused_while_it_is_read(tmp_path, monkeypatch):
    "A few kilobytes that unpack to gigabytes: no more than the longest line is ever held."
    import tracemalloc
    from treekit.corpora import files, load, tree_store

    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(tree_store, "_LONGEST", 1 << 20)
    corpus, dump = tmp_path / "corpus.jsonl.gz", tmp_path / "dump.xml.bz2"
    corpus.write_bytes(gzip.compress(b'{"text": "' + b"x" * (40 << 20)))
    dump.write_bytes(bz2.compress(b"<page>" + b"x" * (40 << 20)))
    tracemalloc.start()
    with pytest.raises(UsageError, match="corpus.jsonl.gz, line 1: longer than"):
        list(load.read_corpus(corpus))
    with pytest.raises(UsageError, match="dump.xml.bz2: a line of more than"):
        list(tree_store._pages(dump, 0))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 24 << 20


def test_a_reply_that_unpacks_to_gigabytes_is_left(monkeypatch):
    import asyncio, threading, tracemalloc
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from treekit.core import http
    from treekit.llm import openai_client
    from treekit.core.prompts import CallFailed, Request

    monkeypatch.setattr(http, "LONGEST_BODY", 4 << 20)
    bomb, asked = gzip.compress(bytes(80 << 20)), []

    class Bomber(BaseHTTPRequestHandler):
        def log_message(self, *said):
            pass

        def do_POST(self):
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            for name, value in (
                ("content-type", "application/json"),
                ("content-encoding", "gzip"),
                ("content-length", str(len(bomb))),
            ):
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(bomb)
            except OSError:
                pass

    with HTTPServer(("127.0.0.1", 0), Bomber) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chat = openai_client.OpenAIClient("m", f"http://127.0.0.1:{server.server_port}/v1", retries=3, pause=0.01)

        async def call():
            try:
                await chat.complete(Request((dict(role="user", content="who?"),)))
            finally:
                await chat.close()

        tracemalloc.start()
        with pytest.raises(CallFailed, match="more than 5 MB"):
            asyncio.run(call())
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        server.shutdown()
    assert len(asked) == 1 and most < 40 << 20


@pytest.mark.long
@pytest.mark.parametrize("name", fuzz_targets.SLOW_PAGES)
def test_pages_are_read_in_time_that_grows_with_their_length(name):
    markup, text = fuzz_targets.SLOW_PAGES[name]
    read = fuzz_targets.read_page(markup)
    half = seconds(lambda: read(text[: len(text) // 2]))
    assert seconds(lambda: read(text)) < 3 * half + 1  # quadratic: four times


def test_a_pattern_of_brackets_is_refused_before_it_is_tried(tmp_path):
    from treekit.experiments.costs import reply_lengths

    path = tmp_path / "lengths.csv"
    path.write_text("kind,prompts,mean,low,high\na," + "[" * 60_000 + ",1,1,1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 2: .*at most 200 characters"):
        reply_lengths(["toq.query.en"], path)


def test_cells_that_span_a_thousand_rows_are_not_a_thousand_times_as_long():
    from treekit.corpora.html import from_html

    page = "<table><tr>" + f"<td rowspan=999>{'word ' * 400}" * 20 + "<tr><td>x" * 999 + "</table>"
    assert sum(len(n.text) for n in from_html(page, "It").nodes) < 400_000


READERS = [fuzz_targets.page_reader(markup) for markup in ("wikitext", "html", "markdown")]


def test_a_page_that_is_too_long_is_skipped():
    from treekit.corpora.blocks import LONGEST_PAGE, Skipped

    for read in READERS:
        assert read("x" * (LONGEST_PAGE + 1), "It") == Skipped("It", "too long")


@pytest.mark.long
@pytest.mark.parametrize("text", ["<p>a", "\n* [[a]]", "*a* [b](c)\n"], ids=["HTML", "wikitext", "Markdown"])
def test_a_page_of_nothing_but_marks_is_read_or_skipped_with_its_reason(text):
    from treekit.corpora.blocks import Skipped

    page = text * (1_000_000 // len(text))
    reasons = [made.reason for read in READERS if isinstance(made := read(page, "It"), Skipped)]
    assert reasons and set(reasons) <= {"too many marks", "empty"}
    assert all(not isinstance(read(f"It is {text}" * 20, "It"), Skipped) for read in READERS)


def test_elements_deeper_than_the_parser_goes_are_told():
    from treekit.corpora.blocks import Skipped
    from treekit.corpora.html import from_html

    assert from_html("<div>" * 2_000 + "deep", "It")[1].text == "deep"
    assert from_html("<div>" * 3_000 + "deeper", "It") == Skipped("It", "nested too deeply")


def test_what_is_never_closed_reads_as_it_did():
    from treekit.corpora.wikitext import from_wikitext

    page = "{{unclosed\ntext [[link\n\nA <b>bold [http://a.b one and [[two|2]] < 3 {{convert|3|km}}.\n\n<div Said."
    assert [n.text for n in from_wikitext(page, "It").nodes] == [
        "It",
        "text link",
        "A bold [ one and 2 < 3 3 km.",
        "<div Said.",
    ]


# --- cassettes


def tape(tmp_path, sql):
    path = tmp_path / "made.cassette"
    path.write_bytes(fuzz_targets.cassette())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(sql)
    return path


STORE_TABLES = "calls requests predictions failures ledger about".split()
# what is beside the rows that are read; one bad row among good ones; half a character, which is read as a question mark
BESIDE = re.compile(r"SET trace = NULL|CREATE TRIGGER|CREATE TABLE (own|big)|about VALUES \(NULL|ud800")
BAD_TAPES = [line for line in fuzz_targets.HOSTILE if not BESIDE.search(line)]


@pytest.mark.parametrize("sql", BAD_TAPES[::3])  # `make fuzz` has all
def test_hostile_cassettes_are_refused_in_a_line(tmp_path, sql):
    with pytest.raises(UsageError, match="made.cassette|store") as e:
        Store.replay(tape(tmp_path, sql), predictions=True)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("sql", [line for line in fuzz_targets.HOSTILE if BESIDE.search(line)])
def test_of_a_good_cassette_the_rows_are_copied_and_nothing_else(tmp_path, sql):
    with Store.replay(tape(tmp_path, sql), predictions=True) as store:
        assert {n for (n,) in store.query("SELECT name FROM sqlite_master WHERE type <> 'index'")} == {*STORE_TABLES}
        counts = {t: store.query(f"SELECT COUNT(*) FROM {t}")[0][0] for t in STORE_TABLES}
        assert counts == dict(calls=6, requests=3, predictions=3, failures=1, ledger=6, about=1)
        assert store.about == dict(command="x")
        assert all(
            isinstance(c, Completion)
            for c in store.calls([k for (k,) in store.query("SELECT key FROM calls")]).values()
        )


def test_a_request_that_unpacks_without_end_is_left_out(tmp_path, monkeypatch, capfd):
    "So are up to a hundred bad rows; with more of them, or without a good one, the cassette is refused."
    from treekit.store import run_store, schema

    monkeypatch.setattr(schema, "_MAX_UNPACKED", 1 << 16)
    path = tape(tmp_path, "")

    def bomb(where):
        sql = f"UPDATE requests SET body = ? WHERE {where}"
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(sql, (zlib.compress(b"[" * (1 << 20)),))

    bomb("rowid < 3")
    with Store.replay(path) as made:
        assert len(made.query("SELECT * FROM requests")) == 1 and len(made.query("SELECT * FROM calls")) == 6
    assert "2 rows of 'requests' can't be read" in capfd.readouterr().err
    monkeypatch.setattr(run_store, "_MAX_SKIPPED", 1)
    with pytest.raises(UsageError, match="more than 1 rows can't be read"):
        Store.replay(path)
    monkeypatch.undo()
    monkeypatch.setattr(schema, "_MAX_UNPACKED", 1 << 16)
    bomb("TRUE")
    with pytest.raises(UsageError, match="no row of 'requests' can be read"):
        Store.replay(path)


# --- settings and small files


@pytest.mark.parametrize("command, name, value", [("ask", "model", "m"), ("estimate", "data", "synthetic")])
def test_an_option_and_set_may_not_both_say_it(treekit_, command, name, value):
    what = "who?" if command == "ask" else "treerare/table1"
    code, said = treekit_(command, what, f"--{name}", value, "--set", f"{name}={value}")
    assert code == 2 and said == f"treekit: {name} is given twice: by --{name} and by --set\n"


@pytest.mark.parametrize("field", ["seed=x", "budget=x", "data=nowhere", "n=0", "seed=1", "model=m"])
def test_set_says_the_same_as_the_option(treekit_, field, monkeypatch):
    import treekit.cli.ask

    seen = []

    def answer(question, named, chosen, dataset, p, corpus, progress):
        seen.append(p) or (_ for _ in ()).throw(UsageError("enough"))

    monkeypatch.setattr(treekit.cli.ask, "answer", answer)
    code, said = treekit_("ask", "who?", "--set", field)
    name, value = field.split("=")
    assert code == 2 and said.count("\n") == 1
    if said == "treekit: enough\n":
        assert str(getattr(seen[0], name)) == value
    else:
        assert value in ("x", "nowhere", "0") and repr(name) in said or "nowhere" in said
    twice = treekit_("ask", "who?", "--set", "search_scope=own", "--set", "search_scope=corpus")
    assert twice == (2, "treekit: search_scope is given twice by --set\n")


@pytest.mark.parametrize(
    "question, said", [("who " * 25_000 + "?", "100,001 characters"), ("who \udcff?", "not UTF-8"), (" ", "empty")]
)
def test_a_question_that_is_none_is_refused_before_it_is_parsed(treekit_, monkeypatch, question, said):
    from treekit.syntax.parser import StanzaParser

    monkeypatch.setattr(StanzaParser, "parse", lambda *a: pytest.fail("it was parsed"))
    code, line = treekit_("ask", question)
    assert code == 2 and line.count("\n") == 1 and said in line


def test_a_long_question_of_a_file_fails_before_it_is_parsed(monkeypatch):
    from treekit.core.types import Question
    from treekit.experiments.run import run
    from treekit.papers.treerare.method import TreeRare
    from treekit.syntax.parser import StanzaParser

    monkeypatch.setattr(StanzaParser, "parse_uncached", lambda *a: pytest.fail("it was parsed"))
    asked = [Question("q", "films", "who " * 25_000 + "?", ("x",))]
    given = dict(store=Store(), corpora=dict(films=()), progress=False)
    results = run({"treerare": TreeRare()}, {"films": asked}, load_profile("offline"), **given)
    assert "100,001 characters" in results.rows[0].error


HEADS = dict(prices=b"model,input,cached_input,output,currency,date,source\n", lengths=b"kind,prompts,mean,low,high\n")
TABLES = [
    ("prices", b"\xff"),
    ("prices", b"x" * 200_000),
    ("prices", HEADS["prices"] + b"m,nan,0,0,USD,d,s\n"),
    ("lengths", b"\xff"),
    ("lengths", b"kind,mean,low,high\na,1,1,1\n"),
    ("lengths", HEADS["lengths"] + b"a,*,nan,1,1\n"),
]


@pytest.mark.parametrize("name, data", TABLES, ids=lambda x: x if isinstance(x, str) else "")
def test_small_tables_are_refused_in_a_line(tmp_path, name, data):
    from treekit.llm.prices import load_prices
    from treekit.experiments.costs import reply_lengths

    path = tmp_path / f"{name}.csv"
    path.write_bytes(data + (b"\n1,2,3" if data.startswith(b"x") else b""))
    with pytest.raises(UsageError, match=path.name):
        load_prices(path) if name == "prices" else reply_lengths(list(recorded_replies.prompts()), path)


@pytest.mark.parametrize("text", ["x = " + "9" * 5000, "x = " + "[" * 5000, "x ="], ids=["digits", "deep", "cut"])
def test_prompts_that_are_no_toml_are_refused_in_a_line(tmp_path, text):
    from treekit.core.prompts import load_prompts

    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UsageError, match="p.toml"):
        load_prompts(tmp_path / "p.toml", recorded_replies.prompts())


@pytest.mark.parametrize("text", ["[]", "[" * 5000, "5", '"x"'])
def test_a_broken_record_is_none(tmp_path, text):
    from treekit.artefacts.build_cache import read_record

    (tmp_path / "r.json").write_text(text)
    assert read_record(tmp_path / "r.json") == {}


def test_a_tree_with_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(UsageError):
        fuzz_targets.read_tree_text("9" * 5000 + ": x")


@pytest.mark.slow
def test_a_truncated_model_gets_a_line(tmp_path):
    import os
    from treekit.training.models import load_model, save_model, tiny_model, tokenizer_of

    tokenizer = tokenizer_of(["who wrote it"])
    save_model(tiny_model(tokenizer), tokenizer, tmp_path)
    os.truncate(tmp_path / "model.safetensors", 1000)
    with pytest.raises(UsageError, match="no model") as e:
        load_model(tmp_path, "cpu")
    assert "\n" not in str(e.value)


# --- renderers


def test_a_cell_is_no_formula_and_a_number_stays_one(tmp_path):
    import pandas as pd
    from treekit.utils.sanitize import cell_text, cell_value
    from treekit.figures.cells import read_cells
    from treekit.figures.tables import save_csv

    given = ["=1+1", "+x", "-x", "@x", " =1", "\t=1", "-", "'=1", "-1.5", "+2", "1e-3", "12 %", "x", ""]
    assert [cell_text(g) for g in given[8:]] == given[8:] and all(cell_text(g)[0] == "'" for g in given[:8])
    assert [cell_value(cell_text(g)) for g in given] == given
    save_csv(
        pd.DataFrame(dict(method=["=cmd()", "-x"], dataset="d", metric="EM", value=[-0.5, 1.0])), tmp_path / "t.csv"
    )
    assert (tmp_path / "t.csv").read_text() == "method,dataset,metric,value\n'=cmd(),d,EM,-0.500\n'-x,d,EM,1.000\n"
    assert [(c.method, c.value) for c in read_cells(tmp_path, "t")] == [("=cmd()", -0.5), ("-x", 1.0)]


def test_annotations_keep_what_was_written(tmp_path):
    from treekit.analysis.outcomes import ANNOTATION_FIELDS, read_annotations, write_line

    new = dict(zip(ANNOTATION_FIELDS, ("ann", "=m", "films", "q1", "Success", "-well")))
    write_line(tmp_path / "a.csv", ANNOTATION_FIELDS, new, [])
    assert ",'-well" in (tmp_path / "a.csv").read_text() and read_annotations([tmp_path / "a.csv"], complete=False) == [
        new
    ]


def test_a_drawing_is_xml_whatever_it_says():
    for texts in fuzz_targets.DRAWN:
        fuzz_targets.drawing(texts)


def test_nothing_hostile_gets_through_a_renderer():
    given = Property("renderer", fuzz_targets.hostile(), fuzz_targets.RENDERERS)
    given.test("5", settings(EVERYTHING, max_examples=12, phases=[Phase.generate]))()


# --- the command


@pytest.mark.slow
def test_every_property_holds_for_an_input():
    "The cheap ones; `make fuzz` tests all properties for longer."
    for given in fuzz_targets.properties():
        if given.name in ("reply", "cassette", "drawing", "explorer"):
            continue
        given.test("0", settings(EVERYTHING, max_examples=2, phases=[Phase.generate]))()


@pytest.mark.long
def test_a_finding_is_shrunk_saved_and_told(tmp_path, capsys):
    "The next run begins with it."

    def run(text):
        tried.append(text)
        if "{{" in text and "FINAL" in text:
            raise KeyError("both")

    tried, database = [], DirectoryBasedExampleDatabase(tmp_path / "found")
    demo = Property("demo", fuzz.mutated(["FINAL: {{ " * 9]), dict(demo=run))
    assert fuzz.search([demo], 1, 3, database) == {"demo"}
    said = capsys.readouterr()
    assert "KeyError: 'both'" in said.err and "demo: demo" in said.err and "fails" in said.out
    smallest = tried[-1]
    tried.clear()
    assert len(smallest) <= 100 and fuzz.search([demo], 1, 4, database) == {"demo"} and smallest in tried[:3]


def test_an_input_that_takes_too_long_is_a_finding():
    def forever(text):
        while True:
            pass

    endless = Property("endless", st.just("x"), dict(forever=forever))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzz, "HANGS", 0.1), patch.setattr(fuzz, "LEAST", 0.01)
        with pytest.raises(AssertionError, match="forever took inf s"):
            endless.holds("x")


@pytest.mark.parametrize(
    "page, read",
    [("<![>one", ["one"]), ("<p>one</p><![CD\n[>two", ["one", "two"]), ("<![if !IE]><p>one</p><![endif]>", ["one"])],
)
def test_a_marked_section_is_a_comment_as_in_a_browser(page, read):
    from treekit.corpora.html import from_html

    assert from_html(page, "a page").to_text().split("\n") == [
        "0: a page",
        *(f"\t{n}: {text}" for n, text in enumerate(read, 1)),
    ]


def test_a_row_that_begins_with_a_bracket_is_no_option_of_the_one_before():
    from treekit.exports.latex import latex_table

    made = latex_table(
        [dict(method=m, dataset="d", metric="EM", value=None) for m in ("A", "[3cm] B", "* C")], "A table", "tab:a"
    )
    assert "{[}3cm] B" in made and not re.search(r"\\\\\s*[\[*]", made)
