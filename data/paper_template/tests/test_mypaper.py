"The plug-in is found, and its method answers a question with the embedded model."

import asyncio

from treekit.core.method import Context
from treekit.experiments.resources import load
from treekit.models.simulated.client import SimulatedClient
from treekit.papers.plugin import broken_references, get_paper
from treekit.papers.registry import method
from treekit.retrieval.bm25 import BM25


def test_the_descriptor():
    paper = get_paper("mypaper")
    assert broken_references(paper) == []
    for row in paper.inventory():
        assert paper.notebook(row["artefact"]).is_file()


def test_an_answer():
    question = load("musique", "synthetic", n=1)[0]
    context = Context(SimulatedClient(), BM25(list(question.paragraphs)))
    prediction = asyncio.run(method("mypaper")(question, context))
    assert prediction.answer and [node.kind for node in prediction.trace.nodes] == [
        "question",
        "search",
        "search",
        "answer",
    ]
