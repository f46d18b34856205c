"""How fast RDR² is: documents at once, and the headings of a document at once.

    pytest tests/benchmarks/test_routing_speed.py -s

A server of our own with 200 ms a call, the world's articles, a router that wants to see everything (so each document takes all of its five
expansions). The critical path times the latency is what a question must take; the number of calls times the latency is what it takes one
call at a time. Each is the best of several, since other
work on the machine can only lower it. The last test has no server: what is measured is the kit.
"""

import asyncio, sys, time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from test_rdr2 import Router
from speed import enough, timed
from treekit.experiments.resources import load, load_documents
from treekit.core.method import Context
from treekit.papers.rdr2.method import METHODS, RDR2
from treekit.retrieval.bm25 import BM25
from treekit.store.run_store import Store

LATENCY = 0.2


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="replies:routes") as server:
        yield server


@pytest.fixture(scope="module")
def questions():
    return load("asqa", "synthetic", n=40)


@pytest.fixture(scope="module")
def shelf():
    shelf = BM25(list(load_documents("asqa").passages()))
    shelf.search(["warm"], 5)
    return shelf


def went(server, questions, shelf, concurrency, store):
    return timed(
        server,
        METHODS,
        dict(asqa=questions),
        concurrency,
        store,
        dict(asqa=shelf),
        data="synthetic",
        search_scope="documents",
    )


def test_one_question_takes_its_critical_path(server, questions, shelf, tmp_path):
    best = 9e9
    for i in range(3):
        results, seconds = went(server, questions[:1], shelf, 64, Store(tmp_path / f"{i}.sqlite"))
        best = min(best, seconds)
    usage = results.rows[0].usage
    print(
        f"\n1 question: {usage.calls} calls, critical path {usage.critical_path}, {best:.2f} s, "
        f"{best / usage.critical_path / LATENCY:.2f} of the path's latencies (with search and mapping), "
        f"{usage.calls * LATENCY / best:.1f} times as fast as one call at a time",
        end="",
    )
    assert usage.critical_path == 3 and usage.calls >= 8  # first subtrees, expansions, the reader
    enough(usage.critical_path * LATENCY / best, 0.7)


def test_forty_questions_at_limit_32(server, questions, shelf, tmp_path):
    ratios = []
    for i in range(3):
        server.reset(latency=LATENCY, reply="replies:routes")
        results, seconds = went(server, questions, shelf, 32, Store(tmp_path / f"{i}.sqlite"))
        assert server.most_at_once <= 32
        calls = sum(r.usage.calls - r.usage.hits for r in results.rows)
        ratios.append(calls * LATENCY / 32 / seconds)
        print(
            f"\n40 questions, limit 32: {calls} calls in {seconds:.2f} s; calls × latency / limit is {ratios[-1]:.2f} of it",
            end="",
        )
    enough(max(ratios), 0.6)


def test_what_the_kit_takes(questions, shelf):
    "Grouping, mapping by Levenshtein distance, subtrees, rules and the trace, with a model that answers at once: milliseconds of processor time a question and a call."
    documents = load_documents("asqa")
    from replies import routes

    router, began, calls = (
        Router(lambda d: routes(dict(messages=[dict(content=f"## Document\n{d}")]))),
        time.process_time(),
        0,
    )
    for q in questions:
        calls += asyncio.run(RDR2()(q, Context(router, shelf, documents=documents))).usage.calls
    took = (time.process_time() - began) * 1000
    print(
        f"\n{len(questions)} questions, {calls} calls: {took / len(questions):.1f} ms a question, {took / calls:.2f} ms a call",
        end="",
    )
    assert took / len(questions) < 200
