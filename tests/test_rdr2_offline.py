"The offline router and the offline readers on RDR²'s tasks: what they see, what they reach on the world and on real pages, and that what they return fits each prompt's format."

from dataclasses import replace

import pytest

from treekit.papers.rdr2 import method as rdr2
from treekit.core.types import Question
from treekit.corpora.documents import build_tree, add_introduction
from treekit.papers.rdr2.oracle import gold_answers, oracle_route
from treekit.config import UsageError, load_profile
from treekit.papers.rdr2.readers import Reader
from treekit.papers.rdr2.router import CURATE, FORMATS, ROUTE
from treekit.models.extractive.client import HANDLERS
from treekit.models.extractive.routing import route

TREE = add_introduction(
    build_tree(
        "Port Essel",
        [
            (1, "content", "Port Essel is a town on a bay."),
            (1, "structure", "History"),
            (2, "content", "The engineer Tessia Marl founded it in 1712."),
            (2, "content", "In winter the ferry stays in."),
            (1, "structure", "Demographics"),
            (2, "content", "It has 4,000 inhabitants."),
            (1, "structure", "References"),
            (2, "content", "A book."),
        ],
        "p",
    )
)

# ---- the router


@pytest.mark.parametrize(
    "question,answers,expands",
    [
        ("Who founded Port Essel in 1712?", 4, None),
        ("What is the population of Port Essel?", None, 6),
        ("Who won the 1974 world cup of chess?", None, None),
    ],
)
def test_behaviours(question, answers, expands):
    said = route(question=question, document=TREE.to_text((4, 5)))
    if answers:
        assert ("ANSWER", answers) in [b[:2] for b in said]
    if expands:
        assert ("EXPAND", expands) in [b[:2] for b in said]
    if not answers and not expands:
        assert said == []
    assert ("EXPAND", 8) not in [b[:2] for b in said]  # references lead nowhere


@pytest.mark.parametrize("form", FORMATS)
def test_replies_fit_both_formats(form):
    document = TREE.to_text((4, 5))
    said = HANDLERS["route"](question="Who founded Port Essel?", document=document)
    text = FORMATS[form].render(said)
    assert [b[:2] for b in ROUTE[form].read(text).value] == [b[:2] for b in said] and FORMATS[form].parse(
        FORMATS[form].render([])
    ) == []
    curated = HANDLERS["curate_route"](question="Who founded Port Essel?", document=document)
    assert CURATE.read(CURATE.format.render(curated)).value == curated
    assert {c["id"] for c in curated} == {b[1] for b in said}
    assert all(c["explanation"] for c in curated)


def test_it_sees_only_what_a_model_sees():
    "What is folded changes nothing."
    other = add_introduction(
        build_tree(
            "Port Essel",
            [
                (1, "content", "Nothing."),
                (1, "structure", "History"),
                (2, "content", TREE[4].text),
                (2, "content", TREE[5].text),
                (1, "structure", "Demographics"),
                (2, "content", "Its population is 9."),
                (1, "structure", "References"),
                (2, "content", "x"),
            ],
            "p",
        )
    )
    for q in ("Who founded Port Essel?", "What is the population of Port Essel?"):
        assert route(question=q, document=TREE.to_text((4, 5))) == route(question=q, document=other.to_text((4, 5)))


# ---- the readers

# ---- the oracle


def test_the_oracle_by_hand():
    golds = [("Tessia Marl",), ("4,000", "four thousand")]
    assert [b[:2] for b in oracle_route(TREE, frozenset({4, 5}), golds)] == [("ANSWER", 4), ("EXPAND", 6)]
    assert oracle_route(TREE, frozenset({5}), [("nobody",)]) == []
    assert [b[:2] for b in oracle_route(TREE, frozenset(), golds)] == [("EXPAND", 3), ("EXPAND", 6)]
    with pytest.raises(UsageError):
        gold_answers(Question("q", "eli5", "Why?"))


# ---- all of it, on the world


# ---- metrics over a run


def test_a_row_of_rdr2_says_who_routes():
    from treekit.papers.rdr2.evaluation import printed, who_routes
    from treekit.figures.cells import as_run
    from treekit.figures.verdicts import compare, published

    methods = {"Retrieve-and-Read": Reader()} | rdr2.METHODS
    P = load_profile("offline")
    assert who_routes(methods, P) == {"RDR2 (Ours)": "simulated, prompted"}
    assert who_routes(methods, replace(P, router="tiny")) == {"RDR2 (Ours)": "router tiny"}
    cell = dict(method="RDR2 (Ours)", dataset="asqa", metric="EM", n=3, failures=0, value=0.5, low=0.4, high=0.6)
    table = as_run(
        compare(printed(published("rdr2", "table5")), [cell], model="simulated", obstacle="no"), who_routes(methods, P)
    )
    ran = table[table.method == "RDR2 (Ours) [simulated, prompted]"]
    assert ran.reproduced.notna().sum() == 1 and "RDR2 (Ours)" in set(table.method)


# ---- real pages
