"Traces as text, HTML and figures: nothing overlaps, nothing is executed, the same trace gives the same bytes."

import random, re
from collections import namedtuple

import pytest

from treekit.core.trace_render import show_tree, tree_html
from treekit.figures.trees import draw_beside, draw_tree
from treekit.core.method import Trace

WORDS = (
    "mill harbour grey director 1921 of the Prince $x^ \\frac{a}{b} <b> & "
    "Unterwasserarchäologiemuseumsdirektorenkonferenzsaal a".split()
)


MORE_SEEDS = [pytest.param(dict(seed=i), marks=pytest.mark.slow) for i in (1, 2, 3)]


def tree(seed=0, nodes=9, words=30, chain=False, answer=True):
    "A random tree with texts of up to `words` words."
    rng, trace = random.Random(seed), Trace()

    def text(most):
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    for i in range(nodes):
        parent = None if i == 0 else trace.nodes[-1] if chain else rng.choice(trace.nodes)
        trace.add(
            "phrase",
            text(words),
            parent,
            type=rng.choice(["NP", "nmod:poss", "root"]),
            queries=[text(words) for _ in range(rng.randint(0, 3))],
            evidence=text(2 * words),
            hits=[dict(id=f"p{j}", title=text(6), score=1.0) for j in range(rng.randint(0, 9))],
        )
    if answer:
        trace.add("answer", text(words), explanation=text(3 * words))
    return trace


Extent = namedtuple(
    "Extent", "x0 x1 ymin ymax"
)  # each is compared with all others: reading a Bbox's corners takes longer


def boxes(fig):
    "Extents of the drawn boxes and of the texts, in points."
    fig.draw_without_rendering()
    scale, renderer = 72 / fig.dpi, fig.canvas.get_renderer()
    [ax] = fig.axes
    points = ax.transData.inverted()

    def extent(drawn):
        b = drawn.get_window_extent(renderer).transformed(points)
        return Extent(float(b.x0), float(b.x1), float(b.ymin), float(b.ymax))

    return [extent(p) for p in ax.patches if type(p).__name__ == "FancyBboxPatch"], [
        extent(t) for t in ax.texts if t.get_text()
    ]


def overlap(a, b, slack=0.5):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > slack and min(a.ymax, b.ymax) - max(a.ymin, b.ymin) > slack


def apart(fig):
    "The drawn boxes, none over another and all on the page; the texts; the page's width and height in points."
    frames, texts = boxes(fig)
    width, height = fig.get_size_inches() * 72
    for i, a in enumerate(frames):
        assert a.x0 >= 0 and a.ymin >= 0 and a.x1 <= width and a.ymax <= height
        for b in frames[i + 1 :]:
            assert not overlap(a, b)
    return frames, texts, width, height


def steps(seed=0, n=8, words=40):
    "A chain of steps and an answer, as ReAct leaves it."
    rng, trace, node = random.Random(seed), Trace(), None

    def text(most):
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    for i in range(n):
        node = trace.add(
            "step",
            f"Search[{text(6)}]",
            node,
            action="Search",
            thought=text(words),
            observation=text(2 * words),
            hits=[],
        )
    trace.add("answer", text(words), node)
    return trace


def beside(trace):
    return draw_beside({"TreeRare": trace, "ReAct": steps(len(trace.nodes))})


def from_above(trace):
    return draw_tree(trace, top_down=True)


@pytest.mark.parametrize("draw", [draw_tree, from_above, beside])
@pytest.mark.parametrize(
    "shape",
    [
        dict(seed=0),
        *MORE_SEEDS,
        dict(nodes=1),
        dict(words=200, nodes=4),
        *(
            pytest.param(shape, marks=pytest.mark.long)
            for shape in (dict(nodes=12, chain=True), dict(nodes=30, words=8))
        ),
    ],
)
def test_nothing_overlaps_and_everything_is_on_the_page(draw, shape):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig = draw(tree(**shape))
    frames, texts, width, height = apart(fig)
    for i, t in enumerate(texts):
        assert t.x0 >= -0.5 and t.x1 <= width + 0.5
        holding = [f for f in frames if overlap(f, t)]
        assert len(holding) <= 1 and all(
            f.x0 <= t.x0 + 0.5 and t.x1 <= f.x1 + 0.5 and f.ymin <= t.ymin + 1 and t.ymax <= f.ymax + 1 for f in holding
        )
    plt.close(fig)


def test_models_words_are_data():
    trace = Trace()
    trace.add(
        "phrase",
        "\x1b[2Jx\x07<img src=x onerror=alert(1)>",
        type="<b>",
        queries=["</details><script>1</script>"],
        evidence="$\\undefined{",
        hits=[dict(id="\"'><i>", title="", score=1.0)],
    )
    trace.notes.append("<u>note</u>")
    page, text = tree_html(trace), show_tree(trace)
    assert not re.search(r"<(script|img|i|u|b)\b", page) and page.count("<details") == page.count("</details>") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text) and "note" in text
    draw_tree(trace).canvas.draw()  # a '$' starts no formula


def test_a_picture_that_shows_the_same_stays_as_it_is(tmp_path):
    "A difference of rounding, which nobody sees, changes no committed file; another one does."
    import matplotlib.pyplot as plt
    import numpy as np
    from PIL import Image, PngImagePlugin
    from treekit.figures.plots import save_figure

    def saved():
        return save_figure(plt.figure(figsize=(1, 1)), tmp_path, "figure", title="", ran="")[0]

    def change(by):
        with Image.open(path := saved()) as image:
            pixels, texts = np.array(image.convert("RGB")), dict(image.text)
        pixels[9, 9] -= by
        info = PngImagePlugin.PngInfo()
        for key, value in texts.items():
            info.add_itxt(key, value)
        Image.fromarray(pixels).quantize(256).save(path, pnginfo=info)
        return path.read_bytes()

    first = saved().read_bytes()
    assert change(17) == saved().read_bytes() != first
    assert change(60) != saved().read_bytes() == first
