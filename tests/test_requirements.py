"What a lab needs for verdicts: the saved pages are today's, every number is explained, and another package's paper has its page."

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.artefacts.reachable_cells import printed_artefacts, printed_cells, unreachable
from treekit.artefacts.requirements import (
    commands,
    measured_artefacts,
    page_path,
    requirements_page,
    saved_costs,
    table_cost,
)
from treekit.cli.main import main
from treekit.config import root
from treekit.figures.titles import title_of
from treekit.llm.prices import load_prices, price_of
from treekit.papers import plugin
from treekit.figures.tables import contradictions
from treekit.papers.plugin import Paper, get_paper, papers
from treekit.utils.sanitize import md

NAMES = [p.name for p in papers()]


@pytest.mark.parametrize("paper", NAMES)
def test_the_saved_page_is_todays(paper):
    assert page_path(paper).read_text(encoding="utf-8") == requirements_page(paper), (
        f"run treekit requirements {paper} --write"
    )


@pytest.mark.parametrize("paper", NAMES)
def test_each_printed_number_is_judged_by_a_command_or_refused_with_a_reason(paper):
    page = requirements_page(paper)
    for r in printed_artefacts(paper):
        cells = printed_cells(paper, r["artefact"])
        never = [why for cell in cells if (why := unreachable(paper, r["artefact"], cell))]
        part = page.partition(f"### {md(title_of(paper, r['artefact']).partition(', ')[2])}")[2].partition("\n### ")[0]
        assert (
            f"{len(cells)} printed numbers" in part
            and f"{len(cells) - len(never)} can be judged, {len(never)} can't." in part
        )
        for why in never:
            assert md(why.reason) in part, why
        lines = commands(paper, r["artefact"]).values()
        assert bool(lines) == (len(never) < len(cells))
        for line in lines:
            assert line in part and line.startswith(f"treekit reproduce {paper}/{r['artefact']} ")


@pytest.mark.parametrize("paper", NAMES)
def test_calls_were_counted_for_each_table_that_asks_a_model(paper):
    assert {row["artefact"] for row in saved_costs(paper)} == {r["artefact"] for r in measured_artefacts(paper)}


def test_money_is_tokens_times_the_price():
    cost, price = (
        table_cost("treerare", "table1", model="gpt-4o-mini-2024-07-18"),
        price_of("gpt-4o-mini-2024-07-18", load_prices()),
    )
    rows = [r for r in saved_costs("treerare") if r["artefact"] == "table1"]
    assert cost.calls == pytest.approx(sum(500 * r["calls"] for r in rows))  # 500 questions of each data set
    expected, most = cost.dollars(price)
    assert (
        expected == pytest.approx(sum(500 * (r["tokens_in"] * 0.15 + r["tokens_out"] * 0.6) for r in rows) / 1e6)
        and expected < most
    )


def test_a_paper_of_another_package_has_its_page(tmp_path, monkeypatch):
    data = tmp_path / "data"
    (data / "requirements").mkdir(parents=True)
    (data / "inventory.csv").write_text("artefact,kind,title,csv\ntable1,table,A table,table1.csv\n")
    (data / "table1.csv").write_text(
        "paper,artefact,group,method,dataset,metric,value,unit,flag,note\n"
        "mine,table1,GPT-4o,Own,HotpotQA,EM,0.5,fraction,ok,\n"
        "mine,table1,GPT-4o,Other,HotpotQA,EM,0.4,fraction,ok,\n"
    )
    (data / "requirements" / "models.csv").write_text(
        "artefacts,groups,model,access,endpoint,key,note\n*,GPT-4o,gpt-4o-2024-08-06,API,,,\n"
    )
    (data / "requirements" / "unreachable.csv").write_text(
        "artefacts,groups,methods,datasets,metrics,difference,reason\ntable1,*,Other,*,*,,Quoted from a blog.\n"
    )
    monkeypatch.setattr(plugin, "_discovered", lambda: ({"mine": Paper("mine", "Mine", data)}, []))
    page = requirements_page("mine")
    assert "1 of the 2 numbers" in page and "treekit reproduce mine/table1" in page and "Quoted from a blog." in page
    assert (
        CliRunner().invoke(main, ["requirements", "mine", "--write"]).exit_code == 0
        and page_path("mine").read_text() == page
    )


def test_doctor_and_the_results_lead_to_the_pages():
    for name in ("README.md", "figures/offline/README.md"):
        text = Path(root(), name).read_text(encoding="utf-8")
        for paper in NAMES:
            assert f"data/papers/{paper}/requirements/README.md" in text, (name, paper)
    assert "treekit requirements toq" in CliRunner().invoke(main, ["doctor", "toq"]).output


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


def test_every_model_that_is_paid_has_a_price_and_the_others_a_reason():
    "A model that a paper ran is on a list of prices, on an own server, or trained; ToQ's is not public, which its note says."
    prices = load_prices()
    for paper in NAMES:
        for line in get_paper(paper).rows("requirements/models.csv"):
            if line["access"] in ("API", "host"):
                assert price_of(line["model"], prices), line
            else:
                assert line["access"] in ("own server", "trained") and line["note"], line
    [line] = get_paper("toq").rows("requirements/models.csv")
    assert "HyperCLOVAX 60B" in line["note"] and "no price" in line["note"]
    assert (prices["gpt-3.5-turbo-0125"].input, prices["gpt-3.5-turbo-0125"].output) == (0.5, 1.5)
    assert price_of("gpt-3.5-turbo-0613", prices) is None  # another snapshot, another price
    for paper in NAMES:
        assert "no price" not in page_path(paper).read_text(encoding="utf-8").replace("have no price", "")
