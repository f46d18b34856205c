"HippoRAG and GraphRAG on graphs made by hand: what stands in the graph, what a walk finds, what is asked and paid, and what nonsense does to it."

import asyncio, random
from collections import Counter
from types import SimpleNamespace

import networkx
import numpy as np
import pytest

from fakes import FakeChat
from treekit.config import UsageError, load_profile
from treekit.core.types import Passage, Question
from treekit.baselines.graph_extraction import read_names, same_name
from treekit.baselines.graphrag import GraphRAG, read_points
from treekit.baselines.graphrag_index import (
    Element,
    communities,
    finest,
    read_graph,
    read_report,
)
from treekit.baselines.hipporag import HippoRAG, best_of_searches, build_memory, read_triples
from treekit.core.method import Context
from treekit.retrieval.bm25 import Hit
from treekit.retrieval.dense import Dense
from treekit.experiments.run import run
from treekit.store.run_store import Store

PROFILE = load_profile("offline", retriever="dense")
FACTS = {  # a passage's title -> its triples; its text is these
    "Grey Harbour": [("Grey Harbour", "is a novel by", "Ida Roth")],
    "Ida Roth": [("Ida Roth", "came to the world in", "Tarn"), ("Ida Roth", "studied in", "Berlin")],
    "Tarn": [("Tarn", "is a town in", "Voss County")],
    "The Author of Blue Harbour": [("Blue Harbour", "has an author who was born in", "Orle")],
    "Births of Authors": [("Authors", "are born in", "many places")],
    "Ada Lund": [("Ada Lund", "married", "Olin Lund"), ("Ada Lund", "was born in", "Orle")],
}
SHELF = [
    Passage(f"p{i}", title, " ".join(f"{' '.join(t)}." for t in triples))
    for i, (title, triples) in enumerate(FACTS.items())
]
ASKED = "Where was the author of Grey Harbour born?"


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path_factory.getbasetemp() / "graphs"))


class Reader(FakeChat):
    "Reads the shelf without a mistake; `wrong` has other replies, by prompt and passage's title."

    model, endpoint, defaults = "gpt-4o-mini", "http://nowhere/v1", dict(temperature=0.0, max_tokens=100)

    def __init__(self, wrong=None, latency=0.0):
        super().__init__(latency=latency, tokens=(10, 5))
        self.wrong = wrong or {}

    def reply(self, request, sample):
        given, task, render = request.inputs, request.prompt.task, request.prompt.format.render
        about = str(given.get("passage", given.get("text", "")))
        title = about.split("\n")[0]
        if (task, title) in self.wrong:
            return self.wrong[task, title]
        triples = FACTS.get(title, [])
        if task == "name_entities":
            return render(
                [n for n in dict.fromkeys(x for ts in FACTS.values() for s, _, o in ts for x in (s, o)) if n in about]
            )
        if task == "extract_triples":
            return render(triples)
        if task == "extract_graph":
            return render(
                dict(
                    entities=[
                        dict(name=n, type="thing", description=f"{n} of {title}") for s, _, o in triples for n in (s, o)
                    ],
                    relations=[dict(source=s, target=o, description=f"{s} {r} {o}", strength=5) for s, r, o in triples],
                )
            )
        if task == "glean_graph":
            return render(dict(entities=[], relations=[]))
        if task == "summarise_descriptions":
            return " / ".join(given["descriptions"])
        if task == "report_community":
            return render(
                dict(
                    title=given["entities"][0].split(" (")[0],
                    summary="Hangs together.",
                    rating=5,
                    findings=[r.split(": ", 1)[1] + "." for r in given["relations"]],
                )
            )
        if task == "map_answer":
            return render([dict(answer=r, score=80 if "Tarn" in r else 0) for r in given["reports"]])
        if task == "thought":
            return "So the answer is: Tarn."
        return (
            "Explanation: it is said.\nFINAL: Tarn"
            if any("Tarn" in str(d) for d in given["documents"])
            else "FINAL: unknown"
        )

    def count(self):
        return Counter(r.prompt.task for r in self.asked)


def go(method, chat, questions=(ASKED,), shelf=SHELF, store=None):
    asked = {"musique": [Question(f"q{i}", "musique", q, ("Tarn",)) for i, q in enumerate(questions)]}
    return run(
        {"m": method},
        asked,
        PROFILE,
        corpora={"musique": list(shelf)},
        chat=chat,
        store=store or Store(),
        progress=False,
    )


# the graph


def test_pagerank_is_the_one_calculated_by_hand():
    "A star of three leaves, all walks from one leaf."
    star = build_memory(SHELF[:1], [[("c", "r", "a"), ("c", "r", "b"), ("c", "r", "e")]])
    c, a, b, e = (star.activated({star.nodes.index("a"): 1.0})[star.nodes.index(n)] for n in "cabe")
    # c = (a + b + e) / 2, a = 1/2 + c/6, b = e = c/6  =>  c = 1/4 + c/4  =>  c = 1/3, a = 5/9, b = e = 1/18
    assert (c, a, b, e) == pytest.approx((1 / 3, 5 / 9, 1 / 18, 1 / 18), abs=1e-8)


def test_walks_are_networkx_s():
    "On random graphs with weights, islands and a lonely node, from any starts."
    draw = random.Random(3)
    for n in (3, 30, 200):
        facts = [
            [(f"n{draw.randrange(n)}", "r", f"n{draw.randrange(n)}") for _ in range(2 * n)] + [("alone", "is", "alone")]
        ]
        memory = build_memory(SHELF[:1], facts, synonyms=1.0)
        assert memory.graph.degree(memory.nodes.index("alone")) == 0
        for damping in (0.0, 0.5, 0.9):
            starts = {draw.randrange(len(memory.nodes)): draw.random() + 0.1 for _ in range(3)} | {
                memory.nodes.index("alone"): 0.3
            }
            mine, theirs = (
                memory.activated(starts, damping),
                networkx.pagerank(memory.graph, alpha=damping, personalization=starts, tol=1e-13, max_iter=1000),
            )
            assert mine == pytest.approx([theirs[i] for i in range(len(mine))], abs=1e-8) and sum(
                mine
            ) == pytest.approx(1, abs=1e-6)


def test_edges_count_their_triples_and_weigh_in_the_walk():
    memory = build_memory(
        SHELF[:2], [[("a", "r", "b"), ("a", "s", "c")], [("b", "t", "a"), ("A", "u", "B!"), ("a", "is", "a")]]
    )
    assert (
        memory.nodes == ["a", "b", "c"] and memory.graph[0][1]["weight"] == 3.0 and memory.graph[0][2]["weight"] == 1.0
    )
    assert not memory.graph.has_edge(0, 0)
    assert memory.mentions == [{0: 2, 1: 4}, {0: 1, 1: 2}, {0: 1}]
    assert [memory.specificity(i) for i in range(3)] == [0.5, 0.5, 1.0]
    a, b, c = memory.activated({0: 1.0})  # b gets three quarters of what goes out of a
    assert b == pytest.approx(3 * c, abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_passages_rank_as_in_the_public_code(seed):
    """The public code's `rank_docs` in other words: dense matrices of passages by facts and facts by phrases, and the walk's equation
    solved. Plain letters, no synonyms, nothing twice: there both graphs are the same."""
    draw = random.Random(100 + seed)
    pairs = [sorted({tuple(draw.sample(range(40), 2)) for _ in range(3)}) for _ in range(40)]
    memory = build_memory(
        [Passage(str(i), "", "") for i in range(40)], [[(f"n{a}", "is", f"n{b}") for a, b in p] for p in pairs], 1.0
    )
    facts, nodes = sorted({pair for p in pairs for pair in p}), [int(n[1:]) for n in memory.nodes]
    has = np.array([[f in p for f in facts] for p in pairs], float)
    holds = np.array([[n in f for n in nodes] for f in facts], float)
    edges = np.array(
        [[sum((a, b) in p or (b, a) in p for p in pairs) if a != b else 0 for b in nodes] for a in nodes], float
    )
    for _ in range(5):
        names = draw.sample(range(len(nodes)), 2)
        reset = np.zeros(len(nodes))
        reset[names] = 1 / (has @ holds > 0).sum(axis=0)[names]
        reset /= reset.sum()
        walk = np.linalg.solve(np.eye(len(nodes)) - 0.5 * edges / edges.sum(axis=0), 0.5 * reset)
        scores = has @ (holds @ walk)
        hits = memory.search({n: memory.specificity(n) for n in names}, 40)
        assert [h.score for h in hits] == pytest.approx(
            [scores[int(h.passage.id)] / scores.max() for h in hits], abs=2e-5
        )
        assert len(hits) == (scores > 1e-9).sum() and all(x.score >= y.score for x, y in zip(hits, hits[1:]))


def test_two_hops_that_similarity_misses_are_found_by_the_walk():
    similar = [h.passage.title for h in Dense(SHELF).search([ASKED], 3)[0]]
    memory = build_memory(SHELF, list(FACTS.values()))
    [(_, start, _)] = memory.linked(["Grey Harbour"])
    assert memory.nodes[start] == "grey harbour" and "Ida Roth" not in similar
    assert [h.passage.title for h in memory.search({start: 1.0}, 3)] == ["Grey Harbour", "Ida Roth", "Tarn"]
    result = go(HippoRAG(steps=1, top_k=2), Reader())
    assert result.rows[0].answer == "Tarn" and [h["title"] for h in result.rows[0].trace.nodes[0].data["hits"]] == [
        "Grey Harbour",
        "Ida Roth",
    ]


def test_hipporag_ranks_the_passages_of_all_searches_by_their_best_score():
    hits = [Hit(p, score, i) for i, (p, score) in enumerate(zip(SHELF, (1.0, 0.4, 0.2)), 1)]
    later = [Hit(SHELF[2], 0.9, 1), Hit(SHELF[3], 0.6, 2), Hit(SHELF[0], 0.1, 3), Hit(SHELF[4], 0.4, 4)]
    best = best_of_searches(best_of_searches({}, hits), later)
    assert [p for p, _ in best.values()] == [SHELF[i] for i in (0, 2, 3, 1, 4)]
    assert best[SHELF[0].id][1] == 1.0 and best[SHELF[2].id][1] == 0.9


@pytest.mark.parametrize("dataset, searches", [("musique", 4), ("world/musique", 4), ("2wiki", 2), ("hotpotqa", 2)])
def test_hipporag_searches_as_often_as_its_code(dataset, searches):
    class Wandering(Reader):
        def reply(self, request, sample):
            return (
                f"On to {len(request.inputs['thoughts'])}."
                if request.prompt.task == "thought"
                else super().reply(request, sample)
            )

    chat = Wandering()
    context = Context(chat, Dense(SHELF), corpus=SimpleNamespace(passages=SHELF))
    prediction = asyncio.run(HippoRAG()(Question("q", dataset, ASKED), context))
    assert [n.kind for n in prediction.trace.nodes if n.kind in ("question", "thought")] == ["question"] + [
        "thought"
    ] * (searches - 1)
    assert chat.count()["thought"] == searches - 1


def test_every_level_has_every_entity_once():
    # forty cliques in a row, and ten lonely ones
    pairs = [(i, j) for k in range(40) for i in range(4 * k, 4 * k + 4) for j in range(4 * k, i)] + [
        (4 * k, 4 * k + 4) for k in range(39)
    ]
    found = communities(170, [Element("", ends=p, weight=1.0) for p in pairs], largest=6)
    assert [c.id for c in found] == list(range(len(found))) and max(c.level for c in found) >= 1
    for level in range(3):
        assert sorted(m for c in finest(found, level) for m in c.members) == list(range(170))
    for c in found:
        if c.parent is not None:
            assert found[c.parent].level == c.level - 1 and set(c.members) < set(found[c.parent].members)
    assert communities(0, []) == []


# what is asked and paid


@pytest.mark.parametrize(
    "method, index, each_question",
    [
        (HippoRAG(), dict(name_entities=6, extract_triples=6), dict(name_entities=1, thought=1, answer_short=1)),
        (
            GraphRAG(),
            dict(extract_graph=6, glean_graph=6, summarise_descriptions=3, report_community=2),
            dict(answer_short=1),
        ),
        (
            GraphRAG("global"),
            dict(extract_graph=6, glean_graph=6, summarise_descriptions=3, report_community=2),
            dict(map_answer=1, answer_short=1),
        ),
    ],
    ids=["hipporag", "local", "global"],
)
def test_the_index_is_paid_once_for_all_questions_and_all_runs(tmp_path, method, index, each_question):
    questions = [ASKED, "Who wrote Grey Harbour?", "Where is Tarn?"]
    first = go(method, chat := Reader(latency=0.005), questions[:2], store=Store(tmp_path / "s.sqlite"))
    counted = chat.count() - Counter({t: 2 * n for t, n in each_question.items()})
    index["report_community"] = counted["report_community"]  # as many as there are communities of two and more
    assert counted == +Counter(index) and not first.failures
    if isinstance(method, GraphRAG):
        assert first.rows[0].trace.nodes[0].data["index"]["reports"] == counted["report_community"] > 1
    assert first.indexing["m", "musique"].calls == sum(index.values()) and chat.most >= 6  # all passages at once
    assert [r.usage.calls for r in first.rows] == [sum(each_question.values())] * 2
    more = go(method, chat := Reader(), questions, store=Store(tmp_path / "s.sqlite"))
    assert chat.count() == Counter(each_question) and more.indexing["m", "musique"].calls == sum(index.values())
    with Store(tmp_path / "s.sqlite") as store:
        assert {r["question"] for r in store.usage(("question",))} == {"index", "q0", "q1", "q2"}
    warm = go(method, chat := Reader(), questions, store=Store(tmp_path / "s.sqlite"))
    assert chat.asked == [] and all(r.stored for r in warm.rows) and warm.indexing == more.indexing


# nonsense

NONSENSE = [
    "",
    "I'm sorry, I can't do that.",
    "[" * 3000,
    '{"a": {"b": null}}',
    "[[1, [2]], true, null]",
    "\ud800[]",
    '{"entities": "none", "relations": 3}',
    '["x", "y"]',
    "42",
    '[{"source": "a"}, {"target": ["b"]}, {"name": {"x": 1}}]',
]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_no_graph(text):
    assert read_triples(text)[0] == [] and read_points(text)[0] == [] and read_graph(text)[0]["relations"] == []
    assert set(read_report(text)[0]) == {"title", "summary", "rating", "findings"}
    assert all(isinstance(n, str) and same_name(n) for n in read_names(text)[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: HippoRAG(synonyms=1.5),
        lambda: HippoRAG(damping=1.0),
        lambda: HippoRAG(top_k=0),
        lambda: GraphRAG("near"),
        lambda: GraphRAG(gleanings=11),
        lambda: GraphRAG(text_share=0.7, report_share=0.7),
    ],
)
def test_wrong_settings_are_usage_errors(make):
    with pytest.raises(UsageError):
        make()
