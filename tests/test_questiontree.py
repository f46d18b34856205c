"Tree-of-Question's artefacts that look into the code, and its pages."

import json
from pathlib import Path

import pytest

from commands import run_notebook

ROOT = Path(__file__).resolve().parents[1]


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
