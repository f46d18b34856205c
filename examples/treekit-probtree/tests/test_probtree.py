"The plug-in is found, and its method answers a question with the embedded model."

import asyncio

from probtree.method import ProbTree
from treekit.core.method import Context
from treekit.experiments.resources import load
from treekit.models.simulated.client import SimulatedClient
from treekit.papers.plugin import broken_references, get_paper
from treekit.papers.registry import method
from treekit.retrieval.bm25 import BM25


def test_the_descriptor():
    paper = get_paper("probtree")
    assert broken_references(paper) == []
    for row in paper.inventory():
        assert paper.notebook(row["artefact"]).is_file()


def test_an_answer():
    assert method("probtree") == ProbTree()
    question = next(q for q in load("musique", "synthetic", n=40) if q.hops == 2)
    context = Context(SimulatedClient(), BM25(list(question.paragraphs)))
    prediction = asyncio.run(method("probtree")(question, context))
    assert prediction.answer and prediction.error == ""
    assert len([node for node in prediction.trace.nodes if node.kind == "question"]) > 2
