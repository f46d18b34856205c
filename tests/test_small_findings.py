"Headers, labels and notes that say what ran; files and prose that are named and there; one answer to who scores a text."

import ast, re
from pathlib import Path


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
