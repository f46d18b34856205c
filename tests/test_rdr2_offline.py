"RDR²'s oracle by hand, and who routes in its rows."

from dataclasses import replace

import pytest

from treekit.papers.rdr2 import method as rdr2
from treekit.core.types import Question
from treekit.corpora.documents import build_tree, add_introduction
from treekit.papers.rdr2.oracle import gold_answers, oracle_route
from treekit.config import UsageError, load_profile
from treekit.papers.rdr2.readers import Reader

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

# ---- the oracle


def test_the_oracle_by_hand():
    golds = [("Tessia Marl",), ("4,000", "four thousand")]
    assert [b[:2] for b in oracle_route(TREE, frozenset({4, 5}), golds)] == [("ANSWER", 4), ("EXPAND", 6)]
    assert oracle_route(TREE, frozenset({5}), [("nobody",)]) == []
    assert [b[:2] for b in oracle_route(TREE, frozenset(), golds)] == [("EXPAND", 3), ("EXPAND", 6)]
    with pytest.raises(UsageError):
        gold_answers(Question("q", "eli5", "Why?"))


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
