"LaTeX tables of a run, compiled by LaTeX itself."

import re, shutil, subprocess
from pathlib import Path

import pytest
from test_exports import NASTY

from treekit.exports.latex import tex, write_latex
from treekit.exports.rows import table_rows

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
    assert names == ["treerare-table1.tex", "x.tex", "tables.tex", "treekit.bib"]
    text = (tmp_path / names[0]).read_text()
    for cell in table_rows("treerare/table1", ROOT / "figures/offline"):
        if cell["published"] is not None:
            assert f"({cell['published']:.3f})" in text
        if cell["value"] is not None:
            assert f"{cell['value']:.3f}" in text
    columns = text.split("{tabular}{l")[1].split("}")[0].count("r")
    for line in text.splitlines():  # as many cells in each line
        if line.endswith(r"\\") and "multicolumn" not in line:
            assert line.count(" & ") == columns
    own = (tmp_path / "x.tex").read_text(encoding="utf-8")
    assert r"\input" not in own and "한국" in own and own.startswith("% There is Korean in it") and "U+202E" in own
    assert r"\codepoint{AD6D}" in (tmp_path / "tables.tex").read_text(encoding="utf-8")
    assert tex("{}\\$&#%_^~") and not re.search(r"(?<!\\)[$&#%_]", tex("$&#%_"))


@pytest.mark.parametrize(
    "engine, kotex",
    [
        ("pdflatex", True),
        ("pdflatex", False),
        ("lualatex", True),
        ("lualatex", False),
        ("xelatex", True),
        ("xelatex", False),
    ],
)
def test_latex_and_bibtex_run(tmp_path, engine, kotex):
    "With Korean in a table: as Korean where kotex is there, as code points where it isn't."
    if not (shutil.which(engine) and shutil.which("bibtex")):
        pytest.skip(f"no {engine} here")
    needed = [*(["kotex.sty"] if kotex else []), *(["luaotfload.sty"] if engine == "lualatex" else [])]
    lacks = [n for n in needed if subprocess.run(["kpsewhich", n], capture_output=True).returncode]
    if lacks:
        pytest.skip(f"no {lacks[0]} here")
    write_latex(tmp_path, latex_tables())
    if not kotex:  # as on a machine that hasn't it
        text = (tmp_path / "tables.tex").read_text(encoding="utf-8")
        (tmp_path / "tables.tex").write_text(text.replace("kotex.sty", "not-there.sty"), encoding="utf-8")

    def ran(*words):
        return subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=300)

    latex = engine, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "tables.tex"
    for words in (latex, ("bibtex", "tables"), latex, latex):
        done = ran(*words)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "tables.log").read_text(errors="replace")
    assert (
        (tmp_path / "tables.pdf").read_bytes()[:5] == b"%PDF-"
        and "undefined" not in log.lower()
        and "Missing character" not in log
    )
    assert (tmp_path / "tables.bbl").read_text().count(r"\bibitem") == 6
    if shutil.which("pdftotext"):
        said = subprocess.run(["pdftotext", "tables.pdf", "-"], cwd=tmp_path, capture_output=True, text=True).stdout
        assert "한국" in said if kotex else "U+D55C" in said
