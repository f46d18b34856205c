"The way in: what would stop a run is said at once, in one line, before anything is loaded."

import json, os

import pytest
from click.testing import CliRunner

import treekit.artefacts.environment_check as environment_check
from treekit.cli.main import main
from treekit.llm import openai_client
from treekit.config import UsageError, load_profile


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(environment_check, "_unreached", lambda url: "no network")
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
    assert "bge-reranker" in found["reranker"]["found"] and found["reranker"]["works"] is False
    assert "reranker" not in rows("searchr", *words, "--set", "reranker=")
    assert "log-probabilities" in rows("arise", *words) and "log-probabilities" not in rows(
        "arise", *words, "--set", "scorer=guess"
    )
    assert rows(*words, "--set", "budget=3")["price"]["works"] is False


def test_a_budget_without_a_price_is_said_before_the_run(server, no_network):
    words = (
        "reproduce",
        "toq/table2",
        "--profile",
        "local",
        "--endpoint",
        server.url,
        "--model",
        "o4-mini",
        "--data",
        "real",
    )
    code, out = treekit(*words, "--budget", "5")
    assert code == 2 and "--budget none" in out and server.count == 0
    assert "neither a number of dollars nor none" in treekit(*words, "--budget", "much")[1]


def test_ask_names_the_prompts_that_were_reworded(tmp_path, monkeypatch):
    from treekit.cli.ask import reworded_prompts
    from treekit.papers.registry import method

    (tmp_path / "p.toml").write_text(
        '["treerare.answer"]\nsystem = "Be brief."\n["arise.answer"]\nsystem = "Be brief."\n'
    )
    found = reworded_prompts(method("treerare"), load_profile("offline", prompts=str(tmp_path / "p.toml")))
    assert found == ("treerare.answer",)


def hotpot(**fields):
    return (
        dict(_id="1", question="Who?", answer="A", context=[["T", ["It is A."]]], supporting_facts=[["T", 0]]) | fields
    )


def without(record, *fields):
    return {k: v for k, v in record.items() if k not in fields}


@pytest.mark.parametrize(
    "files, works, found",
    [
        (dict(hotpotqa=hotpot()), True, ": 1 questions"),
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
    questions = rows("--set", f"data={tmp_path}")["questions"]
    assert questions["works"] is works and found in questions["found"], questions
    code, out = treekit("ask", "Who?", "--data", str(tmp_path))
    assert works or "musique" in files or code == 2 and found in out and "Error" not in out, out


@pytest.mark.parametrize("fault", ["empty", "not json", "schema"])
def test_ask_names_attempts_that_may_be_charged(server, fault, monkeypatch):
    monkeypatch.setattr(openai_client, "RETRIES", 1)
    server.script(faults=[dict(kind=fault, times=2)])
    code, out = treekit(
        "ask",
        "Who wrote it?",
        "--method",
        "zero-shot",
        "--data",
        "synthetic",
        "--profile",
        "local",
        "--set",
        f"endpoint={server.url}",
        "--model",
        "m",
    )
    assert code == 1 and "besides, 2 attempts without a usable reply, which the server may charge" in out, out


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
    found = rows("--profile", "local", *(word for one in sets for word in ("--set", one)))["reply"]
    assert found["works"] is works and ("raw" in found["found"] and "read" in found["found"]) is works, found
