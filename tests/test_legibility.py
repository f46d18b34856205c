"Figures at the widths of a page and of a column: no text overlaps another or is cut off, measured on the drawn boxes."

import csv
from pathlib import Path

import matplotlib
import pytest

from treekit.figures.cells import read_scores
from treekit.figures.legibility import text_faults
from treekit.figures.plots import COLUMN, PAGE, dot_plot, figure_check, save_figure
from treekit.figures.style import model_marker

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FIGURES = Path(__file__).resolve().parents[1] / "figures/offline"


def comparison(path):
    "A written table as `compare` gives it."
    import pandas as pd

    number = ("published", "reproduced", "low", "high")
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    table = pd.DataFrame([r | {k: float(r[k]) if r[k] else float("nan") for k in number} for r in rows])
    table.attrs["scores"] = read_scores(path.with_name(f"{path.stem}_scores.jsonl"))
    return table


def test_every_committed_figure_is_legible_at_both_widths():
    checked = {f"{p.parent.name}/{p.stem}": figure_check(p) for p in sorted(FIGURES.glob("*/*.png"))}
    assert len(checked) > 60
    assert [
        name for name, said in checked.items() if not ({"170 mm", "85 mm"} <= said.keys() and all(said.values()))
    ] == []


def test_the_check_finds_what_is_wrong(tmp_path):
    def draw(width):
        fig, ax = plt.subplots(figsize=(width, 2), layout="constrained")
        for x in (0.5, 0.5 + 1.2 / width / 2):
            ax.text(x, 0.5, "a label of some length", fontsize=7)
        return fig

    png, _ = save_figure(draw, tmp_path, "labels", "Title", "line")
    assert figure_check(png) == {"170 mm": False, "85 mm": False}
    assert [f.partition(":")[0] for f in text_faults(draw(PAGE))] == ["overlap"]


def of_three_models(table):
    "The table as a real run with three models in one folder leaves it."
    import pandas as pd

    ran = table[table.reproduced.notna()]
    models = ("GPT-4o-mini", "llama-3.3-70b", "a-model-with-a-rather-long-name-32b")
    parts = [
        ran.assign(
            group=m, model=m, published=float("nan"), **{c: ran[c] + 3 * k for c in ("reproduced", "low", "high")}
        )
        for k, m in enumerate(models)
    ]
    return models, pd.concat([table[table.reproduced.isna()], *parts], ignore_index=True)


@pytest.mark.parametrize("width", [PAGE, pytest.param(COLUMN, marks=pytest.mark.slow)])
def test_three_models_in_one_folder_stay_readable(width):
    "Each model has a marker and a line of its own in a row, so none hides another."
    models, table = of_three_models(comparison(FIGURES / "arise/table5.csv"))
    fig = dot_plot(table, width=width)
    assert text_faults(fig) == []
    filled = [
        line
        for line in fig.axes[0].lines
        if line.get_markerfacecolor() != "white" and line.get_marker() not in ("", "None")
    ]
    markers = {line.get_marker() for line in filled}
    assert {model_marker(models[0]), model_marker(models[1])} < markers and len(markers) == 3
    heights = [float(line.get_ydata()[0]) for line in filled]
    assert len(set(heights)) == len(heights) and min(b - a for a, b in zip(sorted(heights), sorted(heights)[1:])) > 0.04
    plt.close(fig)
