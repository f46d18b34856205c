"Headers, labels and notes that say what ran; files and prose that are named and there; one answer to who scores a text."

import ast, json, re
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parents[1]


def test_no_comment_points_at_prose_that_is_only_in_the_notebook():
    "An exported module has no table above it and no section below."
    prose = re.compile(r"\b(see|as|table|rules|list|section|text) (above|below)\b")
    found = []
    for path in sorted((ROOT / "treekit").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        said = [(n, line.partition("  # ")[2]) for n, line in enumerate(text.splitlines(), 1)]
        nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        said += [
            (getattr(node, "lineno", 1), ast.get_docstring(node) or "")
            for node in ast.walk(ast.parse(text))
            if isinstance(node, nodes)
        ]
        found += [f"{path.name}:{n}: {words}" for n, words in said if prose.search(words)]
    assert found == []


def notebook(name):
    return "\n".join(
        "".join(c["source"]) for c in json.loads((ROOT / f"nbs/reproduce/{name}.ipynb").read_text())["cells"]
    )


def made(name, out, **given):
    "Run an artefact's notebook as `reproduce` does; its Markdown."
    from treekit.artefacts.reproduce import reproduce_all

    [task], folder = reproduce_all((name,), out=str(out), jobs=1, **given)
    assert task.code == 0, task.error
    return folder / f"{name}.md"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["treerare/table2", "rdr2/seeds"])
def test_real_questions_end_no_artefact_with_a_traceback(name, tmp_path):
    made(name, tmp_path, data="real", n=3)
