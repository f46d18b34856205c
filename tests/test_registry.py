"Names lead to methods: each name to the one that its module has under it, on the command line too."

import importlib, json, os, subprocess, sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_architecture import imports

from treekit.cli.main import main
from treekit.config import UsageError
from treekit.core.prompts import Prompt
from treekit.core.types import Question, Step
from treekit.experiments.resources import load_corpus
from treekit.experiments.prompts import known_prompts
from treekit.papers.plugin import resolve
from treekit.papers.registry import find, method, method_names, registered
from treekit.figures.verdicts import published

ROOT = Path(__file__).resolve().parents[1]
FILES = [p for p in sorted((ROOT / "treekit").rglob("*.py")) if p.name[0] != "_"]
MODULE_FILES = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in FILES}
EXAMPLES = [
    Question(f"t{i}", "demo", f"Question {i}?", (f"answer {i}",), decomposition=(Step("Who?", f"answer {i}"),))
    for i in range(3)
]


@pytest.mark.parametrize("reference", dict.fromkeys(entry.reference for entry in registered().values()))
def test_the_list_says_what_the_modules_have(reference):
    table = resolve(reference)
    made = table(EXAMPLES) if callable(table) else table
    listed = {name: entry for name, entry in registered().items() if entry.reference == reference}
    assert {entry.printed for entry in listed.values()} <= set(made) and set(made) <= set(method_names().values())
    for name, entry in listed.items():
        assert method(name, EXAMPLES) == method(entry.printed, EXAMPLES) == made[entry.printed]


def test_every_method_of_table_1_can_be_had():
    printed = {r["method"] for r in published("treerare", "table1")} - {"Rel. Impr."}
    assert printed <= set(method_names().values())


def test_a_wrong_name_gets_the_nearest():
    assert len(set(method_names())) == len(method_names()) and find("ReAct*").module == "treekit.baselines.react"
    with pytest.raises(UsageError, match="'react-star'"):
        find("react-sta")
    with pytest.raises(UsageError, match="without examples"):
        method("SC (few-shot)")


def in_a_fresh_process(code, tmp_path):
    home = dict(os.environ, TREEKIT_HOME=str(tmp_path), PYTHONPATH=str(ROOT))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=home)


def test_every_prompt_has_a_name_of_its_own():
    "`known_prompts` finds all prompts that stand in a module of the kit, private ones too, and no two have one name."
    known = known_prompts()
    for module in MODULE_FILES:
        if "Prompt(" not in MODULE_FILES[module].read_text(encoding="utf-8"):
            continue
        values = list(vars(importlib.import_module(module)).values())
        values += [v for table in values if isinstance(table, dict) for v in table.values()]
        for prompt in values:
            if isinstance(prompt, Prompt):
                assert known[prompt.name] is prompt, f"{module}: {prompt.name}"


def test_a_prompt_can_be_reworded_with_no_paper_imported(tmp_path):
    (tmp_path / "prompts.toml").write_text(
        '["toq.query.en"]\ntemplate = "$question / $exemplars"\n["outcomes.judge"]\nsystem = "Judge."\n'
    )
    code = f"""
import sys
from treekit.core.prompts import load_prompts
from treekit.experiments.prompts import known_prompts
assert not [m for m in sys.modules if m.startswith("treekit.papers.") and m != "treekit.papers.plugin"]
reworded = load_prompts({str(tmp_path / "prompts.toml")!r}, known_prompts())
print(sorted(reworded), reworded["toq.query.en"](question="Who?", exemplars="none").text)"""
    done = in_a_fresh_process(code, tmp_path)
    assert done.stdout.strip() == "['outcomes.judge', 'toq.query.en'] Who? / none", done.stderr


@pytest.mark.long
def in_import_order():
    "All modules, each after those that it imports."
    graph = {m: {o for _, o in imports(p, m) if o in MODULE_FILES and o != m} for m, p in MODULE_FILES.items()}
    return list(TopologicalSorter(graph).static_order())


@pytest.mark.slow
def test_reloading_any_module_is_harmless(tmp_path):
    "All modules are loaded twice, in the order of their imports; then a question is answered as before."
    code = f"""
import importlib, sys
modules = [importlib.import_module(m) for m in {in_import_order()!r}]
def answer():
    from treekit.config import load_profile
    from treekit.store.run_store import Store
    from treekit.core.types import Passage, Question
    from treekit.experiments.run import run
    from treekit.papers.registry import method
    pages = [Passage("a", "Velmora", "Velmora is a film by Lio Vant."), Passage("b", "Lio Vant", "Lio Vant was born in Tarn.")]
    question = Question("q", "demo", "Who directed Velmora?", ("Lio Vant",))
    profile = load_profile("offline", retriever="bm25s", n=1)
    found = run({{"m": method("react-star")}}, {{"demo": [question]}}, profile, corpora={{"demo": pages}}, store=Store(), progress=False)
    row, = found.rows
    return row.answer, row.error, row.usage.calls
before = answer()
for m in modules: importlib.reload(m)
print(before == answer(), before)"""
    done = in_a_fresh_process(code, tmp_path)
    assert done.stdout.startswith("True ('Lio Vant"), done.stdout + done.stderr


def ask(tmp_path, monkeypatch, *words):
    corpus = tmp_path / "corpus.jsonl"
    about = [
        p for p in load_corpus("hotpotqa") if p.title.startswith("Taphora")
    ]  # the simulated model knows the wiki alone
    corpus.write_text("".join(json.dumps(dict(id=p.id, title=p.title, text=p.text)) + "\n" for p in about))
    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "store.sqlite"))
    asked = [
        "ask",
        "Who wrote the novel Taphora?",
        "--passages",
        str(corpus),
        "--set",
        "retriever=bm25s",
        "--json",
        *words,
    ]
    result = CliRunner().invoke(main, asked)
    return json.loads(result.stdout) if result.exit_code == 0 else result.stderr


def test_ask_takes_any_of_them_and_their_fields(tmp_path, monkeypatch):
    got = ask(tmp_path, monkeypatch, "--method", "sc", "--set", "samples=3", "--set", "temperature=1")
    assert got["calls"] == 3 and "Talapoulos" in got["answer"]
    assert [n["kind"] for n in got["trace"]["nodes"]] == ["answer", "path", "path", "path"]
    got = ask(tmp_path, monkeypatch, "--method", "COT (few-shot)")
    assert got["calls"] == 1 and "Talapoulos" in got["answer"]
    assert "samples should be a whole number" in ask(tmp_path, monkeypatch, "--method", "sc", "--set", "samples=many")
    assert "setting of method cot" in ask(tmp_path, monkeypatch, "--method", "cot", "--set", "samples=3")
