"Tree-Retrieval and bridging: by hand, at the corners, across processes, and on real data where there is some."

import pytest

from fakes import FakeParser
from treekit.retrieval.entity_bridging import EntityBridging, MentionIndex, Weights, aliases
from treekit.config import Profile, UsageError, kit_path
from treekit.core.types import Passage, Question
from treekit.core.method import Context
from treekit.papers.treerare.phrases import phrase_tree
from treekit.retrieval.bm25 import BM25
from treekit.retrieval.dense import Hybrid
from treekit.retrieval.factory import retriever_for
from treekit.syntax.parser import from_json
from treekit.papers.treerare.tree_retrieval import (
    TreeRetrieval,
    TreeRetriever,
    reranker,
    searched_tree,
    with_passages,
)

EXAMPLE = from_json(kit_path("data", "papers", "treerare", "example.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))


def corpus():
    return [
        Passage("film", "Grey Harbour", "Grey Harbour is a film. It was directed by Mavel Orrin, in Tholland."),
        Passage("person", "Mavel Orrin", "Mavel Orrin grew up in Sel Varo, Tholland."),
        Passage("town", "Sel Varo", "Sel Varo is a town in Tholland. Its mayor is Iven Sark."),
        Passage("sark1", "Iven Sark (politician)", "Iven Sark speaks in Tholland."),
        Passage("sark2", "Iven Sark (singer)", "Iven Sark sings in Tholland."),
        Passage("noise", "Lighthouse", "A lighthouse of the mayor; where one grew up, in a town."),
        *(Passage(f"v{i}", f"Village {chr(65 + i)}", "A village in Tholland.") for i in range(24)),
    ]


def names(index, text, **how):
    return [" ".join(index.names[n]) for n, _, _ in index.find(text, **how)]


# mentions


def test_mentions_are_the_longest_names_whatever_their_case_and_accents():
    index = MentionIndex(
        [
            Passage("a", "Sel Varó", "x"),
            Passage("b", "Sel Varo Opera House", "x"),
            Passage("c", "Brother", "x"),
            Passage("d", "Opera", "x"),
        ]
    )
    assert names(index, "He sang at the Sel Varo Opera House.") == ["sel varo opera house"]
    assert names(index, "SEL VARO's Opera") == ["sel varo", "opera"]
    assert names(index, "His brother likes Opera, not Brother.") == ["opera", "brother"]
    assert names(index, "The Sel Varo Opera House", inner=True) == ["sel varo opera house", "sel varo", "opera"]
    assert names(index, "his brother went to sel varo") == ["brother", "sel varo"]  # nobody writes capitals here
    assert names(index, "") == names(index, "… ?!") == []
    assert aliases("(untitled)") and aliases("") == []


# bridging


def test_two_hops_and_three():
    question, words = "Who leads the place where the director of Grey Harbour was a child?", BM25(corpus())
    direct = [h.passage.id for h in words.search([question], 5)[0]]
    found = {
        hops: [h.passage.id for h in EntityBridging(words, hops=hops).search([question], 5)[0]] for hops in (1, 2, 3)
    }
    assert "person" not in direct and "town" not in direct
    assert "person" in found[1] and "town" not in found[1]
    assert {"film", "person", "town"} <= set(found[2])


def test_namesakes_share_and_hubs_hand_nothing_on():
    bridged = EntityBridging(BM25(corpus()))
    scores = bridged._scored("Who is the mayor of Sel Varo?", [])
    at = {p.id: i for i, p in enumerate(corpus())}
    links = scores.links.of(at["town"])
    assert links[at["sark1"]] == links[at["sark2"]] > 0
    number = bridged.index.matcher.number
    assert scores.links.of(at["film"])[at["person"]] > links[at["sark1"]]
    assert number["tholland",] not in scores.links.names(at["film"]) and number["mavel", "orrin"] in scores.links.names(
        at["film"]
    )
    assert scores.links.of(at["film"])[at["v0"]] == 0
    assert scores.named[at["town"]] == pytest.approx(1.4 * bridged.index.weight[number["sel", "varo"]])


def test_the_score_by_hand():
    words, weights = BM25(corpus()), Weights(named=2, direct=1, title=3, part=0, text=0)
    bridged = EntityBridging(words, weights=weights, hops=1)
    hits = words.search(["the director of Grey Harbour"], 100)[0]
    [found] = [h for h in bridged.rank("the director of Grey Harbour", hits) if h.passage.id == "person"]
    assert found.score == pytest.approx(
        3 * bridged.index.weight[bridged.index.matcher.number["mavel", "orrin"]], abs=1e-6
    )


def test_it_wraps_any_retriever_over_passages_in_memory():
    words = BM25(corpus())
    for retriever in (words, Hybrid([words, BM25(corpus(), k1=1.2)]), EntityBridging(words)):
        assert "person" in [
            h.passage.id
            for h in EntityBridging(retriever).search(["Where did the director of Grey Harbour grow up?"], 3)[0]
        ]
    assert isinstance(retriever_for(Profile("t", retriever="bridged:bm25s"), corpus()), EntityBridging)
    with pytest.raises(UsageError, match="passages="):
        EntityBridging(type("OnDisk", (), dict(fingerprint="", passages=None))())
    with pytest.raises(UsageError, match="bridged"):
        retriever_for(Profile("t", retriever="brigded"), corpus())
    with pytest.raises(TypeError):
        EntityBridging(words).search("one string")


# Tree-Retrieval

TREE = [
    Passage("a", "Velmora", "Velmora is a 1931 film directed by Olin Tarsk."),
    Passage("b", "Grey Harbour", "Grey Harbour is a novel by Mavel Orrin about a lighthouse."),
    Passage("c", "Olin Tarsk", "Olin Tarsk came to the world in 1899."),
    Passage("d", "Mavel Orrin", "Mavel Orrin came to the world in 1920."),
    Passage("e", "Born first", "Who is born first is the author of much, and sometimes the director."),
]


@pytest.mark.parametrize("tree", ["dependency", "constituency"])
@pytest.mark.parametrize("rerank_by", ["phrase", "question"])
def test_every_node_equals_a_computation_by_hand(tree, rerank_by):
    words, second = BM25(TREE), reranker("bm25")
    retriever = TreeRetriever(
        words, FakeParser({EXAMPLE.text: EXAMPLE}), tree=tree, per_node=2, kept=3, rerank_by=rerank_by, rerank=second
    )
    phrase = phrase_tree(EXAMPLE, tree, 3)
    root = retriever.resolve(
        EXAMPLE.text, with_passages(phrase, iter(words.search([p.text for p in phrase.walk()], 2))), k=1
    )
    for node in root.bottom_up():
        union = {h.passage for p in node.phrase.walk() for h in words.search([p.text], 2)[0]}
        assert {h.passage for h in node.pool} == union
        against = node.phrase.text if rerank_by == "phrase" else EXAMPLE.text
        assert [h.passage for h in node.best] == [h.passage for h in second.rerank(against, node.pool, 3)]
    assert retriever.search([EXAMPLE.text], 2)[0] == root.best[:2]


async def _answered(method, retriever, asked):
    class Model:
        async def complete(self, request):
            asked.append(request)
            from treekit.core.prompts import Completion

            return [Completion("Explanations: x\nFINAL: Olin Tarsk", 1, 1)]

    context = Context(Model(), retriever, FakeParser({EXAMPLE.text: EXAMPLE}))
    return await method(Question("q", "hotpotqa", EXAMPLE.text), context), context


def test_one_call_with_the_passages_in_place_of_evidence():
    import asyncio

    asked = []
    prediction, context = asyncio.run(_answered(TreeRetrieval(reranker="bm25"), BM25(TREE), asked))
    [request] = asked
    assert prediction.answer == "Olin Tarsk" and context.usage.calls == context.usage.critical_path == 1
    root = prediction.trace.nodes[0]
    assert {p.id for p in request.inputs["documents"]} == {h["id"] for h in root.data["hits"]}
    assert (
        len(request.inputs["documents"])
        == len(set(request.inputs["documents"]))
        == prediction.trace.nodes[-1].data["passages"]
    )


def test_the_public_code_hands_up_what_was_kept_and_searches_below_the_root():
    class Parser:
        fingerprint = "by hand"

        def parse(self, texts):
            return [EXAMPLE for _ in texts]

    words = BM25(TREE)

    def searched(**fields):
        shape = dict(nodes="code")
        method = TreeRetriever(
            words, Parser(), "constituency", per_node=2, kept=1, rerank=reranker("bm25"), **shape, **fields
        )
        tree = searched_tree(EXAMPLE, "constituency", 3, **method.shape)
        return method.resolve(
            EXAMPLE.text, with_passages(tree, iter(words.search([p.text for p in tree.walk()], 2))), 1
        )

    found, kept = searched(), searched(pooled="kept")
    assert found.phrase.type == kept.phrase.type == "SBARQ"  # not Stanza's ROOT, which has the same words
    assert {h.passage.id for c in kept.children for h in c.best} <= {h.passage.id for h in kept.pool}
    assert len(kept.pool) <= 2 + len(kept.children) and len(kept.pool) <= len(found.pool)


# real data
