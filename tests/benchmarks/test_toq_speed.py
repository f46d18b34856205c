"""How fast Tree-of-Question is: a question takes its critical path, a run its calls over the limit.

    pytest tests/benchmarks/test_toq_speed.py -s

A server of our own with 300 ms a call and the four example questions of the paper's Table 1 in two languages. A ratio is the time that has
to pass over the time that passed, the best of several, since other work on the machine can only lower it.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from planning import EXAMPLES, Shelf
from speed import enough, timed
from treekit.core.types import Question
from treekit.experiments.resources import LazyRetriever
from treekit.store.run_store import Store
from treekit.papers.toq.method import METHODS

LATENCY = 0.3


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="planning:reply") as server:
        yield server


def went(server, questions, concurrency, store):
    return timed(
        server,
        {"ToQ (ours)": METHODS["ToQ (ours)"]},
        {"d": questions},
        concurrency,
        store,
        {"d": LazyRetriever(Shelf, "shelf", "a shelf")},
    )


@pytest.mark.parametrize("kind", ["comparison", "bridging", "hybrid"])
def test_a_question_takes_its_critical_path(server, kind, tmp_path):
    ratios = []
    for i in range(3):
        results, seconds = went(
            server, [Question("q", "d", EXAMPLES[kind, "ko"].question)], 32, Store(tmp_path / f"{i}.sqlite")
        )
        usage = results.rows[0].usage
        ratios.append(usage.critical_path * LATENCY / seconds)
        print(
            f"\n{kind}: {usage.calls} calls, critical path {usage.critical_path} × {LATENCY} s = {usage.critical_path * LATENCY:.1f} s, "
            f"took {seconds:.2f} s, ratio {ratios[-1]:.2f}; one after the other {usage.calls * LATENCY:.1f} s",
            end="",
        )
    enough(max(ratios), 0.9)


def test_eight_questions_at_limit_4(server, tmp_path):
    questions, ratios = [Question(f"q{i}", "d", e.question) for i, e in enumerate(EXAMPLES.values())], []
    for i in range(3):
        server.reset(latency=LATENCY, reply="planning:reply")
        results, seconds = went(server, questions, 4, Store(tmp_path / f"all{i}.sqlite"))
        calls = sum(r.usage.calls - r.usage.hits for r in results.rows)
        bound = max(calls * LATENCY / 4, max(r.usage.critical_path for r in results.rows) * LATENCY)
        ratios.append(bound / seconds)
        print(
            f"\n8 questions, limit 4: {calls} calls need {bound:.1f} s, took {seconds:.2f} s, ratio {ratios[-1]:.2f}",
            end="",
        )
        assert server.most_at_once <= 4
    enough(max(ratios), 0.8)  # at the end the longest question is alone
