"The plug-in is found, and its method answers a question with the embedded model."

import asyncio

from probtree.method import ProbTree
from treekit.core.method import Context
from treekit.core.types import Passage, Question
from treekit.models.extractive.client import ExtractiveClient
from treekit.papers.plugin import broken_references, get_paper
from treekit.papers.registry import method
from treekit.retrieval.bm25 import BM25

PAGES = [
    Passage("a", "Velmora", "Velmora is a film directed by Lio Vant."),
    Passage("b", "Lio Vant", "Lio Vant was born in Tarn."),
]


def test_the_descriptor():
    paper = get_paper("probtree")
    assert broken_references(paper) == []
    for row in paper.inventory():
        assert paper.notebook(row["artefact"]).is_file()


def test_an_answer():
    assert method("probtree") == ProbTree()
    question = Question("q", "demo", "Where was the director of Velmora born?", ("Tarn",))
    prediction = asyncio.run(method("probtree")(question, Context(ExtractiveClient(), BM25(PAGES))))
    assert prediction.answer == "Tarn"
    assert [node.text for node in prediction.trace.nodes if node.kind == "question"][1:] == [
        "Who is the director of Velmora?",
        "Where was Lio Vant born?",
    ]
