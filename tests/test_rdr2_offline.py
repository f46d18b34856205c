"Who routes in RDR²'s rows."

from dataclasses import replace

from treekit.papers.rdr2 import method as rdr2
from treekit.config import load_profile
from treekit.papers.rdr2.readers import Reader

# ---- metrics over a run


def test_a_row_of_rdr2_says_who_routes():
    from treekit.papers.rdr2.evaluation import printed, who_routes
    from treekit.figures.cells import as_run
    from treekit.figures.verdicts import compare, published

    methods = {"Retrieve-and-Read": Reader()} | rdr2.METHODS
    P = load_profile("offline")
    assert who_routes(methods, P) == {"RDR2 (Ours)": "simulated, prompted"}
    assert who_routes(methods, replace(P, roles="router=mine")) == {"RDR2 (Ours)": "router mine"}
    cell = dict(method="RDR2 (Ours)", dataset="asqa", metric="EM", n=3, failures=0, value=0.5, low=0.4, high=0.6)
    table = as_run(
        compare(printed(published("rdr2", "table5")), [cell], model="simulated", obstacle="no"), who_routes(methods, P)
    )
    ran = table[table.method == "RDR2 (Ours) [simulated, prompted]"]
    assert ran.reproduced.notna().sum() == 1 and "RDR2 (Ours)" in set(table.method)


# ---- real pages
