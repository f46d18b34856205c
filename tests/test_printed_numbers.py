"Printed numbers keep their owner: no committed table shows one as a run's, and the counts are those of the paper."

import csv, fnmatch, importlib, json
from collections import Counter

import pytest

from treekit.config import root
from treekit.figures.verdicts import VERDICTS, compare, count_verdicts, published
from treekit.figures.tables import to_markdown
from treekit.papers.plugin import papers

FIGURES, PAPERS = root() / "figures", root() / "data" / "papers"
OWNERS = (
    "the paper",
    "ARISE, n = 200",
    "HippoRAG, n = 1,000",
    "TreeRare, GPT-4o-mini, n = 500",
    "HyperCLOVAX 60B",
)  # written by notebooks


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def cells_in_print():
    "Every printed cell, as printed and as the paper's tables name its group and metric."
    found = []
    for path in PAPERS.glob("*/*.csv"):
        cells = [
            r | {"value": float(r["value"])}
            for r in rows_of(path)
            if r.get("value") and {"group", "dataset", "metric"} <= r.keys()
        ]
        if path.parent.name not in [p.name for p in papers()]:
            named = None
        else:
            named = getattr(importlib.import_module(f"treekit.papers.{path.parent.name}.evaluation"), "printed", None)
        found += cells + (named(cells) if named else [])
    return found


def comparisons():
    "Committed tables with published and reproduced values."
    tables = {p: rows_of(p) for p in sorted(FIGURES.glob("*/*/*.csv"))}
    return {
        p: rows
        for p, rows in tables.items()
        if rows and {"group", "published", "reproduced", "verdict"} <= rows[0].keys()
    }


def test_no_printed_number_is_a_runs():
    tables, owners = comparisons(), {*OWNERS, *(r["group"] for r in cells_in_print())}
    assert len(tables) > 30
    wrong = [
        f"{p.parent.name}/{p.name}: {r['group']}, {r['method']}, {r['published']}"
        for p, rows in tables.items()
        for r in rows
        if r["published"] and r["group"] not in owners
    ]
    assert not wrong, wrong[:5]
    assert {r["verdict"] for rows in tables.values() for r in rows} <= {"", *VERDICTS}  # none of an earlier version


def test_every_published_value_of_a_table_is_in_the_paper():
    "A table's published values are those of the paper's table."
    tables = {p: rows for p, rows in comparisons().items() if (PAPERS / p.parent.name / p.name).exists()}
    assert len(tables) > 25
    for path, rows in tables.items():
        known = [float(r["value"]) for r in rows_of(PAPERS / path.parent.name / path.name) if r["value"]]
        shown = [float(r["published"]) for r in rows if r["published"]]
        known += [60 * v for v in known]  # a time in minutes among those in seconds
        assert all(any(abs(v - k) < 0.051 for k in known) for v in shown), path


@pytest.mark.parametrize("paper", [p.name for p in papers()])
def test_the_counts_are_those_of_the_printed_numbers(paper):
    "Printed numbers that ran and that did not are together those of the paper's tables, each once."
    folder = FIGURES / "offline" / paper
    tables = {p.stem: rows for p, rows in comparisons().items() if p.parent == folder}
    numbers = {
        name: sum(bool(r["value"]) for r in rows_of(PAPERS / paper / f"{name}.csv"))
        for name in tables
        if (PAPERS / paper / f"{name}.csv").exists()
    }
    shown = {name: sum(bool(r["published"]) for r in rows) for name, rows in tables.items()}
    assert {name: n for name, n in shown.items() if n} == {name: n for name, n in numbers.items() if n}
    blank = sum(count_verdicts(folder / f"{name}.csv")["not run"] for name in tables)
    ran = sum(bool(r["published"] and r["reproduced"]) for rows in tables.values() for r in rows)
    assert blank + ran == sum(numbers.values())
    own = (folder / "README.md").read_text(encoding="utf-8")
    printed = sum(numbers.values())
    page = (root() / f"nbs/docs/howto/full_run_{paper}.md").read_text(encoding="utf-8")
    assert f"{printed:,} numbers in tables and figures" in page and (f"{blank:,} printed and not run" in own) == bool(
        blank
    )


@pytest.mark.parametrize(
    "model,group",
    [
        ("simulated", "simulated (offline)"),
        ("some/new-model", "some/new-model"),
        ("llama3.3:70b", "Llama3.3-70B"),
        ("gpt-4o-mini", "GPT-4o-mini"),
    ],
)
def test_the_page_of_all_rows_names_each_owner(model, group):
    "The printed rows of a table have the paper's groups, whichever model ran."
    cells = published("treerare", "table1")
    run = [
        dict(
            method="zero-shot",
            dataset="hotpotqa",
            metric="COVER-EM",
            n=200,
            failures=0,
            value=0.31,
            low=0.25,
            high=0.38,
        )
    ]
    table = compare(cells, run, model=model)
    assert table[table.reproduced.notna()].group.tolist() == [group]
    page = to_markdown(table).partition("## As printed")[2].partition("\n\n†")[0]
    assert (
        Counter(line.split(" | ")[0].strip("| ") for line in page.splitlines() if line.startswith("|"))["GPT-4o-mini"]
        == 12
    )
    assert group in {c["group"] for c in cells} or group not in page


def test_notebooks_show_the_papers_rows():
    "No notebook leaves out the rows that did not run, which are the paper's."
    for path in root().glob("nbs/reproduce/*/*.ipynb"):
        code = "".join(
            "".join(c["source"])
            for c in json.loads(path.read_text(encoding="utf-8"))["cells"]
            if c["cell_type"] == "code"
        )
        assert "reproduced.notna()]" not in code.partition("to_markdown(")[2], path.name


@pytest.mark.parametrize("paper", [p.name for p in papers()])
def test_settings_name_artefacts_and_rows_of_the_paper(paper):
    "Each line of `experiment.csv` names artefacts of the paper, and methods that one of them prints."
    folder = PAPERS / paper
    artefacts = {r["artefact"] for r in rows_of(folder / "inventory.csv")} | {"textclaims"}
    for line in rows_of(folder / "experiment.csv"):
        named = artefacts if line["artefacts"] == "*" else set(line["artefacts"].split("|"))
        assert named <= artefacts, line
        printed = [folder / f"{name}.csv" for name in named if (folder / f"{name}.csv").exists()]
        methods = {r.get("method", "") for path in printed for r in rows_of(path)}
        if printed and line["artefacts"] != "*":
            assert any(fnmatch.fnmatch(m, pattern) for m in methods for pattern in line["methods"].split("|")), line


@pytest.mark.parametrize(
    "datasets,average",
    [
        (("hotpotqa", "2wiki"), False),
        (("musique",), False),
        (("hotpotqa", "2wiki", "musique"), True),
        (("hotpotqa", "musique"), False),
        (("2wiki", "musique"), False),
    ],
)
def test_an_average_needs_all_data_sets(datasets, average):
    "The mean of two data sets is not compared with the printed mean of three."
    from treekit.core.method import Usage
    from treekit.core.types import Question
    from treekit.experiments.results import Results, Row
    from treekit.papers.arise.evaluation import scored_cells

    rows = [
        Row("Vanilla", d, Question(f"{d}{i}", d, "Who?", ("Ida",)), "", "no reply", Usage())
        for d in datasets
        for i in range(2)
    ]
    assert ("AVG" in {r["dataset"] for r in scored_cells(Results(rows), answer=False)}) == average
