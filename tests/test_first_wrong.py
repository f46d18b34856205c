"First wrong nodes by replay: all who show one agree. Planted faults are in `nbs/19_explorer/10_first_wrong.ipynb`."

from collections import Counter

import pytest

import treekit
from treekit.analysis.attribution import ERROR_KINDS, Finding
from treekit.experiments.correct_answers import worth
from treekit.experiments.planning import open_store
from treekit.experiments.run_records import saved_runs
from treekit.experiments.tables import setting
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.first_wrong import first_wrong_nodes
from treekit.explorer.runs import OpenRun, open_run
from treekit.papers.comparison.evaluation import ROWS, small_run


def agreed(r, found, folder):
    "Explorer, comparison, answers and Parquet show these first wrong nodes; so does the run when it is opened again."
    parquet = pytest.importorskip("pyarrow.parquet")
    lasting = [Finding() if f.why.startswith("a repair can't") else f for f in found]  # what wasn't tried isn't stored
    kinds, wrong = [f.kind for f in found], [f for row, f in zip(r.opened.rows, found) if (worth(row) or 0) < 1]
    assert {f.kind for f in wrong} <= {*ERROR_KINDS, ""} and not any(f.why for f in found if f not in wrong)
    assert list(r.answers().wrong) == kinds
    get = ExplorerAPI(r.opened.store).get
    assert [row["wrong"] for row in get(f"run/{r.name}")["rows"]] == [vars(f) for f in lasting]
    assert [get(f"wrong/{r.name}/{i}") for i in range(len(found))] == [vars(f) for f in lasting]
    r.to_parquet(folder)
    table = parquet.read_table(folder / "predictions.parquet", columns=["wrong_kind", "wrong_node"]).to_pylist()
    told = {(row.method, row.dataset, row.question.id): (f.kind, f.node) for row, f in zip(r.opened.rows, found)}
    named = parquet.read_table(folder / "predictions.parquet", columns=["method", "dataset", "question_id"]).to_pylist()
    assert {tuple(n.values()): (t["wrong_kind"], t["wrong_node"]) for n, t in zip(named, table)} == told
    counted = sum((Counter(line["first_wrong"]) for line in r.comparison), Counter())
    assert counted == Counter(f.kind or "without a label" for f in found if f.why)
    assert first_wrong_nodes(OpenRun(r.opened.store, r.opened.kept), ()) == lasting


def test_all_who_show_a_first_wrong_node_agree(tmp_path):
    r = treekit.run(["treerare", "vanilla"], treekit.load("musique", n=8, data="synthetic:100"))
    found = first_wrong_nodes(r.opened)
    assert [bool(f.why) for f in found] == [worth(row) < 1 for row in r.opened.rows]
    assert list(r.first_wrong().kind) == [f.kind for f in found if f.why]
    agreed(r, found, tmp_path)


COLD = {"SEARCH-R": pytest.mark.slow, "RDR²": ()}  # without parses of the passages, minutes; others, seconds


@pytest.mark.parametrize("paper", [pytest.param(p, marks=COLD.get(p, pytest.mark.long)) for p in ROWS])
def test_they_agree_on_the_recorded_run(paper, tmp_path, monkeypatch):
    "On all answers of a paper's rows, without a new call."
    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "own.sqlite"))
    P = setting("smollm2", None, {}, paper=50, data="real")
    results, _ = small_run(P, (paper,), progress=False)
    store, seen = open_store(P), 0
    calls = store.query("SELECT COUNT(*) FROM calls")
    for head in saved_runs(store):
        if not {*head["methods"]} <= {row.method for row in results.rows}:
            continue  # the one question on which ARISE's values are tried
        r = treekit.Run(open_run(store, head["name"]))
        agreed(r, first_wrong_nodes(r.opened, new_calls=False), tmp_path / r.name)
        seen += len(r)
    assert seen == len(results.rows) and store.query("SELECT COUNT(*) FROM calls") == calls
