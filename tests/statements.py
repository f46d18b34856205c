"Statements of Python (`ast.stmt`, which no layout changes) by package: python tests/statements.py"

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def statements(folder: str) -> Counter:
    "Package -> statements of a folder's files, without what is generated."
    counts = Counter()
    for path in sorted((ROOT / folder).rglob("*.py")):
        if path.name != "_modidx.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            inner = path.relative_to(ROOT).parts[:-1]
            counts["/".join(inner[:3])] += sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
    return counts


if __name__ == "__main__":
    for folder in ("treekit", "tests"):
        counts = statements(folder)
        print(f"{counts.total():7,} {folder}", *(f"{n:9,} {name}" for name, n in counts.most_common()), sep="\n")
