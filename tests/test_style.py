"The visual grammar: colours that everybody tells apart, one table of roles, markers, units and directions, and tables that follow it."

import csv, json, re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from treekit.figures.style import (
    ROLES,
    figure_of,
    role_of,
    shown_name,
)
from treekit.papers.plugin import papers
from treekit.scoring.metrics import METRIC_TYPES

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "figures/offline"
# Machado, Oliveira and Fernandes (2009), deuteranopia of severity 1, for linear RGB
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    "Linear RGB of a hexadecimal colour."
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    "CIELAB of linear RGB, for the white point D65."
    x = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one, other, sight=np.eye(3)):
    "Delta E (CIE 1976) of two colours."
    return float(np.linalg.norm(lab(sight @ linear(one)) - lab(sight @ linear(other))))


GREY = np.repeat([[0.2126, 0.7152, 0.0722]], 3, axis=0)


def too_close(colours):
    "Pairs of colours that some reader doesn't tell apart, and neighbours that are alike in grey."
    pairs = [(a, b) for a, b in combinations(colours, 2) if min(distance(a, b), distance(a, b, DEUTERANOPIA)) < 20]
    return pairs + [(a, b) for a, b in zip(colours, colours[1:]) if distance(a, b, GREY) < 20]


def test_colours_are_told_apart_with_deuteranopia_and_in_grey():
    assert too_close([colour for colour, *_ in ROLES.values()]) == []
    assert too_close(["#D62728", "#2CA02C"])  # the red and the green that matplotlib begins with
    assert (
        len({hatch for _, hatch, _ in ROLES.values()}) >= len(ROLES) - 1
    )  # print has no hatch either: its bars are white


def test_each_paper_declares_its_own_method():
    for paper in papers():
        assert set(paper.figure_roles) <= set(ROLES)
        for printed in paper.short_names.values():
            assert role_of(printed) == "own", printed


def test_colours_come_from_the_table():
    "No hexadecimal colour but greys outside of `style`, apart from the style sheets of pages; palettes are for series that are no methods."
    files = [
        *(ROOT / "treekit/figures").glob("*.py"),
        *(ROOT / "treekit/papers").glob("*/*.py"),
        *(ROOT / "nbs/16_figures").glob("*.ipynb"),
        *(ROOT / "nbs/17_papers").glob("*/*.ipynb"),
        *(ROOT / "nbs/reproduce").glob("*/*.ipynb"),
    ]
    own, by_position = {}, set()
    for path in (p for p in files if p.stem not in ("style", "03_style")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.suffix == ".ipynb" else []
        text = "\n".join("".join(c["source"]) for c in cells) if cells else path.read_text(encoding="utf-8")
        drawn = "\n".join(line for line in text.splitlines() if not re.search(r"\{.*(color|background).*:|^# %%", line))
        if found := [c for c in re.findall(r"#[0-9a-fA-F]{6}\b", drawn) if len({c[1:3], c[3:5], c[5:]}) > 1]:
            own[path.name] = found
        if re.search(r"PALETTE\[|color=\"C\d", drawn):
            by_position.add(path.name)
    assert own == {}
    shared = {"figures.py", "11_figures.ipynb"}  # a curve that is a mean of others
    assert by_position <= {"figure6.ipynb", "figure7.ipynb"} | shared  # training runs and models


def test_a_papers_figure_has_its_own_names():
    with figure_of("searchr"):
        assert (shown_name("Ours"), role_of("Ours")) == ("SEARCH-R", "own")
    with figure_of("toq"):
        assert (shown_name("Ours"), role_of("Ours")) == ("Ours", "single")
    with figure_of("across"):
        assert role_of("ToQ (ours)") == role_of("ARISE") == "own"


def test_a_figure_names_its_rows_as_its_table_does():
    "Where a table says in brackets what ran for a row, its picture says it, too."
    lacking = {}
    for path in (p for p in (ROOT / "figures/offline").glob("*/table*.csv") if p.with_suffix(".svg").exists()):
        text, rows = (
            path.with_suffix(".svg").read_text(encoding="utf-8"),
            [r for r in read(path) if r.get("reproduced")],
        )
        ran = {m[1] for r in rows if (m := re.search(r" \[(?!(?:EXPAND|REFUSE|ANSWER)\])(.+)\]$", r["method"], re.I))}
        lacking |= {f"{path.stem}: {word}": said for said in ran for word in said.split() if word not in text}
    assert lacking == {}


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def bold_faults(text):
    "Bold cells of a page that aren't the best of their column and group."
    table = re.search(r"^## What ran\n\n(.+?)\n\n", text, re.S | re.M)
    if not table:
        return []
    head, _, *rows = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[1].splitlines()]
    head, faults = [h.replace("\\", "") for h in head], []
    for k, column in enumerate(head[2:], 2):
        metric = max((m for m in METRIC_TYPES if column == m or column.endswith(f" {m}")), key=len, default="")
        groups = {}
        for r in rows:
            if number := re.match(r"(\*\*)?(-?\d+(?:\.\d+)?)", r[k]):
                groups.setdefault(r[0], []).append((float(number[2]), bool(number[1]), r[1]))
        for cells in groups.values():
            direction = METRIC_TYPES[metric].direction if metric else "none"
            values = [v for v, _, name in cells if not re.search(r" (minus|over|vs) |^Rel", name)]
            if not values:
                continue
            best = min(values) if direction == "lower" else max(values)
            faults += [(column, name) for v, bold, name in cells if bold and (direction == "none" or v != best)]
    return faults


def test_no_bold_in_the_wrong_direction():
    pages = sorted(FIGURES.glob("*/*.md"))
    assert len(pages) > 100
    assert {
        str(p.relative_to(FIGURES)): found for p in pages if (found := bold_faults(p.read_text(encoding="utf-8")))
    } == {}
    wrong = "## What ran\n\n| group | method | ASQA COL-RATE |\n| --- | --- | --- |\n| g | a | 2.0 |\n| g | b | **100.0** |\n\n"
    assert bold_faults(wrong) == [("ASQA COL-RATE", "b")]


MODELS = re.compile(
    r"GPT-4o(?:-mini)?|ChatGPT|DeepSeek-V3|Llama-?[23][\w.-]*\d+[bB]|Qwen2\.5[\w. -]*B|HyperCLOVAX?|text-davinci-003"
)


def misnamed(rows):
    "Names of reproduced rows that claim a model that didn't run."
    ran = [r for r in rows if r.get("reproduced") and r.get("model")]
    return {
        r[k]
        for r in ran
        for k in ("group", "method")
        for name in MODELS.findall(r[k])
        if name.lower() not in r["model"].lower() and "published" not in r[k]
    }


@pytest.mark.parametrize("paper", [p.name for p in papers()])
def test_no_row_is_named_after_a_model_that_did_not_run(paper):
    tables = {p.stem: read(p) for p in sorted((FIGURES / paper).glob("*.csv")) if p.stem not in ("claims",)}
    compared = {
        name: rows for name, rows in tables.items() if rows and {"reproduced", "published", "model"} <= rows[0].keys()
    }
    assert compared and {name: found for name, rows in compared.items() if (found := misnamed(rows))} == {}
    assert misnamed([dict(group="Qwen2.5 0.5B-32B", method="Pass@N", reproduced="43.25", model="simulated")])
