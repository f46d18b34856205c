"An index that HippoRAG's public code kept: read without a model; linking and walks equal to the public code's, told again by other means."
import json, os, random, re
from pathlib import Path

import numpy as np
import pytest

from treekit.baselines.hipporag import build_memory
from treekit.baselines.recorded_hipporag import KnownNames, RecordedIndex, public_memory, public_phrase, read_index
from treekit.core.types import Passage
from treekit.corpora.formats import DataError

ROOT = Path(__file__).resolve().parents[1]
TWIN, QUESTIONS = ROOT / "data" / "words" / "hipporag_index.jsonl.xz", ROOT / "data" / "words" / "hipporag_questions.jsonl"
RECORDED = Path(os.environ.get("TREEKIT_RECORDED") or ROOT.parent / "shared" / "recorded")


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch): monkeypatch.setenv("TREEKIT_HOME", str(tmp_path_factory.getbasetemp() / "recorded"))


class Letters:
    "Embeds a text by its pairs of letters: similar words are similar, and nothing is loaded."
    identity = "pairs of letters"

    def __call__(self, texts, questions=False):
        made = np.zeros((len(texts), 256), np.float32)
        for row, text in zip(made, texts):
            for a, b in zip(f" {text}", f"{text} "): row[(31 * ord(a) + ord(b)) % 256] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)

    def asked(self, texts): return self(texts, True)


def as_index(triples):
    return RecordedIndex([Passage(str(i), f"t{i}", "") for i in range(len(triples))], [[] for _ in triples], triples, 0)


def told_again(triples, names, vectors, similarity=0.8, damping=0.5):
    """The public code's `create_graph` and `rank_docs` in other words: dense matrices of passages by facts and facts by phrases, an edge in
    each direction, the similarity in the place of what stood there, and the walk's equation solved instead of iterated."""
    clean = [[tuple(re.sub("[^A-Za-z0-9 ]", " ", x.lower()).strip() for x in t) for t in some] for some in triples]
    phrases = sorted({x for some in clean for t in some for x in (t[0], t[2])})
    facts = sorted({t for some in clean for t in some})
    has, holds = np.zeros((len(clean), len(facts))), np.zeros((len(facts), len(phrases)))
    edges = np.zeros((len(phrases), len(phrases)))
    for p, some in enumerate(clean):
        for t in some:
            has[p, facts.index(t)] = 1
            a, b = phrases.index(t[0]), phrases.index(t[2])
            holds[facts.index(t), [a, b]] = 1
            edges[a, b] += 1
            edges[b, a] += 1
    unit = vectors([p or "?" for p in phrases])
    like = (unit @ unit.T).round(5)
    for i, phrase in enumerate(phrases):
        if len(re.sub("[^A-Za-z0-9]", "", phrase)) <= 2: continue
        for count, j in enumerate(j for j in np.argsort(-like[i], kind="stable") if j != i):
            if like[i, j] < similarity or count > 100: break
            edges[i, j] = like[i, j]
    np.fill_diagonal(edges, 0)
    both = edges + edges.T
    degree = both.sum(axis=0)
    has_phrase = (has @ holds > 0).sum(axis=0)
    starts = np.zeros(len(phrases))
    for name in names:
        nearest = int(np.argmax((vectors([re.sub("[^a-z0-9 ]", " ", name.lower()).strip()]) @ unit.T).round(5)[0]))
        starts[nearest] = 1 / has_phrase[nearest] if has_phrase[nearest] else 1
    reset = starts / starts.sum()
    walk = np.where(degree > 0, both / np.where(degree > 0, degree, 1), reset[:, None])  # who is stuck starts again
    chance = np.linalg.solve(np.eye(len(phrases)) - damping * walk, (1 - damping) * reset)
    return starts, has @ (holds @ chance)


def same_ranking(hits, scores, passages):
    "Whether hits stand in the order of the scores, to what rounding can't tell, and none that has a score is missing."
    place = {p.id: i for i, p in enumerate(passages)}
    own = [scores[place[h.passage.id]] for h in hits]
    assert all(a >= b - 1e-8 for a, b in zip(own, own[1:])), own
    assert len(hits) == (scores > 1e-9).sum() and np.allclose([h.score for h in hits], np.array(own) / max(own), atol=2e-5)


def random_triples(draw, passages, names):
    first, last = ["Ida", "Ada", "Otto"], ["Roth", "Röth", "Lund", "Lunds", "X"]
    def name(): return f"{draw.choice(first)} {draw.choice(last)} {draw.randrange(names)}"
    made = [[(name(), draw.choice(["is", "knows"]), name()) for _ in range(draw.randrange(5))] for _ in range(passages)]
    for some in made:
        if some and draw.random() < 0.3: some.append(draw.choice(some))  # said twice
        if draw.random() < 0.2: some.append((n := name(), "is", n))  # about itself
    return made


@pytest.mark.parametrize("seed", range(12))
def test_the_public_graph_ranks_as_the_public_code(seed):
    "Synonyms, repeated triples, triples about themselves, other letters, islands: from any names."
    draw = random.Random(seed)
    triples = random_triples(draw, 30, 4 + 3 * seed)
    memory = public_memory(as_index(triples), 0.8, Letters())
    assert any(s for _, _, s in memory.graph.edges(data="synonyms"))
    for _ in range(5):
        names = [draw.choice(memory.nodes) + draw.choice(["", "s", " the 2nd"]) for _ in range(draw.choice([1, 2, 3]))]
        starts, scores = told_again(triples, names, Letters())
        mine = {node: memory.specificity(node) for _, node, _ in memory.linked(names)}
        assert mine == {i: starts[i] for i in np.flatnonzero(starts)}
        same_ranking(memory.search(mine, 1000), scores, memory.passages)


@pytest.mark.parametrize("seed", range(4))
def test_ours_ranks_as_the_public_code_on_the_same_graph_and_seeds(seed):
    "Where the two graphs are the same (nothing twice, nothing about itself, plain letters, no synonyms), so are the rankings."
    draw = random.Random(100 + seed)
    pairs = [{tuple(draw.sample(range(40), 2)) for _ in range(3)} for _ in range(40)]
    triples = [[(f"n{a}", "is", f"n{b}") for a, b in sorted(some)] for some in pairs]
    index = as_index(triples)
    ours, theirs = build_memory(index.passages, index.facts, 1.0, Letters()), public_memory(index, 2.0, Letters())
    assert sorted(ours.nodes) == theirs.nodes
    for _ in range(5):
        names = draw.sample(ours.nodes, 2)
        ranked = []
        for memory in (ours, theirs):
            starts = {node: memory.specificity(node) for _, node, _ in memory.linked(names)}
            ranked.append([(h.passage.id, h.score) for h in memory.search(starts, 40)])
        scores = told_again(triples, names, Letters(), similarity=2.0)[1]
        same_ranking(ours.search({ours.nodes.index(n): ours.specificity(ours.nodes.index(n)) for n in names}, 40), scores, ours.passages)
        assert [s for _, s in ranked[0]] == pytest.approx([s for _, s in ranked[1]], abs=2e-5)


def test_the_committed_part_is_read():
    "Six questions' passages, as a model read them; every supporting passage is there."
    index = read_index(TWIN)
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    there = {p.id for p in index.passages}
    assert len(questions) == 6 and len(index.passages) == 120 == len(there) and index.left_out < 20
    assert all({*map(str, q["supporting"])} <= {*map(str, q["candidates"])} <= there for q in questions)
    known = KnownNames(index)
    assert sum(bool(known([s["question"] for s in q["decomposition"]])) for q in questions) >= 5
    assert TWIN.stat().st_size + QUESTIONS.stat().st_size < 100_000


def test_both_ranks_on_real_triples_are_the_public_code_s():
    "A hundred passages of the committed index, with synonyms by letters."
    index = read_index(TWIN)
    some = RecordedIndex(index.passages[:60], index.entities[:60], index.triples[:60], 0)
    memory, known = public_memory(some, 0.9, Letters()), KnownNames(some)
    names = [n for n in known([p.text for p in some.passages])][::40]
    assert len(names) >= 4
    for name in names:
        starts, scores = told_again(some.triples, [name], Letters(), 0.9)
        mine = {node: memory.specificity(node) for _, node, _ in memory.linked([name])}
        assert mine == {i: starts[i] for i in np.flatnonzero(starts)}
        same_ranking(memory.search(mine, 100), scores, memory.passages)


def test_what_is_no_index_is_refused(tmp_path):
    for name, text in (("a.jsonl", '{"id": 1}'), ("b.jsonl", "[]"), ("c.json", "{}"), ("d.jsonl", "x"), ("e.jsonl.xz", "no xz"),
                       ("f.jsonl", '{"id": 1, "title": "", "text": "", "entities": 3, "triples": []}')):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=name[0]): read_index(tmp_path / name)
    (tmp_path / "odd.jsonl").write_text(json.dumps(dict(id=1, title="T", text="x", entities=["A", 3, None, ""], triples=[
        ["A", "is", 3], ["A"], "A is B", None, ["A", ["is"], "B"], {"a": 1}, ["A", "", "B"], ["x" * 300, "is", "B"]])), encoding="utf-8")
    index = read_index(tmp_path / "odd.jsonl")
    assert (index.triples, index.left_out, index.entities) == ([[("A", "is", "3")]], 7, [["A", "3"]])
    empty = as_index([[], []])
    assert public_memory(empty, 0.8, Letters()).nodes == [] and empty.memory(encoder=Letters()).linked(["A"]) == []


@pytest.mark.skipif(not (RECORDED / "hipporag_musique_index.jsonl").is_file(), reason="../shared/recorded isn't here")
def test_the_whole_recorded_index():
    "As its sources describe it: 1,890 passages, two without triples, 185 triples of other lengths than three."
    index = read_index(RECORDED / "hipporag_musique_index.jsonl")
    rows = [json.loads(line) for line in (RECORDED / "hipporag_musique_index.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(index.passages) == 1890 and sum(not r["triples"] for r in rows) == 2
    other = sum(len(t) != 3 for r in rows for t in r["triples"])
    assert other == 185 <= index.left_out <= other + 60
    assert sum(map(len, index.triples)) + index.left_out == sum(len(r["triples"]) for r in rows)
    assert public_phrase(index.triples[0][0][0]) == "journal of mathematical physics"
