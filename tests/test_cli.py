"The command line: teaches, says what is wrong in one line, runs notebooks, goes on after a kill, and means something by its exit codes."

import json, os, re, shutil, signal, subprocess, sys, time, tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.experiments.resources import load
from treekit.cli.main import main
from treekit.artefacts.reproduce import Task, result_folder
from commands import inside, shell, start
from openai_server import Server

ROOT = Path(__file__).resolve().parents[1]
PARAMETERS = (
    'profile = "offline"\nn = None\nseed = None\ndata = None\nout = None\nbudget = None\nsettings = {}\nquestions = 6\n'
)
BODY = """
from dataclasses import dataclass
from pathlib import Path
from treekit.papers.plugin import get_paper
from treekit.config import load_profile, root
from treekit.core.types import Passage, Question
from treekit.experiments.resources import LazyRetriever, load
from treekit.core.prompts import Prompt
from treekit.core.output_parsers import FINAL
from treekit.core.method import Prediction
from treekit.figures.tables import save_table
from treekit.figures.verdicts import compare, published
from treekit.experiments.run import run

P = load_profile(profile, n=n, seed=seed, data=data, budget=budget, **settings)
ASK = Prompt("test/cli", "answer", "Passages:\\n$documents\\n\\nQuestion: $question\\nFINAL:", FINAL)

class Shelf:
    def search(self, queries, k=15): return [[Passage("p", "Velmora", "Velmora is a film by Lio Vant.")] for q in queries]

@dataclass(frozen=True)
class Read:
    async def __call__(self, question, context):
        [hits] = await context.retrieve([question.question], 1)
        value = await context.ask(ASK, node=context.trace.add("answer", "..."), question=question.question, documents=hits)
        return Prediction(value["answer"], context.trace, context.usage)

how_many = int(questions) if n is None else n
asked = {"hotpotqa": [Question(f"q{i}", "hotpotqa", q.question, q.answers) for i, q in enumerate(load("hotpotqa", n=how_many))]}
results = run({"zero-shot": Read()}, asked, P, corpora={"hotpotqa": LazyRetriever(Shelf, "shelf", "one page")})
rows = results.score(lambda row: float(any(g in row.answer for g in row.golds)), name="COVER-EM")
df = compare(published("treerare", "table1"), rows, model=results.model, corpus=results.corpora["hotpotqa"], obstacle="a toy")
save_table(df, Path(out or root() / "figures" / P.name) / "treerare", "table1", "Table 1")
"""


def notebook(path, *cells):
    import nbformat

    nb = nbformat.v4.new_notebook(
        metadata=dict(kernelspec=dict(name="python3", display_name="python3", language="python"))
    )
    nb.cells = [nbformat.v4.new_code_cell(c) for c in cells]
    nb.cells[0].metadata["tags"] = ["parameters"]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, path)


def small_clone(home):
    "A clone with one small notebook."
    (home / "data").mkdir(parents=True)
    (home / "treekit").symlink_to(ROOT / "treekit")
    kept = ("language", "margins.toml", "papers", "prices.csv", "reply_lengths.csv", "world")
    for name in kept:
        (home / "data" / name).symlink_to(ROOT / "data" / name)
    shutil.copy(ROOT / "settings.ini", home)
    notebook(home / "nbs/reproduce/treerare/table1.ipynb", PARAMETERS, BODY)
    return home


@pytest.fixture
def clone(tmp_path):
    return small_clone(tmp_path / "clone")


def last(err):
    return [l for l in err.replace("\r", "\n").splitlines() if l.strip()][-1]


def test_help_lists_every_command_once_in_a_section_with_a_short_summary():
    shown = CliRunner().invoke(main, ["--help"]).output.partition("\nRun:")[2]
    named = re.findall(r"^  (\S+)  +(\S.*)$", shown, re.M)
    assert sorted(name for name, _ in named) == sorted(
        name for name, command in main.commands.items() if not command.hidden
    )
    assert all(len(summary) <= 45 and summary[0].isupper() for _, summary in named) and "More:" not in shown


@pytest.mark.parametrize("command", ["", *main.commands])
def test_help_teaches_by_example(command):
    result = CliRunner().invoke(main, [*filter(None, [command]), "--help"])
    assert result.exit_code == 0 and f"  treekit {command}".rstrip() in result.output


@pytest.mark.parametrize(
    "words,hint",
    [
        (["reprodce"], "'reproduce'"),
        (["reproduce", "trerare"], "'treerare'"),
        (["reproduce", "treerare/table11"], "'treerare/table1'"),
        (["reproduce", "rdr2/table1"], "no notebook yet"),
        (["reproduce", "--profile", "ofline"], "'offline'"),
        (["reproduce", "--nn", "3"], "--n"),
        (["reproduce", "--n", "many"], "many"),
        (["reproduce", "--n", "0"], "at least 1"),
        (["reproduce", "--data", "shard"], "no data source"),
        (["reproduce", "--set", "search_scop=own"], "'search_scope'"),
        (["reproduce", "--set", "pool"], "FIELD=VALUE"),
        (["reproduce", "--set", "quetions=2"], "'questions'"),
        (["reproduce", "--set", "ability=small"], "'ability'"),
        (["reproduce", "--profile", "openai"], "OPENAI_API_KEY"),
        (["list", "tok"], "'toq'"),
        (["ask", "who?", "--method", "treerar"], "'treerare'"),
        (["ask", ""], "empty"),
        (["ask", "who?", "--set", "tre=constituency"], "'tree'"),
        (["ask", "who?", "--passages", "nowhere.jsonl"], "no file of passages"),
        (["ask"], "QUESTION"),
        (["cassette", "replay", "none.cassette"], "no cassette"),
        (["cassette", "pack", "x.cassette", "treerare"], "no calls yet"),
        (["doctor", "--profile", "lokal"], "'local'"),
        (["reproduce", "--estimate", "treerare/tabel1"], "'treerare/table1'"),
    ],
)
def test_a_wrong_word_gets_one_line_and_exit_code_2(words, hint, clone, monkeypatch):
    monkeypatch.chdir(clone)
    for variable in ("OPENAI_API_KEY", "TREEKIT_HOME"):
        monkeypatch.delenv(variable, raising=False)
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1 and hint in result.stderr


@pytest.mark.long
def test_list_knows_every_artefact_and_its_state(clone):
    code, out, _ = inside("list", "--json", cwd=clone)
    rows = json.loads(out)
    listed = [
        line
        for file in (ROOT / "data" / "papers").glob("*/inventory.csv")
        for line in file.read_text().splitlines()[1:]
    ]
    assert (
        code == 0
        and len(rows) == len(listed) >= 86
        and [r["artefact"] for r in rows if r["notebook"] != "missing"] == ["table1"]
    )
    inside("reproduce", cwd=clone)
    code, out, _ = inside("list", "treerare", "--json", cwd=clone)
    [row] = [r for r in json.loads(out) if r["artefact"] == "table1"]
    assert row["verdicts"]["not judged"] == 1 and row["last_run"] and "table1.csv" in row["files"]
    code, out, _ = inside("list", "treerare", cwd=clone)
    assert "missing" in out and "not judged 1" in out


@pytest.mark.slow
def test_reproduce_twice_gives_the_same_bytes(clone):
    code, out, err = shell("reproduce", "treerare/table1", cwd=clone)
    assert code == 0, err
    table = clone / "figures/offline/treerare/table1.csv"
    first = table.read_bytes()
    assert (
        b",simulated,one page" in first
        and b"zero-shot,HotpotQA" in first
        and (clone / "figures/offline/README.md").exists()
    )
    code, out, _ = inside("reproduce", "--json", cwd=clone)
    assert code == 0 and table.read_bytes() == first
    [row] = json.loads(out)
    assert row["unchanged"] and not row["code"] and row["not judged"] == 1 and row["not run"] > 200
    kept = (clone / ".treekit/runs/offline/treerare/table1.ipynb").read_text()
    assert str(clone) not in kept and str(Path.home()) + "/" not in kept


@pytest.mark.slow
def test_a_failing_notebook_says_why_and_the_others_run(clone):
    fates = [
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("from treekit.config import *\nraise UsageError('no such thing')", 2, "no such thing"),
        ("import os; os._exit(3)", 1, "Dead"),
        ("raise KeyboardInterrupt", 130, "interrupted"),
    ]
    for i, (cell, *_) in enumerate(fates):
        notebook(clone / f"nbs/reproduce/treerare/figure{i + 1}.ipynb", PARAMETERS, cell)
    code, out, _ = inside("reproduce", "--json", cwd=clone)
    got = {r["artefact"]: r for r in json.loads(out)}
    assert code == 130 and got["treerare/table1"]["code"] == 0
    for i, (_, code, words) in enumerate(fates):
        fate = got[f"treerare/figure{i + 1}"]
        assert fate["code"] == code and words in fate["error"]


@pytest.mark.long
def test_failed_questions_are_exit_code_1(clone):
    empty = load("hotpotqa", n=6)[3].question[:40]
    with Server(latency=0, rules=[[empty, ""]]) as server:
        code, out, _ = inside("reproduce", "--profile", "local", "--endpoint", server.url, cwd=clone)
    assert code == 1 and "1 questions failed" in out
    assert ",6,1,," in (clone / "figures/local/treerare/table1.csv").read_text()


@pytest.mark.slow
def test_a_budget_stops_with_3_and_the_next_run_goes_on(clone):
    settings = (clone / "settings.ini").read_text().replace("api_key_env = OPENAI_API_KEY", "api_key_env =")
    (clone / "settings.ini").write_text(settings)
    with Server(latency=0) as server:
        words = ("reproduce", "--profile", "openai", "--endpoint", server.url, "--n", "40", "--set", "max_tokens=100")
        code, out, err = inside(*words, "--budget", "0.0002", cwd=clone)
        assert code == 3 and "budget" in out
        assert 0 < (before := server.count) < 40
        assert inside(*words, "--budget", "1", cwd=clone)[0] == 0
        assert server.count == 40
        assert inside(*words, "--budget", "0", cwd=clone)[0] == 0 and server.count == 40


@pytest.mark.slow
def test_ctrl_c_is_130_and_the_next_run_goes_on(clone):
    with Server(latency=0.2) as server:
        words = ("reproduce", "--profile", "local", "--endpoint", server.url, "--n", "150", "--set", "concurrency=4")
        process = start(*words, cwd=clone)
        while server.count < 12 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "run the same again" in last(err) and "Traceback" not in err
        interrupted = server.count
        assert interrupted < 150
        time.sleep(0.5)
        assert server.count == interrupted  # no kernel goes on in the dark
        assert inside(*words, cwd=clone)[0] == 0 and server.count <= 150 + 4


def test_ask_prints_answer_and_tree(clone, tmp_path):
    corpus, question = tmp_path / "passages.jsonl", load("musique", n=1)[0]
    corpus.write_text("".join(json.dumps(dict(title=p.title, text=p.text)) + "\n" for p in question.paragraphs))
    words = ("ask", question.question, "--method", "zero-shot", "--passages", corpus, "--set", "retriever=bm25s")
    code, out, err = inside(*words, cwd=clone)
    assert code == 0 and "answer: " in out and f"{len(question.paragraphs)} passages" in out, err
    code, out, err = inside(*words, "--set", "top_k=1", "--json", cwd=clone)
    record = json.loads(out)
    assert code == 0 and record["answer"] and len(record["trace"]["nodes"][0]["data"]["hits"]) == 1


def test_a_model_cannot_paint_the_terminal(clone, tmp_path):
    corpus = tmp_path / "p.jsonl"
    corpus.write_text('{"text": "Nothing to see."}\n')
    with Server(latency=0, rules=[[".", "FINAL: \x1b[2J\x1b]0;owned\x07gone"]]) as server:
        words = ("ask", "Who?", "--method", "zero-shot", "--passages", corpus, "--set", "retriever=bm25s")
        code, out, _ = inside(*words, "--profile", "local", "--set", f"endpoint={server.url}", cwd=clone)
    assert code == 0 and "\x1b" not in out and "\x07" not in out and "gone" in out


@pytest.mark.long
def test_estimate_counts_prices_and_spends_nothing(clone):
    code, out, err = inside(
        "reproduce", "--estimate", "treerare/table1", "--profile", "openai", "--n", "100", "--json", cwd=clone
    )
    assert code == 0, err
    made = json.loads(out)
    assert (
        made["total"]["calls"] == 100
        and 0 < made["total"]["dollars"] < made["total"]["dollars_at_most"]
        and made["price"]["date"]
    )
    assert not (clone / "figures").exists() and not list((clone / ".treekit" / "store").glob("*.sqlite"))
    assert "no price" in inside("reproduce", "--estimate", "treerare/table1", "--profile", "local", cwd=clone)[1]


@pytest.mark.long
def test_a_cassette_replays_elsewhere_without_a_server(clone, tmp_path):
    with Server(latency=0) as server:
        words = ("--profile", "local", "--set", f"endpoint={server.url}")
        assert inside("reproduce", *words, cwd=clone)[0] == 0
    cassette = tmp_path / "run.cassette"
    assert inside("cassette", "pack", cassette, "treerare/table1", *words, cwd=clone)[0] == 0
    first = (clone / "figures/local/treerare/table1.csv").read_bytes()
    shutil.rmtree(clone / ".treekit"), shutil.rmtree(clone / "figures")
    code, out, err = inside("cassette", "replay", cassette, cwd=clone)
    assert code == 0 and (clone / "figures/local/treerare/table1.csv").read_bytes() == first, out + err
    assert not (clone / ".treekit/store").exists()
    code, out, err = inside("cassette", "replay", cassette, "--set", "n=9", cwd=clone)
    assert code == 2 and "cassette has no reply" in out, out + err


def test_doctor_says_what_to_do(clone):
    code, out, _ = inside("doctor", "--json", "--profile", "local", cwd=clone)
    rows = {r["what"]: r for r in json.loads(out)}
    assert code == 2 and rows["Python"]["works"] and not rows["model"]["works"] and "offline" in rows["model"]["todo"]
    assert "→" in inside("doctor", "--profile", "local", cwd=clone)[1]


def entry_point():
    module, _, function = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"][
        "treekit"
    ].partition(":")
    return f"from {module} import {function}; {function}()"


def test_a_scheduler_ends_a_command_as_ctrl_c_does(tmp_path):
    "SIGTERM: one line, and no temporary folder is left."
    command = """import os, signal, tempfile, time
import treekit.cli.main as cli
def inventory(paper):
    with tempfile.TemporaryDirectory() as folder:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
cli.inventory = inventory
"""
    done = subprocess.run(
        [sys.executable, "-c", command + entry_point(), "list"],
        env=os.environ | dict(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, list(tmp_path.iterdir()), len(done.stderr.strip().splitlines())) == (130, [], 1), (
        done.stderr
    )


def test_a_run_with_other_settings_has_a_folder_of_its_own(monkeypatch, tmp_path):
    "Results that come with the clone are written by the default settings."
    from treekit.artefacts import reproduce

    seen, folder = [], tmp_path / "figures" / "offline-n3-top_k=2"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("verdicts")

    def reproduce_all(what, profile, out, jobs, sets, force, **given):
        seen.append(out)
        return [Task("treerare/table1", Path("table1.ipynb"), {})], folder

    monkeypatch.setattr(reproduce, "reproduce_all", reproduce_all)
    words = ["reproduce", "treerare/table1", "--n", "3", "--set", "top_k=2"]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0 and said.output.splitlines()[-1].endswith(
        "figures/offline-n3-top_k=2/README.md has the verdicts"
    )
    assert seen == [None]
    assert result_folder("offline", dict(n=3, top_k="2")).name == folder.name
    assert result_folder("offline", dict(budget=1.0)).name == "offline"
