"""Statements of Python (`ast.stmt`, which no layout changes) by package: python tests/statements.py

Of notebooks those of the code cells, without the cell of parameters."""

import ast, json
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def code_of(path: Path) -> str:
    "Python of a module, or of a notebook without its parameters."
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = (c for c in json.loads(text)["cells"] if c["cell_type"] == "code")
    return "\n".join("".join(c["source"]) for c in cells if "parameters" not in c["metadata"].get("tags", ()))


def statements(folder: str) -> Counter:
    "Package -> statements of a folder's modules, without what is generated; of `nbs/reproduce` of the notebooks."
    counts = Counter()
    for path in sorted((ROOT / folder).rglob("*.ipynb" if folder == "nbs/reproduce" else "*.py")):
        if path.name != "_modidx.py":
            inner = path.relative_to(ROOT).parts[:-1]
            counts["/".join(inner[:3])] += sum(
                isinstance(node, ast.stmt) for node in ast.walk(ast.parse(code_of(path)))
            )
    return counts


if __name__ == "__main__":
    for folder in ("treekit", "nbs/reproduce", "tests"):
        counts = statements(folder)
        print(f"{counts.total():7,} {folder}", *(f"{n:9,} {name}" for name, n in counts.most_common()), sep="\n")
