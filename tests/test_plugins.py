"Papers are plug-ins: no module of the kit names one, and a paper from another package is served by all commands."
import ast, io, re, tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMES = re.compile(r"treerare|(?<![a-z])toq(?![a-z])|(?<![a-z])arise(?![a-z])|searchr(?!1)|rdr2|tree-of-question|search-r(?!1)\b", re.I)


def docstrings(source):
    "The lines of docstrings: strings that stand alone as a statement."
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= set(range(node.lineno, node.end_lineno + 1))
    return found


def hits():
    "(module, line) for each line of code outside the papers that names one; docstrings and comments may cite a paper."
    for path in sorted((ROOT / "treekit").rglob("*.py")):
        if path.name == "_modidx.py" or "papers" in path.relative_to(ROOT).parts: continue
        source = path.read_text(encoding="utf-8")
        cited, seen = docstrings(source), set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT or token.start[0] in cited or not NAMES.search(token.string): continue
            if token.start[0] not in seen: yield path.relative_to(ROOT / "treekit").as_posix(), token.line.strip()
            seen.add(token.start[0])


def test_no_module_names_a_paper():
    "Outside `papers/`."
    print(*hits(), sep="\n")
    assert [] == [*hits()]
