"What is better in a column, more or less: every metric of a committed table has its line, and bold follows it."

import csv
from pathlib import Path

import pytest

from treekit.figures.cells import CellScores
from treekit.figures.significance import best_cells

ROOT = Path(__file__).resolve().parents[1]
COMPARED = {"group", "method", "dataset", "metric", "published", "reproduced", "verdict"}


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def comparisons():
    "The committed tables that compare print with a run: name -> rows, numbers read."
    number = lambda text: float(text) if text else None
    for path in sorted((ROOT / "figures/offline").glob("*/*.csv")):
        rows = read(path)
        if not rows or not COMPARED <= set(rows[0]):
            continue
        yield (
            f"{path.parent.name}/{path.stem}",
            [r | {k: number(r[k]) for k in ("published", "reproduced", "low", "high")} for r in rows],
        )


def row(method, metric, value, group="g", **more):
    return (
        dict(
            group=group,
            method=method,
            dataset="d",
            metric=metric,
            reproduced=value,
            low=None,
            high=None,
            published=value,
        )
        | more
    )


def test_every_metric_of_a_table_has_a_direction():
    from treekit.scoring.metrics import METRIC_DIRECTIONS

    tables = dict(comparisons())
    assert len(tables) > 40
    shown = {r["metric"]: name for name, rows in tables.items() for r in rows}
    printed = {
        r["metric"]: p.name
        for p in sorted((ROOT / "data/papers").glob("*/*.csv"))
        if p.stem != "claims"
        for r in read(p)
        if r.get("metric")
    }
    assert {m: at for m, at in (printed | shown).items() if m not in METRIC_DIRECTIONS} == {}
    assert set(METRIC_DIRECTIONS.values()) == {"higher", "lower", "none"}


def test_where_less_is_better_the_smallest_is_bold():
    "The router that was never trained collapses always: that is the worst of its column."
    rows = [row("sound", "COL-RATE", 2.0), row("untrained", "COL-RATE", 100.0)]
    assert best_cells(rows, CellScores()) == {("g", "sound", "d", "COL-RATE"): "best"}


@pytest.mark.parametrize("metric", ["Len", "FIT", "PE", "calls", "no such metric"])
def test_what_has_no_direction_has_no_best(metric):
    assert best_cells([row("a", metric, 1.0), row("b", metric, 2.0)], CellScores()) == {}
