"""How fast SEARCH-R is: a question takes its critical path, a run its calls over the limit.

    pytest tests/benchmarks/test_searchr_speed.py -s

A server of our own with 300 ms a call, and questions whose paths are one sub-question, a chain, two that are independent, and MuSiQue's
branch. Passages and sub-questions are annotated without a parser here: what parsing takes is measured in test_informativeness_speed.py. A
ratio is the time that has to pass over the time that
passed, the best of several, since other work on the machine can only lower it.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import treekit.syntax.entities
from fakes import RunsOfCapitals
from navigating import EXAMPLES, PASSAGES
from openai_server import Server
from speed import enough, timed
from treekit.core.types import Question
from treekit.papers.searchr.method import SearchR
from treekit.store.run_store import Store

LATENCY = 0.3
WAVES = SearchR(order="waves")  # the default asks one sub-question after the other, as the paper does


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="navigating:reply") as server:
        yield server


@pytest.fixture(autouse=True)
def quick(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(treekit.syntax.entities, "annotator_for", lambda *_: RunsOfCapitals())


def went(server, questions, concurrency, store):
    return timed(server, {"SEARCH-R*": WAVES}, {"d": questions}, concurrency, store, {"d": PASSAGES}, retriever="bm25s")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_question_takes_its_critical_path(server, name, tmp_path):
    ratios = []
    for i in range(3):
        results, seconds = went(
            server, [Question("q", "d", EXAMPLES[name].question)], 32, Store(tmp_path / f"{i}.sqlite")
        )
        usage = results.rows[0].usage
        ratios.append(usage.critical_path * LATENCY / seconds)
        print(
            f"\n{name}: {usage.calls} calls, critical path {usage.critical_path} × {LATENCY} s = {usage.critical_path * LATENCY:.1f} s, "
            f"took {seconds:.2f} s, ratio {ratios[-1]:.2f}; one after the other {usage.calls * LATENCY:.1f} s",
            end="",
        )
    assert usage.critical_path == EXAMPLES[name].critical_path
    enough(max(ratios), 0.9)


def test_four_questions_at_limit_2(server, tmp_path):
    questions, ratios = [Question(name, "d", e.question) for name, e in EXAMPLES.items() if name != "whole"], []
    for i in range(3):
        server.reset(latency=LATENCY, reply="navigating:reply")
        results, seconds = went(server, questions, 2, Store(tmp_path / f"all{i}.sqlite"))
        calls = sum(r.usage.calls - r.usage.hits for r in results.rows)
        bound = max(calls * LATENCY / 2, max(r.usage.critical_path for r in results.rows) * LATENCY)
        ratios.append(bound / seconds)
        print(
            f"\n4 questions, limit 2: {calls} calls need {bound:.1f} s, took {seconds:.2f} s, ratio {ratios[-1]:.2f}",
            end="",
        )
        assert server.most_at_once <= 2
    enough(max(ratios), 0.8)  # at the end the longest question is alone
