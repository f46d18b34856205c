"Descriptor of My Paper. It names code by references, so that listing papers imports none of it."

from pathlib import Path

from treekit.papers import Paper

HERE = Path(__file__).parent

PAPER = Paper(
    name="mypaper",
    label="My Paper",
    code="mypaper",
    data=HERE / "data",
    methods={"mypaper.method:METHODS": ("My Paper", "My Paper w/o second search")},
    short_names={"mypaper": "My Paper"},
    prompts=("mypaper.prompts:PROMPTS",),
    bibtex="""\
@misc{mypaper,
  title  = {My Paper},
  author = {{Its authors}},
  annote = {two searches, one after the other}
}""",
)
