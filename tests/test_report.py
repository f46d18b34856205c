"report: verdicts that say what they mean, tables and figures that repeat byte for byte, words that stay words."

import json, re, subprocess, sys

import pandas as pd
import pytest

from fakes import printed_run
from treekit.config import root
from treekit.figures.claims import CLAIM_OUTCOMES, judge_claims
from treekit.figures.claims import save_claims
from treekit.figures.plots import dot_plot
from treekit.figures.tables import save_table, to_markdown
from treekit.artefacts.catalog import inventory
from treekit.figures.index_page import index_page
from treekit.figures.titles import title_of
from treekit.figures.verdicts import CELL_FIELDS, compare, count_verdicts
from treekit.figures.verdicts import group_for, published, relative_improvement

PRINTED_FILES = (root() / "data" / "papers").glob("*/*.csv")
TABLES = sorted(
    [p.parent.name, p.stem]
    for p in PRINTED_FILES
    if p.stem not in ("settings", "experiment", "deviations", "inventory", "claims", "errata", "hipporag_table2")
)
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b\nc",
    "*bold* _it_ `x` [l](http://x) $y$",
    "&lt;",
    "\x1b[31mred",
    "=1+1",
    "# head",
    "<!-- x",
]


def score(method, value, dataset="hotpotqa", metric="COVER-EM", **more):
    return (
        dict(
            method=method,
            dataset=dataset,
            metric=metric,
            n=500,
            failures=0,
            value=value,
            low=value - 0.04,
            high=value + 0.04,
        )
        | more
    )


@pytest.mark.parametrize("paper,artefact", TABLES)
def test_every_published_table_can_be_compared_with_nothing(paper, artefact, tmp_path):
    cells = published(paper, artefact)
    df = compare(cells, [], model="simulated")
    assert list(df.columns) == CELL_FIELDS and set(df.verdict) == {"not run"} and df.reproduced.isna().all()
    assert [r for r in df.published[: len(cells)].fillna(-1)] == [
        c["value"] if c["value"] is not None else -1 for c in cells
    ]
    save_table(df, tmp_path, "t")
    assert count_verdicts(tmp_path / "t.csv")["not run"] == sum(c["value"] is not None for c in cells)


def test_the_same_model_on_the_same_passages_gets_a_verdict():
    rows = [score("zero-shot", 0.47), score("few-shot", 0.6), score("ReAct*", 0.4, "musique")]
    df = compare(published("treerare", "table1"), rows, printed_run("treerare", "table1", rows, "gpt-4o-mini"))
    ran = df[df.verdict != "not run"].set_index(["method", "dataset"])
    assert ran.verdict.to_dict() == {
        ("zero-shot", "HotpotQA"): "compatible",
        ("few-shot", "HotpotQA"): "different",
        ("ReAct*", "MuSiQue"): "not comparable",
    }
    assert (
        ran.loc[("ReAct*", "MuSiQue"), "flag"] == "illegible"
        and "can't be read" in ran.loc[("ReAct*", "MuSiQue"), "reason"]
    )
    assert set(ran.group) == {"GPT-4o-mini"} and len(df) == 288


def test_another_model_or_other_passages_are_not_comparable():
    rows = [score("zero-shot", 0.459)]
    offline = compare(published("treerare", "table1"), rows, model="simulated", corpus="400 articles")
    assert len(offline) == 288 + 1
    [cell] = offline[offline.verdict != "not run"].to_dict("records")
    assert (cell["group"], cell["verdict"], cell["flag"], cell["corpus"], cell["reason"]) == (
        "simulated (offline)",
        "",
        "",
        "400 articles",
        "the model is simulated; nothing is known of this run",
    )
    assert cell["published"] != cell["published"]
    same = printed_run("treerare", "table1", rows, "gpt-4o-mini")
    held = compare(published("treerare", "table1"), rows, same, obstacle="other passages")
    [cell] = held.query("verdict != 'not run'").to_dict("records")
    assert (cell["group"], cell["verdict"], cell["reason"]) == ("GPT-4o-mini", "not comparable", "other passages")
    [cell] = (
        compare(published("treerare", "table1"), rows, model="gpt-4o-mini")
        .query("verdict != 'not run'")
        .to_dict("records")
    )
    assert (cell["verdict"], cell["reason"]) == ("not comparable", "nothing is known of this run")


@pytest.mark.parametrize(
    "model,group",
    [
        ("gpt-4o-mini", "GPT-4o-mini"),
        ("openai/gpt-4o-mini-2024-07-18", "GPT-4o-mini"),
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-mini-audio", "gpt-4o-mini-audio"),
        ("llama3.3", "Llama3.3-70B"),
        ("llama3.3:70b", "Llama3.3-70B"),
        ("llama3.1:70b", "llama3.1:70b"),
        ("llama3.3:8b", "llama3.3:8b"),
        ("deepseek-ai/DeepSeek-V3", "DeepSeek-V3"),
        ("deepseek-r1", "deepseek-r1"),
        ("simulated", "simulated (offline)"),
        ("<b>x</b>", "<b>x</b>"),
    ],
)
def test_a_model_belongs_to_its_own_group_only(model, group):
    made = group_for(model, ["GPT-4o-mini", "Llama3.3-70B", "DeepSeek-V3"])
    assert made == group


def test_relative_improvement_as_printed():
    "Table 1's last row follows from the rows above it, wherever they are all legible."
    cells, checked = published("treerare", "table1"), 0
    methods = list(dict.fromkeys(c["method"] for c in cells))
    ours, baselines = ["TreeRare (DT)", "TreeRare (CT)"], [m for m in methods if not m.startswith(("TreeRare", "Rel"))]
    for group in dict.fromkeys(c["group"] for c in cells):
        own = [c for c in cells if c["group"] == group]
        printed = {(c["dataset"], c["metric"]): c for c in own if c["method"] == "Rel. Impr."}
        unsure = {(c["dataset"], c["metric"]) for c in own if c["flag"] in ("illegible", "uncertain", "derived")}
        rows = [
            score(c["method"], c["value"], c["dataset"], c["metric"])
            for c in own
            if c["method"] != "Rel. Impr." and c["value"] is not None
        ]
        for r in relative_improvement(rows, ours, baselines):
            key = r["dataset"], r["metric"]
            if key in unsure:
                continue
            checked += 1
            assert r["value"] == pytest.approx(printed[key]["value"], abs=0.0051), (group, key)
    assert checked == 7  # the others lean on a cell that is damaged


@pytest.mark.parametrize("word", NASTY)
def test_words_stay_words(word):
    import pandas as pd

    df = compare(published("treerare", "table2")[:3], [score(word, 0.5)], model=word, corpus=word, obstacle=word)
    for table in (df, pd.DataFrame({word: [word]})):
        text = to_markdown(table, word, word)
        assert "<" not in text and "\x1b" not in text
        for part in text.split("\n## "):  # what ran, and what was printed
            lines = [l for l in part.splitlines() if l.startswith("|")]
            assert len({len(re.findall(r"(?<!\\)\|", l)) for l in lines}) <= 1


@pytest.mark.slow
def test_files_repeat_in_another_process(tmp_path):
    code = """
import json, sys
from treekit.figures.plots import dot_plot, save_figure
from treekit.figures.tables import save_table
from treekit.figures.verdicts import compare, published
df = compare(published("treerare", "table1")[:60], json.loads(sys.argv[2]), model="simulated")
save_table(df, sys.argv[1], "t"); save_figure(dot_plot(df), sys.argv[1], "f")
"""
    rows = json.dumps([score("zero-shot", 0.47), score("TreeRare (DT)", 0.5)])
    for name in ("a", "b"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name / "mine"), rows], check=True)
    for name in ("t.csv", "t.md", "f.png", "f.svg"):
        assert (tmp_path / "a" / "mine" / name).read_bytes() == (tmp_path / "b" / "mine" / name).read_bytes(), name
    assert b"\r" not in (tmp_path / "a" / "mine" / "t.csv").read_bytes()


@pytest.mark.long
def test_the_plot_has_every_column_that_ran_and_every_printed_model():
    printed = published("treerare", "table1")
    df = compare(
        printed,
        [score("zero-shot", 0.47), score("TreeRare (DT)", 0.5, "2wiki"), score("mine", 0.2)],
        model="simulated",
    )
    fig = dot_plot(df)
    panels = [(a.get_title(), a.get_xlabel()) for a in fig.axes]
    assert panels == [("HotpotQA", "COVER-EM, %"), ("2WikiMQA", "COVER-EM, %")]  # the others are named, not drawn
    assert fig.notes[-1] == "without a run: MuSiQue COVER-EM, AVG COVER-EM, AR, ER, Dis-F1, ASQA COVER-EM"
    assert [t.get_text() for t in fig.legends[0].get_texts()][:4] == [
        "printed, GPT-4o-mini",
        "printed, Llama3.3-70B",
        "printed, DeepSeek-V3",
        "measured, simulated (offline)",
    ]
    assert [t.get_text() for t in fig.axes[0].get_yticklabels()] == [
        *list(dict.fromkeys(r["method"] for r in printed))[:-1],
        "mine",
    ]
    lengths = [round(a.get_xlim()[1] - a.get_xlim()[0], 6) for a in fig.axes]
    assert len(set(lengths)) == 1  # one axis for a metric
    table2 = compare(published("rdr2", "table2"), [])  # percentages beside numbers of words
    for ax in dot_plot(table2).axes:
        (low, high), (start, end) = ax.dataLim.intervalx, ax.get_xlim()
        assert start <= low and high <= end and -0.05 * (end - start) <= start and (high > 100 or end <= 105), (
            ax.get_xlabel()
        )
    renamed = df.assign(group=df.group.replace("Llama3.3-70B", "a model whose name is as long as names get these days"))
    for long in (fig, dot_plot(renamed)):
        long.canvas.draw()
        box = long.legends[0].get_window_extent()
        assert 0 <= box.x0 and box.x1 <= long.bbox.width


def test_the_page_says_what_all_tables_of_a_paper_ran_and_counts_a_claim_once(tmp_path):
    "A range over the tables; the claims as the report counts them; a folder without comparisons in its own tables' words."
    folder, offline = tmp_path / "treerare", root() / "figures" / "offline"
    for artefact, n in (("figure3", 50), ("table1", 600)):
        rows = [score("zero-shot", 0.47, n=n)]
        save_table(
            compare(published("treerare", "table1"), rows, printed_run("treerare", "table1", rows, "gpt-4o-mini")),
            folder,
            artefact,
        )
    unjudged = [v for v in judge_claims(offline, "treerare") if v["claim"].artefact != "figure4"]
    found = [v | dict(outcome="supported", model="gpt-4.1") if v["claim"].artefact == "table1" else v for v in unjudged]
    save_claims(found, folder, "Claims")
    save_table(
        pd.DataFrame([dict(method="a", value=1.0)]),
        tmp_path / "across",
        "table1",
        note="Model: gpt-4.1. Questions: synthetic wiki, n = 7. And so on.",
    )
    index_page(tmp_path)
    own, both = ((tmp_path / paper / "README.md").read_text(encoding="utf-8") for paper in ("treerare", "across"))
    assert "n per cell: 50 to 600;" in own and "- Table 1: Model: gpt-4.1. Questions: synthetic wiki, n = 7.\n" in both
    told = ", ".join(
        f"{n} {outcome}" for outcome in CLAIM_OUTCOMES if (n := sum(v["outcome"] == outcome for v in found))
    )
    assert f"{len(unjudged)} claims: {told}." in own
    save_claims(unjudged, folder, "Claims")
    index_page(tmp_path)
    assert f"{len(unjudged)} claims:" not in (folder / "README.md").read_text(encoding="utf-8")


OFFLINE = root() / "figures" / "offline"


def test_the_results_stand_on_one_screen():
    page = (OFFLINE / "README.md").read_text(encoding="utf-8")
    assert len(re.sub(r"\]\([^)]*\)|<img[^>]*>|[|]|---", " ", page).split()) < 550
    parts = ("treekit reruns", "**A small", "**Cost", "**Retrieval", "**Errata", "**What it would take")
    assert sorted(places := [page.index(f"\n\n{part}") for part in parts]) == places
    assert "a simulated model answers" in page[: places[1]]
    links = re.findall(r"\]\(([^):#]+)\)|src=\"([^\"]+)\"", page)
    assert len(links) > 15 and all((OFFLINE / (a or b)).exists() for a, b in links)


def test_a_papers_page_is_short_and_follows_the_template():
    for paper in ("treerare", "toq", "arise", "searchr", "rdr2"):
        page = (OFFLINE / paper / "README.md").read_text(encoding="utf-8")
        heads = ["Printed and measured", "Ablations", "Cost", "Where it fails", "Deviations", "Read on"]
        assert re.findall(r"^## (.*)$", page, re.M) == heads, paper
        assert len(re.sub(r"\]\([^)]*\)", "]", page).split()) <= 800, paper
        assert "simulated" not in page.partition("## ")[2], paper


def test_a_page_of_artefacts_has_one_row_each_with_its_evidence():
    pages = {p.parent.name: p.read_text(encoding="utf-8") for p in OFFLINE.glob("*/artefacts.md")}
    rows = {
        (paper, line.split(" | ")[1].replace("\\", "")): line
        for paper, page in pages.items()
        for line in page.splitlines()
        if line.startswith("| ") and "**" in line
    }
    known = {
        (r["paper"], title_of(r["paper"], r["artefact"]).partition(", ")[2])
        for r in inventory()
        if r["kind"] not in ("algorithm", "equations")
    }
    assert len(known & rows.keys()) > 80

    badges = {
        ("real", "vanilla.csv"): "**real**, *added*",
        ("treerare", "table1.csv"): "**simulated** |",
        ("toq", "inconsistencies.csv"): "**print**, *added*",
        ("rdr2", "table4.csv"): "**trained** |",
        ("searchr", "retrieval.csv"): "**no model**, *added*",
    }
    lines = {(paper, file): line for (paper, _), line in rows.items() for file in re.findall(r"\]\(([^)]+)\)", line)}
    assert {key: badge in lines[key] for key, badge in badges.items()} == dict.fromkeys(badges, True)
    for page in [*OFFLINE.glob("*/artefacts.md"), *OFFLINE.glob("*/README.md")]:
        links = re.findall(r"\]\(([^):#]+)\)", page.read_text(encoding="utf-8"))
        assert links and all((page.parent / link).exists() for link in links), page


# --- SEARCH-R's rows, and the artefacts that look into the code
