"First wrong nodes by replay: all who show one agree. Planted faults are in `nbs/19_explorer/13_first_wrong.ipynb`."

from collections import Counter

import pytest

import treekit
from treekit.analysis.attribution import ERROR_KINDS, Finding
from treekit.analysis.error_breakdown import NOT_ATTRIBUTED, analyse
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.first_wrong import first_wrong_nodes
from treekit.explorer.runs import OpenRun, worth
from treekit.exports.rows import prediction_row


@pytest.mark.parametrize("model", ["simulated", "smollm2"])
def test_all_who_show_a_first_wrong_node_agree(model):
    "Explorer, comparison, answers, export and error table; and a run that is opened again. Of the recorded run, without a new call."
    if model == "simulated":
        r = treekit.run(["treerare", "vanilla"], treekit.load("musique", n=8, data="synthetic:100"))
    else:
        arise = treekit.ARISE(iterations=4, depth=3, width=2, top_k=3)
        methods = {"ARISE": arise, "Vanilla": treekit.method("vanilla", top_k=3)}
        r = treekit.run(methods, treekit.load("hotpotqa", n=50, data="real"), model, search_scope="own")
    found = first_wrong_nodes(r.opened, new_calls=model == "simulated")
    shown = [Finding() if f.why.startswith("a repair can't") else f for f in found]  # what wasn't tried isn't stored
    kinds, wrong = [f.kind for f in found], [f for row, f in zip(r.opened.rows, found) if worth(row) < 1]
    assert (
        wrong
        and (any if model == "smollm2" else all)(f.why for f in wrong)
        and {f.kind for f in wrong} <= {*ERROR_KINDS, ""}
    )
    assert list(r.answers().wrong) == kinds and list(r.first_wrong().kind) == [f.kind for f in found if f.why]
    get = ExplorerAPI(r.opened.store).get
    assert [row["wrong"] for row in get(f"run/{r.name}")["rows"]] == [vars(f) for f in shown]
    for i, (row, f) in enumerate(zip(r.opened.rows, shown)):
        assert (prediction_row(r.opened, row, row.trace, [])["wrong_kind"], get(f"wrong/{r.name}/{i}")) == (
            f.kind,
            vars(f),
        )
        assert analyse(row, f).kind.replace(NOT_ATTRIBUTED, "") == f.kind
    counted = sum((Counter(line["first_wrong"]) for line in r.comparison.lines), Counter())
    assert counted == Counter(f.kind or "without a label" for f in wrong)
    assert first_wrong_nodes(OpenRun(r.opened.store, r.opened.kept), ()) == shown
