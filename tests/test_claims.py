"What the papers claim, and whether a run bears it out."
import csv, json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.config import UsageError, root
from treekit.experiments.results import Scored
from treekit.figures.ablations import Ablation, judge_ablations
from treekit.figures.cells import Kept, kept_scores, read_cells, read_scores
from treekit.figures.claims import Claim, judge, judge_claims, load_claims, merged_cells
from treekit.figures.claims_page import claim_line, claims_by_artefact, row_orders, save_claims
from treekit.figures.tables import claim_text, save_table
from treekit.figures.verdicts import compare
from treekit.artefacts.catalog import inventory
from treekit.scoring.statistics import partial_conjunction, contrast, holm, kendall

OFFLINE = root() / "figures" / "offline"


def row(method, dataset, right, n=60, metric="EM"):
    "A row of scores: the first `right` of `n` questions."
    scores = {f"q{i}": float(i < right) for i in range(n)}
    return Scored(
        dict(method=method, dataset=dataset, metric=metric, n=n, failures=0, value=right / n, low=right / n - 0.1, high=right / n + 0.1),
        {dataset: scores},
    )


def printed(**values):
    return [dict(group="print", method=m, dataset=d, metric="EM", value=v, unit="percent", flag="ok")
            for m, v in values.items() for d in ("films", "books")]


def table(folder, scores=True):
    "A small table: Ours far above A, B about as good as Ours, C not run."
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=20, B=49).items() for d in ("films", "books")]
    made = compare(printed(Ours=60.0, A=50.0, B=40.0, C=30.0), rows, model="scripted")
    if not scores: made.attrs["scores"] = Kept()
    save_table(made, folder / "x", "table1", digits=2)


def claim(left, right, direction="more", **other):
    return Claim("x-01", "x", "Sec. 1", "a statement", "table1", left, right, direction, **other)


def told(folder, *claims): return judge_claims(folder, claims=[replace(c, id=f"x-{i}") for i, c in enumerate(claims)])


def test_holds_fails_undecided_and_not_run(tmp_path):
    table(tmp_path)
    found = told(tmp_path, claim("Ours", "A"), claim("A", "Ours"), claim("Ours", "B"), claim("Ours", "C"))
    assert [v.verdict for v in found] == ["holds", "fails", "undecided", "not run"]
    assert [v.in_print for v in found] == ["holds", "fails, 0 of 2", "holds", "holds"]
    assert found[0].how == "paired" and found[0].n == 120 and found[0].ours == pytest.approx(50) and found[0].low > 30
    assert found[0].printed == pytest.approx(10) and found[0].pairs == "2 of 2" and found[0].model == "scripted"
    assert found[3].reason == "not run: C"


def test_the_same_without_scores_goes_by_the_intervals(tmp_path):
    table(tmp_path, scores=False)
    assert not (tmp_path / "x" / "table1_scores.jsonl").exists()
    found = told(tmp_path, claim("Ours", "A"), claim("Ours", "B"))
    assert [(v.verdict, v.how) for v in found] == [("holds", "intervals"), ("undecided", "intervals")]


def test_equivalence_needs_a_margin_that_the_interval_lies_in(tmp_path):
    table(tmp_path)
    verdicts = [v.verdict for v in told(tmp_path, claim("Ours", "B", "same", margin=10), claim("Ours", "A", "same", margin=10),
                                        claim("B", "Ours", "not less", margin=10), claim("A", "Ours", "not less", margin=10))]
    assert verdicts == ["holds", "fails", "holds", "fails"]


def test_quantifiers(tmp_path):
    table(tmp_path)
    sides = dict(left="Ours", right="A|B")
    over = {over: told(tmp_path, claim(**sides, over=over))[0].verdict for over in ("all", "any", "mean")}
    assert over == dict(all="undecided", any="holds", mean="holds")
    best, mean = told(tmp_path, claim("Ours", "best of A|B"), claim("Ours", "mean of A|B"))
    assert best.ours == pytest.approx(100 / 60, abs=.01) and mean.ours == pytest.approx(50 / 2 + 100 / 120, abs=.01)
    assert told(tmp_path, claim("Ours minus A", "Ours minus B"))[0].verdict == "holds"
    assert told(tmp_path, claim("A|B|Ours", "", "rises"))[0].verdict == "holds"
    by_data = told(tmp_path, claim("films", "books", by="dataset", method="Ours minus A"))[0]
    assert by_data.ours == 0 and by_data.verdict == "undecided" and by_data.how == "paired"


def test_amounts_in_their_units(tmp_path):
    table(tmp_path)
    units = {
        unit: told(tmp_path, claim("Ours", "A", amount=1, unit=unit))[0] for unit in ("points", "percent", "percent each", "times", "value")
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
    about = [claim("Ours", "A", "about", amount=a, unit=u, margin=m)
             for a, u, m in ((2.5, "times", 1.5), (150, "percent", 150), (6, "times", 1), (1.2, "times", .2), (2.5, "times", .1))]
    found = told(tmp_path, *about)
    assert [v.verdict for v in found] == ["holds", "holds", "fails", "fails", "undecided"]
    assert found[3].in_print == "holds" and found[2].in_print == "fails, 0 of 2" and found[0].how == "resampled"
    gain = told(tmp_path, claim("Ours minus A", "B minus A", amount=1, unit="percent gain"))[0]
    assert gain.amount == pytest.approx(150, abs=.1) and gain.recomputed == pytest.approx(20)


def test_a_claim_that_needs_a_fact_is_not_run_without_it(tmp_path):
    rows = [row(m, d, right) for m, right in dict(Ours=50, A=20).items() for d in ("films", "books")]
    made = compare(printed(Ours=60.0, A=50.0), rows, model="scripted", differs=["router=the model that answers, in print a trained one"])
    save_table(made, tmp_path / "x", "table1", digits=2)
    needs = claim("Ours", "A", unless="Ours: router=the model that answers|Ours: *untrained*")
    [without, other] = told(tmp_path, needs, claim("Ours", "A", unless="Ours: *untrained*"))
    assert (without.verdict, other.verdict) == ("not run", "holds")
    assert without.reason == "ran with Ours: router=the model that answers" and without.in_print == "holds"


def test_what_differs_is_a_part_of_n(tmp_path):
    table(tmp_path)
    [found] = judge_ablations(tmp_path, [Ablation("x", "table1", "Ours", "A", "what it knows", "films|books", "EM")])
    assert (found.differ, found.found.n, found.verdict) == (60, 120, "as printed")


def test_no_p_is_shown_as_zero(tmp_path):
    table(tmp_path)
    sure = [replace(v, p=0.0, adjusted=0.0) for v in told(tmp_path, claim("Ours", "A"))]
    save_claims(sure, tmp_path, "Claims")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as f: [line] = csv.DictReader(f)
    assert line["p"] == line["adjusted"] == "<0.0001" and claim_line(sure[0])["p"] == "<0.001" and "p < .001" in claim_text(sure[0])
    save_table(pd.DataFrame([dict(method="A", p=0.0, p_fused=0.0004, adjusted=0.25, low=0.0)]), tmp_path, "steps")
    assert (tmp_path / "steps.csv").read_text().splitlines()[1] == "A,<0.001,<0.001,0.250,0.000"


def test_the_claims_words_and_their_directions():
    "What gains *only* so much isn't claimed to be more; a factor, or a half, is compared with."
    for c in load_claims():
        words = c.statement.lower()
        if " only " in words: assert c.direction != "more" and c.right, c.id
        if any(w in words for w in ("twice", "half", "times as much")): assert c.direction == "about", c.id
        if words.startswith("trained on"): assert c.unless, c.id


def test_an_average_is_tested_over_its_data_sets(tmp_path):
    def averaged(method, right):
        parts = [row(method, d, right) for d in ("films", "books")]
        return [*parts, Scored(dict(parts[0]) | dict(dataset="AVG"), parts[0].scores | parts[1].scores)]
    rows = averaged("Ours", 50) + averaged("A", 44)
    told_of = [dict(group="print", method=m, dataset="AVG", metric="EM", value=1.0, unit="percent", flag="ok") for m in ("Ours", "A")]
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
    assert {v.model: v.verdict for v in told(tmp_path, claim("Ours", "A"))} == dict(one="holds", two="fails")
    [apart] = told(tmp_path, claim("one", "two", by="group", method="Ours"))
    assert apart.verdict == "holds" and apart.how == "paired"
    [lacking] = told(tmp_path, claim("one", "three", by="group", method="Ours"))
    assert lacking.verdict == "not run" and lacking.reason == "needs one and three; ran: two, one"


def test_every_claim_is_about_cells_that_are_there():
    "In the committed tables each claim finds printed cells or cells of a run; or it says that there are none."
    lost = []
    for c in load_claims():
        if not c.artefact:
            assert c.note, f"{c.id} has no artefact, and doesn't say why"
            continue
        cells = merged_cells(read_cells(OFFLINE / c.paper, artefact) for artefact in c.artefact.split("|"))
        assert cells, f"{c.id}: {c.artefact} isn't there"
        if all(not v.in_print and v.ours is None for v in judge(c, cells)): lost.append(c.id)
    assert lost == []


def test_every_name_in_a_claim_is_a_rows():
    "No side names a row, a data set, a metric or a group that no table of its artefact has."
    from treekit.figures.claims import _let, _parts
    for c in load_claims():
        cells = merged_cells(read_cells(OFFLINE / c.paper, a) for a in c.artefact.split("|")) if c.artefact else {}
        known = {k: {getattr(cell, k) for cell in cells.values()} for k in ("group", "method", "dataset", "metric")}
        for side, of in ((c.left, c.by), (c.right, c.by), (c.method, "method")):
            names = {n for _, some in _parts(side) for n in some}
            assert not cells or names <= known[of], (c.id, names - known[of])
        for k in ("dataset", "metric", "group"):
            for pattern in filter(None, getattr(c, k).split("|")):
                assert any(_let(pattern, name) for name in known[k]), (c.id, pattern)


def test_the_stated_amounts_follow_from_print_but_for_the_known_errors():
    found = {v.claim.id: v for v in judge_claims(OFFLINE)}
    off = {i for i, v in found.items() if v.recomputed is not None and abs(v.recomputed - v.claim.amount) > .006 * abs(v.claim.amount)}
    assert off == {"treerare-16", "treerare-23", "treerare-24", "searchr-04", "rdr2-09", "rdr2-28"}


def test_ids_are_unique_and_claims_complete():
    claims = load_claims()
    assert len({c.id for c in claims}) == len(claims) == 184
    assert all(c.id.startswith(f"{c.paper}-") and c.where and c.statement for c in claims)
    assert all(c.margin > 0 for c in claims if c.direction in ("same", "not less"))
    with pytest.raises(UsageError): load_claims("treerar")


def test_a_wrong_field_is_one_line(tmp_path):
    bad = tmp_path / "claims.csv"
    bad.write_text("id,paper,where,statement,artefact,left,right,direction\nx-1,x,a,b,table1,A,B,mroe\n")
    with pytest.raises(UsageError, match="more"): load_claims(path=bad)
    bad.write_text("id,paper,where,statement,artefact,left,right,direction,amount,unit\nx-1,x,a,b,table1,A,B,about,2,points\n")
    with pytest.raises(UsageError, match="about a size"): load_claims(path=bad)


def test_the_order_of_rows(tmp_path):
    table(tmp_path)
    [order] = row_orders(tmp_path, "x")
    assert order.printed == ("Ours", "A", "B") and order.ours == ("Ours", "B", "A")
    assert order.tau == pytest.approx(1 / 3) and order.low <= order.tau <= order.high and order.columns == 2
    assert (order.group, order.model) == ("print", "scripted")


def test_statistics_of_many():
    assert holm([.01, .04, .03]) == pytest.approx([.03, .06, .06])
    assert [partial_conjunction([.01, .2, .04], r) for r in (1, 2, 3)] == pytest.approx([.03, .08, .2])
    assert kendall([1, 2, 3], [3, 2, 1]) == -1 and kendall([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(2 / 3)
    assert contrast([[1.0] * 30]).p < .001 and contrast([[1.0, -1.0] * 30]).p > .5


def test_the_file_has_every_claim_and_the_list_counts_them(tmp_path):
    save_claims(judge_claims(OFFLINE, "toq"), tmp_path, "Claims")
    with open(tmp_path / "claims.csv", encoding="utf-8", newline="") as f: rows = list(csv.DictReader(f))
    assert len(rows) == len(load_claims("toq")) and {"holds", "not run"} <= {r["outcome"] for r in rows}
    assert sum(claims_by_artefact(tmp_path / "claims.csv")["table6"].values()) == 3
    assert "<script" not in (tmp_path / "claims.html").read_text() and "toq-01" in (tmp_path / "claims.md").read_text()


def test_the_command(tmp_path):
    table(tmp_path)
    (tmp_path / "toq").mkdir()
    done = CliRunner().invoke(main, ["claims", "toq", "--out", str(tmp_path), "--json"], standalone_mode=False)
    rows = json.loads(done.output)
    assert {r["verdict"] for r in rows} == {"not run"} and len(rows) == len(load_claims("toq"))
    assert "nothing was written" in CliRunner().invoke(main, ["claims", "toq", "--out", str(tmp_path)], standalone_mode=False).output
    assert not list(Path(tmp_path, "toq").iterdir())


def test_each_paper_has_its_claims_first():
    rows = inventory()
    papers = [p for p in dict.fromkeys(r["paper"] for r in rows) if p not in ("real", "across")]  # no papers
    first = {paper: next(r for r in rows if r["paper"] == paper) for paper in papers}
    assert all(r["artefact"] == "claims" and r["notebook"].exists() for r in first.values())


def test_plain_tables_keep_scores_too():
    kept = kept_scores([row("Ours", "films", 3) | dict(retriever="BM25"), dict(method="A", dataset="films", metric="EM")], "retriever", 100)
    assert kept["BM25", "Ours", "films", "EM"]["films"]["q0"] == 100 and len(kept) == 1
