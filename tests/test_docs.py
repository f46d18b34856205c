"""The documentation: every setting and command is in it, tutorials work as written, a number leads to its questions, built pages have no
dead link and need no network."""
import csv, json, re
from dataclasses import fields
from pathlib import Path

import click
import pytest

import tutorials
from commands import inside
from treekit.cli.main import main
from treekit.config import Profile, UsageError
from treekit.docs.command_reference import command_pages, command_tree
from treekit.docs.markdown import md_text
from treekit.docs.notebook_pages import staged_notebook
from treekit.docs.result_pages import result_pages, results_index, table_markdown
from treekit.docs.settings_reference import all_settings, parameters_page, profile_values, settings_page
from treekit.docs.tables import artefacts_of

ROOT = Path(__file__).resolve().parents[1]
PROSE = sorted((ROOT / "nbs" / "docs").rglob("*.md"))


# --- generated reference, compared with the code
def test_every_setting_is_documented():
    page, found = settings_page(), all_settings()
    assert [s.name for s in found] == [f.name for f in fields(Profile) if f.name != "name"]
    assert [s.name for s in found if not s.meaning.strip()] == []
    assert [s.name for s in found if f"### `{s.name}`\n" not in page] == []
    for name, own in profile_values().items(): assert f"| {name} |" in page and all(f"`{value}`" in page for value in own.values() if value)


def test_a_setting_without_a_comment_is_noticed(monkeypatch):
    from treekit.docs import settings_reference
    monkeypatch.setattr(settings_reference, "ini_comments", lambda path: {})
    monkeypatch.setattr(settings_reference, "field_comments", lambda module, name: {})
    with pytest.raises(KeyError): all_settings()


def test_every_command_and_option_is_documented():
    pages = command_pages(main)
    for words, command, _ in command_tree(main):
        page = pages[words[0]]
        assert f"# `treekit {' '.join(words)}`\n" in page, words
        own = [o for p in command.params if isinstance(p, click.Option) and not p.hidden for o in p.opts if o != "--help"]
        assert [o for o in own if o not in page] == [], words
        assert f"({words[0]}.md)" in pages["index"]
    index = (ROOT / "nbs" / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert {m for m in re.findall(r"commands/(\w+)\.md", index)} - {"index"} == set(pages) - {"index"}


def test_every_method_has_its_parameters():
    page = parameters_page()
    for method in ("TreeRare", "TreeOfQuestion", "ARISE", "SearchR", "RDR2", "ReAct"): assert f"## {method}\n" in page


def test_commands_in_the_prose_exist():
    "Every `treekit WORD` of a code block is a command, and every option that follows it is one of its options."
    known = {words: {o for p in command.params for o in p.opts} | {"--help"} for words, command, _ in command_tree(main)}
    wrong = []
    for page in PROSE:
        for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for line in re.findall(r"treekit ((?:[a-z][\w-]*)[^#\n|&;]*)", block):
                words = line.split()
                name = next((tuple(words[:k]) for k in (2, 1) if tuple(words[:k]) in known), None)
                if name is None: wrong.append((page.name, line))
                else: wrong += [(page.name, line, o) for o in re.findall(r"(?<=\s)--[a-z][\w-]*", line) if o not in known[name]]
    assert wrong == []


def test_settings_in_the_prose_exist():
    "Every `--set NAME=` of the prose is a setting or a field of a method."
    of_methods = set(re.findall(r"^\| `(\w+)` \|", parameters_page(), re.M))
    known = {s.name for s in all_settings()} | of_methods | {"NAME", "FIELD"}
    used = {name for page in PROSE for name in re.findall(r"--set \"?(\w+)=", page.read_text(encoding="utf-8"))}
    assert used - known == set()


# --- pages from results and notebooks
def test_a_result_page_has_the_table_the_figure_the_command_and_claims(tmp_path):
    folder = ROOT / "figures" / "offline"
    artefacts = [a for a in artefacts_of(folder) if a.there]
    pages, index = result_pages(artefacts, folder), results_index(artefacts, folder)
    assert set(pages) == {f"{a.paper}/{a.name}" for a in artefacts} and len(pages) > 100
    first = next(a for a in artefacts if (a.paper, a.name) == ("treerare", "table1"))
    page = pages["treerare/table1"]
    [row] = re.findall(r"^\| simulated \(offline\) \| ReAct \|.*$", (folder / "treerare/table1.md").read_text(encoding="utf-8"), re.M)
    assert row in page and "treekit reproduce treerare/table1" in page and f"({first.pictures[0].name})" in page and "table1.csv" in page
    assert all(f"({a.paper}/{a.name}.md)" in index for a in artefacts)
    assert "compared with none of the paper's" in page and "## Claims of the paper about it" not in page


def test_every_erratum_has_its_computation():
    folder = ROOT / "figures" / "offline"
    artefacts = [a for a in artefacts_of(folder) if a.name == "inconsistencies"]
    pages = result_pages(artefacts, folder)
    assert len(artefacts) == 5
    for artefact in artefacts:
        page = pages[f"{artefact.paper}/inconsistencies"]
        assert "Without a computation" not in page and page.count(":::{dropdown} The computation") > 3
        for line in artefact.sheets[0].lines: assert md_text(line["claim"]) in page


def test_a_models_words_are_data(tmp_path):
    "Texts of a table are escaped in its page."
    said = md_text("a\n```{include} /x\n```\n:::{include} /x")
    assert [line for line in said.split("\n") if line.startswith(("```", ":::"))] == []
    evil = '</script><script>alert(1)</script><img src=x onerror="alert(2)"> [x](javascript:alert(3))'
    lines = list(csv.DictReader((ROOT / "figures/offline/searchr/prompts.csv").read_text(encoding="utf-8").splitlines()))[:3]
    (tmp_path / "offline/searchr").mkdir(parents=True)
    with open(tmp_path / "offline/searchr/prompts.csv", "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, lines[0], lineterminator="\n")
        out.writeheader()
        out.writerows(dict.fromkeys(lines[0], evil) for _ in lines)
    [artefact] = [a for a in artefacts_of(tmp_path / "offline") if a.there]
    page = result_pages([artefact], tmp_path / "offline")["searchr/prompts"]
    assert r"\<script\>" in page and "<script" not in page.replace(r"\<script", "") and "[x](" not in page


@pytest.mark.slow
def test_questions_and_trees_of_a_saved_run(tmp_path, monkeypatch):
    "A table that was made here: its cells have questions, answers and trees; a run with other answers isn't taken for it."
    from treekit.docs.build import Staged, stage_results
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    words = "reproduce", "treerare/table3", "--n", "3", "--out", str(tmp_path / "figures" / "mine")
    code, _, errors = inside(*words, TREEKIT_HOME=str(tmp_path / "home"))
    assert code == 0, errors
    staged = Staged()
    assert "treerare/table3" in stage_results(staged, tmp_path / "figures", trees=1)
    page, table = (staged.files[f"results/treerare/table3{part}.md"].decode() for part in ("_questions", ""))
    assert "treekit reproduce treerare/table3 --n 3 --out figures/mine" in table and "run on: " in table and "table3_questions.md" in table
    [tree] = [name for name in staged.files if name.startswith("_extra/trees/")]
    assert f'<a href="../../trees/{Path(tree).name}#row=' in page and "Answers and trees are those of the saved run" in page
    path = tmp_path / "figures/mine/treerare/table3_scores.jsonl"
    first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if "scores" in line: line["scores"] = [[k, [1 - v for v in own]] for k, own in line["scores"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in [first, *lines]), encoding="utf-8")
    other = Staged()
    stage_results(other, tmp_path / "figures", trees=1)
    assert "No saved run with these scores" in other.files["results/treerare/table3_questions.md"].decode()
    assert not any(name.startswith("_extra/") for name in other.files)


def test_a_hostile_notebook_and_table_stay_text(tmp_path):
    book = dict(nbformat=4, nbformat_minor=5, metadata={}, cells=[
        dict(cell_type="markdown", source="# a_b\n\n> Words\n\n[x](../../../etc/passwd) ![y](secret.png)\n\n```mermaid\nx <script>\n```"),
        dict(cell_type="code", source="1", outputs=[
            dict(output_type="display_data", data={"text/html": "<script>", "text/plain": "plain"})])])
    made = json.dumps(staged_notebook(book, "03_core/x.ipynb", set(), set(), set()))
    assert "passwd)" not in made and "<script>" not in made.replace("x <script>", "") and "```text" in made and "text/html" not in made
    path = tmp_path / "t.md"
    path.write_text("# T\n\n[a](../../x.csv)\n<img src=x onerror=alert(1)>\n", encoding="utf-8")
    assert table_markdown(path, 3).split() == ["a"]


# --- tutorials
def test_expected_outputs_are_compared():
    page = "```console\n$ a\none … three\n…\nlast 3.5 s\n$ b\n```\n<!-- run\nhidden\n-->\n"
    assert [(c, e) for c, e, _ in tutorials.steps(page)] == [("a", "one … three\n…\nlast 3.5 s\n"), ("b", ""), ("hidden", None)]
    shown = tutorials.pattern("one … three\n…\nlast 3.5 s\n")
    assert shown.fullmatch("one two three\nx\ny\nlast 12.25 s\n") and not shown.fullmatch("one two three\nlast\n")
    assert not tutorials.pattern("5 calls\n").fullmatch("6 calls\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", tutorials.NAMES)
def test_a_tutorial_works_as_written(name, tmp_path):
    from openai_server import Server
    (folder := tmp_path / "work").mkdir()
    with Server() as server: made = tutorials.run(name, folder, MOCK_ENDPOINT=server.url)
    assert tutorials.differences(made) == []


# --- built pages
@pytest.mark.slow
def test_the_documentation_is_built_without_warnings_and_without_a_network(tmp_path, monkeypatch):
    "Pages are two clicks away at most, no link is dead, nothing is loaded from elsewhere, and the index has whole words."
    pytest.importorskip("myst_nb", reason="treekit-rag[docs] isn't installed")
    pytest.importorskip("pydata_sphinx_theme", reason="treekit-rag[docs] isn't installed")
    import socket
    from treekit.docs.build import build
    def refused(self, address): raise OSError("no network in this test")
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    built = build(tmp_path / "docs", main, jobs=1)
    assert built.problems == [] and built.pages > 900
    index = json.loads((tmp_path / "docs" / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(").rstrip(";)"))
    names = index["docnames"]
    for word, page in (("uct", "explanation/arise"), ("rout", "explanation/rdr2"), ("budget", "howto/budget")):
        found = index["terms"].get(word, [])
        assert names.index(page) in (found if isinstance(found, list) else [found]), word


def test_a_folder_with_other_content_is_not_replaced(tmp_path):
    from treekit.docs import build
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "searchindex.js").write_text("", encoding="utf-8")  # the output of another project's Sphinx
    with pytest.raises(UsageError, match="other content"): build._check_out(tmp_path)
    with pytest.raises(UsageError, match="no results"): build.result_folders(tmp_path)
    code, _, errors = inside("docs", "--figures", "nowhere-at-all")
    assert code == 2 and "no folder at" in errors
