"Descriptor of My Paper. It names code by references, so that listing papers imports none of it."

from pathlib import Path

from treekit.papers import Paper

HERE = Path(__file__).parent

PAPER = Paper(
    name="mypaper",
    label="My Paper",
    title="My Paper",
    code="mypaper",
    data=HERE / "data",
    notebooks=HERE / "notebooks",
    tree="two searches, one after the other",
    methods={"mypaper.method:METHODS": ("My Paper", "My Paper w/o second search")},
    short_names={"mypaper": "My Paper"},
    settings=("top_k", "second"),
    prompts=("mypaper.prompts:PROMPTS",),
    requires=("index",),
    bibtex="""\
@misc{mypaper,
  title  = {My Paper},
  author = {{Its authors}}
}""",
)
