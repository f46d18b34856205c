"""How fast Tree-of-Question is: a question takes its critical path, a run its calls over the limit.

    pytest tests/benchmarks/test_toq_speed.py -s

A server of our own with 300 ms a call and the four example questions of the paper's Table 1 in two languages. A ratio is the time that has to pass over the time that passed, the best of several, since other work on the machine can only lower it.
"""
import os, sys, time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from planning import EXAMPLES, Shelf
from treekit.config import load_profile
from treekit.data import Question
from treekit.library import Lazy
from treekit.run import chat_for, run
from treekit.store import Store
from treekit.toq import METHODS

LATENCY = 0.3


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="planning:reply") as server: yield server


def timed(server, questions, concurrency, store):
    profile = load_profile("local", endpoint=server.url, concurrency=concurrency)
    chat, began = chat_for(profile), time.perf_counter()
    results = run({"ToQ (ours)": METHODS["ToQ (ours)"]}, {"d": questions}, profile, store=store, chat=chat, corpora={"d": Lazy(Shelf, "shelf", "a shelf")}, progress=False)
    assert not results.failures, results.failures[0].error
    return results, time.perf_counter() - began


def enough(ratio, least):
    "Fails if the ratio is too low, unless the processors were taken by something else: then a time says nothing."
    load, cores = os.getloadavg()[0], os.cpu_count()
    if ratio < least and load > 1.5 * cores: pytest.skip(f"ratio {ratio:.2f} on a busy machine (load {load:.0f} on {cores} cores): run it again when it is free")
    assert ratio >= least


@pytest.mark.parametrize("kind", ["comparison", "bridging", "hybrid"])
def test_a_question_takes_its_critical_path(server, kind, tmp_path):
    ratios = []
    for i in range(3):
        results, seconds = timed(server, [Question("q", "d", EXAMPLES[kind, "ko"].question)], 32, Store(tmp_path / f"{i}.sqlite"))
        usage = results.rows[0].usage
        ratios.append(usage.critical_path * LATENCY / seconds)
        print(f"\n{kind}: {usage.calls} calls, critical path {usage.critical_path} × {LATENCY} s = {usage.critical_path * LATENCY:.1f} s, took {seconds:.2f} s, ratio {ratios[-1]:.2f}; one after the other {usage.calls * LATENCY:.1f} s", end="")
    enough(max(ratios), 0.9)


def test_eight_questions_at_limit_4(server, tmp_path):
    questions, ratios = [Question(f"q{i}", "d", e.question) for i, e in enumerate(EXAMPLES.values())], []
    for i in range(3):
        server.reset(latency=LATENCY, reply="planning:reply")
        results, seconds = timed(server, questions, 4, Store(tmp_path / f"all{i}.sqlite"))
        calls = sum(r.usage.calls - r.usage.hits for r in results.rows)
        bound = max(calls * LATENCY / 4, max(r.usage.critical_path for r in results.rows) * LATENCY)
        ratios.append(bound / seconds)
        print(f"\n8 questions, limit 4: {calls} calls need {bound:.1f} s, took {seconds:.2f} s, ratio {ratios[-1]:.2f}", end="")
        assert server.most_at_once <= 4
    enough(max(ratios), 0.8)  # at the end the longest question is alone
