"Errata that are counted, and pages on what a full run takes."

import ast
import csv
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from paper_text import plain

from treekit.config import root
from treekit.core.method import configure, settings
from treekit.figures.tables import contradictions, is_consistent
from treekit.figures.verdicts import published
from treekit.llm.prices import load_prices, price_of
from treekit.papers.plugin import get_paper, papers
from treekit.papers.rdr2.method import RDR2

NAMES = [p.name for p in papers()]


def test_each_paper_has_a_short_page_on_what_a_full_run_takes():
    "README and the results page link it; its paid models have a price, the same as in `data/prices.csv`."
    links = [Path(root(), name).read_text(encoding="utf-8") for name in ("README.md", "figures/offline/README.md")]
    for paper in NAMES:
        page = f"nbs/docs/howto/full_run_{paper}.md"
        text = Path(root(), page).read_text(encoding="utf-8")
        assert all(page in link for link in links) and len(text.split()) <= 300
        for model, millions_in, millions_out, dollars in re.findall(
            r"\| `(\S+)`.* \| ([\d.]+) M \| ([\d.]+) M \| \$(\d+) ", text
        ):
            price = price_of(model, load_prices())
            expected = float(millions_in) * price.input + float(millions_out) * price.output
            assert abs(expected - float(dollars)) <= 0.06 * expected + 1, (paper, model, expected)


def test_only_contradictions_in_print_are_counted():
    "Each line of the list is about an entry, and none of a mean over questions, of rounding or of a run is counted."
    for line in get_paper("real").rows("errata.csv"):
        entries = get_paper(line["paper"]).rows("errata.csv")
        assert (line["where"], line["claim"]) in {(r["where"], r["claim"]) for r in entries}, line
    found = [r for p in NAMES for r in contradictions(p)]
    assert not [r for r in found if re.match("truncated|rounding|.*(mean over questions|read rightly)", r["finding"])]
    assert is_consistent("holds: on ASQA") and not is_consistent("holds for EM alone") and not is_consistent("differs")


def test_what_the_papers_text_explains_is_no_erratum():
    "SEARCH-R says that a row is quoted, ARISE that it is behind on Llama, RDR² that it is ahead on most metrics."
    for paper, where in (("searchr", "Tables 2, 9"), ("arise", "Sec. 3.2"), ("rdr2", "Sec. 5.1")):
        assert where not in {r["where"] for r in contradictions(paper)}
        assert where in {r["where"] for r in get_paper(paper).rows("errata.csv") if is_consistent(r["finding"])}


def test_means_that_are_errata_follow_from_the_printed_cells():
    "TreeRare's averages of three data sets, and Tree-of-Question's overall scores: the mean of coherence and a tenth of answerability."

    def printed(paper, table):
        cells = published(paper, table)
        return {
            (c["group"], c["method"], c["dataset"], c["metric"]): c["value"] for c in cells if c["value"] is not None
        }

    one, checked = printed("treerare", "table1"), 0
    for r in get_paper("treerare").rows("errata.csv"):
        if named := re.match(r"AVG of (.*), (\S+)$", r["claim"]):
            mean = sum(one[named[2], named[1], d, "COVER-EM"] for d in ("HotpotQA", "MuSiQue", "2WikiMQA")) / 3
            checked += abs(mean - float(r["recomputed"])) <= 0.0005
    for r in get_paper("toq").rows("errata.csv"):
        if named := re.match("O.Ass of (.*) is the mean", r["claim"]):
            cells = {(m, x): v for (_, m, _, x), v in printed("toq", r["where"].lower().replace(" ", "")).items()}
            mean = (cells[named[1], "S.Coh"] + cells[named[1], "Ans"] / 10) / 2
            checked += r["recomputed"].startswith(f"{mean:.2f} ") and float(r["printed"]) == cells[named[1], "O.Ass"]
    assert checked == 5 + 10


def test_counts_of_errata_agree_everywhere():
    "The list of all contradictions and README have the same numbers."
    counted = {p: len(contradictions(p)) for p in NAMES}
    labels = {p: get_paper(p).label for p in NAMES}
    with open(root() / "figures/offline/across/errata.csv", encoding="utf-8", newline="") as f:
        rows = [r["paper"] for r in csv.DictReader(f)]
    assert {p: rows.count(labels[p]) for p in NAMES} == counted and len(rows) == sum(counted.values())
    readme = root().joinpath("README.md").read_text(encoding="utf-8")
    assert all(f"[{labels[p]} {n}](figures/offline/{p}/inconsistencies.md)" in readme for p, n in counted.items())
    assert f"[all {len(rows)} in one table](figures/offline/across/errata.md)" in readme


TEXTS = root().parent / "shared" / "papers"
MODULES = (
    *("baselines.chainrag", "baselines.prompting", "retrieval.informativeness"),
    *("papers.treerare.tree_retrieval", *(f"papers.{name}.method" for name in NAMES)),
)


@pytest.mark.parametrize("paper", NAMES)
def test_each_choice_has_a_reason_and_its_setting_is_the_default(paper):
    "Lines of the authors' page: the first value is the class's default, the class takes the others, and the page is made of them."
    for module in MODULES:
        importlib.import_module(f"treekit.{module}")
    lines = get_paper(paper).rows("deviations.csv")
    page = root().joinpath("figures", "offline", paper, "deviations.md").read_text(encoding="utf-8")
    assert len(lines) >= 12 and f"| {len(lines)} | {lines[-1]['choice']} |" in page
    assert all(r["choice"] and r["here"] and r["reason"] for r in lines)
    for line in (r for r in lines if r["field"]):
        kind, _, name = line["field"].partition(".")
        kind = next(vars(m)[kind] for n, m in list(sys.modules.items()) if n.startswith("treekit.") and kind in vars(m))
        values = [
            ast.literal_eval(v) if re.match(r"-?[\d.]+$|None$|True$|False$", v) else v
            for v in line["values"].split("|")
        ]
        if kind.__name__ in ("Informativeness", "Profile"):
            default = inspect.signature(kind).parameters[name].default
        else:
            default = settings(kind())[name]
            assert all(settings(configure(kind(), **{name: v}))[name] == v for v in values[1:]), line
        assert values[0] in (default, getattr(RDR2().rules, name, None) if default is None else default), line


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not beside the kit")
@pytest.mark.parametrize("paper", NAMES)
def test_each_choice_quotes_its_paper(paper):
    text = plain(Path(TEXTS, f"{paper}.txt").read_text(encoding="utf-8"))
    for line in (r for r in get_paper(paper).rows("deviations.csv") if r["quote"] or r["section"]):
        assert line["section"] and 0 < len(line["quote"].split()) <= 10 and plain(line["quote"]) in text, line
