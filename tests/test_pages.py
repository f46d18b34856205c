"""The committed pages of results agree: counts, intervals, words of judgement, models, titles of pictures. Each check is a function of the
pages that returns what is wrong, and finds a page that was changed."""

import csv, io, json, re
from collections import Counter
from pathlib import Path

import pytest

from treekit.figures.titles import paper_names, title_of
from treekit.papers.plugin import papers

OFFLINE, FRONT = Path(__file__).resolve().parents[1] / "figures" / "offline", "../../README.md"
JUDGEMENT = re.compile(r"(?<!\*)\b(?:reproduced|confirmed|compatible|replicated)\b(?!\*|: \d)", re.I)
ESTIMATES = "reproduced value quality mean tau difference effect own_adds ours amount right".split()
MODELS = re.compile(r"simulated|smollm2|no model|tiny|generated questions: the|no raters|printed replies", re.I)
FINDING = re.compile(r"\d+ %|\b(leads|trails|best|worth|falls|rises|significant\w*|outperforms|wins)\b")


@pytest.fixture(scope="module")
def pages():  # path below the folder of results -> text; of a picture, its title and the line below it
    from PIL import Image

    pictures = {p: Image.open(p).info for p in OFFLINE.glob("*/*.png")}
    found = {p: f"{info.get('Title', '')}\n{info.get('Description', '')}" for p, info in pictures.items()}
    files = [OFFLINE / FRONT, *(p for p in OFFLINE.rglob("*") if p.suffix in (".md", ".csv"))]
    texts = {p: p.read_text(encoding="utf-8") for p in files}
    return {p.relative_to(OFFLINE).as_posix(): text for p, text in (found | texts).items()}


def tables(pages, folder=""):
    return {
        n: [*csv.DictReader(io.StringIO(t))] for n, t in pages.items() if (n[: len(folder)], n[-4:]) == (folder, ".csv")
    }


def counts_disagree(pages):
    # cells, choices and errata have one count on all pages, and it is that of the tables
    errata = tables(pages, "across/errata.csv")["across/errata.csv"]
    said = {"errata": f"[{len(errata)} printed" in pages["README.md"] and f"[all {len(errata)} in" in pages[FRONT]}
    for p in papers():
        page, label, own = pages[f"{p.name}/README.md"], paper_names()[p.name], tables(pages, f"{p.name}/")
        [told] = re.findall(r"^- Cells of its tables: (.*)\.$", page, re.M)
        # a cell that was not run counts if it is printed
        n = sum(r["verdict"] != "not run" or r["published"] != "" for t in own.values() for r in t if "verdict" in r)
        said |= {
            (p.name, n): n == sum(int(x) for x in re.findall(r"(\d+) (?:run|printed)\b", told.replace(",", ""))),
            (p.name, "cells"): f"| {told} |" in pages["README.md"],
            (p.name, "choices"): f"[{len(own[f'{p.name}/deviations.csv'])} choices](" in page,
            (p.name, "errata"): f"[{label} {sum(r['paper'] in (p.name, label) for r in errata)}](" in pages[FRONT],
        }
    return [what for what, right in said.items() if not right]


def record_disagrees(pages):
    # the record of verdicts has what the tables have, and the results page what the record has
    rows = [(*name[:-4].split("/"), r) for name, table in tables(pages).items() if "/" in name for r in table]
    found = Counter(
        (paper, stem, "cells", r["verdict"] or "not judged")
        for paper, stem, r in rows
        if {"verdict", "reason"} <= r.keys() and (r["verdict"] != "not run" or r["published"])
    )
    found += Counter((*at, f"{r['paper']}, {r['dataset']}", r["own_is"]) for *at, r in rows if r.get("own_is"))
    told = Counter({tuple(r.values())[:4]: int(r["n"]) for r in tables(pages)["verdicts.csv"]})
    unsaid = [
        k
        for k, n in told.items()
        if k[1] == "methods" and not re.search(rf"^\| {k[2]} \|[^|]*{n} {k[3]}", pages["README.md"], re.M)
    ]
    return [*(found - told), *(told - found), *unsaid]


def outside_their_interval(pages):
    "An interval belongs to the nearest column before it that has an estimate; on a page to the number before it."
    number, said = r"([-+]?[\d.]+)", []
    for name, text in pages.items():
        found = re.findall(rf"{number} \[{number}, {number}\]", text if name.endswith(".md") else "")
        said += [(name, 0.51, *numbers) for numbers in found]  # the ends are rounded to points
    for name, table in tables(pages).items():
        columns = [*(table or [{}])[0]]
        for low in (c for c in columns if c == "low" or c.endswith("_low")):
            near = [c for c in columns[: columns.index(low)] if c in ESTIMATES][-1:]
            said += [(name, 1e-3, r[c], r[low], r[low.replace("low", "high")]) for c in near for r in table]
    there = [(name, off, *map(float, rest)) for name, off, *rest in said if all(re.fullmatch(number, x) for x in rest)]
    return [(name, v, a, b) for name, off, v, a, b in there if not a - off <= v <= b + off]


def judged_without_a_verdict(pages):
    # *Confirmed* and the like are said of cells with that verdict, in a count, or in a legend
    verdicts = {
        name.split("/")[0]
        for name, table in tables(pages).items()
        for r in table
        if r.get("verdict") in ("compatible", "confirmed")
    }
    prose = {
        n: re.sub(r"^\|.*|\d+ (?:confirmed|compatible)", "", t, flags=re.M)
        for n, t in pages.items()
        if n.endswith(".md")
    }
    return [
        (name, found[0])
        for name, text in prose.items()
        for found in [JUDGEMENT.search(text)]
        if found and not name.endswith("/artefacts.md") and name.split("/")[0] not in verdicts
    ]


def without_a_model(pages):
    # a table with measured cells has a column for who answered, and its page names them above; without a model it is empty
    measured = [
        (name, r.get("model", "no column model"))
        for name, table in tables(pages).items()
        for r in table
        if r.get("reproduced") and r.get("model") != ""
    ]
    heads = {name: pages.get(f"{name[:-4]}.md", "").partition("\n## ")[0] for name, _ in measured}
    return [(name, m) for name, models in {*measured} for m in models.split(", ") if m not in heads[name]]


def titles_that_state(pages):
    "A picture's title begins with its paper; it or the line below names who answered; no finding of a simulated model is in it."
    return [
        (paper, name, title)
        for picture, text in pages.items()
        if picture.endswith(".png")
        for paper, name, title, ran in [(*picture[:-4].split("/"), *text.split("\n"))]
        if not title.startswith(title_of(paper, name).partition(":")[0].split(", ")[0])
        or not MODELS.search(f"{title} {ran}")
        or ("simulated" in ran and FINDING.search(title))
    ]


CHANGES = {  # check -> a page, a text in it, and another in its place
    counts_disagree: ("README.md", " run by a bundled", "0 run by a bundled"),
    record_disagrees: ("verdicts.csv", "worse,2", "better,2"),
    outside_their_interval: ("toq/README.md", "## Cost", "30.0 [40, 60]\n\n## Cost"),
    judged_without_a_verdict: ("toq/README.md", "## Cost", "Table 2 is confirmed.\n\n## Cost"),
    without_a_model: ("toq/table2.md", "simulated", "tested"),
    titles_that_state: ("toq/table2.png", "Five ways to ask", "ToQ leads five ways to ask"),
}


@pytest.mark.parametrize("check", CHANGES)
def test_the_pages_agree(check, pages):
    assert check(pages) == []
    page, text, other = CHANGES[check]
    assert text in pages[page] and check(pages | {page: pages[page].replace(text, other)}) != []


def test_a_notebook_shows_its_committed_picture():
    shown = "".join(p.read_text(encoding="utf-8") for p in OFFLINE.parents[1].glob("nbs/reproduce/*/*.ipynb"))
    drawn = [f"{p.parent.name}/{p.name}" for p in OFFLINE.glob("*/*.png")]
    assert [path for path in drawn if f"(../../../figures/offline/{path})" not in shown] == []


def test_a_notebook_shows_its_committed_table():
    "Each row of an artefact's page is in the output of its notebook. After a run python tests/notebook_outputs.py copies the outputs."
    from notebook_outputs import NOTEBOOKS, code_cells, shown

    stale, compared, otherwise = (
        [],
        0,
        ("claims", "retrieval"),
    )  # which show parts of their page
    for path in (p for p in NOTEBOOKS if p.stem not in otherwise):
        cells = code_cells(json.loads(path.read_text(encoding="utf-8"))).values()
        page, text = OFFLINE / path.parent.name / f"{path.stem}.md", "".join(map(shown, cells))
        rows = [r for r in page.read_text(encoding="utf-8").splitlines() if r.startswith("| ")] if page.exists() else []
        compared += bool(text and rows)
        stale += [f"{path.parent.name}/{path.stem}: {row}" for row in rows if text and row not in text]
    assert stale == [] and compared >= 50
