"The front door: at most twenty names, loaded when used, documented by examples that run, and enough for every exploration."

import ast, doctest, json, re, subprocess, sys
from pathlib import Path

import nbformat
import pytest
from commands import run_notebook

import treekit
from treekit.config import UsageError
from treekit.experiments.run_records import RunRecord

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("numpy", "pandas", "scipy", "matplotlib", "torch", "click", "asyncio", "sqlite3")


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory):
    "A work folder for the module: what one test asked, the next one reads."
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEKIT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def questions(_home):
    return treekit.load("hotpotqa", n=4, data="synthetic:100")


@pytest.fixture(scope="module")
def ran(questions):
    return treekit.run(["vanilla", "treerare"], questions)


def test_at_most_twenty_names():
    assert len(treekit.__all__) <= 20 and set(treekit.__all__) <= set(dir(treekit))
    assert [n for n in treekit.__all__ if getattr(treekit, n).__doc__ is None] == []
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        treekit.laod  # noqa: B018


def test_the_import_loads_nothing_else():
    code = f"import sys; import treekit; print(*[m for m in sys.modules if m.startswith('treekit.') or m in {HEAVY}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


RUNS = ("run", "ask", "explore", "Run", "ablate", "Study", "table")  # names whose examples answer questions


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n in RUNS)) for n in treekit.__all__])
def test_the_examples_of_a_name_run(name):
    thing = getattr(treekit, name)
    own = [t for t in doctest.DocTestFinder().find(thing, name, globs={}) if t.examples]
    assert own and own[0].name == name, f"{name} has no example"
    flags = doctest.IGNORE_EXCEPTION_DETAIL
    assert [t.name for t in own if doctest.DocTestRunner(optionflags=flags).run(t).failed] == []


def imported(notebook):
    "Modules of treekit that a notebook imports."
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    for node in ast.walk(ast.parse(re.sub(r"^[%!].*$", "", code, flags=re.M))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "treekit")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "treekit":
            yield node.module


def printed(cell):
    "What a cell has printed and shown, as text."
    outputs = cell.get("outputs", ())
    shown = [o.get("data", {}) for o in outputs]
    return [o.get("text") or d.get("text/html") or d.get("text/plain") for o, d in zip(outputs, shown)]


def test_an_exploration_shows_what_it_found():
    "Each cell that shows something, but pages and widgets, has its output committed."
    for notebook in EXPLORE:
        nb = nbformat.read(notebook, 4)
        code = [
            c
            for c in nb.cells
            if c.cell_type == "code" and not re.search(r"\.explore\(|^#\| hide|\.annotate\(", c.source)
        ]
        assert notebook.stem in ("annotate", "rate") or any(c.outputs for c in code), notebook.stem


EXPLORE = sorted((ROOT / "nbs" / "explore").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", EXPLORE, ids=lambda path: path.stem)
def test_an_exploration_imports_from_treekit_alone(notebook):
    assert set(imported(notebook)) == {"treekit"}


@pytest.mark.slow
@pytest.mark.parametrize("notebook", EXPLORE, ids=lambda path: path.stem)
def test_an_exploration_runs_from_top_to_bottom(notebook, tmp_path):
    "As a reader runs it; what the committed notebook shows is not stale."
    nb = nbformat.read(notebook, 4)
    before = [printed(c) for c in nb.cells]
    run_notebook(nb, notebook.parent if any(before) else tmp_path)  # the others write files
    for cell, said in zip(nb.cells, before):
        assert printed(cell) == said or not said, cell.source
    shown = json.dumps([c.get("outputs") for c in nb.cells])
    assert "treekit explorer" in shown or ".explore(" not in "".join(c.source for c in nb.cells)


# --- three lines each
def test_a_sweep_its_tests_and_its_file(questions, tmp_path):
    study = treekit.ablate("treerare", questions, top_k=[1, 3, 15])
    assert [p.value for p in study.points] == [1, 3, 15] == list(study.table().top_k)
    tests = study.tests()
    assert len(tests) == 3 and (tests.q >= tests.p).all() and (tests.n == 4).all()
    assert list(study.table().columns[:6]) == ["top_k", "n", "mean", "low", "high", "calls"]
    [line, *_] = study.plot().lines
    assert list(line.get_xdata()) == [1, 3, 15]


@pytest.mark.parametrize(
    "fields, said",
    [
        ({}, "at least one list"),
        (dict(top_k=[]), "needs its values"),
        (dict(topk=[1, 2]), "did you mean .top_k"),
        (dict(tree=["none", "spanning"]), "value of tree"),
    ],
)
def test_a_sweep_that_makes_no_sense(questions, fields, said):
    with pytest.raises(UsageError, match=said):
        treekit.ablate("treerare", questions, **fields)


def test_a_replay_without_an_edit_is_the_same_bytes(ran):
    for i in range(len(ran)):
        again = ran.edit(i)
        assert again.is_replay_of(ran, i) and again.made.asked == 0


def test_an_edited_node_changes_what_comes_after_it(ran):
    answer = ran.edit(4, "answer", reply="FINAL: Numos")
    assert answer[0].answer == "Numos" and answer.made.asked == 0 and not answer.is_replay_of(ran, 4)
    searched = ran.edit(4, 0, query="Taphora")
    assert ran[4].trace.nodes[0].data["hits"] != searched[0].trace.nodes[0].data["hits"]
    emptied = ran.edit(4, 0, passages=[])
    assert not emptied[0].trace.nodes[0].data["hits"]
    assert "counterfactual replay of question 4" in repr(answer) and "<details" in answer._repr_html_()


@pytest.mark.parametrize(
    "words, edits, said",
    [
        ((0, "nowhere"), dict(reply="x"), "no node is named 'nowhere'; there are 0:"),
        ((0,), dict(reply="x"), "needs its node"),
        ((0, 0), {}, "nothing is edited"),
        ((4, "answer"), dict(query="x"), "searches nothing"),
    ],
)
def test_an_edit_that_can_not_be_made(ran, words, edits, said):
    with pytest.raises(UsageError, match=said):
        ran.edit(*words, **edits)


def test_a_function_of_ones_own_beside_two_papers(questions):
    def mine(question, passages):
        return passages[0].title

    r = treekit.run([mine, "treerare", "arise"], questions, retriever="bm25s")
    table = r.table().set_index("method")
    assert list(table.index) == ["mine", "TreeRare (DT)", "ARISE (ours)"] and table.failures.sum() == 0
    assert table.q.notna().tolist() == [False, True, True]
    assert "<table" in r._repr_html_() and "model simulated" in r._repr_html_()


def test_a_table_beside_the_printed_one(ran):
    cells = treekit.table("treerare/table1", ran)
    mine = cells[cells.method.eq("TreeRare (DT)") & cells.dataset.eq("HotpotQA")].iloc[0]
    assert mine.printed == 0.544 and mine.measured == ran.scores().value[1] and mine.difference is None
    with pytest.raises(UsageError, match="PAPER/TABLE"):
        treekit.table("treerare", ran)


def test_functions_of_one_name_and_file_are_not_mixed_up(questions):
    def fixed(answer):
        return lambda question, passages: answer

    answers = [treekit.run({"fixed": fixed(a)}, questions[:1])[0].answer for a in ("a", "b", "a")]
    assert answers == ["a", "b", "a"]


@pytest.mark.parametrize(
    "asked, said",
    [
        (lambda q: treekit.run("vanilla", "hotpotqa"), "questions are loaded"),
        (lambda q: treekit.run(treekit.TreeRare, q), "makes a method"),
        (lambda q: treekit.run(["vanilla", "vanilla"], q), "two methods are named"),
        (lambda q: treekit.run("vanilla", q[:0]), "has no questions"),
        (lambda q: treekit.run("vanilla", q, retreiver="bm25s"), "did you mean 'retriever'"),
        (lambda q: treekit.run("vanilla", q, model="smolm2"), "did you mean 'smollm2'"),
        (lambda q: treekit.run(lambda question: "", q), "should take question and context"),
        (lambda q: treekit.ask(" "), "the question is empty"),
        (lambda q: treekit.run("vanilla", q).edit(9), "there is none numbered 9"),
        (lambda q: treekit.table("arise/table1", treekit.run("cot", q)), "search_scope=own"),
        (lambda q: treekit.table("toq/table9", treekit.run("vanilla", q)), "did you mean"),
    ],
)
def test_wrong_words_are_one_line(questions, asked, said):
    with pytest.raises(UsageError, match=said) as raised:
        asked(questions)
    assert "\n" not in str(raised.value)


# --- where the passages are from
def test_questions_carry_their_corpus(questions):
    assert repr(questions[:2]) == "2 questions of hotpotqa (synthetic:100)"
    with pytest.raises(UsageError, match="give corpus="):
        treekit.run("vanilla", list(questions))
    kept = treekit.run("vanilla", [q for q in questions if q.hops], corpus=questions)
    assert kept.opened.kept.profile.data == "synthetic:100"
    with pytest.raises(UsageError, match="several sources"):
        treekit.run("vanilla", [questions, treekit.load("musique", n=1, data="synthetic:200")])
    with pytest.raises(UsageError, match="knows the synthetic wiki alone"):
        treekit.run("vanilla", treekit.load("hotpotqa", n=1, data="real"))


def test_passages_of_ones_own_are_there_for_a_replay(tmp_path):
    passages = [
        treekit.Passage("a", "Emma", "Emma is a novel by Jane Austen."),
        treekit.Passage("b", "Persuasion", "A novel."),
    ]
    asked = [treekit.Question("q", "mine", "Which novel is by Jane Austen?", answers=("Emma",))]

    def first(question, passages):
        return passages[0].title

    r = treekit.run(first, asked, corpus=passages)
    assert r[0].answer == "Emma" and r.edit(0).is_replay_of(r, 0)
    assert (
        isinstance(r.opened.kept, RunRecord)
        and len(treekit.ablate("vanilla", asked, corpus=passages, top_k=[1, 2]).runs) == 2
    )
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(vars(p)) + "\n" for p in passages))
    assert treekit.ask("Which novel is by Jane Austen?", first, corpus=tmp_path / "p.jsonl")[0].answer == "Emma"


def test_text_of_a_model_is_escaped(ran):
    shown = ran.edit(4, "answer", reply="FINAL: <script>alert(1)</script>")
    assert "<script>" not in shown._repr_html_() and "&lt;script&gt;" in shown._repr_html_()
