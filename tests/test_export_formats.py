"LaTeX tables of a run."

from pathlib import Path

from test_exports import NASTY

from treekit.exports.export import write_latex
from treekit.exports.export import table_rows

ROOT = Path(__file__).resolve().parents[1]


def latex_tables():
    shown = list(table_rows("treerare/table1", ROOT / "figures/offline")) + list(
        table_rows("searchr/table1", ROOT / "figures/offline")
    )
    nasty = [
        dict(
            method=NASTY + "\\input{/etc/passwd} RDR² τ — 50 %",
            dataset="d_1",
            metric="F1 & $",
            value=0.5,
            low=0.25,
            high=1.0,
        )
    ]
    return {"treerare/table1": ("Table 1 & more", shown), "x": (NASTY, nasty)}


def test_tables_hold_every_number_and_nothing_that_is_run(tmp_path):
    names = write_latex(tmp_path, latex_tables())
    assert names == ["treerare-table1.tex", "x.tex"]
    text = (tmp_path / names[0]).read_text()
    for cell in table_rows("treerare/table1", ROOT / "figures/offline"):
        if cell["published"] is not None:
            assert f"({cell['published']:.3f})" in text
        if cell["value"] is not None:
            assert f"{cell['value']:.3f}" in text
    own = (tmp_path / "x.tex").read_text(encoding="utf-8")
    assert r"\input" not in own and "한국" in own
