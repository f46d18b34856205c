"""The world: stable, streamed, true to its facts; every question has the answer it says it has."""

import hashlib, itertools, os, re, subprocess, sys
from collections import Counter

import pytest
from treekit.synthetic.drafts import FactIndex
from treekit.config import UsageError, root
from treekit.corpora.documents import tree_of
from treekit.experiments.resources import WORLD, exemplars, load, load_corpus
from treekit.synthetic.facts import CULTURES, INVERSE, make_block
from treekit.synthetic.wording import wording, write
from treekit.synthetic.generate import KINDS, POOLS, STYLES, SyntheticWiki
from treekit.synthetic.questions import NEVER_TRAINED

N = 100  # questions of each kind that the default world must have


@pytest.fixture(scope="module")
def world():
    return SyntheticWiki(0, 400)


@pytest.fixture(scope="module")
def passages(world):
    return {p.id: p for p in world.passages()}


@pytest.fixture(scope="module")
def facts(world):
    return FactIndex(world.facts())


@pytest.fixture(scope="module")
def asked(world):
    return {kind: world.questions(kind, N) for kind in KINDS}


def _all(asked):
    return [q for found in asked.values() for q in found]


# -- the same bytes

_PRINT = """
import hashlib, itertools
from treekit.synthetic.generate import SyntheticWiki, KINDS
w, h = SyntheticWiki(5, 300), hashlib.sha256()
for a in itertools.islice(w.articles(), 120): h.update((a.id + a.text).encode())
for d in itertools.islice(w.documents(), 60):
    h.update((d.text + repr([sorted(map(str, s)) for p in d.paragraphs() for s in p.states])).encode())
for kind in KINDS:
    for q in w.questions(kind, 4): h.update(repr((q, q.meta)).encode())
print(h.hexdigest())
"""


@pytest.mark.long
def test_same_bytes_in_every_process():
    prints = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**os.environ, "PYTHONHASHSEED": s},
            capture_output=True,
            text=True,
            check=True,
            cwd=root(),
        ).stdout
        for s in ("0", "1", "4711")
    }
    assert len(prints) == 1 and len(prints.pop().strip()) == 64


def test_a_larger_world_begins_with_the_smaller():
    few, many = SyntheticWiki(3, 250), SyntheticWiki(3, 1_000_000)
    for a, b in itertools.zip_longest(few.articles(), itertools.islice(many.articles(), 250)):
        assert a == b
    for a, b in itertools.zip_longest(few.documents(), itertools.islice(many.documents(), 250)):
        assert a == b
    assert [a.text for a in itertools.islice(SyntheticWiki(4).articles(), 5)] != [
        a.text for a in itertools.islice(many.articles(), 5)
    ]


def test_two_readers_do_not_disturb_each_other():
    w = SyntheticWiki(1, 300)
    plain = [a.text for a in w.articles()]
    mixed, other = [], SyntheticWiki(2, 300).articles()
    for a in w.articles():
        next(other)
        w.questions("bridge", 1)
        mixed.append(a.text)
        if len(mixed) == 130:
            break
    assert mixed == plain[:130]


def test_order_of_use_changes_nothing():
    fresh = [q.id for q in SyntheticWiki(6, 200).questions("compositional", 20)]
    w = SyntheticWiki(6, 200)
    for kind in KINDS:
        w.questions(kind, 3)
    assert [q.id for q in w.questions("compositional", 20)] == fresh
    assert [q.id for q in w.questions("compositional", 9)] == fresh[:9]


# -- facts and articles


def test_names_are_shared_on_purpose_only():
    titles, names = Counter(), {}
    for b in range(60):
        for e in make_block(0, b):
            titles[wording().title(e)] += 1
            names.setdefault(wording().name(e), []).append(e)
    assert max(titles.values()) == 1
    assert all({*same} == {same[0], *same[0].namesakes} for same in names.values() if len(same) > 1)


def test_spelling_keeps_names_apart():
    "Sounds alternate between consonants and vowels, and an ending has one owner: two invented names are never spelt alike."
    owners = Counter(
        e for c in CULTURES.values() for kind in ("country", "city", "river", "surname", "thing") for e in c[kind]
    )
    assert max(owners.values()) == 1
    vowels = set("aeiou")
    for c in CULTURES.values():
        for part in ("initial", "medial"):
            assert all(not vowels & set(s.replace("qu", "q")) for s in c[part]) and len(set(c[part])) == len(c[part])
        assert all(
            e[0] not in vowels for kind in ("country", "city", "river", "surname", "m", "f", "thing") for e in c[kind]
        )


def test_times_are_in_order():
    for b in range(40):
        for e in make_block(2, b):
            for parent in ("father", "mother"):
                if p := e.get(parent):
                    assert p["born"][0] + 18 <= e["born"][0]
            if "died" in e.facts:
                assert e["died"] > e["born"]
            for work, low in (("directed", 20), ("wrote", 20), ("acted_in", 8)):
                for x in e.values(work):
                    year = x["released"][0] if "released" in x.facts else x["year"]
                    assert e["born"][0] + low <= year
            if e.kind == "film":
                assert e["studio"]["established"] < e["released"][0]
                if "based_on" in e.facts:
                    assert e["based_on"]["year"] < e["released"][0]
            if e.kind == "album":
                assert e["performer"]["formed"] < e["released"][0]


def test_articles_say_all_that_can_be_asked():
    w = wording()
    for b in range(8):
        for e in make_block(1, b):
            stated = frozenset().union(*(s for p in write(w, 1, e).paragraphs() for s in p.states))
            assert not (e.facts.keys() & w.ask.keys()) - stated, e


def test_articles_read_like_articles(world):
    depths = Counter()
    for a in world.articles():
        text = a.text
        assert not re.search(r"[{}]|None(?! of)|  |the the |\ba [aeio]\w|\bA A\b| ,|\.\.", text), text
        assert all(
            s[0].isupper() for s in re.split(r"(?<=[a-z]\.) ", " ".join(p.passage.text for p in a.paragraphs()))
        ), text
        depths["nested" if any(s.sections for s in a.sections) else "flat"] += 1
        for p in a.paragraphs():
            assert p.passage.title == a.title and 2 <= len(p.passage.text.split()) <= 110
            assert len(p.ends) == len(p.states)
            assert p.ends[-1] == len(p.passage.text)
            assert all(p.passage.text[e - 1] in ".?!" for e in p.ends)
    assert depths["nested"] > depths["flat"] / 4


# -- documents: the same facts at an encyclopedia's length


@pytest.fixture(scope="module")
def documents(world):
    return list(world.documents())


def _sentences(article):
    "Each sentence with what it states."
    for p in article.paragraphs():
        for start, end, states in zip((0, *p.ends), p.ends, p.states):
            yield p.passage.text[start:end].strip(), states


def test_documents_are_as_long_and_as_nested_as_real_pages(documents):
    words = sorted(sum(len(p.passage.text.split()) for p in d.paragraphs()) for d in documents)
    assert 900 < sum(words) / len(words) < 1100 and words[0] > 400 and words[-1] < 1700
    assert sum(600 <= n <= 1500 for n in words) > 0.9 * len(words)
    trees = [tree_of(d) for d in documents]
    levels = Counter(max(t.depth(h) for h in t.headings) for t in trees)
    assert set(levels) == {2, 3} and min(len(t.headings) for t in trees) >= 8
    under = sorted(
        sum(len(t[i].text.split()) for i in t.content(h)) for t in trees for h in t.headings[1:] if t.content(h)
    )
    assert (
        50 < under[len(under) // 2] < 140
        and max(len(n.text.split()) for t in trees for n in t.nodes if n.type == "content") <= 110
    )


def test_documents_read_like_documents(documents):
    for d in documents:
        assert not re.search(r"[{}]|None(?! of)|  |the the |\ba [aeio]\w|\bA A\b| ,|\.\.", d.text), d.text
        for text, _ in _sentences(d):
            assert text[0].isupper() and re.fullmatch(r"[^.?!]*[.?!]", text.replace("& ", "")), text


def test_documents_name_their_subject_as_rarely_as_real_pages(documents):
    "Measured on real pages: 8 to 11 % of the sentences have the full name, 26 to 30 % a pronoun and no name."
    found, pronouns = Counter(), set("he she it they his her its their him".split())
    for d in documents:
        name = re.sub(r" \(.*|, .*", "", d.title).casefold()
        for text, _ in _sentences(d):
            words = set(re.findall(r"\w+", text.casefold()))
            found["full" if name in text.casefold() else "pronoun" if words & pronouns else "none"] += 1
    assert 0.05 < found["full"] / found.total() < 0.15 and 0.2 < found["pronoun"] / found.total() < 0.4


def test_documents_state_what_articles_state_and_nothing_else(documents, world):
    w, entities = wording(), {e.id: e for b in range(4) for e in make_block(0, b)}
    for d, a, e in zip(documents, world.articles(), entities.values(), strict=True):
        own, lead = {}, {id(p) for s in d.sections if not s.heading for p in s.paragraphs}
        for p in d.paragraphs():
            for start, end, states in zip((0, *p.ends), p.ends, p.states):
                for s, r, *v in states:
                    if r != "event" and not r.startswith("why."):
                        x = entities[s]
                        assert (entities[v[0]] in x.values(r)) if v else r in x.facts, (d.title, s, r, v)
                        value = entities[v[0]] if v else x[r]
                        shown = x if v and value is e else value if isinstance(value, list) else value
                        assert any(t in p.passage.text[start:end] for t in _in_words(w, r, shown, e)), (
                            r,
                            p.passage.text[start:end],
                        )
                    if s == e.id or v == [e.id]:
                        own.setdefault(r if s == e.id else INVERSE[r], set()).add(id(p) in lead)
        told = {r for p in a.paragraphs() for states in p.states for r in states}
        assert told <= own.keys() and all(False in own[r] for r in told - DEFINING), d.title


DEFINING = {"genre", "fiction", "music", "monument", "industry", "country"}  # what the lead alone may say


def _in_words(w, relation, value, e):
    "How a value may stand in a sentence."
    if hasattr(value, "kind"):
        return [w.name(value), w._special("s", e) if value is e else w.name(value)]
    if isinstance(value, list):
        return [w.name(v) for v in value]
    return [w.value(relation, value, style) for style in range(len(w.dates))]


def test_passages_are_as_they_were_before_there_were_documents():
    "What other methods read, by its hash: documents are made of words of their own."

    def digest(lang):
        h = hashlib.sha256()
        for p in SyntheticWiki(lang=lang).passages():
            h.update(f"{p.id}\n{p.title}\n{p.text}\n".encode())
        return h.hexdigest()

    assert digest("en") == "ede7e6a75739ed09b2b50dde36dbf6664c8c803d54a6bf9e3d9150232c068e8b"
    assert digest("ko") == "69d525fd66f1b625d63c5a59afad3f60442a69ecce6f03c485d427ea9d1fdd94"


def test_where_a_language_has_no_documents_they_are_the_articles():
    few = SyntheticWiki(0, 100, "ko")
    assert list(few.documents()) == list(few.articles())


def test_every_fact_has_several_wordings():
    for kind, sections in wording().plans.items():
        for _, groups in sections:
            for group in groups:
                if group[0].states and not group[0].states & {"rector_of"}:
                    assert len(group) >= 2, (kind, group[0].text)


def test_languages_are_files():
    with pytest.raises(UsageError, match="no language of the world named 'xx'"):
        SyntheticWiki(lang="xx")


# -- questions


def test_enough_of_each_kind(asked):
    assert {k: len(v) for k, v in asked.items()} == {k: N for k in KINDS}
    for found in asked.values():
        assert len({q.id for q in found}) == len({q.question for q in found}) == N
        starts = Counter(" ".join(q.question.split()[:2]) for q in found)
        assert len(starts) >= 3  # not one template


def test_hops_and_shapes(asked):
    shapes = Counter(q.type for q in asked["compositional"])
    assert {"2hop", "3hop1", "3hop2", "4hop1", "4hop2", "4hop3"} == set(shapes)
    for q in asked["compositional"]:
        assert len(q.decomposition) == q.hops == int(q.type[0])
        references = [set(re.findall(r"#(\d)", s.question)) for s in q.decomposition]
        assert all(int(r) <= k for k, found in enumerate(references) for r in found)
        assert set().union(*references) == {str(k) for k in range(1, q.hops)}  # every step is used by a later one
        assert any(len(r) == 2 for r in references) == (q.type in ("3hop2", "4hop2", "4hop3"))


def test_answers_stand_in_the_supporting_passages(asked, passages):
    for kind in set(KINDS) - {"yes_no", "explanation"}:
        for q in asked[kind]:
            text = " ".join(passages[i].contents for i in q.supporting)
            groups = q.answer_groups or (q.answers,)
            assert all(any(a in text for a in g) for g in groups), (q.question, groups, text)


def test_steps_are_answered_by_their_passages(asked, passages):
    for q in _all(asked):
        for s in q.decomposition:
            if s.support_id and not s.question.startswith("What are the") and q.type != "list":
                assert (
                    s.answer in passages[s.support_id].contents
                    or re.sub(r"(\d+) (\w+) (\d{4})", r"\2 \1, \3", s.answer) in passages[s.support_id].contents
                ), (q.question, s)


def test_answers_are_the_only_ones(asked, facts):
    "The question's query, asked of all facts of the world and not only of its own block."
    entity = {}
    for kind in set(KINDS) - {
        "comparison",
        "bridge_comparison",
        "yes_no",
        "ambiguous",
        "underspecified",
        "several",
        "explanation",
        "hybrid",
        "deep_hybrid",
    }:
        for q in asked[kind]:
            query = q.meta["query"]
            found = facts.solve(query["find"], query["where"])
            assert len(found) == (len(q.answer_groups) or 1), (q.question, found)
            for v in found:
                name = next(iter(facts.of[("name", v)])) if isinstance(v, str) and v.startswith("#") else v
                text = wording().spell(name) if hasattr(name, "pattern") else None
                if text:
                    assert text in q.answers, q.question


def test_names_in_questions_mean_one_thing(asked, facts):
    "What a question says of each thing that it names is true of that thing alone."
    for q in _all(asked):
        if q.type == "explanation":
            continue
        where = q.meta["query"]["where"]
        for v in {s for s, r, o in where if r == "name" and s != "?t"}:
            if any(o == v for s, r, o in where):
                continue  # named only to say where something else is

            def describes(r, o):
                return r in ("name", "kind", "occupation", "released.year", "year", "field") and not str(o).startswith(
                    "?"
                )

            said = [(s, r, o) for s, r, o in where if s == v and describes(r, o)]
            assert facts.solve(v, said), q.question


def test_comparisons_are_right(asked, facts):
    for q in asked["comparison"] + asked["bridge_comparison"] + asked["yes_no"]:
        query = q.meta["query"]
        a, b = (facts.solve(side, query["where"]) for side in query["sides"])
        assert len(a) == len(b) == 1  # each side has one value
        (a,), (b,) = a, b
        way = query["compare"]
        if way in ("same", "before"):
            assert q.answers == (("yes",) if (a == b if way == "same" else a < b) else ("no",)), q.question
        else:
            first = next(iter(s for s, r, o in query["where"] if r == "name"))
            name = wording().spell(next(o for s, r, o in query["where"] if s == first and r == "name"))
            assert (q.answers[0] == name) == ((a < b) == (way == "low")), q.question
    for q in asked["hybrid"] + asked["deep_hybrid"]:
        assert q.hops == len(q.decomposition) - 1
        assert (
            sum(q.answers[0] in s.answer for s in q.decomposition) >= 2 and q.answers[0] == q.decomposition[-1].answer
        )  # in a list, too
    said = Counter(q.answers for q in asked["yes_no"])
    assert set(said) == {("yes",), ("no",)} and min(said.values()) >= N // 3


def test_ambiguous_questions_have_their_readings(asked, passages):
    for q in asked["ambiguous"]:
        assert len(q.qa_pairs) >= 2 and len(q.answer_groups) == len(q.qa_pairs)
        assert (
            len({p.question for p in q.qa_pairs})
            == len({p.wikipage for p in q.qa_pairs})
            == len(q.qa_pairs)
            == len({p.answers[0] for p in q.qa_pairs})
        )
        assert {p.wikipage for p in q.qa_pairs} == {passages[i].title for i in q.supporting}
        assert all(p.answers[0] in q.long_answers[0] and p.question != q.question for p in q.qa_pairs)


def test_underspecified_questions_have_their_readings(asked):
    for q in asked["underspecified"]:
        assert 2 <= len(q.qa_pairs) == len(q.answer_groups) == len({p.answers[0] for p in q.qa_pairs})
        assert len({p.wikipage for p in q.qa_pairs}) == 1 and not q.decomposition  # facts of one thing
        assert all(p.answers[0] in q.long_answers[0] and p.question != q.question for p in q.qa_pairs)


def test_questions_about_several_things_have_readings_on_their_pages(asked, passages):
    for q in asked["several"]:
        pages = {p.wikipage for p in q.qa_pairs}
        assert (
            2 <= len(q.qa_pairs) == len(pages) == len({p.answers[0] for p in q.qa_pairs}) <= 5 and not q.decomposition
        )
        assert pages == {passages[i].title for i in q.supporting} and all(
            p.answers[0] in q.long_answers[0] for p in q.qa_pairs
        )


def test_pools_have_the_size_of_the_public_data(world):
    for name, size in POOLS.items():
        assert {len(q.paragraphs) for q in world.dataset(name, 40)} == {size}


def test_deep_questions_have_five_and_six_hops(asked):
    assert {q.hops for q in asked["deep"]} == {5, 6} and all(len(q.decomposition) == q.hops for q in asked["deep"])
    assert {s.question.count("#") for q in asked["deep"] for s in q.decomposition[1:]} == {1}
    for q in asked["deep_hybrid"]:  # whose list it is has to be found out first
        assert q.type == "hybrid" and any(re.search(r"#1\b", s.question) for s in q.decomposition[1:])
        assert re.match(r"Which of #[23]\b|Who of #[23]\b", q.decomposition[-1].question)


@pytest.mark.slow
def test_nothing_held_out_is_on_the_training_side(world):
    "Wordings and kinds that nothing is trained on: a share of the dev side, none of the train side."
    asks = [texts for forms in world.w.ask.values() for part, texts in forms.items() if part.startswith("ask")]
    templates = [t for texts in asks for t in texts if t.held_out]
    patterns = [re.compile(".+".join(map(re.escape, t.text.split("{x}")))) for t in templates]
    for style in ("hotpotqa", "musique", "2wiki", "general"):
        dev, train = (world.dataset(style, 80, split) for split in ("dev", "train"))
        share = [sum(any(p.fullmatch(q.question) for p in patterns) for q in side) / len(side) for side in (dev, train)]
        assert share[0] > 0.08 and share[1] == 0, (style, share)
    for style in STYLES:
        assert not {q.id.split("-")[1] for q in world.dataset(style, 40, "train")} & set(NEVER_TRAINED)


@pytest.mark.long
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_data_sets_of_one_table_share_no_question(lang):
    world = SyntheticWiki(lang=lang)
    sets = [{q.id for q in world.dataset(name, 200)} for name in ("hotpotqa", "musique", "2wiki", "ambigdocs", "asqa")]
    assert min(map(len, sets)) > 150 and len(set().union(*sets)) == sum(map(len, sets))


def test_explanations_have_three_claims(asked, passages):
    for q in asked["explanation"]:
        assert len(q.claims) == 3 and all(c in q.long_answers[0] for c in q.claims)
        assert not any(
            c in passages[i].text for c in q.claims for i in q.supporting
        )  # the article puts it in other words


def test_pools(asked, passages):
    for q in _all(asked):
        ids = [p.id for p in q.paragraphs]
        assert len(set(ids)) == len(ids) and 10 <= len(ids) <= 28 and set(q.supporting) < set(ids) <= set(passages)
        assert all(p == passages[p.id] for p in q.paragraphs)
        titles = {passages[i].title for i in q.supporting}
        assert {t for t, _ in q.facts} == titles
        for i, n in q.meta["facts"]:
            assert i in q.supporting and n < len(q.meta["sent_ends"][i])


def test_two_hop_questions_need_two_passages(asked):
    for kind in ("bridge", "comparison", "intersection", "inference", "bridge_comparison"):
        assert all(len(q.supporting) >= 2 for q in asked[kind])


@pytest.mark.long
def test_no_question_is_on_both_sides(world):
    for kind in KINDS:
        dev, train = (
            world.questions(kind, None if kind in ("ambiguous", "inference", "explanation") else 60, s)
            for s in ("dev", "train")
        )
        assert len(train) >= 30
        assert not {q.id for q in dev} & {q.id for q in train} and not {q.question for q in dev} & {
            q.question for q in train
        }


@pytest.mark.slow
def test_questions_come_from_all_parts():
    found = SyntheticWiki(0, 5000).questions("bridge", 50)
    assert len({q.paragraphs[0].title for q in found}) > 40
    assert len({w for q in found for w in re.findall(r"[A-Z]\w{5,}", q.question)}) > 45


# -- the world as datasets


@pytest.mark.long
def test_datasets_of_the_world():
    for name in WORLD:
        dev = load(name, "synthetic", n=12)
        assert len(dev) == 12 and all(q.dataset == f"world/{name}" for q in dev)
        assert [q.id for q in load(name, "synthetic", n=5)] == [q.id for q in dev[:5]]
        shots = exemplars(name, "synthetic", k=3, exclude=[dev[0].id])
        assert len(shots) == 3 and not {q.id for q in shots} & {q.id for q in load(name, "synthetic", n=100)}
    assert set(STYLES) == set(WORLD)
    assert {q.type for q in load("2wiki", "synthetic", n=20)} == {
        "compositional",
        "comparison",
        "bridge_comparison",
        "inference",
    }
    assert {q.hops for q in load("musique", "synthetic", n=20)} == {2, 3, 4}
    assert load("hotpotqa", "synthetic", n=3, seed=1) != load("hotpotqa", "synthetic", n=3, seed=0)


def test_corpus_of_the_world_holds_all_supports():
    ids = {p.id for p in load_corpus("musique", "synthetic")}
    assert all(set(q.supporting) <= ids for q in load("musique", "synthetic", n=30))
    assert len({p.id for p in load_corpus("musique", "synthetic:700")}) > len(ids)


def test_wrong_requests():
    with pytest.raises(UsageError, match="at least 100"):
        SyntheticWiki(articles=10)
    with pytest.raises(UsageError, match="did you mean 'bridge'"):
        SyntheticWiki().questions("brigde")
    with pytest.raises(UsageError, match="no dataset of the world"):
        load("hotpot", "synthetic")


@pytest.mark.slow
def test_memory_does_not_grow():
    code = (
        "import resource, itertools\nfrom treekit.synthetic.generate import SyntheticWiki\n"
        "def peak(n):\n  w = SyntheticWiki(0, 1_000_000)\n  for _ in itertools.islice(w.passages(), n): pass\n"
        "  for _ in itertools.islice(w.documents(), n // 20): pass\n  return "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "a = peak(4000); b = peak(40_000); print(b - a)"
    )
    grown = int(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root()).stdout
    )
    assert grown < 30_000  # KiB
