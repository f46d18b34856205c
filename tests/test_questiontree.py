"Trees of questions as figures: nothing overlaps, Hangul has glyphs, odd traces can be drawn; and the artefacts that look into the code."

import json, random
from pathlib import Path

import pytest

from treekit.core.method import Trace
from treekit.papers.toq.figures import draw_architecture, draw_single_and_tree, question_of, subquestions_of
from treekit.figures.plots import without_glyph

from commands import run_notebook
from test_drawing import MORE_SEEDS, apart, overlap

ROOT = Path(__file__).resolve().parents[1]
WORDS = (
    "니타니아의 도시 다메라에서 태어난 사람 가운데 가장 먼저 〈격자무늬〉 1958년 樹 harbour $x^ \\frac{a}{b} <b> & "
    "Unterwasserarchäologiemuseumsdirektorenkonferenzsaal [ANS_1]은(는) ✓ →".split()
)


def grown(seed=0, levels=3, children=3, words=12, unasked=False):
    "A trace as treekit.papers.toq.method leaves it, of random words."
    rng, trace = random.Random(seed), Trace()

    def text(most=words):
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    def judged(valid):
        return dict(
            semantic_coherence=rng.randint(1, 10),
            answerability=rng.randint(0, 100),
            overall_assessment=rng.randint(0, 40) / 4,
            response_validity=valid,
        )

    def asked():
        return dict(
            queries=[text(6)],
            hits=[dict(id=f"p{i}", title=text(4), score=1.0) for i in range(rng.randint(0, 4))],
            response=text(3 * words),
            evaluation=judged(rng.random() < 0.5),
        )

    given = [
        dict(response=text(3 * words), evaluation=judged(l == levels), level=l, positive=l == levels)
        for l in range(1, levels + 1)
    ]
    root = trace.add(
        "question",
        text(2 * words),
        level=1,
        **asked()
        | dict(
            responses=given,
            levels=[
                dict(level=g["level"], of=g["level"], response=g["response"], evaluation=g["evaluation"]) for g in given
            ],
        ),
    )

    def below(node, level):
        if level > levels:
            return
        for number in range(1, rng.randint(1, children) + 1):
            slots = text()
            skipped = unasked and number > 1
            child = trace.add(
                "sub-question",
                slots if skipped else text(),
                node,
                level=level,
                number=number,
                slots=slots,
                depends_on=[n for n in range(1, number + 2) if n != number and n <= children and rng.random() < 0.4],
                answer="" if skipped else text(4),
                **({} if skipped else asked()),
            )
            if skipped:
                child.notes.append("not asked: [ANS_1] wasn't found")
            elif rng.random() < 0.5:
                below(child, level + 1)

    below(root, 2)
    last = trace.add("response", given[-1]["response"], root, level=levels)
    trace.add("evaluation", "valid", last, **given[-1]["evaluation"])
    return trace


@pytest.mark.parametrize("draw", [draw_single_and_tree, draw_architecture])
@pytest.mark.parametrize(
    "shape",
    [
        dict(seed=0),
        *MORE_SEEDS,
        dict(levels=1),
        dict(levels=4, children=5),
        pytest.param(dict(children=9, words=4), marks=pytest.mark.long),
        dict(words=80, children=2),
        dict(unasked=True, seed=3),
    ],
)
def test_nothing_overlaps_and_everything_is_on_the_page(draw, shape):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig = draw(grown(**shape))
    _, texts, width, height = apart(fig)
    for i, t in enumerate(texts):
        assert t.x0 >= 0 and t.x1 <= width + 1 and t.ymax <= height + 1
        for other in texts[i + 1 :]:
            assert not overlap(t, other, slack=1.5)
    assert without_glyph("".join(t.get_text() for t in fig.axes[0].texts)) == ""
    plt.close(fig)


def test_what_was_asked_is_found():
    trace = grown(5, levels=2, children=4)
    root = question_of(trace)
    assert [n.data["number"] for n in subquestions_of(trace, root)] == list(
        range(1, 1 + len(subquestions_of(trace, root)))
    )


# --- artefacts


@pytest.mark.slow
@pytest.mark.parametrize("page, small", [("rate", ('"komultihop", 100,', '"komultihop", 2,')), ("toq", ("n=8", "n=9"))])
def test_the_pages_run_from_top_to_bottom(page, small, tmp_path, monkeypatch):
    import nbformat

    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "store.sqlite"))
    nb = nbformat.read(ROOT / "nbs" / "explore" / f"{page}.ipynb", 4)
    assert small[0] in "".join(c.source for c in nb.cells)
    for cell in nb.cells:
        cell.source = cell.source.replace(*small)
    run_notebook(nb, tmp_path)
    assert "widget-view" in json.dumps([c.get("outputs") for c in nb.cells]) and not (tmp_path / "votes.csv").exists()
