"The plug-in is found, and its method answers a question with the embedded model."

import asyncio

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
    paper = get_paper("mypaper")
    assert broken_references(paper) == []
    for row in paper.inventory():
        assert paper.notebook(row["artefact"]).is_file()


def test_an_answer():
    question = Question("q", "demo", "Who directed Velmora?", ("Lio Vant",))
    prediction = asyncio.run(method("mypaper")(question, Context(ExtractiveClient(), BM25(PAGES))))
    assert "Lio Vant" in prediction.answer and [node.kind for node in prediction.trace.nodes] == [
        "question",
        "search",
        "search",
        "answer",
    ]
