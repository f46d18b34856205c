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
from treekit.figures.tables import contradictions
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
        with open(
            root() / "figures" / "offline" / line["paper"] / "inconsistencies.csv", encoding="utf-8", newline=""
        ) as f:
            assert (line["where"], line["claim"]) in {(r["where"], r["claim"]) for r in csv.DictReader(f)}, line
    counted = {p: contradictions(root() / "figures" / "offline", p) for p in NAMES}
    assert all(1 <= len(rows) <= 14 for rows in counted.values())
    found = [r for rows in counted.values() for r in rows]
    assert not [
        r
        for r in found
        if "mean over questions" in r["finding"]
        or r["finding"].startswith(("truncated", "rounding"))
        or "read rightly" in r["finding"]
    ]


def test_what_the_papers_text_explains_is_no_erratum():
    "SEARCH-R says that a row is quoted, ARISE that it is behind on Llama, RDR² that it is ahead on most metrics."
    for paper, where in (("searchr", "Tables 2, 9"), ("arise", "Sec. 3.2"), ("rdr2", "Sec. 5.1")):
        assert where not in {r["where"] for r in contradictions(root() / "figures" / "offline", paper)}
        with open(
            root() / "figures/offline" / paper / "inconsistencies_checked.csv", encoding="utf-8", newline=""
        ) as f:
            assert where in {r["where"] for r in csv.DictReader(f)}


def test_counts_of_errata_agree_everywhere():
    "The list of all contradictions and README have the same numbers."
    counted = {p: len(contradictions(root() / "figures/offline", p)) for p in NAMES}
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
