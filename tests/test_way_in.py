"The way in: what would stop a run is said at once, in one line, before anything is loaded."

import json, os

import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.llm import openai_client
from treekit.config import UsageError, load_profile


@pytest.fixture
def no_network(monkeypatch):
    for name in ("HF_HUB_OFFLINE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def treekit(*words):
    result = CliRunner().invoke(main, list(map(str, words)))
    return result.exit_code, result.output


def rows(*words):
    code, out = treekit("doctor", "--json", *words)
    return {r["what"]: r for r in json.loads(out)}


@pytest.mark.parametrize("words", [("ask", "Who?"), ("reproduce", "toq/table2")])
def test_a_missing_key_is_said_at_once(words, no_network):
    code, out = treekit(*words, "--profile", "openai")
    assert code == 2 and "OPENAI_API_KEY" in out and len(out.splitlines()) == 1


def test_the_doctor_checks_what_a_run_would_use(server, no_network):
    sets = ("--set", f"endpoint={server.url}", "--set", "model=o4-mini", "--set", "data=real")
    words = ("--profile", "local", *sets)
    found = rows("searchr", *words)
    assert found["price"]["works"] is None and "o4-mini" in found["price"]["found"] and found["questions"]["works"]
    missing = rows("searchr", *words, "--set", "retriever=dense:no/such-encoder")["weights"]
    assert missing["works"] is False and "hf download no/such-encoder" in missing["found"]
    assert "log-probabilities" in rows("arise", *words) and "log-probabilities" not in rows("searchr", *words)
    assert rows(*words, "--set", "budget=3")["price"]["works"] is False


def test_a_budget_that_is_no_number_is_said_at_once(no_network):
    words = ("reproduce", "toq/table2", "--profile", "local", "--budget", "much")
    assert "setting 'budget' should be a number" in treekit(*words)[1]


def hotpot(**fields):
    return (
        dict(_id="1", question="Who?", answer="A", context=[["T", ["It is A."]]], supporting_facts=[["T", 0]]) | fields
    )


def without(record, *fields):
    return {k: v for k, v in record.items() if k not in fields}


@pytest.mark.parametrize(
    "files, works, found",
    [
        (
            dict(hotpotqa=hotpot()),
            True,
            "hotpotqa, in the format of HotpotQA, 2WikiMultihopQA: 1 questions, 1 passages, 1 of 1 supporting; skipped: notes.pdf",
        ),
        (dict(hotpotqa=without(hotpot(), "supporting_facts")), True, ": 1 questions"),  # as in the test set
        (dict(hotpotqa=without(hotpot(), "context")), False, "hotpotqa.dev.jsonl, line 1: field 'context' is missing"),
        (dict(hotpotqa=without(hotpot(), "context", "supporting_facts")), True, ": 1 questions"),
        (
            dict(hotpotqa=hotpot(), musique=dict(id="1", question="Who?", answers=[])),
            False,
            "musique.dev.jsonl, line 1",
        ),
        (dict(hotpotqa=os.mkdir), False, "expected a file hotpotqa.dev.jsonl"),
        (dict(hotpotqa=os.mkfifo), False, "expected a file hotpotqa.dev.jsonl"),
        ({}, False, "expected a file hotpotqa.dev.jsonl, or the data set's own, such as hotpot_dev_distractor_v1.json"),
    ],
)
def test_the_doctor_reads_the_questions_that_a_run_would_read(tmp_path, files, works, found):
    for name, what in files.items():
        path = tmp_path / f"{name}.dev.jsonl"
        if callable(what):
            what(path)
        else:
            path.write_text(json.dumps(what) + "\n")
    (tmp_path / "notes.pdf").write_text("x")
    questions = rows("--set", f"data={tmp_path}")["questions"]
    assert questions["works"] is works and found in questions["found"], questions
    code, out = treekit("ask", "Who?", "--data", str(tmp_path))
    assert works or "musique" in files or code == 2 and found in out and "Error" not in out, out


def test_passages_that_are_not_there_are_no_success(tmp_path, no_network):
    (tmp_path / "hotpotqa.dev.jsonl").write_text(json.dumps(hotpot(supporting_facts=[["U", 0]])))
    questions = rows("--set", f"data={tmp_path}")["questions"]
    assert questions["works"] is False and "none of the 1 supporting" in questions["found"]


def test_the_weights_of_a_retriever_are_asked_for_before_the_model(server, no_network, monkeypatch, tmp_path):
    "A missing encoder stops the run before a call is paid for."
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    from treekit.core.types import Question
    from treekit.experiments.resources import method_with_examples
    from treekit.experiments.run import run

    profile = load_profile(
        "local", endpoint=server.url, model="m", data="synthetic", retriever="dense:no/such-encoder", budget="none"
    )
    with pytest.raises(UsageError, match="no/such-encoder.*neither a folder nor in the local cache"):
        asked = {"hotpotqa": [Question("1", "hotpotqa", "Who?", ("A",))]}
        run({"cot": method_with_examples("cot", "synthetic")[0]}, asked, profile, progress=False)
    assert server.count == 0


def test_ask_takes_a_folder_with_any_data_set(tmp_path, server):
    (tmp_path / "2wiki.dev.jsonl").write_text(json.dumps(hotpot(evidences=[])) + "\n")
    code, out = treekit("ask", "Who?", "--data", tmp_path, "--method", "zero-shot")
    assert code in (0, 1) and "no dataset" not in out, out


@pytest.mark.parametrize("fault, works", [("", True), ("empty", False), ("not json", False), ("schema", False)])
def test_the_doctor_asks_a_question_as_a_run_does(server, fault, works, monkeypatch):
    "Through the run's client, prompt and parser; it shows the raw and the read reply, or the run's own error."
    monkeypatch.setattr(openai_client, "RETRIES", 0)
    if fault:
        server.script(faults=[dict(kind=fault, times=9)])
    sets = (f"endpoint={server.url}", "model=m")
    found = rows("--profile", "local", *(word for one in sets for word in ("--set", one)))["model"]
    assert found["works"] is works and ("raw" in found["found"] and "read" in found["found"]) is works, found
