"""How fast SEARCH-R is: a question takes its critical path, a run its calls over the limit.

    pytest tests/benchmarks/test_searchr_speed.py -s

A server of our own with 300 ms a call, and questions whose paths are one sub-question, a chain, two that are independent, and MuSiQue's branch. Passages and sub-questions are annotated without a parser here: what parsing takes is measured in test_informativeness_speed.py. A ratio is the time that has to pass over the time that
passed, the best of several, since other work on the machine can only lower it.
"""
import os, sys, time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import treekit.entities
from navigating import EXAMPLES, PASSAGES, Capitals
from openai_server import Server
from treekit.config import load_profile
from treekit.data import Question
from treekit.run import chat_for, run
from treekit.searchr import SearchR
from treekit.store import Store

LATENCY = 0.3


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="navigating:reply") as server: yield server


@pytest.fixture(autouse=True)
def quick(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(treekit.entities, "annotator_for", lambda *_: Capitals())


def timed(server, questions, concurrency, store, method=SearchR()):
    profile = load_profile("local", endpoint=server.url, concurrency=concurrency, retriever="bm25s")
    chat, began = chat_for(profile), time.perf_counter()
    results = run({"SEARCH-R*": method}, {"d": questions}, profile, store=store, chat=chat, corpora={"d": PASSAGES}, progress=False)
    assert not results.failures, results.failures[0].error
    return results, time.perf_counter() - began


def enough(ratio, least):
    "Fails if the ratio is too low, unless the processors were taken by something else: then a time says nothing."
    load, cores = os.getloadavg()[0], os.cpu_count()
    if ratio < least and load > 1.5 * cores: pytest.skip(f"ratio {ratio:.2f} on a busy machine (load {load:.0f} on {cores} cores): run it again when it is free")
    assert ratio >= least


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_question_takes_its_critical_path(server, name, tmp_path):
    ratios = []
    for i in range(3):
        results, seconds = timed(server, [Question("q", "d", EXAMPLES[name].question)], 32, Store(tmp_path / f"{i}.sqlite"))
        usage = results.rows[0].usage
        ratios.append(usage.critical_path * LATENCY / seconds)
        print(f"\n{name}: {usage.calls} calls, critical path {usage.critical_path} × {LATENCY} s = {usage.critical_path * LATENCY:.1f} s, took {seconds:.2f} s, ratio {ratios[-1]:.2f}; one after the other {usage.calls * LATENCY:.1f} s", end="")
    assert usage.critical_path == EXAMPLES[name].critical_path
    enough(max(ratios), 0.9)


def test_four_questions_at_limit_2(server, tmp_path):
    questions, ratios = [Question(name, "d", e.question) for name, e in EXAMPLES.items() if name != "whole"], []
    for i in range(3):
        server.reset(latency=LATENCY, reply="navigating:reply")
        results, seconds = timed(server, questions, 2, Store(tmp_path / f"all{i}.sqlite"))
        calls = sum(r.usage.calls - r.usage.hits for r in results.rows)
        bound = max(calls * LATENCY / 2, max(r.usage.critical_path for r in results.rows) * LATENCY)
        ratios.append(bound / seconds)
        print(f"\n4 questions, limit 2: {calls} calls need {bound:.1f} s, took {seconds:.2f} s, ratio {ratios[-1]:.2f}", end="")
        assert server.most_at_once <= 2
    enough(max(ratios), 0.8)  # at the end the longest question is alone
