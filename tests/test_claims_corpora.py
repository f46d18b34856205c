"Claims over several corpora: the corpora are the sample, the outcomes are committed, and the pages of claims show them."
import csv
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.config import UsageError, load_profile, root
from treekit.experiments.results import Scored
from treekit.figures.claims import Claim, judge_claims, load_claims
from treekit.figures.claims_page import claim_line, claims_of_run, save_claims, saved_claims, summary_of
from treekit.figures.measured_claims import definition, measured_claim, measured_claims, write_measured_claims
from treekit.figures.tables import save_table
from treekit.figures.verdicts import compare
from treekit.papers.plugin import papers

CLAIM = Claim("toq-x", "toq", "Sec. 1", "Ours is better than A", "planted", "Ours", "A", "more")


def planted(folder, seed, gain, n=40):
    "A table of one corpus: Ours answers about `gain` more of the questions than A."
    rng, rows = np.random.default_rng(seed), []
    base = rng.random(n)
    for method, share in dict(A=0.4, Ours=0.4 + gain).items():
        scores = {f"q{i}": float(v) for i, v in enumerate((base + 0.3 * rng.random(n) < share + 0.15))}
        mean = sum(scores.values()) / n
        rows.append(Scored(dict(method=method, dataset="films", metric="EM", n=n, failures=0, value=mean, low=mean - .1, high=mean + .1),
                           {"films": scores}))
    printed = [dict(group="print", method=m, dataset="films", metric="EM", value=v, unit="percent", flag="ok") for m, v in
               dict(Ours=60.0, A=50.0).items()]
    save_table(compare(printed, rows, model="scripted"), folder / "toq", "planted", digits=2)
    return folder


def over(tmp_path, gains, claim=CLAIM, **options):
    return judge_claims([planted(tmp_path / str(k), k, gain) for k, gain in enumerate(gains)], claims=[claim], **options)[0]


def test_corpora_that_agree_decide_what_one_leaves_open(tmp_path):
    alone = judge_claims(planted(tmp_path / "one", 0, .08), claims=[CLAIM])[0]
    found = over(tmp_path, [.08] * 8)
    assert alone.outcome == "inconclusive" and found.outcome == "supported" and found.how == "over corpora"
    assert found.n == 8 * 40 and found.low > 0 and found.printed == alone.printed
    assert over(tmp_path, [.08] * 8, replace(CLAIM, left="A", right="Ours")).outcome == "contradicted"
    assert over(tmp_path, [.08] * 8, replace(CLAIM, left="best of Ours|A", direction="not less", margin=1.0)).outcome == "supported"
    assert over(tmp_path, [.08] * 8, replace(CLAIM, direction="same", margin=40.0)).outcome == "supported"
    assert over(tmp_path, [0] * 2, replace(CLAIM, left="A", right="A|B", direction="not less")).outcome == "not run"


def test_one_corpus_among_several_decides_nothing(tmp_path):
    "All questions together would: four fifths of the gain come from one corpus."
    gains = [.5, 0, 0, 0, 0]
    found = over(tmp_path, gains)
    pooled = [v for k in range(len(gains)) for v in differences(tmp_path / str(k))]
    assert found.outcome == "inconclusive" and found.low < 0 < found.difference
    assert np.mean(pooled) / (np.std(pooled) / len(pooled) ** .5) > 3


def differences(folder):
    from treekit.figures.cells import read_scores
    scores = {key[1]: own["films"] for key, own in read_scores(folder / "toq/planted_scores.jsonl").items()}
    return [scores["Ours"][q] - scores["A"][q] for q in scores["A"]]


def test_the_size_is_resampled_over_corpora_and_their_questions(tmp_path):
    stated = replace(CLAIM, amount=10.0, unit="points")
    alike, apart = over(tmp_path / "a", [.1] * 5, stated), over(tmp_path / "b", [.5, .3, .1, -.1, -.3], stated)
    assert alike.size == apart.size == "inside"
    assert apart.amount_high - apart.amount_low > 1.5 * (alike.amount_high - alike.amount_low)


def test_a_cell_that_one_corpus_lacks_is_left_out(tmp_path):
    folders = [planted(tmp_path / str(k), k, .1) for k in range(3)]
    table = folders[1] / "toq/planted.csv"
    table.write_text("".join(line for line in table.read_text().splitlines(keepends=True) if ",A," not in line))
    assert judge_claims(folders, claims=[CLAIM])[0].outcome == "not run"


def test_a_measured_outcome_is_shown_until_its_claim_changes(tmp_path, monkeypatch):
    file = tmp_path / "claims_corpora.csv"
    monkeypatch.setattr("treekit.figures.measured_claims.kit_path", lambda *parts: file)
    alone = judge_claims(planted(tmp_path / "one", 0, .08), claims=[CLAIM])[0]
    assert "other corpora" not in claim_line(alone)["note"] + summary_of([alone])
    write_measured_claims([over(tmp_path, [.08] * 8)], 8, 40, "treekit claims --corpora 8 --n 40", file, "2026-11-28")
    assert "8 other corpora, 320 questions: supported (" in claim_line(alone)["note"]
    where = "On 8 other corpora, with at most 40 questions of each data set (`treekit claims --corpora 8 --n 40`, 2026-11-28;"
    assert where in summary_of([alone])
    assert "the inconclusive ones are: 1 supported." in summary_of([alone])
    save_claims([alone], tmp_path / "page", "Claims")
    with open(tmp_path / "page/claims.csv", encoding="utf-8", newline="") as f: [line] = csv.DictReader(f)
    assert (line["outcome"], line["corpora_outcome"], line["corpora"], line["corpora_n"]) == ("inconclusive", "supported", "8", "320")
    for changed in (dict(statement="Ours is far better than A"), dict(margin=2.0), dict(right="A|B"), dict(direction="not less")):
        assert "other corpora" not in claim_line(replace(alone, claim=replace(CLAIM, **changed)))["note"]
    assert "other corpora" in claim_line(replace(alone, claim=replace(CLAIM, note="a remark", quote="some words")))["note"]
    assert measured_claim(replace(alone, model="gpt-4o-mini")) is None
    same = replace(alone, outcome="supported")
    assert "other corpora" not in claim_line(same)["note"]  # the same outcome: nothing to add
    assert "1 other claims were tested there: none has another outcome." in summary_of([same])
    other = replace(alone, outcome="contradicted")
    assert "8 other corpora" in claim_line(other)["note"] and "toq-x is supported" in summary_of([other])


def test_the_command_runs_the_tables_of_inconclusive_claims_on_further_corpora(tmp_path, monkeypatch):
    "Scripted tables, two corpora: the planted claim is decided, its outcome is written, and a second run reads the finished tables."
    ran = []
    def reproduced(what, profile, out, jobs, **given):
        ran.append((what, profile, given))
        from pathlib import Path
        planted(Path(out), 0, .4, given["n"])
        return [SimpleNamespace(name=name, code=0, error="", seconds=1.0) for name in what], Path(out)
    alone = judge_claims(planted(tmp_path / "one", 3, .1, 20), claims=[CLAIM])
    monkeypatch.setattr("treekit.artefacts.corpus_runs.reproduce_all", reproduced)
    monkeypatch.setattr("treekit.artefacts.corpus_runs.work_dir", lambda *parts: tmp_path.joinpath(*parts))
    monkeypatch.setattr("treekit.figures.measured_claims.root", lambda: tmp_path)
    monkeypatch.setattr("treekit.figures.claims_page.claims_of_run", lambda *_: alone)
    beyond = replace(CLAIM, id="toq-y", artefact="planted|other")
    monkeypatch.setattr("treekit.figures.claims.load_claims", lambda *_, **__: [CLAIM, beyond])
    assert alone[0].outcome == "inconclusive"
    said = CliRunner().invoke(main, ["claims", "--corpora", "2", "--n", "20"], catch_exceptions=False)
    first = load_profile("offline").seed
    assert said.exit_code == 0 and [given["seed"] for *_, given in ran] == [first + 1, first + 2]  # not the default run's corpus
    assert {(what, profile, given["n"]) for what, profile, given in ran} == {(("toq/planted",), "offline", 20)}
    [found] = measured_claims(tmp_path / "data/measured/claims_corpora.csv").values()  # toq-y is about a table that didn't run
    assert (found.id, found.outcome, found.corpora, found.n) == ("toq-x", "supported", 2, 40)
    assert found.definition == definition(CLAIM) and found.command == "treekit claims --corpora 2 --n 20"
    for wrong in (("claims", "toq", "--corpora", "2"), ("claims", "--profile", "openai", "--corpora", "2")):
        assert CliRunner().invoke(main, wrong).exit_code != 0


def test_a_table_that_failed_stops_the_run(tmp_path, monkeypatch):
    from treekit.artefacts.corpus_runs import run_on_corpora
    failed = SimpleNamespace(name="toq/planted", code=1, error="2 questions failed", seconds=1.0)
    monkeypatch.setattr("treekit.artefacts.corpus_runs.reproduce_all", lambda *_, **__: ([failed], tmp_path))
    monkeypatch.setattr("treekit.artefacts.corpus_runs.work_dir", lambda *parts: tmp_path.joinpath(*parts))
    with pytest.raises(UsageError, match="toq/planted failed on the corpus of seed 1: 2 questions failed"):
        run_on_corpora(("toq/planted",), 2, 5)
    with pytest.raises(UsageError, match="two or more"): run_on_corpora(("toq/planted",), 1, 5)


def test_the_default_pages_show_the_committed_outcomes():
    "Each inconclusive claim that the long run tested has its outcome on the page of its paper, with the number of corpora and questions."
    known, shown = {c.id: c for c in load_claims()}, 0
    found = {m.id: m for m in measured_claims().values()}
    if not found: pytest.skip("the long run is not committed")
    assert set(found) <= set(known)
    for v in claims_of_run(root() / "figures/offline"):
        if v.outcome != "inconclusive" or measured_claim(v) is None: continue
        m, page = found[v.claim.id], root() / "figures/offline" / v.claim.paper / "claims.md"
        [line] = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {v.claim.id} ")]
        assert f"{m.corpora} other corpora, {m.n:,} questions: " in line
        shown += 1
    assert shown > 10


def test_the_front_pages_show_what_the_long_run_contradicts():
    "README and the page of results have the committed counts of each paper; a paper without a claim that was run there has none."
    seen = set()
    for paper in (p for p in papers() if not p.is_study):
        found = [m.outcome for v in saved_claims(root() / "figures/offline", paper.name) if (m := measured_claim(v))]
        counts = [str(found.count(outcome)) if found else "–" for outcome in ("supported", "contradicted", "inconclusive")]
        for page in ("README.md", "figures/offline/README.md"):
            lines = (root() / page).read_text(encoding="utf-8").splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("| paper |") and "over corpora: contradicted" in line)
            [row] = [line for line in lines[first:first + 7] if line.strip("| [").startswith(paper.label)]
            assert row.strip("| ").split(" | ")[-3:] == counts, (page, paper.name)
            assert any("treekit claims --corpora" in line for line in lines[first - 3:first + 10])
        seen.add(bool(found))
    assert seen == {True, False}
