"Reproducibility reports of the papers: pages are what the tables give, LaTeX is well formed, statements are counted."

import re
from pathlib import Path

import pytest

from treekit.papers import plugin
from treekit.papers.plugin import Paper, get_paper, papers
from treekit.reports.paper_report import EXPERIENCE, FORMATS, counted_rows, paper_report, render_report

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = ROOT / "figures" / "offline"
NAMES = [p.name for p in papers()]
SECTIONS = (
    "Scope of reproducibility",
    "Claims tested",
    "Results",
    "What was easy",
    "What was difficult",
    "Deviations from the paper",
    "Compute",
    "Errata",
)


def structure(latex):
    "What is wrong with a LaTeX document: environments, braces, marks that are not escaped, rows with another number of cells."
    wrong, open_ = [], []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", latex):
        if kind == "begin":
            open_.append(name)
        elif not open_ or open_.pop() != name:
            wrong.append(f"end of {name}")
    wrong += [f"{name} is open" for name in open_]
    plain = re.sub(r"(?<!\\)((?:\\\\)*)\\[{}]", r"\1", latex.replace(r"\\", "\0"))
    if plain.count("{") != plain.count("}"):
        wrong.append("braces")
    body = latex.partition(r"\begin{document}")[2]
    marks = re.compile(r"(?<!\\)[#_%^~<>|]")
    wrong += [f"{m[0]!r} in {line[:60]!r}" for line in body.splitlines() if (m := marks.search(line))]
    for table in re.findall(r"\\begin\{longtable\}(.*?)\\end\{longtable\}", latex, re.S):
        columns = table.splitlines()[0].count("P{")
        rows = [line for line in table.splitlines()[1:] if line.endswith(r"\\")]
        wrong += [line[:60] for line in rows if len(re.findall(r"(?<!\\)&", line)) != columns - 1]
    return wrong


@pytest.mark.parametrize("paper", NAMES)
def test_committed_reports_are_what_the_tables_give(paper):
    report = paper_report(paper, OFFLINE)
    made = {ending: render_report(report, ending) for ending in FORMATS}
    for ending in ("md", "tex"):
        assert (OFFLINE / paper / f"report.{ending}").read_text(encoding="utf-8") == made[ending]
    assert structure(made["tex"]) == []
    for section in SECTIONS:
        assert (
            f"\n## {section}\n" in made["md"]
            and f"<h2>{section}</h2>" in made["html"]
            and rf"\section{{{section}}}" in made["tex"]
        )
    assert report.easy and report.difficult and report.errata.rows and report.compute.rows


@pytest.mark.parametrize("paper", NAMES)
def test_every_written_statement_is_counted(paper):
    known = get_paper(paper)
    lines = known.rows(EXPERIENCE)
    assert lines and all("{n}" in line["statement"] for line in lines)
    assert [line["statement"] for line in lines if not counted_rows(line, known, OFFLINE)] == []


def bare_paper(tmp_path, monkeypatch, **files):
    "A registered paper with a data folder of these files."
    for name, text in (dict(inventory="artefact,kind,title\ntable1,table,A table\n") | files).items():
        path = tmp_path / f"{name.replace('__', '/')}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    paper = Paper("bare", "Bare & co", tmp_path, bibtex="@misc{bare,\n  title = {50 % of <it>}\n}")
    known, broken = plugin._discovered()
    monkeypatch.setattr(plugin, "_discovered", lambda: (known | {"bare": paper}, broken))
    return paper


def test_a_paper_of_somebody_else_has_a_report(tmp_path, monkeypatch):
    "Without claims, costs, errata and a run."
    bare_paper(tmp_path, monkeypatch)
    made = {ending: render_report(paper_report("bare", tmp_path / "figures"), ending) for ending in FORMATS}
    assert "No claim was judged." in made["md"] and "Nothing is recorded." in made["md"]
    assert "50 % of &lt;it&gt;" in made["html"] and r"Bare \& co" in made["tex"] and structure(made["tex"]) == []
