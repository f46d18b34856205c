"Error analyses of the papers: shares that add up, and one notebook for all papers."

from pathlib import Path

import pytest

from treekit.artefacts.build_cache import command_of, modules_behind
from treekit.artefacts.catalog import runnable
from treekit.artefacts.reproduce import plan_tasks, said_on_top
from treekit.analysis.error_breakdown import COLUMNS, KINDS
from treekit.papers.plugin import SHARED, get_paper, papers, read_rows

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = ROOT / "figures" / "offline"
NAMES = [p.name for p in papers()]


@pytest.mark.parametrize("paper", NAMES)
def test_shares_add_up_and_rows_count_every_question(paper):
    rows = read_rows(OFFLINE / paper / "errors.csv")
    assert tuple(rows[0]) == COLUMNS
    for r in rows:
        assert abs(float(r["right"]) + sum(float(r[k]) for k in KINDS) - 100) < 0.5, r
    for source in {r["questions"] for r in rows}:
        own = [r for r in rows if r["questions"] == source]

        def total(**names):
            return sum(int(r["n"]) for r in own if all((r[k] == "all") == (v == "all") for k, v in names.items()))

        whole = total(dataset="all", hops="all", type="all")
        assert total(dataset="all", hops="each", type="all") == whole
        assert (
            total(dataset="each", hops="each", type="each") == whole
            or total(dataset="each", hops="all", type="all") == whole
        )


@pytest.mark.parametrize("paper", NAMES)
def test_examples_have_trees_with_the_first_wrong_node(paper):
    page = (OFFLINE / paper / "errors_examples.md").read_text(encoding="utf-8")
    sources = {r["questions"] for r in read_rows(OFFLINE / paper / "errors.csv")}
    assert page.count("\n### ") == 3 * len(sources) and page.count("~~~~text") == page.count("\n### ")
    assert page.count("first wrong step, ") >= 1


def test_all_papers_share_the_notebooks_and_get_their_own_name(tmp_path):
    rows = runnable(tuple(f"{p}/{a}" for p in NAMES for a in ("errors", "deviations")))
    assert {r["notebook"].parent for r in rows} == {ROOT / SHARED} and len(rows) == 2 * len(NAMES)
    tasks = plan_tasks(rows, str(tmp_path), dict(profile="offline"), {})
    assert [t.parameters["paper"] for t in tasks] == [r["paper"] for r in rows]
    assert all(said_on_top(r, t.parameters) == {} for r, t in zip(rows, tasks))
    assert command_of(tasks[0].name, "offline", tasks[0].parameters) == f"treekit reproduce {tasks[0].name}"
    for r in (r for r in rows if r["artefact"] == "errors"):
        assert f"treekit.papers.{r['paper']}.evaluation" in modules_behind(r["paper"], r["notebook"])
    assert (
        get_paper(NAMES[0]).notebook("claims").parent.name == NAMES[0]
        and get_paper("across").notebook("errors").parent.name == "across"
    )
