"What the papers claim, and whether a run supports it: direction and size."

import csv, functools, re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from treekit.config import UsageError, root
from treekit.experiments.results import Scored
from paper_text import plain, sections
from treekit.figures.cells import CellScores, read_cells, read_scores, scores_of_rows
from treekit.figures.claims import Claim, cell_difference, judge, judge_claims, load_claims, merged_cells
from treekit.figures.claims import _misstated, claim_line, claims_by_artefact, save_claims, summary_of
from treekit.figures.tables import save_table
from treekit.figures.verdicts import compare, count_verdicts
from treekit.artefacts.catalog import inventory
from treekit.scoring.statistics import contrast, false_discovery

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


def claim(left, right, direction="higher", dataset="films", metric="EM", **other):
    return Claim("x-01", "x", "Sec. 1", "a statement", "table1", left, right, dataset, metric, direction, **other)


def told(folder, *claims):
    return judge_claims(folder, claims=[replace(c, id=f"x-{i}") for i, c in enumerate(claims)])


def test_supported_contradicted_inconclusive_and_not_run(tmp_path):
    table(tmp_path)
    found = told(tmp_path, claim("Ours", "A"), claim("A", "Ours"), claim("Ours", "B"), claim("Ours", "C"))
    assert [v["outcome"] for v in found] == ["supported", "contradicted", "inconclusive", "not run"]
    assert [v["in_print"] for v in found] == ["supported", "contradicted", "supported", "supported"]
    assert (
        found[0]["how"] == "paired"
        and found[0]["n"] == 60
        and found[0]["ours"] == pytest.approx(50)
        and found[0]["low"] > 30
    )
    assert (found[0]["printed"], found[0]["model"]) == (pytest.approx(10), "scripted")
    assert found[3]["reason"] == "not run: C"
    [elsewhere] = told(tmp_path, claim("Ours", "A", dataset="poems"))
    assert elsewhere["reason"] == "no such column was run" and elsewhere["in_print"] == ""


@pytest.mark.parametrize("model", ["simulated", "simulated, simulated votes"])
def test_a_bundled_model_gets_no_verdict_and_no_claim(model, tmp_path):
    "Its numbers and the printed ones are shown; the same table of a real model is judged."
    rows = [row(m, "films", right) for m, right in dict(Ours=50, A=20).items()]
    words = re.compile("supported|contradicted|reproduced|not comparable|✓|✗|What the paper claims", re.I)
    made = compare(printed(Ours=60.0, A=50.0), rows, model=model)
    assert set(made[made.reproduced.notna()].verdict) == {""} and made.difference.isna().all()
    _, md = save_table(made, tmp_path / "x", "table1", digits=2)
    assert not words.search(md.read_text())
    assert "| Ours | **83.33** |" in md.read_text() and "| Ours | **60.00** |" in md.read_text()
    [v] = told(tmp_path, claim("Ours", "A"))
    assert (v["outcome"], v["ours"], v["printed"], v["reason"]) == (
        "not run",
        None,
        10,
        "judged on runs of a real model alone",
    )
    assert count_verdicts(tmp_path / "x/table1.csv") == {"not judged": 2, "not run": 4, "failures": 0}
    save_claims([v], tmp_path / "x", "Claims")
    assert claims_by_artefact(tmp_path / "x/claims.csv") == {}
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    assert [(v["model"], v["outcome"]) for v in told(tmp_path, claim("Ours", "A"))] == [("scripted", "supported")]


def test_the_same_without_scores_goes_by_the_intervals(tmp_path):
    table(tmp_path, scores=False)
    assert not (tmp_path / "x" / "table1_scores.json").exists()
    found = told(tmp_path, claim("Ours", "A"), claim("Ours", "B"))
    assert [(v["outcome"], v["how"]) for v in found] == [("supported", "intervals"), ("inconclusive", "intervals")]


@pytest.mark.parametrize(
    "left, right, direction, margin, outcome",
    [
        ("Ours", "B", "same", 10, "supported"),
        ("Ours", "A", "same", 10, "contradicted"),
        ("B", "Ours", "higher", 10, "supported"),  # near-best: at most 10 behind
        ("A", "Ours", "higher", 10, "contradicted"),
        ("Ours", "B", "lower", 10, "supported"),
        ("Ours", "A", "lower", 10, "contradicted"),
        ("A", "Ours", "lower", 0, "supported"),
    ],
)
def test_a_margin_is_of_equivalence_or_of_near_best(left, right, direction, margin, outcome, tmp_path):
    table(tmp_path)
    assert told(tmp_path, claim(left, right, direction, margin=margin))[0]["outcome"] == outcome


def test_amounts_in_their_units(tmp_path):
    table(tmp_path)  # printed 60 and 50, measured 83 and 33
    units = dict(points=(10, 50), percent=(20, 150), times=(1.2, 2.5), value=(60, 83.3))
    for unit, (recomputed, amount) in units.items():
        inside, outside = (told(tmp_path, claim("Ours", "A", amount=a, unit=unit))[0] for a in (amount, recomputed))
        assert inside["recomputed"] == pytest.approx(recomputed) and inside["amount"] == pytest.approx(amount, rel=0.01)
        assert (inside["size"], outside["size"], inside["outcome"]) == ("inside", "outside", "supported"), unit
        assert inside["amount_low"] <= inside["amount"] <= inside["amount_high"]
        assert "amount" in claim_line(inside)["reproduced"]
    [absent] = told(tmp_path, claim("Ours", "C", amount=3, unit="points"))
    assert absent["size"] == "not comparable"


def test_doubled_is_twice_and_not_nearly(tmp_path):
    "The size is judged as the errata judge it: the paper's 2, without a margin, against the run's interval."
    [found] = [c for c in load_claims("rdr2") if c.id == "rdr2-28"]
    assert (found.direction, found.margin, found.amount, found.unit) == ("higher", 0, 2, "times")
    values = np.random.default_rng(0).normal(100, 5, 200)
    cells = {
        ("m", name, "films", "EM"): scored(name, factor * values, scale=1)
        for name, factor in (("A", 1.0), ("near", 1.69), ("twice", 2.0))
    }
    sizes = {n: judge(claim(n, "A", amount=2, unit="times"), cells)[0] for n in ("near", "twice")}
    assert {n: (v["outcome"], v["size"]) for n, v in sizes.items()} == dict(
        near=("supported", "outside"), twice=("supported", "inside")
    )


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
    assert (found["outcome"], found["p"], found["in_print"]) == ("substitute row", None, "supported")
    assert (
        "router=the model that answers" in found["reason"] and found["ours"] == pytest.approx(50) and found["low"] > 30
    )
    [sized] = told(tmp_path, claim("Ours", "A", amount=50, unit="points"))
    assert sized["size"] == "not comparable" and sized["amount"] is None


def test_what_a_table_says_of_a_row_holds_in_the_runs_other_tables(tmp_path):
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=20).items() for d in ("films", "books")]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    made = compare(printed(Ours=60.0, A=50.0), rows, model="scripted")
    made["method"] = [
        f"{m} [simulated, untrained]" if m == "Ours" and r == r else m for m, r in zip(made.method, made.reproduced)
    ]
    save_table(made, tmp_path / "x", "table2", digits=2)
    assert [v["outcome"] for v in told(tmp_path, claim("Ours", "A"))] == ["supported"]
    both = told(tmp_path, claim("Ours", "A"), replace(claim("Ours", "A"), artefact="table2"))
    assert [v["outcome"] for v in both] == ["substitute row"] * 2


def test_a_claim_that_names_a_model_is_not_tested_with_another(tmp_path):
    table(tmp_path)
    [other, own] = told(
        tmp_path, claim("Ours", "A", model="GPT-9", amount=3, unit="points"), claim("Ours", "A", model="scripted")
    )
    assert (other["outcome"], other["size"], other["p"], other["ours"]) == ("other model", "not comparable", None, None)
    assert other["reason"] == "about GPT-9; ran: scripted" and own["outcome"] == "supported"


def test_a_sentence_without_two_rows_is_listed_with_its_reason(tmp_path):
    table(tmp_path)
    [found] = told(tmp_path, Claim("x-9", "x", "App. B", "people agree", "table1", untested="needs people"))
    assert (found["outcome"], found["reason"], found["p"], found["in_print"]) == (
        "not tested",
        "needs people",
        None,
        "",
    )
    assert claim_line(found)["note"] == "needs people" and claim_line(found)["comparison"] == ""
    for c in load_claims():
        assert bool(c.untested) != bool(c.left and c.right and c.comparison), c.id


def test_no_difference_on_any_question_is_no_evidence(tmp_path):
    "Two rows with the same scores: an equivalence test would give p = 0."
    rows = [row(m, d, 30) for m in ("Ours", "A") for d in ("films", "books")]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    for direction, margin in (("same", 3), ("higher", 0), ("higher", 3), ("lower", 0)):
        [found] = told(tmp_path, claim("Ours", "A", direction, margin=margin))
        assert (found["outcome"], found["p"], found["adjusted"]) == ("identical", None, None), direction


def test_no_p_is_shown_as_zero(tmp_path):
    table(tmp_path)
    sure = [v | dict(p=0.0, adjusted=0.0, same_p=0.0) for v in told(tmp_path, claim("Ours", "A"))]
    save_claims(sure, tmp_path, "Claims")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as f:
        [line] = csv.DictReader(f)
    assert line["p"] == line["adjusted"] == "<0.0001"
    assert claim_line(sure[0])["p"] == claim_line(sure[0])["q"] == "<0.001"
    save_table(pd.DataFrame([dict(method="A", p=0.0, p_fused=0.0004, adjusted=0.25, low=0.0)]), tmp_path, "steps")
    assert (tmp_path / "steps.csv").read_text().splitlines()[1] == "A,<0.001,<0.001,0.250,0.000"


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
    kept = read_scores(tmp_path / "x" / "table1_scores.json")
    assert set(kept["scripted", "Ours", "AVG", "EM"]) == {"films", "books"}
    [average, single] = told(tmp_path, claim("Ours", "A", dataset="AVG"), claim("Ours", "A", dataset="films"))
    assert average["p"] < single["p"]


def test_another_models_scores_stay_beside_its_rows(tmp_path):
    cells = [c | dict(paper="x", artefact="table1") for c in printed(Ours=60.0, A=50.0)]
    for model, right in (("one", 50), ("two", 10)):
        rows = [row(m, d, n) for m, n in (("Ours", right), ("A", 25)) for d in ("films", "books")]
        save_table(compare(cells, rows, model=model, folder=tmp_path / "x"), tmp_path / "x", "table1")
    assert {c[0] for c in read_scores(tmp_path / "x" / "table1_scores.json")} == {"one", "two"}
    assert {v["model"]: v["outcome"] for v in told(tmp_path, claim("Ours", "A"))} == dict(
        one="supported", two="contradicted"
    )
    apart, lacking = (
        told(tmp_path, claim("Ours", "Ours", group="one", right_group=other))[0] for other in ("two", "three")
    )
    assert apart["outcome"] == "supported" and apart["how"] == "paired" and apart["model"] == "two, one"
    assert lacking["outcome"] == "not run" and lacking["reason"] == "needs one and three; ran: two, one"


def test_a_series_is_found_by_its_group_and_never_by_another():
    "A table by retriever: rows of one retriever don't stand in for another's."
    cells = {
        ("BM25", m, "films", "EM"): scored(m, np.arange(60) < n) | dict(group="BM25")
        for m, n in (("Ours", 50), ("A", 20))
    }
    [own], [other] = (judge(claim("Ours", "A", group=g), cells) for g in ("BM25", "DPR"))
    assert own["outcome"] == "supported" and (other["outcome"], other["reason"]) == (
        "not run",
        "no such column was run",
    )
    unnamed = {key: c | dict(model="") for key, c in cells.items()}  # a table that names no model
    [any_], [other] = (judge(claim("Ours", "A", group=g), unnamed) for g in ("", "DPR"))
    assert (any_["outcome"], other["outcome"]) == ("supported", "not run")


def test_every_row_and_column_of_a_claim_is_a_tables():
    "Each side and column of a claim is in a committed table, printed or run; a row that neither prints nor runs says so in print."
    unknown = []
    for c in load_claims():
        cells = committed(c.paper, c.artefact) if c.artefact else {}
        assert cells or c.untested, f"{c.id}: {c.artefact} isn't there"
        rows, columns = {k[1] for k in cells}, {k[2:] for k in cells}
        if not c.untested:
            unknown += [(c.id, r) for r in (c.left, c.right) if r not in rows]
            unknown += [(c.id, c.dataset, c.metric)] if (c.dataset, c.metric) not in columns else []
            unknown += [(c.id, g) for g in (c.group, c.right_group) if g and g not in {k[0] for k in cells}]
    assert unknown == []


def test_the_stated_amounts_follow_from_print_but_for_the_known_errors(verdicts):
    assert {v["claim"].id for v in verdicts if _misstated(v)} == {
        "treerare-03.3", "treerare-16", "treerare-23", "treerare-24", "searchr-04", "rdr2-09.1", "rdr2-09.2", "rdr2-28"
    }  # fmt: skip


def test_ids_are_unique_and_claims_complete():
    claims = load_claims()
    assert len({c.id for c in claims}) == len(claims) and len({c.sentence for c in claims}) == 188
    assert all(c.id.startswith(f"{c.paper}-") and c.section and c.statement for c in claims)
    assert all(0 < len(c.quote.split()) <= 10 for c in claims)
    with pytest.raises(UsageError):
        load_claims("treerar")


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(direction="hihger"), "higher"),
        (dict(right="A"), "the same row"),
        (dict(metric=""), "give artefact and metric"),
        (dict(direction="same"), "margin above zero"),
        (dict(amount="2", unit="parsecs"), "points"),
        (dict(amount="2"), "has a unit"),
        (dict(margin="wide"), "wide"),
        (dict(margin="nan"), "numbers"),
        (dict(margin="inf"), "numbers"),
        (dict(margin="-3"), "below zero"),
        (dict(amount="1e999", unit="points"), "numbers"),
        (dict(section=""), "no claim"),
        (dict(over="all"), "no claim"),
    ],
)
def test_a_wrong_field_is_one_line(change, message, tmp_path):
    line = dict(id="x-1", paper="x", section="a", statement="b", artefact="table1", left="A", right="B")
    line |= dict(dataset="d", metric="EM", direction="higher") | change
    bad = tmp_path / "claims.csv"
    bad.write_text(f"{','.join(line)}\n{','.join(line.values())}\n")
    with pytest.raises(UsageError, match=message):
        load_claims(path=bad)


def test_two_claims_with_one_id_are_one_line(tmp_path):
    line, bad = "x-1,x,a,b,table1,A,B,d,EM", tmp_path / "claims.csv"
    bad.write_text(f"id,paper,section,statement,artefact,left,right,dataset,metric\n{line}\n{line}\n")
    with pytest.raises(UsageError, match="x-1: two claims have this id"):
        load_claims(path=bad)


def test_statistics_of_many():
    assert contrast([[1.0] * 30]).p < 0.001 and contrast([[1.0, -1.0] * 30]).p > 0.5


def test_the_file_has_every_claim_and_the_list_counts_them(tmp_path, verdicts):
    save_claims([v for v in verdicts if v["claim"].paper == "toq"], tmp_path, "Claims")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == len(load_claims("toq")) and {"not run", "not tested"} == {r["outcome"] for r in rows}
    assert all(r["quote"] and r["section"] for r in rows) and {r["size"] for r in rows} == {"not comparable", ""}
    assert claims_by_artefact(tmp_path / "claims.csv") == {}, "no claim was judged"
    save_claims([v | dict(outcome="supported") for v in verdicts if v["claim"].paper == "toq"], tmp_path, "Claims")
    assert sum(claims_by_artefact(tmp_path / "claims.csv")["table6"].values()) == 4
    assert "toq-01" in (tmp_path / "claims.md").read_text()


def test_each_paper_has_its_claims_first():
    rows = inventory()
    first = {r["paper"]: r for r in reversed(rows) if r["paper"] not in ("real", "across")}  # no papers
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
    scores = {dataset: {f"q{i}": v for i, v in enumerate(values)}}
    cell = dict(group="m", method=name, dataset=dataset, metric="EM", model="m", ran="", reason="", scores=scores)
    return cell | dict(
        published=None, low=None, high=None, reproduced=float(np.mean(values)), n=len(values), failures=0
    )


def cells_of(**rows):
    return {("m", name, "films", "EM"): c for name, values in rows.items() for c in [scored(name, values)]}


@pytest.mark.parametrize("direction, margin", [("higher", 0), ("lower", 0), ("same", 8), ("higher", 8), ("lower", 8)])
def test_an_interval_and_its_p_are_of_the_same_comparison(direction, margin):
    "Where p is well on one side of 5 %, the interval that is shown lies on the same side of what was tested."
    rng, checked = np.random.default_rng(4), 0
    for shift in (-0.4, -0.15, 0, 0.05, 0.15, 0.4):
        cells = cells_of(Ours=rng.random(180) < 0.5 + shift, A=rng.random(180) < 0.5)
        [v] = judge(claim("Ours", "A", direction, margin=margin), cells)
        if 0.02 < v["p"] < 0.1:
            continue
        bar = {"higher": -margin, "lower": margin}.get(direction)
        clear = (
            v["low"] > bar or v["high"] < bar
            if bar is not None
            else -8 < v["low"] and v["high"] < 8 or v["low"] > 8 or v["high"] < -8
        )
        assert clear == (v["p"] < 0.05), (shift, v)
        checked += 1
    assert checked > 2


def test_rows_without_a_difference_are_rarely_told_apart():
    "Two rows that are as good as one another: p below .05 in about 5 % of runs, in either direction."
    rng, runs = np.random.default_rng(0), 200
    found = [
        judge(claim("Ours", "A"), cells_of(Ours=rng.random(60) < 0.5, A=rng.random(60) < 0.5))[0] for _ in range(runs)
    ]
    assert 0.01 < sum(v["p"] < 0.05 for v in found) / runs < 0.1


def test_rows_without_common_questions_are_resampled_apart():
    rng = np.random.default_rng(6)
    one, two = scored("A", rng.random(80) < 0.8), scored("B", rng.random(80) < 0.3)
    found, how = cell_difference(
        one, two | dict(scores={"films": {f"x{i}": v for i, v in enumerate(two["scores"]["films"].values())}})
    )
    assert (
        how == "resampled"
        and found.difference == pytest.approx(one["reproduced"] - two["reproduced"])
        and found.low > 0
    )
    assert cell_difference(one | dict(scores={}), two) == (None, "no interval")


def test_one_false_discovery_rate_over_the_distinct_contrasts_of_a_paper(tmp_path):
    "Raw p is kept; an equivalence is corrected, too; the same contrast counts once, whatever the statement; the correction decides."
    table(tmp_path)
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=44).items() for d in ("films", "books")]
    save_table(compare(printed(Ours=60.0, A=50.0), rows, model="scripted"), tmp_path / "x", "table2", digits=2)
    close = replace(claim("Ours", "A"), artefact="table2")
    some = [
        claim("Ours", "A"),
        claim("A", "Ours", "lower"),
        claim("Ours", "B"),
        claim("Ours", "B", "same", margin=6),
        close,
        claim("Ours", "C"),
    ]
    found = told(tmp_path, *some)
    assert [v["same_as"] for v in found] == ["", "x-0", "", "", "", ""]
    assert found[0]["p"] == found[1]["p"] and found[0]["adjusted"] == found[1]["adjusted"]
    tested = [found[i] for i in (0, 2, 3, 4)]
    assert [v["adjusted"] for v in tested] == pytest.approx(false_discovery([v["p"] for v in tested]))
    assert found[4]["adjusted"] > found[4]["p"] and found[5]["adjusted"] is None
    assert "4 distinct contrasts" in summary_of(found)
    [alone] = told(tmp_path, close)
    among = told(tmp_path, close, *(claim("Ours", "B", dataset=d) for d in ("films", "books")))[0]
    assert among["p"] == alone["p"] < 0.05 < among["adjusted"] and (alone["outcome"], among["outcome"]) == (
        "supported",
        "inconclusive",
    )


def test_the_same_is_told_from_too_few_questions():
    rng = np.random.default_rng(2)

    def judged(n, flips):
        base = rng.random(n) < 0.5
        other = base.copy()
        other[:flips] = ~other[:flips]
        return judge(replace(claim("Ours", "A"), id="x-1"), cells_of(Ours=base, A=other))[0]

    many, few = judged(4000, 20), judged(30, 12)
    assert many["same_margin"] == 3 and many["same_p"] < 0.01 and few["same_p"] > 0.05
    assert "the same within 3" in claim_line(many | dict(outcome="inconclusive"))["note"]
    assert "too few questions" in claim_line(few | dict(outcome="inconclusive"))["note"]


@pytest.mark.parametrize("direction, margin", [("higher", 0), ("lower", 0), ("same", 18), ("lower", 0.01)])
def test_so_many_questions_as_the_power_says_decide(direction, margin):
    "With as many as it says, and the same differences, p is where 80 % power puts it: 2.8 standard errors, or 2.5 on one side."
    rng = np.random.default_rng(3)
    left, right = rng.random(60) < 0.55, rng.random(60) < 0.45
    c = claim("Ours", "A", direction, margin=margin)

    def judged(times):
        return judge(c, cells_of(Ours=np.tile(left, times), A=np.tile(right, times)))[0]

    first = judged(1)
    assert first["p"] > 0.05 and first["n_to_decide"] > 60, first
    enough = judged(-(-first["n_to_decide"] // 60))
    assert 0.001 < enough["p"] < 0.015 and enough["outcome"] == first["would_be"]


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


def test_claims_follow_their_sentences():
    "The third reading (X12): near-best, passages, all sizes of model, each state-of-the-art method."
    of = {}
    for c in load_claims():
        of.setdefault(c.sentence, []).append(c)
    assert {c.margin for c in of["treerare-06"]} == {0.03}  # "best or near-best"
    assert {c.untested != "" for c in of["treerare-04"]} == {True}  # better passages: no table of answers tests them
    models = {c.group for c in of["treerare-12"]} | {c.right_group for c in of["treerare-12"]}
    assert models == {"DeepSeek-V3", "GPT-4o-mini", "Llama3.3-70B"}
    methods = {"Query2Doc", "Self-Ask", "Verify-and-Edit", "Auto-RAG", "CoT-SC", "RATT"}
    assert all({c.right for c in of[i]} == methods for i in ("arise-01", "arise-02"))  # each, and Vanilla is none
    assert {c.dataset for c in of["treerare-21"]} == {"AVG", "AmbigDoc", "ASQA"}
    assert all(
        c.metric.startswith("Time")
        for i in ("arise-34", "arise-37", "searchr-28", "searchr-29", "searchr-30")
        for c in of[i]
    )  # no calls
    named = ("Llama", "Qwen", "GPT", "DeepSeek")
    for c in (c for i in of if i.startswith(("treerare", "arise")) for c in of[i]):
        if any(f"With {n}" in c.statement or f"with {n}" in c.statement for n in named):
            assert c.model or c.right_group or c.untested, c.id
    assert sum("people" in c.untested for c in load_claims("toq")) == 9
    assert sum("by construction" in c.untested for c in load_claims("toq")) == 4


def test_failed_questions_judge_no_claim(tmp_path):
    "A server's errors score 0: a method whose every question failed is not a worse method."
    rows = [row(m, "films", right) for m, right in dict(Ours=50, A=0, B=20).items()]
    for one in rows:
        if one["method"] == "A":
            one["failures"] = 60
    save_table(compare(printed(Ours=60.0, A=50.0, B=1.0), rows, model="scripted"), tmp_path / "x", "table1", digits=2)
    [failed, fine] = told(tmp_path, claim("Ours", "A"), claim("Ours", "B"))
    assert (failed["outcome"], failed["p"], failed["reason"]) == ("not run", None, "too many failed questions")
    assert fine["outcome"] == "supported"
