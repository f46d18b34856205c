"What the papers claim, and whether a run supports it: direction and size."

import csv, functools, json, re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.config import UsageError, root
from treekit.experiments.results import Scored
from treekit.figures.ablations import Ablation, judge_ablations
from paper_text import plain, sections
from treekit.figures.cells import CellScores, TableCell, scores_of_rows, read_cells, read_scores
from treekit.figures.claims import (
    CellTests,
    Claim,
    comparisons,
    judge,
    judge_claims,
    load_claims,
    merged_cells,
    run_comparison_test,
)
from treekit.figures.claims_page import claim_line, claims_by_artefact, claims_in, row_orders, save_claims, summary_of
from treekit.figures.tables import claim_text, save_table
from treekit.figures.verdicts import compare, count_verdicts
from treekit.artefacts.catalog import inventory
from treekit.scoring.statistics import partial_conjunction, contrast, false_discovery, kendall

OFFLINE = root() / "figures" / "offline"


@functools.cache
def committed(paper, artefacts):
    "The cells of committed tables: those that a claim is about."
    return merged_cells(read_cells(OFFLINE / paper, artefact) for artefact in artefacts.split("|"))


@pytest.fixture(scope="module")
def verdicts():
    "Each claim on the committed tables."
    return judge_claims(OFFLINE)


def row(method, dataset, right, n=60, metric="EM"):
    "A row of scores: the first `right` of `n` questions."
    scores = {f"q{i}": float(i < right) for i in range(n)}
    return Scored(
        dict(
            method=method,
            dataset=dataset,
            metric=metric,
            n=n,
            failures=0,
            value=right / n,
            low=right / n - 0.1,
            high=right / n + 0.1,
        ),
        {dataset: scores},
    )


def printed(**values):
    return [
        dict(group="print", method=m, dataset=d, metric="EM", value=v, unit="percent", flag="ok")
        for m, v in values.items()
        for d in ("films", "books")
    ]


def table(folder, scores=True):
    "A small table: Ours far above A, B about as good as Ours, C not run."
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=20, B=49).items() for d in ("films", "books")]
    made = compare(printed(Ours=60.0, A=50.0, B=40.0, C=30.0), rows, model="scripted")
    if not scores:
        made.attrs["scores"] = CellScores()
    save_table(made, folder / "x", "table1", digits=2)


def claim(left, right, direction="more", **other):
    return Claim("x-01", "x", "Sec. 1", "a statement", "table1", left, right, direction, **other)


def told(folder, *claims):
    return judge_claims(folder, claims=[replace(c, id=f"x-{i}") for i, c in enumerate(claims)])


def test_supported_contradicted_inconclusive_and_not_run(tmp_path):
    table(tmp_path)
    found = told(tmp_path, claim("Ours", "A"), claim("A", "Ours"), claim("Ours", "B"), claim("Ours", "C"))
    assert [v.outcome for v in found] == ["supported", "contradicted", "inconclusive", "not run"]
    assert [v.in_print for v in found] == ["supported", "contradicted, 0 of 2", "supported", "supported"]
    assert found[0].how == "paired" and found[0].n == 120 and found[0].ours == pytest.approx(50) and found[0].low > 30
    assert found[0].printed == pytest.approx(10) and found[0].pairs == "2 of 2" and found[0].model == "scripted"
    assert found[3].reason == "not run: C"


@pytest.mark.parametrize(
    "model", ["simulated", "extractive", "simulated, simulated votes", "simulated, tiny", "extractive, tiny"]
)
def test_a_bundled_model_gets_no_verdict_and_no_claim(model, tmp_path):
    "Its numbers and the printed ones are shown; the same table of a real model is judged."
    rows = [row(m, "films", right) for m, right in dict(Ours=50, A=20).items()]
    words = re.compile("supported|contradicted|reproduced|not comparable|✓|✗|What the paper claims", re.I)
    made = compare(printed(Ours=60.0, A=50.0), rows, model=model)
    assert set(made[made.reproduced.notna()].verdict) == {""} and made.difference.isna().all()
    md, html = (
        (save_table(made, tmp_path / "x", "table1", digits=2), tmp_path / f"x/table1{end}")[1]
        for end in (".md", ".html")
    )
    assert not words.search(md.read_text()) and not words.search(re.sub("<style>.*?</style>", "", html.read_text()))
    assert "| Ours | **83.33** |" in md.read_text() and "| Ours | **60.00** |" in md.read_text()
    [v] = told(tmp_path, claim("Ours", "A"))
    assert (v.outcome, v.ours, v.printed, v.reason) == ("not run", None, 10, "judged on runs of a real model alone")
    assert count_verdicts(tmp_path / "x/table1.csv") == {"not judged": 2, "not run": 4, "failures": 0}
    save_claims([v], tmp_path / "x", "Claims")
    assert claims_in(tmp_path / "x/claims.csv") == claims_by_artefact(tmp_path / "x/claims.csv") == {}
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    assert [(v.model, v.outcome) for v in told(tmp_path, claim("Ours", "A"))] == [("scripted", "supported")]


def test_the_same_without_scores_goes_by_the_intervals(tmp_path):
    table(tmp_path, scores=False)
    assert not (tmp_path / "x" / "table1_scores.jsonl").exists()
    found = told(tmp_path, claim("Ours", "A"), claim("Ours", "B"))
    assert [(v.outcome, v.how) for v in found] == [("supported", "intervals"), ("inconclusive", "intervals")]


def test_equivalence_needs_a_margin_that_the_interval_lies_in(tmp_path):
    table(tmp_path)
    outcomes = [
        v.outcome
        for v in told(
            tmp_path,
            claim("Ours", "B", "same", margin=10),
            claim("Ours", "A", "same", margin=10),
            claim("B", "Ours", "not less", margin=10),
            claim("A", "Ours", "not less", margin=10),
        )
    ]
    assert outcomes == ["supported", "contradicted", "supported", "contradicted"]


def test_quantifiers(tmp_path):
    table(tmp_path)
    sides = dict(left="Ours", right="A|B")
    over = {over: told(tmp_path, claim(**sides, over=over))[0].outcome for over in ("all", "any", "mean")}
    assert over == dict(all="inconclusive", any="supported", mean="supported")
    best, mean = told(tmp_path, claim("Ours", "best of A|B"), claim("Ours", "mean of A|B"))
    assert best.ours == pytest.approx(100 / 60, abs=0.01) and mean.ours == pytest.approx(50 / 2 + 100 / 120, abs=0.01)
    assert told(tmp_path, claim("Ours minus A", "Ours minus B"))[0].outcome == "supported"
    assert told(tmp_path, claim("A|B|Ours", "", "rises"))[0].outcome == "supported"
    by_data = told(tmp_path, claim("films", "books", by="dataset", method="Ours minus A"))[0]
    assert by_data.ours == 0 and by_data.outcome == "inconclusive" and by_data.how == "paired"


def test_amounts_in_their_units(tmp_path):
    table(tmp_path)
    units = {
        unit: told(tmp_path, claim("Ours", "A", amount=1, unit=unit))[0]
        for unit in ("points", "percent", "percent each", "times", "value")
    }
    assert {u: round(v.recomputed, 2) for u, v in units.items()} == {
        "points": 10,
        "percent": 20,
        "percent each": 20,
        "times": 1.2,
        "value": 60,
    }
    assert round(units["times"].amount, 2) == 2.5


def test_a_claim_about_a_size_is_judged_by_the_size(tmp_path):
    table(tmp_path)  # Ours is 2.5 times A
    about = [
        claim("Ours", "A", "about", amount=a, unit=u, margin=m)
        for a, u, m in (
            (2.5, "times", 1.5),
            (150, "percent", 150),
            (6, "times", 1),
            (1.2, "times", 0.2),
            (2.5, "times", 0.1),
        )
    ]
    found = told(tmp_path, *about)
    assert [v.outcome for v in found] == ["supported", "supported", "contradicted", "contradicted", "inconclusive"]
    assert (
        found[3].in_print == "supported" and found[2].in_print == "contradicted, 0 of 2" and found[0].how == "resampled"
    )
    gain = told(tmp_path, claim("Ours minus A", "B minus A", amount=1, unit="percent gain"))[0]
    assert gain.amount == pytest.approx(150, abs=0.1) and gain.recomputed == pytest.approx(20)


def test_a_substitute_row_supports_nothing_and_is_named(tmp_path):
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=20).items() for d in ("films", "books")]
    made = compare(
        printed(Ours=60.0, A=50.0),
        rows,
        model="scripted",
        differs=["router=the model that answers, published: a trained one"],
    )
    save_table(made, tmp_path / "x", "table1", digits=2)
    [found] = told(tmp_path, claim("Ours", "A"))
    assert (found.outcome, found.p, found.in_print) == ("substitute row", None, "supported")
    assert (
        found.with_substitutes.startswith("supported with ")
        and "router=the model that answers" in found.with_substitutes
    )
    [sized] = told(tmp_path, claim("Ours", "A", amount=50, unit="points"))
    assert sized.size == "not comparable" and sized.amount == pytest.approx(50)


def test_a_substitute_of_the_claims_own_leaves_the_other_rows_as_evidence(tmp_path):
    table(tmp_path)
    [a, b] = told(tmp_path, claim("Ours", "A|B", substitute="A"), claim("B", "A|Ours", substitute="A"))
    assert a.outcome == "substitute row" and b.outcome == "substitute row"
    [turned] = told(tmp_path, claim("A", "Ours|B", substitute="B"))
    assert turned.outcome == "contradicted" and turned.with_substitutes.startswith("contradicted with ")


def test_a_mean_over_columns_takes_the_rows_that_every_column_has(tmp_path):
    rows = [
        row("Ours", "films", 50),
        row("Ours", "books", 50),
        row("A", "films", 55),
        row("B", "films", 20),
        row("B", "books", 20),
    ]
    save_table(compare(printed(Ours=60.0, A=50.0, B=40.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    best, none = told(tmp_path, claim("Ours", "best of A|B", over="mean"), claim("Ours", "A", over="mean"))
    assert best.outcome == "supported" and best.difference == pytest.approx(
        50
    )  # A has no cell for the books, so B is the best
    assert none.reason == "1 of 2 comparisons lack a cell"


def test_what_a_table_says_of_a_row_holds_in_the_runs_other_tables(tmp_path):
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=20).items() for d in ("films", "books")]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    made = compare(printed(Ours=60.0, A=50.0), rows, model="scripted")
    made["method"] = [
        f"{m} [tiny navigator]" if m == "Ours" and r == r else m for m, r in zip(made.method, made.reproduced)
    ]
    save_table(made, tmp_path / "x", "table2", digits=2)
    assert [v.outcome for v in told(tmp_path, claim("Ours", "A"))] == ["supported"]
    both = told(tmp_path, claim("Ours", "A"), replace(claim("Ours", "A"), artefact="table2"))
    assert [v.outcome for v in both] == ["substitute row"] * 2


def test_a_claim_that_names_a_model_is_not_tested_with_another(tmp_path):
    table(tmp_path)
    [other, own] = told(
        tmp_path, claim("Ours", "A", model="GPT-9", amount=3, unit="points"), claim("Ours", "A", model="scripted*")
    )
    assert (other.outcome, other.size, other.p, other.ours) == ("other model", "not comparable", None, None)
    assert "GPT-9" in other.reason and "scripted" in other.reason and own.outcome == "supported"


def test_people_and_definitions_are_no_tests(tmp_path):
    table(tmp_path)
    sized = claim("Ours", "A", basis="construction", amount=50, unit="points")
    votes, made, missing = told(
        tmp_path, claim("Ours", "C", basis="people"), sized, claim("Ours", "C", basis="construction")
    )
    assert (votes.outcome, made.outcome, made.size, made.p, missing.outcome) == (
        "needs people",
        "identical by construction",
        "inside",
        None,
        "not run",
    )


def test_no_difference_on_any_question_is_no_evidence(tmp_path):
    "Two rows with the same scores: an equivalence test would give p = 0."
    rows = [row(m, d, 30) for m in ("Ours", "A") for d in ("films", "books")]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    for direction in ("same", "more", "not less"):
        [found] = told(tmp_path, claim("Ours", "A", direction, margin=0 if direction == "more" else 3))
        assert (found.outcome, found.p, found.adjusted) == ("identical by construction", None, None), direction


def test_what_differs_is_a_part_of_n(tmp_path):
    table(tmp_path)
    [found] = judge_ablations(tmp_path, [Ablation("x", "table1", "Ours", "A", "what it knows", "films|books", "EM")])
    assert (found.differ, found.found.n, found.verdict) == (60, 120, "as printed")


def test_no_p_is_shown_as_zero(tmp_path):
    table(tmp_path)
    sure = [replace(v, p=0.0, adjusted=0.0, same_p=0.0) for v in told(tmp_path, claim("Ours", "A"))]
    save_claims(sure, tmp_path, "Claims")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as f:
        [line] = csv.DictReader(f)
    assert line["p"] == line["adjusted"] == "<0.0001" and "p < .001" in claim_text(sure[0])
    assert claim_line(sure[0])["p"] == claim_line(sure[0])["q"] == "<0.001"
    save_table(pd.DataFrame([dict(method="A", p=0.0, p_fused=0.0004, adjusted=0.25, low=0.0)]), tmp_path, "steps")
    assert (tmp_path / "steps.csv").read_text().splitlines()[1] == "A,<0.001,<0.001,0.250,0.000"


def test_the_claims_words_and_their_directions():
    "What gains *only* so much isn't claimed to be more; a factor, or a half, is compared with."
    for c in load_claims():
        words = c.statement.lower()
        if " only " in words:
            assert c.direction != "more" and c.right, c.id
        if any(w in words for w in ("twice", "half", "times as much")):
            assert c.direction == "about", c.id


def test_an_average_is_tested_over_its_data_sets(tmp_path):
    def averaged(method, right):
        parts = [row(method, d, right) for d in ("films", "books")]
        return [*parts, Scored(dict(parts[0]) | dict(dataset="AVG"), parts[0].scores | parts[1].scores)]

    rows = averaged("Ours", 50) + averaged("A", 44)
    told_of = [
        dict(group="print", method=m, dataset="AVG", metric="EM", value=1.0, unit="percent", flag="ok")
        for m in ("Ours", "A")
    ]
    save_table(compare(told_of, rows, model="scripted"), tmp_path / "x", "table1")
    kept = read_scores(tmp_path / "x" / "table1_scores.jsonl")
    assert set(kept["scripted", "Ours", "AVG", "EM"]) == {"films", "books"}
    [average, single] = told(tmp_path, claim("Ours", "A", dataset="AVG"), claim("Ours", "A", dataset="films"))
    assert average.p < single.p


def test_another_models_scores_stay_beside_its_rows(tmp_path):
    cells = [c | dict(paper="x", artefact="table1") for c in printed(Ours=60.0, A=50.0)]
    for model, right in (("one", 50), ("two", 10)):
        rows = [row(m, d, n) for m, n in (("Ours", right), ("A", 25)) for d in ("films", "books")]
        save_table(compare(cells, rows, model=model, folder=tmp_path / "x"), tmp_path / "x", "table1")
    assert {c[0] for c in read_scores(tmp_path / "x" / "table1_scores.jsonl")} == {"one", "two"}
    assert {v.model: v.outcome for v in told(tmp_path, claim("Ours", "A"))} == dict(one="supported", two="contradicted")
    [apart] = told(tmp_path, claim("one", "two", by="group", method="Ours"))
    assert apart.outcome == "supported" and apart.how == "paired"
    [lacking] = told(tmp_path, claim("one", "three", by="group", method="Ours"))
    assert lacking.outcome == "not run" and lacking.reason == "needs one and three; ran: two, one"
    [named] = told(tmp_path, claim("one", "three", by="group", method="Ours", model="one|three"))
    assert named.outcome == "other model" and named.reason == "about one and three; ran: two, one"


def test_every_claim_is_about_cells_that_are_there(verdicts):
    "In the committed tables each claim finds printed cells or cells of a run; or it says that there are none."
    for c in load_claims():
        if not c.artefact:
            assert c.note, f"{c.id} has no artefact, and doesn't say why"
        else:
            assert committed(c.paper, c.artefact), f"{c.id}: {c.artefact} isn't there"


def test_every_name_in_a_claim_is_a_rows():
    "No side names a row, a data set, a metric or a group that no table of its artefact has."
    from treekit.figures.claims import _matches, _parts

    for c in load_claims():
        cells = committed(c.paper, c.artefact) if c.artefact else {}
        known = {k: {getattr(cell, k) for cell in cells.values()} for k in ("group", "method", "dataset", "metric")}
        for side, of in ((c.left, c.by), (c.right, c.by), (c.method, "method")):
            names = {n for _, some in _parts(side) for n in some}
            assert not cells or names <= known[of], (c.id, names - known[of])
        for k in ("dataset", "metric", "group"):
            if not cells:
                continue
            for pattern in filter(None, getattr(c, k).split("|")):
                assert any(_matches(pattern, name) for name in known[k]), (c.id, pattern)


def test_the_stated_amounts_follow_from_print_but_for_the_known_errors(verdicts):
    found = {v.claim.id: v for v in verdicts}
    sized = {i: v for i, v in found.items() if v.recomputed is not None and v.claim.sized}
    off = {i for i, v in sized.items() if abs(v.recomputed - v.claim.amount) > 0.006 * abs(v.claim.amount)}
    assert off == {"treerare-16", "treerare-23", "treerare-24", "searchr-04", "rdr2-09", "rdr2-28"}


def test_ids_are_unique_and_claims_complete():
    claims = load_claims()
    assert len({c.id for c in claims}) == len(claims) == 188
    assert all(c.id.startswith(f"{c.paper}-") and c.section and c.statement for c in claims)
    assert all(0 < len(c.quote.split()) <= 10 for c in claims)
    assert all(c.margin > 0 for c in claims if c.direction in ("same", "not less"))
    with pytest.raises(UsageError):
        load_claims("treerar")


def test_a_wrong_field_is_one_line(tmp_path):
    bad = tmp_path / "claims.csv"
    bad.write_text("id,paper,section,statement,artefact,left,right,direction\nx-1,x,a,b,table1,A,B,mroe\n")
    with pytest.raises(UsageError, match="more"):
        load_claims(path=bad)
    bad.write_text(
        "id,paper,section,statement,artefact,left,right,direction,amount,unit\nx-1,x,a,b,table1,A,B,about,2,points\n"
    )
    with pytest.raises(UsageError, match="about a size"):
        load_claims(path=bad)
    bad.write_text("id,paper,where,statement,artefact,left,right,direction\nx-1,x,a,b,table1,A,B,more\n")
    with pytest.raises(UsageError, match="no claim"):
        load_claims(path=bad)
    bad.write_text(
        "id,paper,section,statement,artefact,left,right,direction\nx-1,x,a,b,table1,best of A|C minus D,B,more\n"
    )
    with pytest.raises(UsageError, match="whole side"):
        load_claims(path=bad)


def test_the_order_of_rows(tmp_path):
    table(tmp_path)
    [order] = row_orders(tmp_path, "x")
    assert order.printed == ("Ours", "A", "B") and order.ours == ("Ours", "B", "A")
    assert order.tau == pytest.approx(1 / 3) and order.low <= order.tau <= order.high and order.columns == 2
    assert (order.group, order.model) == ("print", "scripted")


def test_statistics_of_many():
    assert [partial_conjunction([0.01, 0.2, 0.04], r) for r in (1, 2, 3)] == pytest.approx([0.03, 0.08, 0.2])
    assert kendall([1, 2, 3], [3, 2, 1]) == -1 and kendall([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(2 / 3)
    assert contrast([[1.0] * 30]).p < 0.001 and contrast([[1.0, -1.0] * 30]).p > 0.5


def test_the_file_has_every_claim_and_the_list_counts_them(tmp_path, verdicts):
    save_claims([v for v in verdicts if v.claim.paper == "toq"], tmp_path, "Claims")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == len(load_claims("toq")) and {"not run", "needs people"} == {r["outcome"] for r in rows}
    assert all(r["quote"] and r["section"] for r in rows) and {r["size"] for r in rows} == {"not comparable", ""}
    assert claims_by_artefact(tmp_path / "claims.csv") == {}, "no claim was judged"
    save_claims([replace(v, outcome="supported") for v in verdicts if v.claim.paper == "toq"], tmp_path, "Claims")
    assert sum(claims_by_artefact(tmp_path / "claims.csv")["table6"].values()) == 4
    assert "<script" not in (tmp_path / "claims.html").read_text() and "toq-01" in (tmp_path / "claims.md").read_text()


def test_the_command(tmp_path):
    table(tmp_path)
    (tmp_path / "toq").mkdir()
    done = CliRunner().invoke(main, ["claims", "toq", "--out", str(tmp_path), "--json"], standalone_mode=False)
    rows = json.loads(done.output)
    assert {r["direction"] for r in rows} == {"not run", "needs people"} and len(rows) == len(load_claims("toq"))
    assert (
        "the intervals of cells"
        in CliRunner().invoke(main, ["claims", "toq", "--out", str(tmp_path)], standalone_mode=False).output
    )
    assert not list(Path(tmp_path, "toq").iterdir())


def test_each_paper_has_its_claims_first():
    rows = inventory()
    papers = [p for p in dict.fromkeys(r["paper"] for r in rows) if p not in ("real", "across")]  # no papers
    first = {paper: next(r for r in rows if r["paper"] == paper) for paper in papers}
    assert all(r["artefact"] == "claims" and r["notebook"].exists() for r in first.values())


def test_plain_tables_keep_scores_too():
    kept = scores_of_rows(
        [row("Ours", "films", 3) | dict(retriever="BM25"), dict(method="A", dataset="films", metric="EM")],
        "retriever",
        100,
    )
    assert kept["BM25", "Ours", "films", "EM"]["films"]["q0"] == 100 and len(kept) == 1


# the statistics: what a claim's author would ask


def scored(name, values, dataset="films", scale=100):
    "A cell with a score for each question."
    values = [float(scale * v) for v in values]
    return TableCell(
        "m",
        name,
        dataset,
        "EM",
        None,
        float(np.mean(values)),
        None,
        None,
        len(values),
        "m",
        scores={dataset: {f"q{i}": v for i, v in enumerate(values)}},
    )


def cells_of(**rows):
    return {("m", c.method, c.dataset, "EM"): c for name, values in rows.items() for c in [scored(name, values)]}


def weighed(c, cells):
    made, _ = comparisons(c, {key: cell.value for key, cell in cells.items()}, ["m"])
    return [run_comparison_test(c, one, CellTests(cells)) for one in made]


@pytest.mark.parametrize("sides", [("Ours", "best of {}"), ("best of {}", "Ours")])
@pytest.mark.parametrize("direction", ["more", "less"])
def test_the_best_of_several_is_chosen_inside_the_test(sides, direction):
    "Nine rows that are as good as ours: the best one by chance must not be significantly ahead in more than 5 % of runs."
    names, rng, wrong, naive, runs = [f"B{i}" for i in range(9)], np.random.default_rng(0), 0, 0, 100
    left, right = (side.format("|".join(names)) for side in sides)
    for _ in range(runs):
        cells = cells_of(**{name: rng.random(60) < 0.5 for name in ("Ours", *names)})
        [w] = weighed(claim(left, right, direction), cells)
        wrong += min(w.favour, w.against) < 0.05
        top = max(names, key=lambda n: cells["m", n, "films", "EM"].value)
        [fixed] = weighed(claim(top, "Ours"), cells)
        naive += fixed.favour < 0.05
    assert wrong / runs <= 0.05 < naive / runs


def test_the_best_of_several_is_found_where_it_is_ahead():
    rng = np.random.default_rng(1)
    cells = cells_of(
        Ours=rng.random(200) < 0.9, Other=rng.random(200) < 0.5, A=rng.random(200) < 0.5, B=rng.random(200) < 0.55
    )
    [ahead] = weighed(claim("best of Ours|Other", "best of A|B"), cells)
    [behind] = weighed(claim("best of A|B", "best of Ours|Other"), cells)
    assert ahead.favour < 0.01 and ahead.low > 0 and behind.against < 0.01 and behind.high < 0
    [less] = weighed(claim("best of A|B", "best of Ours|Other", "less"), cells)
    assert less.favour < 0.01 and less.high < 0


@pytest.mark.parametrize(
    "sides", [("Ours", "A"), ("Ours", "A|B"), ("best of Ours|A", "best of B|C"), ("A", "best of Ours|B|C")]
)
@pytest.mark.parametrize("direction", ["more", "less", "same", "not less"])
def test_an_interval_and_its_p_are_of_the_same_comparison(tmp_path, sides, direction):
    "Where p is well on one side of 5 %, the interval that is shown lies on the same side of what was tested."
    if direction == "same" and "best of" in " ".join(sides):
        pytest.skip("no such claim")
    rng = np.random.default_rng(sum(map(ord, "".join(sides) + direction)))
    checked = 0
    for shift in (0, 0.05, 0.15, 0.4):
        rows = [
            Scored(
                dict(method=m, dataset=d, metric="EM", n=90, failures=0, value=0.5, low=0.4, high=0.6),
                {d: {f"q{i}": float(v) for i, v in enumerate(rng.random(90) < 0.4 + k * shift)}},
            )
            for k, m in enumerate(("A", "B", "C", "Ours"))
            for d in ("films", "books")
        ]
        for one in rows:
            one["value"] = float(np.mean(list(one.scores[one["dataset"]].values())))
        save_table(
            compare(printed(Ours=60.0, A=50.0, B=1.0, C=1.0), rows, model="scripted"),
            tmp_path / "x",
            "table1",
            digits=2,
        )
        c = claim(*sides, direction, margin=8 if direction in ("same", "not less") else 0)
        [v] = judge_claims(tmp_path, claims=[c], correct=False)
        if v.p is None or 0.02 < v.p < 0.1:
            continue
        bar = -8 if direction == "not less" else 0
        if direction == "same":
            clear = -8 < v.low and v.high < 8 or v.low > 8 or v.high < -8
        else:
            clear = v.low > bar or v.high < bar
        assert clear == (v.p < 0.05), (shift, v)
        checked += 1
    assert checked


def test_the_weakest_comparison_is_shown_and_not_the_mean(tmp_path):
    "Ours is far above A, and no better than B: the mean is far from zero, and decides nothing."
    table(tmp_path)
    [v] = told(tmp_path, claim("Ours", "A|B"))
    assert (
        v.outcome == "inconclusive"
        and v.ours > 20
        and v.weakest.endswith("Ours − B")
        and v.difference < 3
        and v.low <= 0 <= v.high
    )
    assert "mean" in claim_line(v)["reproduced"] and v.weakest in claim_line(v)["reproduced"]


def test_one_false_discovery_rate_over_the_distinct_contrasts_of_a_paper(tmp_path):
    "Raw p is kept; an equivalence is corrected, too; the same contrast counts once, whatever the statement."
    table(tmp_path)
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=44).items() for d in ("films", "books")]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table2", digits=2)
    some = [
        claim("Ours", "A"),
        claim("A", "Ours", "less"),
        claim("Ours", "B"),
        claim("Ours", "B", "same", margin=6),
        replace(claim("Ours", "A"), artefact="table2"),
        claim("Ours", "C"),
    ]
    found = told(tmp_path, *some)
    assert [v.same_as for v in found] == ["", "x-0", "", "", "", ""]
    assert found[0].p == found[1].p and found[0].adjusted == found[1].adjusted
    tested = [found[i] for i in (0, 2, 3, 4)]
    assert [v.adjusted for v in tested] == pytest.approx(false_discovery([v.p for v in tested]))
    assert any(v.adjusted > v.p for v in tested) and found[5].adjusted is None
    assert (
        "4 distinct contrasts, decided by 3 distinct comparisons (the same one decides x-0, x-1; x-2, x-3)"
        in summary_of(found)
    )


@pytest.mark.parametrize(
    "file",
    [
        *(f"figures/offline/{p}/claims.csv" for p in ("treerare", "toq", "arise", "searchr", "rdr2")),
        "figures/offline/across/controls.csv",
    ],
)
def test_a_difference_lies_in_its_interval(file):
    "A mean of several comparisons isn't beside the interval of one of them."
    for row in csv.DictReader((root() / file).open(encoding="utf-8", newline="")):
        for name, start in dict(difference="", effect="", amount="amount_").items():
            value, low, high = row.get(name), row.get(f"{start}low"), row.get(f"{start}high")
            if value and low:
                assert float(low) <= float(value) <= float(high), (row, name)


def test_the_correction_decides(tmp_path):
    "What is significant alone can be inconclusive among many."
    table(tmp_path)
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=45).items() for d in ("films",)]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table2", digits=2)
    close = replace(claim("Ours", "A", dataset="films"), artefact="table2")
    [alone] = judge_claims(tmp_path, claims=[close], correct=False)
    others = [
        claim("Ours", "B", dataset="films"),
        claim("Ours", "B", dataset="books"),
        claim("Ours", "B", "same", margin=0.5),
    ]
    among = told(tmp_path, close, *others)
    assert among[0].p == alone.p and among[0].adjusted > alone.p
    assert among[0].outcome == ("supported" if among[0].adjusted < 0.05 else "inconclusive")


def test_the_same_is_told_from_too_few_questions():
    rng = np.random.default_rng(2)

    def judged(n, flips):
        base = rng.random(n) < 0.5
        other = base.copy()
        other[:flips] = ~other[:flips]
        return judge(replace(claim("Ours", "A"), id="x-1"), cells_of(Ours=base, A=other))[0]

    many, few = judged(4000, 20), judged(30, 12)
    assert many.same_margin == 3 and many.same_p < 0.01 and few.same_p > 0.05
    assert "the same within 3" in claim_line(replace(many, outcome="inconclusive"))["note"]
    assert "too few questions" in claim_line(replace(few, outcome="inconclusive"))["note"]


@pytest.mark.parametrize("direction", ["more", "less", "same", "not less"])
def test_so_many_questions_as_the_power_says_decide(direction):
    "With as many as it says, and the same differences, p is where 80 % power puts it: 2.8 standard errors, or 2.5 on one side."
    rng = np.random.default_rng(3)
    left, right = rng.random(60) < 0.55, rng.random(60) < 0.45
    c = claim("Ours", "A", direction, margin=dict(same=18, **{"not less": 0.01}).get(direction, 0))

    def judged(times):
        return judge(c, cells_of(Ours=np.tile(left, times), A=np.tile(right, times)))[0]

    first = judged(1)
    assert first.p > 0.05 and first.n_to_decide > 60, first
    enough = judged(-(-first.n_to_decide // 60))
    assert 0.001 < enough.p < 0.015 and enough.outcome == first.would_be


@pytest.mark.parametrize("sides, tries", [(("Ours", "best of A|B"), (1, 2)), (("best of A|B", "Ours"), (2, 1))])
def test_the_power_of_the_best_of_several_counts_them(sides, tries):
    rng = np.random.default_rng(3)
    left, a, b = rng.random(60) < 0.6, rng.random(60) < 0.45, rng.random(60) < 0.3

    def judged(times):
        return judge(claim(*sides), cells_of(Ours=np.tile(left, times), A=np.tile(a, times), B=np.tile(b, times)))[0]

    [w] = weighed(claim(*sides), cells_of(Ours=left, A=a, B=b))
    first = judged(1)
    enough = judged(-(-first.n_to_decide // 60))
    assert w.tries == tries and first.p > 0.05 and 0.001 < enough.p < 0.015 and enough.outcome == first.would_be


def test_power_counts_questions_of_each_data_set():
    rng = np.random.default_rng(4)
    cells = {
        ("m", m, d, "EM"): scored(m, rng.random(50) < p, d)
        for d in ("films", "books")
        for m, p in (("Ours", 0.55), ("A", 0.5))
    }
    [v] = judge(claim("Ours", "A", over="mean"), cells)
    [single] = judge(claim("Ours", "A", dataset="films"), {k: c for k, c in cells.items() if k[2] == "films"})
    assert v.n == 100 and single.n == 50
    [w] = weighed(claim("Ours", "A", dataset="films"), cells)
    assert w.sets == 1 and w.n == 50


def test_sizes(tmp_path):
    table(tmp_path)  # Ours is 50 points above A on both data sets
    amounts = ((50, "points"), (10, "points"), (150, "percent"), (20, "percent"), (83, "value"), (60, "value"))
    found = told(
        tmp_path,
        *(claim("Ours", "A", amount=a, unit=u) for a, u in amounts),
        claim("Ours", "C", amount=3, unit="points"),
        claim("Ours", "A"),
    )
    assert [v.size for v in found] == ["inside", "outside"] * 3 + ["not comparable", ""]
    assert (
        all(v.amount_low <= v.amount <= v.amount_high for v in found[:6])
        and found[0].outcome == found[1].outcome == "supported"
    )
    assert "[" in claim_line(found[0])["reproduced"].split("amount")[1]


def test_a_value_can_be_about_an_amount_or_at_least_one(tmp_path):
    table(tmp_path)  # Ours: 83 of 100
    bars = [claim("Ours", "", "at least", amount=a, unit="value") for a in (61, 95)]
    found = told(tmp_path, *bars, *(claim("Ours", "", "about", amount=a, unit="value", margin=10) for a in (85, 50)))
    assert [v.outcome for v in found] == ["supported", "contradicted"] * 2
    assert [v.in_print for v in found] == ["contradicted, 0 of 2"] * 3 + ["supported"]
    assert [v.size for v in found] == ["", "", "inside", "outside"]


def test_a_spread_over_groups_and_a_relative_gain_are_tested_by_resampled_questions():
    rng = np.random.default_rng(5)

    def group(name, **rates):
        return {(name, m, "films", "EM"): replace(scored(m, rng.random(300) < p), group=name) for m, p in rates.items()}

    cells = group("bm25", Ours=0.6, A=0.2) | group("dpr", Ours=0.62, A=0.5) | group("bge", Ours=0.6, A=0.8)
    [wide], [narrow] = (judge(claim(*sides, "varies more"), cells) for sides in (("A", "Ours"), ("Ours", "A")))
    assert (wide.outcome, narrow.outcome) == ("supported", "contradicted") and wide.low > 0 and wide.how == "resampled"
    assert wide.weakest == "films, EM: spread of A − spread of Ours"
    gain = claim("bm25", "dpr|bge", by="group", method="Ours over best of A")
    [v] = judge(gain, cells)
    assert (
        v.outcome == "supported"
        and v.difference == pytest.approx(0.6 / 0.2 - 0.62 / 0.5, abs=0.6)
        and v.pairs == "2 of 2"
    )


def test_a_table_of_its_own_shows_raw_p(tmp_path):
    "The other tables may not be there yet, so a table's page can't correct for them."
    table(tmp_path)
    lines = [
        v
        for v in judge_claims(
            tmp_path, claims=[claim("Ours", "A"), claim("Ours", "B", amount=1, unit="points")], correct=False
        )
    ]
    assert all(v.adjusted == v.p for v in lines) and "(Sec. 1)" in claim_text(lines[0])
    assert claim_text(lines[0]).startswith("supported (p < .001")
    assert claim_text(lines[1]).startswith("inconclusive, size inside (")


PAPERS = root().parent / "shared" / "papers"


@pytest.mark.parametrize("paper", ["treerare", "toq", "arise", "searchr", "rdr2"])
def test_each_claim_quotes_its_section(paper):
    "The paper's own words, at most ten of them, are in the section that the claim names."
    path = PAPERS / f"{paper}.txt"
    if not path.is_file():
        pytest.skip("the papers don't lie beside the clone")
    there = sections(paper, path.read_text(encoding="utf-8"))
    lost = [(c.id, c.section, c.quote) for c in load_claims(paper) if plain(c.quote) not in there[c.section]]
    assert lost == []
    assert not any(plain("a sentence that no paper has") in text for text in there.values())


def test_what_the_second_reading_found_in_the_claims():
    of = {c.id: c for c in load_claims()}
    assert set(of["treerare-21"].dataset.split("|")) == {
        "HotpotQA",
        "MuSiQue",
        "2WikiMQA",
        "AmbigDoc",
        "ASQA",
    }  # any module, anywhere
    assert of["treerare-15"].method.startswith(
        "TreeRare (DT) over best of "
    )  # the dependency tree, relative to the best baseline
    assert all(
        of[i].metric.startswith("Time") for i in ("arise-34", "arise-37", "searchr-28", "searchr-29", "searchr-30")
    )  # no calls
    named = ("Llama", "Qwen", "GPT", "DeepSeek", "ChatGPT")
    for c in of.values():  # who names a model in the statement, or quotes it, is about that model
        if any(f"With {n}" in c.statement or f"with {n}" in c.statement for n in named) and c.paper in (
            "treerare",
            "arise",
        ):
            assert c.model or c.basis == "no cells", c.id
    assert (
        sum(c.basis == "people" for c in of.values() if c.paper == "toq") == 9
    )  # seven, and the two that were missing
    assert {c.id for c in of.values() if c.basis == "construction"} == {"toq-09", "toq-10", "toq-11", "toq-12"}
    assert (
        of["rdr2-37"].direction == "varies more"
        and of["rdr2-41"].artefact == "table4"
        and of["arise-57"].method == "ARISE Pass@N"
    )


@pytest.mark.parametrize("paper", ["treerare", "toq", "arise", "searchr", "rdr2"])
def test_an_erratum_is_an_inconsistency(paper):
    "What agrees, or can't be checked, is in a table of its own; a mean over questions is no error."
    from treekit.figures.tables import is_consistent

    def rows(name):
        path = OFFLINE / paper / f"{name}.csv"
        return list(csv.DictReader(path.open(encoding="utf-8", newline=""))) if path.exists() else []

    assert rows("inconsistencies") and not any(is_consistent(r["finding"]) for r in rows("inconsistencies"))
    assert all(is_consistent(r["finding"]) for r in rows("inconsistencies_checked"))
    assert not any("mean over questions" in r["finding"] for r in rows("inconsistencies"))
    assert is_consistent("holds: on ASQA") and not is_consistent("holds for EM alone") and not is_consistent("differs")


def test_failed_questions_judge_no_claim(tmp_path):
    "A server's errors score 0: a method whose every question failed is not a worse method."
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=0, B=20).items() for d in ("films", "books")]
    for one in rows:
        if one["method"] == "A":
            one["failures"] = 60
    save_table(compare(printed(Ours=60.0, A=50.0, B=1.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    [all_, some] = told(tmp_path, claim("Ours", "A"), claim("Ours", "A|B"))
    assert (all_.outcome, all_.p) == (
        "not run",
        None,
    ) and all_.reason == "2 of 2 comparisons have too many failed questions"
    assert (
        some.outcome == "supported"
        and some.pairs == "2 of 2"
        and some.reason.startswith("2 of 4 comparisons have too many failed")
    )


def test_saved_claims_are_read_back_and_shown_where_a_clone_has_no_scores(tmp_path):
    from treekit.config import kit_path
    from treekit.figures.claims_page import (
        CLAIM_SOURCES,
        claim_line,
        claims_of_run,
        save_claims,
        saved_claims,
        source_of_claims,
    )

    folder = kit_path("figures", "offline")
    one = dict(outcome="supported", difference=1.0, p=0.01, n=7)
    made = [replace(v, **one) if v.claim.id == "toq-01" else v for v in judge_claims(folder, "toq")]
    save_claims(made, tmp_path / "toq", "x")
    made = saved_claims(tmp_path, "toq")
    assert [v.outcome for v in made].count("supported") == 1 and len(made) == len(load_claims("toq"))
    save_claims(made, tmp_path / "toq", "x")
    again = saved_claims(tmp_path, "toq")
    assert [claim_line(v) for v in again] == [claim_line(v) for v in made]
    assert [v.n_to_decide for v in again] == [v.n_to_decide for v in made]
    assert saved_claims(tmp_path, "arise") == []
    scores, saved, intervals = CLAIM_SOURCES
    assert (source_of_claims(tmp_path, "toq"), source_of_claims(tmp_path, "arise")) == (saved, intervals)
    assert [claim_line(v) for v in claims_of_run(tmp_path, "toq")] == [claim_line(v) for v in made]
    (
        tmp_path / "toq/table2_scores.jsonl"
    ).touch()  # a table of one's own run: figures never have scores, and don't hide it
    assert source_of_claims(tmp_path, "toq") == scores
    assert {v.outcome for v in claims_of_run(tmp_path, "toq")} == {"not run", "needs people"}
