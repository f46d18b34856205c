"""What a call of the simulated model costs, stored, and what a search of a small corpus costs beside Lucene's.

    pytest tests/benchmarks/test_calls_speed.py -s

In CPU seconds of this process, so that other work on the machine counts little.
"""

import sys, time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from speed import enough
from treekit.config import load_profile
from treekit.store.run_store import Store
from treekit.experiments.resources import load, load_corpus
from treekit.experiments.run import run
from treekit.papers.arise.method import ARISE
from treekit.retrieval.bm25 import BM25
from treekit.retrieval.lucene import Lucene


def cpu(action):
    began = time.process_time()
    made = action()
    return made, time.process_time() - began


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))


def test_a_thousand_calls_a_second_on_two_cores(home, tmp_path):
    "Answered, stored and followed by a method: at least 500 a CPU second in one process."
    profile, questions = load_profile("offline"), load("musique", n=40)

    def asked(some, store):
        return run({"ARISE": ARISE()}, {"musique": some}, profile, store=store, progress=False)

    asked(questions[:2], Store())  # the world, its index
    results, seconds = cpu(lambda: asked(questions, Store(tmp_path / "calls.sqlite")))
    calls = sum(row.usage.calls for row in results.rows)
    print(f"\n{calls} calls, {seconds:.2f} CPU s, {calls / seconds:.0f} a CPU second", end="")
    enough(calls / seconds / 500, 1)


def test_a_small_corpus_is_searched_without_java(home):
    "The index is there; opening it and two hundred single searches."
    passages, queries = load_corpus("musique"), [f"{q.question} {i}" for q in load("musique", n=40) for i in range(5)]
    Lucene(passages).search(["warm"]), BM25(passages, keep=True).search(["warm"])

    def searched(make):
        index = make()
        for q in queries:
            index.search([q])

    _, lucene = cpu(
        lambda: searched(lambda: Lucene(passages))
    )  # Java runs already: its start, a second and more, isn't counted
    _, memory = cpu(lambda: searched(lambda: BM25(passages, keep=True)))
    print(f"\nLucene {lucene:.2f} CPU s, in memory {memory:.2f}, ratio {lucene / memory:.0f}", end="")
    enough(lucene / memory, 3)
