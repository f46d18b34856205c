"""The world: stable, streamed, true to its facts; every question has the answer it says it has."""

import os, re, subprocess, sys
from collections import Counter

import pytest
from treekit.synthetic.drafts import FactIndex
from treekit.config import UsageError, root
from treekit.experiments.resources import load, load_corpus
from treekit.synthetic.facts import make_block
from treekit.synthetic.wording import wording, write
from treekit.synthetic.generate import KINDS, STYLES, SyntheticWiki
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
    return FactIndex(list(world.entities()))


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


# -- facts and articles


def test_names_are_shared_on_purpose_only():
    titles, names = Counter(), {}
    for b in range(60):
        for e in make_block(0, b):
            titles[wording().title(e)] += 1
            names.setdefault(wording().name(e), []).append(e)
    assert max(titles.values()) == 1
    assert all({*same} == {same[0], *same[0].namesakes} for same in names.values() if len(same) > 1)


def test_articles_say_all_that_can_be_asked():
    w = wording()
    for b in range(8):
        for e in make_block(1, b):
            stated = frozenset().union(*(s for p in write(w, 1, e).paragraphs() for s in p.states))
            assert not (e.facts.keys() & w.ask.keys()) - stated, e


# -- documents: the same facts at an encyclopedia's length


@pytest.fixture(scope="module")
def documents(world):
    return list(world.documents())


# -- questions


def test_answers_stand_in_the_supporting_passages(asked, passages):
    for kind in set(KINDS) - {"explanation"}:
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


def test_questions_about_several_things_have_readings_on_their_pages(asked, passages):
    for q in asked["several"]:
        pages = {p.wikipage for p in q.qa_pairs}
        assert (
            2 <= len(q.qa_pairs) == len(pages) == len({p.answers[0] for p in q.qa_pairs}) <= 5 and not q.decomposition
        )
        assert pages == {passages[i].title for i in q.supporting} and all(
            p.answers[0] in q.long_answers[0] for p in q.qa_pairs
        )


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


# -- the world as datasets


def test_corpus_of_the_world_holds_all_supports():
    ids = {p.id for p in load_corpus("musique", "synthetic")}
    assert all(set(q.supporting) <= ids for q in load("musique", "synthetic", n=30))
    assert len({p.id for p in load_corpus("musique", "synthetic:700")}) > len(ids)


def test_wrong_requests():
    with pytest.raises(UsageError, match="at least 100"):
        SyntheticWiki(articles=10)
    with pytest.raises(UsageError, match="did you mean 'bridge'"):
        SyntheticWiki().questions("brigde")
    with pytest.raises(UsageError, match="no data set of the synthetic wiki"):
        load("hotpot", "synthetic")
