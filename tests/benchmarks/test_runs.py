"""How close a run comes to what the server's latency allows.

    pytest tests/benchmarks/test_runs.py -s

A server of our own with 100 ms a call, or a second. A question can't be faster than its critical path (calls that wait for each other),
and a run not faster than its calls over the limit; a ratio of 1 is a kit that takes no time itself. Parses, the index and the client (a
quarter of a second, once a process) are there beforehand, but for the last test: there nothing was ever parsed, and the parser has to be
loaded. With 100 ms each ratio is the best of five, since other work on the machine can only add to it. A second is long enough that it
hardly does on a machine that has little else to do; $TREEKIT_LONG_LATENCY is another one.
"""

import dataclasses, os, sys, time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from treekit.config import load_profile, root
from treekit.experiments.resources import LazyRetriever, chat_for, load, load_corpus
from treekit.retrieval.bm25 import BM25
from treekit.experiments.run import run
from treekit.store.run_store import Store
from treekit.syntax.parser import parser_for
from treekit.papers.treerare.method import TreeRare

LATENCY, LIMIT, BOUND = 0.1, 16, 1.10
LONG, NEAR = float(os.environ.get("TREEKIT_LONG_LATENCY", 1.0)), 1.05


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="replies:various") as server:
        yield server


@pytest.fixture(scope="module")
def world(server):
    "Profile, questions, and their corpus with its index; everything parsed."
    if not (root() / "data/parser").is_dir() and "TREEKIT_PARSER_DIR" not in os.environ:
        pytest.skip("no parser: TREEKIT_PARSER_DIR or data/parser")
    profile = load_profile("local", endpoint=server.url, concurrency=LIMIT, data="synthetic")
    questions = load("musique", "synthetic", n=50)
    parser_for(profile).parse([q.question for q in questions])
    index = BM25(load_corpus("musique", "synthetic"))
    index.search(["warm"], 5)
    return profile, questions, LazyRetriever(lambda: index, "world", "the world")


def best(measure, times=5):
    return min(measure(i) for i in range(times))


def one_run(methods, questions, world, store):
    chat = chat_for(world[0])
    began = time.perf_counter()
    results = run(
        methods, {"musique": questions}, world[0], corpora={"musique": world[2]}, store=store, chat=chat, progress=False
    )
    assert not results.failures, results.failures[0].error
    return results, time.perf_counter() - began


def test_a_question_takes_its_critical_path(server, world, tmp_path):
    "Alone, with as many calls at once as its tree allows."
    wide = (dataclasses.replace(world[0], concurrency=64), *world[1:])
    question = max(world[1], key=lambda q: len(q.question))

    def measure(i):
        results, seconds = one_run({"TreeRare (DT)": TreeRare()}, [question], wide, Store(tmp_path / f"one{i}.sqlite"))
        usage = results.rows[0].usage
        ratio = seconds / (usage.critical_path * LATENCY)
        print(
            f"\n1 question: {usage.calls} calls, critical path {usage.critical_path}, {seconds:.2f} s, ratio {ratio:.3f}",
            end="",
        )
        return ratio

    assert best(measure) <= BOUND


def fifty(server, world, path, latency, method=TreeRare()):
    "Fifty questions, and what they took over what the limit allows."
    server.reset(latency=latency, reply="replies:various")
    results, seconds = one_run({"TreeRare (DT)": method}, world[1], world, Store(path))
    calls = server.count
    assert server.most_at_once == LIMIT
    log = server.requests
    first, last = min(e["time"] for e in log), max(e["answered"] for e in log)
    ratio = seconds / (calls * latency / LIMIT)
    print(
        f"\n50 questions, {latency:g} s a call, {calls} calls, limit {LIMIT}: {seconds:.2f} s, ratio {ratio:.3f} "
        f"({(seconds - last + first) / seconds:.3f} of it before the first call and after the last); "
        f"load {os.getloadavg()[0]:.1f}",
        end="",
    )
    return results, calls, ratio


def test_fifty_questions_keep_the_limit_busy(server, world, tmp_path):
    def measure(i):
        path = tmp_path / f"many{i}.sqlite"
        results, calls, ratio = fifty(server, world, path, LATENCY)
        again, seconds = one_run({"TreeRare (DT)": TreeRare()}, world[1], world, Store(path))
        assert server.count == calls and [r.record() for r in again.rows] == [r.record() for r in results.rows]
        print(f"; again: 0 calls, {seconds:.2f} s", end="")
        return ratio

    assert best(measure) <= BOUND


def test_fifty_questions_that_were_never_parsed(server, world, tmp_path):
    "A long latency: start-up, the parser's models, the first parses and the tail of the last questions together are five per cent."
    import treekit.syntax.parser as syntax

    fifty(server, world, tmp_path / "warm.sqlite", LONG)
    syntax._pipeline.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
        _, _, ratio = fifty(server, world, tmp_path / "cold.sqlite", LONG)
    assert ratio <= NEAR
