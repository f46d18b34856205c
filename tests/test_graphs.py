"HippoRAG and GraphRAG on graphs made by hand: what stands in the graph, what a walk finds, what is asked and paid, and what nonsense does to it."

import asyncio, json, random, time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import networkx
import numpy as np
import pytest

from commands import here_and_there
from fakes import FakeChat
from treekit.baselines import graphrag_index
from treekit.config import UsageError, load_profile
from treekit.core.types import Passage, Question
from treekit.core.trace_render import show_tree, tree_html
from treekit.baselines.graph_extraction import read_names, same_name
from treekit.baselines.graphrag import GraphRAG, read_points
from treekit.baselines.graphrag_index import (
    GLEAN,
    REPORT,
    Community,
    Element,
    communities,
    finest,
    merged,
    read_graph,
    read_report,
)
from treekit.baselines.hipporag import HippoRAG, best_of_searches, build_memory, read_triples
from treekit.core.prompts import CallFailed
from treekit.core.method import Context
from treekit.retrieval.bm25 import Hit
from treekit.retrieval.dense import Dense
from treekit.experiments.run import run
from treekit.store.run_store import Store

ROOT = Path(__file__).resolve().parents[1]
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


def test_synonyms_are_joined_above_the_threshold_and_numbers_never():
    facts = [[("The Grey Harbour", "published in", "1931")], [("Grey Harbour", "sold in", "1932")]]
    joined, apart = build_memory(SHELF[:2], facts, 0.8), build_memory(SHELF[:2], facts, 1.0)
    assert [(joined.nodes[i], joined.nodes[j]) for i, j, s in joined.graph.edges(data="synonyms") if s] == [
        ("the grey harbour", "grey harbour")
    ]
    assert 0.8 < joined.graph[0][2]["weight"] < 1 and not any(s for *_, s in apart.graph.edges(data="synonyms"))
    assert [h.passage.id for h in joined.search({0: 1.0}, 5)] == ["p0", "p1"] and [
        h.passage.id for h in apart.search({0: 1.0}, 5)
    ] == ["p0"]


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


def test_a_weight_of_synonymy_adds_to_the_triples():
    both = build_memory(SHELF[:1], [[("Grey Harbour", "is", "The Grey Harbour")]])
    assert 1.8 < both.graph[0][1]["weight"] < 2


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
    for merge, order in (("score", [0, 2, 3, 1, 4]), ("order", [0, 1, 2, 3, 4])):
        m = HippoRAG(merge=merge)
        best = best_of_searches(m, best_of_searches(m, {}, hits), later)
        assert (
            [p for p, _ in best.values()] == [SHELF[i] for i in order]
            and best[SHELF[0].id][1] == 1.0
            and best[SHELF[2].id][1] == 0.9
        )


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


def test_specificity_prefers_the_rarer_start():
    facts = [[("Town", "has", f"thing {i}")] for i in range(5)] + [[("Rare", "has", "gem")]]
    memory = build_memory(SHELF, facts, synonyms=1.0)
    plain, weighed = (
        memory.search({i: f(i) for i in (memory.nodes.index("town"), memory.nodes.index("rare"))}, 6)
        for f in (lambda i: 1.0, memory.specificity)
    )
    score = lambda hits: (
        next(h.score for h in hits if h.passage.id == "p5") / max(h.score for h in hits if h.passage.id != "p5")
    )
    assert score(weighed) > 2 * score(plain)


def test_communities_don_t_depend_on_the_process():
    code = """
import random
from treekit.baselines.graphrag_index import Element, communities
draw = random.Random(1)
pairs = sorted({tuple(sorted(draw.sample(range(i // 15 * 15, i // 15 * 15 + 15) if draw.random() < .8 else range(150), 2))) for i in \
range(150) for _ in range(3)})
print([(c.id, c.level, c.parent, c.members) for c in communities(150, [Element('', ends=p, weight=float(1 + sum(p) % 3)) for p in pairs])])
"""
    here, there = here_and_there(code)
    assert here == there and here.count("(") > 10


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


def test_mentions_are_merged_by_name():
    graphs = [
        dict(
            entities=[dict(name="Tarn", type=t, description=d)],
            relations=[dict(source="TARN", target=o, description="near", strength=2)],
        )
        for t, d, o in (("town", "a town", "Orle"), ("town", "a town", "orle."), ("river", "a river", "tarn"))
    ]
    entities, relations = merged(graphs)
    assert [(e.name, e.type, e.descriptions, e.sources) for e in entities] == [
        ("Tarn", "town", ["a town", "a river"], [0, 1, 2]),
        ("Orle", "", [], [0, 1]),
    ]
    assert [(r.name, r.weight, r.descriptions, r.sources) for r in relations] == [("Tarn – Orle", 4, ["near"], [0, 1])]


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


def test_gleanings_stop_when_nothing_is_missing_and_add_what_is():
    again = GLEAN.format.render(dict(entities=[dict(name="Voss", type="", description="a county")], relations=[]))
    result = go(GraphRAG(gleanings=3), chat := Reader({("glean_graph", "Tarn"): again}))
    assert chat.count()["glean_graph"] == 5 + 3 and result.rows[0].trace.nodes[0].data["index"]["entities"] == 12
    assert go(GraphRAG(gleanings=0), chat := Reader()).rows[0].answer == "Tarn" and chat.count()["glean_graph"] == 0


def test_a_community_too_large_for_a_prompt_is_reported_from_its_parts(monkeypatch):
    pages = [Passage(f"n{i}", f"n{i}", "…") for i in range(12)]
    facts = {
        f"n{i}": [(f"n{i}", "is beside", f"n{j}") for j in range(i // 4 * 4, i)]
        + ([(f"n{i}", "is beside", f"n{i + 1}")] if i in (3, 7) else [])
        for i in range(12)
    }

    class Big(Reader):
        def reply(self, request, sample):
            about = str(request.inputs.get("passage", "")).split("\n")[0]
            if request.prompt.task == "extract_graph":
                return request.prompt.format.render(
                    dict(
                        entities=[],
                        relations=[
                            dict(source=s, target=o, description=f"{s} {r} {o} " + "so " * 20, strength=5)
                            for s, r, o in facts[about]
                        ],
                    )
                )
            return (
                super().reply(request, sample)
                if request.prompt.task != "report_community"
                else request.prompt.format.render(dict(title="Part", summary="small", rating=1, findings=[]))
            )

    hierarchy = [
        Community(0, 0, None, tuple(range(12))),
        *(Community(1 + k, 1, 0, tuple(range(4 * k, 4 * k + 4))) for k in range(3)),
    ]
    monkeypatch.setattr(graphrag_index, "communities", lambda *a: hierarchy)
    result = go(GraphRAG(report_tokens=250), chat := Big(), ["Where is n1?"], pages)
    assert not result.failures
    reports = [r.inputs for r in chat.asked if r.prompt is REPORT]
    assert (
        [len(r["reports"]) for r in reports][:3] == [0, 0, 0]
        and reports[3]["reports"]
        and "Part: small" in reports[3]["reports"]
    )
    assert sum(len(x) for x in (*reports[3]["entities"], *reports[3]["relations"])) < 4 * 250


def test_a_local_search_keeps_to_its_budget():
    result = go(GraphRAG(tokens=100, text_share=0.5, report_share=0.2), chat := Reader())
    shown = chat.asked[-1].inputs["documents"]
    assert not result.failures and sum(len(d if isinstance(d, str) else d.stated) for d in shown) <= 400 and shown


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


@pytest.mark.parametrize("method, task", [(HippoRAG(), "extract_triples"), (GraphRAG(), "extract_graph")])
@pytest.mark.parametrize(
    "wrong", ["I would rather not.", "[[[", CallFailed("truncated", "half an answer", "raise max_tokens")]
)
def test_a_passage_without_a_graph_is_counted_and_the_rest_goes_on(method, task, wrong):
    result = go(method, Reader({(task, "Ada Lund"): wrong}), store=(store := Store()))
    row, index = result.rows[0], result.rows[0].trace.nodes[0].data["index"]
    assert row.answer == "Tarn" and index.get("without_triples", index.get("without_entities")) == 1
    kept = next(json.loads(json.dumps(r)) for r in _predictions(store) if r["trace"]["nodes"][0]["kind"] == "index")
    [noted] = [n for n in kept["trace"]["nodes"] if n["notes"]]
    assert noted["text"] == "Ada Lund" and ("no " in noted["notes"][0] or "nothing usable" in noted["notes"][0])


def _predictions(store):
    return [store.get_prediction(key, trace=True) for (key,) in store.query("SELECT key FROM predictions")]


def test_a_server_that_is_gone_stops_the_index():
    result = go(
        HippoRAG(), Reader({("extract_triples", "Tarn"): CallFailed("unreachable", "no connection", "start it")})
    )
    assert [r.error for r in result.rows] == ["no connection; start it"] and result.indexing == {}


@pytest.mark.parametrize("method", [HippoRAG(steps=2), GraphRAG(), GraphRAG("global")])
def test_all_nonsense_falls_back_and_says_so(method):
    class Refusing(Reader):
        def reply(self, request, sample):
            return (
                super().reply(request, sample)
                if request.prompt.task in ("thought", "answer_short", "name_entities")
                else "No."
            )

    [row] = go(method, Refusing()).rows
    assert not row.error and any(
        "similarity" in n or "no report helps" in n for node in row.trace.nodes for n in node.notes
    )


def test_a_question_without_entities_is_searched_by_similarity():
    [row] = go(HippoRAG(steps=2), Reader(), ["What is there to know?"]).rows
    node = row.trace.nodes[0]
    assert (
        node.notes == ["no entity in the query; searched by similarity"]
        and len(node.data["hits"]) == 6
        and node.data["entities"] == []
    )


@pytest.mark.parametrize("method", [HippoRAG(steps=2), GraphRAG(), GraphRAG("global")])
def test_an_empty_corpus(method):
    async def answer():
        return await method(
            Question("q", "d", ASKED), Context(Reader(), Dense([]), corpus=SimpleNamespace(passages=[]))
        )

    prediction = asyncio.run(answer())
    assert prediction.answer == "unknown" and any(n.notes for n in prediction.trace.nodes)


def test_an_empty_question_is_one_clear_line():
    for method in (HippoRAG(), GraphRAG()):
        assert go(method, Reader(), [" "]).rows[0].error == "the question is empty"


def test_two_hundred_triples_in_a_passage():
    many = json.dumps([[f"thing {i}", "stands beside", f"thing {i + 1}"] for i in range(200)])
    for said, whole in ((many, 200), (many[:-30], 199)):
        result = go(HippoRAG(steps=2), Reader({("extract_triples", "Tarn"): said}), ["What is beside Tarn?"])
        assert result.rows[0].trace.nodes[0].data["index"]["nodes"] == whole + 11 and not result.failures


def test_markup_in_names_stays_text():
    evil = '<script>alert("x")</script>'
    graph = json.dumps(
        dict(
            entities=[dict(name=evil, type="<b>", description=evil)],
            relations=[dict(source=evil, target="Tarn", description=evil, strength=5)],
        )
    )
    for method, task, said in (
        (HippoRAG(), "extract_triples", json.dumps([[evil, "is", "Tarn"]])),
        (GraphRAG(), "extract_graph", graph),
    ):
        [row] = go(method, Reader({(task, "Tarn"): said}), ["Where is Tarn <i>now</i>?"]).rows
        assert (
            not row.error
            and "<script" not in tree_html(row.trace)
            and "<i>" not in tree_html(row.trace)
            and show_tree(row.trace)
        )


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


@pytest.mark.parametrize("text", ["1. " * 4000, "[" * 50_000, "9" * 5000, "- " * 5000 + "score"])
def test_a_reply_that_goes_round_in_circles_is_read_at_once(text):
    began = time.process_time()
    assert read_points(text)[0] == [] and time.process_time() - began < 5  # it took minutes once
