"""How fast ARISE is, and what it takes of its own.

    pytest tests/benchmarks/test_arise.py -s

A server of our own with 50 ms a call, 30 iterations, questions of the public demo where they are at hand, else of the world. "One call at
a time" is the same search with one call under way; its tree must be the same. The ratios are calls' time
over the time taken, each the best of several, since other work on the machine can only lower it. The last test has no server: what is
measured is the kit.
"""

import dataclasses, subprocess, sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from speed import enough, timed
from treekit.papers.arise.method import ARISE
from treekit.retrieval.bm25 import BM25
from treekit.config import root
from treekit.experiments.resources import load
from treekit.store.run_store import Store

LATENCY = 0.05


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, reply="replies:reasoning", spread=True) as server:
        yield server


@pytest.fixture(scope="module")
def questions():
    demo = root().parent / "shared/data/original/2wikimultihopqa_50.json"
    if demo.is_file():
        found = load("2wiki", demo, n=None)[:10]
    else:
        found = [dataclasses.replace(q, paragraphs=tuple(load_pool())) for q in load("2wiki", "synthetic", n=10)]
    BM25(found[0].paragraphs).search(["warm"], 2)
    return found


def load_pool():
    from treekit.experiments.resources import load_corpus

    return load_corpus("2wiki", "synthetic")[:10]


def went(server, method, questions, concurrency, store):
    return timed(
        server,
        {"ARISE (ours)": method},
        {"2wiki": questions},
        concurrency,
        store,
        search_scope="own",
        retriever="bm25s",
        temperature=0.7,
    )


def trees(results):
    return [
        [(n.id, n.parent, n.kind, n.text, {k: v for k, v in n.data.items()}, n.calls) for n in r.trace.nodes]
        for r in results.rows
    ]


def test_one_question_against_one_call_at_a_time(server, questions, tmp_path):
    method, ratios = ARISE(iterations=30), []
    slow, alone = went(
        server, dataclasses.replace(method, one_by_one=True), questions[:1], 1, Store(tmp_path / "slow.sqlite")
    )
    for i in range(3):
        fast, seconds = went(server, method, questions[:1], 32, Store(tmp_path / f"fast{i}.sqlite"))
        assert trees(fast) == trees(slow)
        usage, chain = fast.rows[0].usage, slow.rows[0].usage.critical_path
        print(
            f"\n1 question, 30 iterations: {chain} calls one after the other in {alone:.2f} s ({alone / chain / LATENCY:.2f} latencies "
            f"each); at once {seconds:.2f} s, critical path {usage.critical_path}, ratio {alone / seconds:.1f}",
            end="",
        )
        ratios.append(alone / seconds)
    assert chain / usage.critical_path >= 4  # what a free machine comes close to
    enough(max(ratios), 4)


def test_ten_questions_at_limit_32(server, questions, tmp_path):
    method, ratios = ARISE(iterations=30), []
    for i in range(5):
        if ratios and max(ratios) >= 10:
            break
        server.reset(latency=LATENCY, reply="replies:reasoning", spread=True)
        results, seconds = went(server, method, questions, 32, Store(tmp_path / f"ten{i}.sqlite"))
        calls = server.count
        assert server.most_at_once <= 32
        print(
            f"\n10 questions, limit 32: {calls} calls in {seconds:.2f} s, ratio {calls * LATENCY / seconds:.1f}", end=""
        )
        ratios.append(calls * LATENCY / seconds)
    enough(max(ratios), 10)


def test_several_leaves_in_flight(server, questions, tmp_path):
    "Virtual loss against the plain search, five questions: shorter chains of calls, and how often the best path is the same (printed)."
    method, few = ARISE(iterations=30), questions[:5]
    plain, seconds = went(server, method, few, 64, Store(tmp_path / "plain.sqlite"))
    wide, took = went(server, dataclasses.replace(method, in_flight=8), few, 64, Store(tmp_path / "wide.sqlite"))
    same = sum(
        a.trace.nodes[-1].data["state"] == b.trace.nodes[-1].data["state"] for a, b in zip(plain.rows, wide.rows)
    )
    path, calls = (
        [sum(getattr(r.usage, k) for r in results.rows) / len(few) for results in (wide, plain)]
        for k in ("critical_path", "calls")
    )
    print(
        f"\n8 leaves in flight against 1: {took:.2f} s and {seconds:.2f} s, critical path {path[0]:.1f} and {path[1]:.1f}, calls "
        f"{calls[0]:.0f} and {calls[1]:.0f}, best path the same for {same} of {len(few)}",
        end="",
    )
    assert path[0] < path[1]


OWN = """
import asyncio, resource, sys, time
sys.path.insert(0, {tests!r})
from test_arise import OneEach, QUESTION, Seeded
from treekit.core.method import Context
from treekit.papers.arise.method import ARISE
from treekit.papers.arise.states import ANSWER, DECOMPOSE
from treekit.core.prompts import Completion
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
class Fertile(Seeded):
    async def complete(self, request):
        draw = self.draw(request.text)
        if request.prompt is DECOMPOSE:
            return [Completion(f"Sub-question: Who is person {{draw.random()}} of the matter?") for _ in range(request.n)]
        if request.prompt is ANSWER: return [Completion(f"Person {{draw.random()}} is at place {{draw.random()}}.")]
        return [Completion("an answer")]
async def calls_alone(chat, n):
    for i in range(n): await chat.complete(DECOMPOSE(question=f"{{i}}?", state=[], documents=[]))
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
best = alone = 9e9
before = peak()
for seed in range(3):
    chat = CachedClient(Fertile(seed), Store())
    began = time.process_time()
    asyncio.run(calls_alone(chat, 500))
    alone = min(alone, (time.process_time() - began) / 500)
    chat = CachedClient(Fertile(seed), Store())
    began = time.process_time()
    p = asyncio.run(ARISE(early_stop=False)(QUESTION, Context(chat, OneEach())))
    best = min(best, (time.process_time() - began) / p.usage.calls)
print(p.usage.calls, p.trace.nodes[0].data["visits"], len(p.trace.nodes), best * 1000, alone * 1000, peak() - before)
"""


def test_200_iterations_take_little(tmp_path):
    "A full tree of depth 4 and width 5, through a store in memory, with a model that answers at once: milliseconds of processor time a call, megabytes in all."
    done = subprocess.run(
        [sys.executable, "-c", OWN.format(tests=str(Path(__file__).resolve().parents[1]))],
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr[-2000:]
    calls, visits, nodes, milliseconds, alone, megabytes = map(float, done.stdout.split())
    print(
        f"\n200 iterations: {calls:.0f} calls, {nodes:.0f} nodes, {milliseconds:.2f} ms of processor time a call, {alone:.2f} ms without "
        f"the search, {megabytes:.0f} MB beside the imports",
        end="",
    )
    assert visits == 200 and megabytes < 150
    enough(alone / milliseconds, 0.2)
