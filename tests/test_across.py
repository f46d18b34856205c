"The table no paper has, and the front of cost and quality."

from dataclasses import replace

import pytest

from treekit.config import UsageError, load_profile
from treekit.store.run_store import Store
from treekit.papers.comparison.evaluation import (
    COLUMN_NAMES,
    MEAN,
    QUALITY,
    against_best,
    empty_cells,
    entrants,
    qualities,
    quality_cells,
    run_across,
)
from treekit.experiments.pareto import pareto, spendings
from treekit.experiments.tables import sample_questions
from treekit.papers.comparison.figures import quality_table

P = load_profile("offline", n=3, retriever="bm25s")
FEW = ("zero-shot", "Vanilla", "Retrieve-and-Read", "Tree-of-Question", "RDR², prompted")
SETS = ("hotpotqa", "musique", "asqa", "qampari", "eli5", "komultihop")


@pytest.fixture(scope="module")
def rows():
    return {m: e for m, e in entrants(P).items() if m in FEW}


@pytest.fixture(scope="module")
def results(rows):
    return run_across(rows, sample_questions(P, SETS), P, store=Store(":memory:"), progress=False)


def test_the_five_methods_and_the_baselines_of_each_paper_are_there():
    usual, every = entrants(P), entrants(P, "all")
    assert sum(e.proposed for e in usual.values()) == 5 == len({e.paper for e in usual.values() if e.proposed})
    assert set(usual) < set(every) and {"TOT", "HippoRAG", "ChainRAG", "RATT"} <= set(every) - set(usual)
    assert all(sum(e.paper == paper for e in usual.values()) >= 4 for paper in {e.paper for e in usual.values()})
    with pytest.raises(UsageError, match="rows"):
        entrants(P, "most")


@pytest.mark.long
def test_arises_row_says_whether_its_values_are_guessed(server, tmp_path, monkeypatch):
    "A server that echoes no log-probabilities can't give ARISE's risk; the row runs with guesses, and is named so."
    online = load_profile("local", endpoint=server.url, model="m")
    for echo, name in ((True, "ARISE"), (False, "ARISE, values guessed")):
        server.reset(echo=echo)
        monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / f"{echo}.sqlite"))
        entered = entrants(online)
        assert name in entered and sum(e.proposed for e in entered.values()) == 5
        assert entered[name].method.scorer == ("likelihood" if echo else "guess")


def test_an_empty_cell_has_its_reason():
    every = entrants(P)
    said = empty_cells(every, QUALITY, P)
    assert (
        "TreeRare (DT) on KoMultiHop-200, NaverCue-1000" in said and "SEARCH-R, prompted" in said and "parser" in said
    )
    assert "RDR²" not in said and "RDR²" in empty_cells(every, ["musique"], replace(P, data="real"))
    assert "every row on ELI5, since no model judges Cla" in said


@pytest.mark.slow
def test_each_cell_has_its_interval_and_each_column_one_best(rows, results):
    cells = against_best(quality_cells(results, rows))
    assert {c["dataset"] for c in cells} == {*(COLUMN_NAMES[d] for d in SETS if d != "eli5"), "multi-hop mean", MEAN}
    assert all(0 <= c["low"] <= c["value"] <= c["high"] <= 1 and c["n"] >= 3 for c in cells)
    for d in {c["dataset"] for c in cells}:
        column = [c for c in cells if c["dataset"] == d]
        [best] = [c for c in column if c["place"] == "best"]
        assert best["value"] == max(c["value"] for c in column)
        assert all(
            (c["adjusted"] < 0.05) == (c["place"] == "worse") and c["p"] <= c["adjusted"]
            for c in column
            if c is not best
        )
    shown = quality_table(cells)
    assert list(shown.method) == list(rows) and shown.iloc[0, 2].count("[") == 1


@pytest.mark.long
def test_nothing_beats_what_is_on_the_front(results):
    points = pareto(spendings(results, qualities(results)))
    for p in points:
        beaten = any(
            o.cost[0] <= p.cost[0]
            and o.quality[0] >= p.quality[0]
            and (o.cost[0], o.quality[0]) != (p.cost[0], p.quality[0])
            for o in points
        )
        assert p.on_front != beaten and 0 <= p.share <= 1
    assert any(p.on_front for p in points) and min(points, key=lambda p: p.cost[0]).on_front
