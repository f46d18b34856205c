"The notebooks of the papers follow one template: the page of a paper (index.ipynb), and its algorithm (method.ipynb)."

import json, re
from pathlib import Path

import nbformat
import pytest

from commands import run_notebook
from test_front_door import printed
from treekit.papers.plugin import papers

ROOT = Path(__file__).parent.parent
HEADINGS = ["One question", "Sections of the paper", "Cost", "Paper and code", "Pitfalls", "Exercises"]
FENCES = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
DETAILS = re.compile(r"<details>.*?</details>", re.S)
REMARKS = re.compile(r"^\*\*(?:Where the paper|The code differs)", re.M)


def own_papers():
    "The five papers of this repository; plug-ins and the comparison of papers have other notebooks."
    return [p for p in papers() if p.code.startswith("treekit.")]


def cells_of(paper, name):
    "Cells of a notebook in the paper's folder: index.ipynb, or the one that exports its module `method`."
    folder = paper.text("index").parent
    if name == "index":
        return json.loads((folder / "index.ipynb").read_text(encoding="utf-8"))["cells"]
    exports = f"#| default_exp {paper.code.removeprefix('treekit.')}.{name}\n"
    for path in sorted(folder.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        if any("".join(c["source"]) + "\n" == exports for c in cells if c["cell_type"] == "code"):
            return cells
    raise FileNotFoundError(f"no notebook in {folder} exports {name}")


def markdown(cells):
    return FENCES.sub("", "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown"))


def sections(cells):
    "Level-2 heading -> its cells; a heading inside a cell begins with the text that follows it."
    found, here = {}, None
    for c in cells:
        source = "".join(c["source"])
        if c["cell_type"] != "markdown":
            if here is not None:
                found[here].append(c)
            continue
        for part in re.split(r"^(?=## )", FENCES.sub("", source), flags=re.M):
            if heading := re.match(r"## +(.+)", part):
                here = heading[1].strip()
            if here is not None:
                found.setdefault(here, []).append(c | dict(source=part))
    return found


def template_faults(cells, folder):
    "Differences of a paper's page from the template."
    parts, faults = sections(cells), []
    if list(parts) != HEADINGS:
        faults.append(f"level-2 headings {list(parts)}")
    title = re.match(r"# \S.*\n+> \S.*(?:\n>.*)*\n+(\S[\s\S]*)", "".join(cells[0]["source"]))
    if not title:
        faults.append("the first cell has no title, quoted summary and paragraph")
    elif not re.search(r"\]\(https?://", title[1].split("\n## ")[0]):
        faults.append("the first paragraph has no link to the paper")
    shown = parts.get("One question", [])
    images = re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", markdown(shown))
    if not images:
        faults.append("One question: no image")
    faults += [f"One question: {link} does not exist" for link in images if not (folder / link).is_file()]
    ran = [c for c in shown if c["cell_type"] == "code" and c["outputs"]]
    if not ran:
        faults.append("One question: no code cell with a committed output")
    if "|---" not in markdown(parts.get("Cost", [])):
        faults.append("Cost: no table")
    code = ["".join(c["source"]) for c in parts.get("Cost", []) if c["cell_type"] == "code"]
    if not any("assert" in c and "usage" in c for c in code):
        faults.append("Cost: no code cell asserts the usage")
    if "choices, line by line" not in markdown(parts.get("Paper and code", [])):
        faults.append("Paper and code: no link to the page of choices")
    for name in ("Paper and code", "Exercises"):
        text = markdown(parts.get(name, []))
        if text.count("<details>") != len(DETAILS.findall(text)):
            faults.append(f"{name}: an unclosed <details>")
        if re.search(r"</summary>[ \t]*\n[ \t]*\S", text):
            faults.append(f"{name}: no blank line after a </summary>")
    hints = re.findall(r"<summary>\s*Hint", markdown(parts.get("Exercises", [])))
    if len(hints) < 3:
        faults.append(f"Exercises: {len(hints)} hints")
    return faults


@pytest.mark.parametrize("paper", own_papers(), ids=lambda p: p.name)
def test_a_papers_page_follows_the_template(paper):
    assert template_faults(cells_of(paper, "index"), paper.text("index").parent) == []


@pytest.mark.parametrize("paper", own_papers(), ids=lambda p: p.name)
def test_a_method_begins_with_a_worked_example(paper):
    cells = cells_of(paper, "method")
    assert next(iter(sections(cells)), "none") == "A worked example"
    assert REMARKS.findall(DETAILS.sub("", markdown(cells))) == []  # differences between paper and code are collapsed


SHOWN = [p for folder in ("17_papers/[1-6]*", "12_baselines") for p in sorted((ROOT / "nbs").glob(f"{folder}/*.ipynb"))]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [p for p in SHOWN if '"outputs": [\n' in p.read_text()], ids=lambda p: p.stem)
def test_a_page_shows_what_its_notebook_prints(notebook):
    "The documentation has the committed outputs: none of them is stale. Pictures and progress lines aren't compared."
    nb = nbformat.read(notebook, 4)
    before = [shown(c) for c in nb.cells]
    run_notebook(nb, notebook.parent)
    for cell, said in zip(nb.cells, before):
        assert shown(cell) == said or not said, cell.source


def shown(cell):
    return "".join(text for text in printed(cell) if text and not re.match(r"<Figure|[^\n]*it/s\]", text))
