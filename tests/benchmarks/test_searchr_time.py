"""SEARCH-R's Table 10 in seconds: what a question takes beside its calls, with and without ChainRAG's cache.

    pytest tests/benchmarks/test_searchr_time.py -s

A server of our own with 300 ms a call, one question of two hops, and 1,000 passages of the world, which the bundled parser parses and
MiniLM embeds. With a cache a question should take its calls in a row; without, it parses and embeds all passages again.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from speed import enough, timed
from treekit.baselines import chainrag
from treekit.baselines import search_r1
from treekit.papers.searchr import method as searchr
from treekit.core.types import Question
from treekit.figures.verdicts import published
from treekit.experiments.resources import load_corpus
from treekit.store.run_store import Store

LATENCY = 0.3
RULES = [
    ["Take the question apart", '["Who is the author of Grey Harbour?", "Where was this author born?"]'],
    ["Does it have to be rewritten", "Yes"],
    ["Rewrite the next sub-question", "Where was Ida Roth born?"],
    ["Can the question be answered from these", "No"],
    ["Answer the question at the end.*<information>\\[1\\]", "<answer>Tarn</answer>"],
    ["Answer the question at the end", "<search>author of Grey Harbour</search>"],
    ["FINAL", "Explanation: so it is.\nFINAL: Tarn"],
]
METHODS = (
    {"NativeRAG": chainrag.METHODS["NativeRAG"]}
    | {
        name: replace(chainrag.METHODS[name], reranker="") for name in ("ChainRAG (w/ cache)", "ChainRAG (w/o cache)")
    }  # no download
    | {"Ours": searchr.TABLE3["Ours"]}
    | search_r1.METHODS
)


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY, rules=RULES) as server:
        yield server


def went(server, method, questions, store):
    return timed(
        server,
        {"m": method},
        {"musique": questions},
        32,
        store,
        {"musique": load_corpus("musique", "synthetic")[:1000]},
        retriever="dense",
    )


def test_seconds_per_question(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    seconds, printed = {}, {r["method"]: f"{r['value']} {r['unit']}" for r in published("searchr", "table10")}
    questions = [Question(f"q{i}", "musique", f"Where was the author of Grey Harbour born? ({i})") for i in range(2)]
    for name, method in METHODS.items():
        _, first = went(server, method, questions[:1], Store())
        if name == "ChainRAG (w/o cache)":
            seconds[name], usage = first, None
        else:
            results, again = went(
                server, method, questions[1:2], Store()
            )  # trees, vectors and graphs are there; no call is
            usage, seconds[name] = results.rows[0].usage, again
        calls = (
            f", {usage.calls} calls, {usage.critical_path} in a row: {usage.critical_path * LATENCY:.1f} s of it"
            if usage
            else ""
        )
        print(
            f"\n{name}: the first question {first:.1f} s, another {seconds[name]:.2f} s{calls}; printed: {printed.get(name, 'nothing')}",
            end="",
        )
    assert seconds["ChainRAG (w/o cache)"] > 3 * seconds["ChainRAG (w/ cache)"]
    assert seconds["NativeRAG"] < seconds["ChainRAG (w/ cache)"]


@pytest.mark.parametrize("name", ["NativeRAG", "ChainRAG (w/ cache)", "Search-R1"])
def test_a_question_takes_its_critical_path(server, name, tmp_path):
    ratios = []
    for i in range(3):
        results, seconds = went(
            server,
            METHODS[name],
            [Question("q", "musique", "Where was the author of Grey Harbour born?")],
            Store(tmp_path / f"{i}.sqlite"),
        )
        usage = results.rows[0].usage
        ratios.append(usage.critical_path * LATENCY / (seconds if i else float("inf")))  # the first loads the models
        print(f"\n{name}: critical path {usage.critical_path} × {LATENCY} s, took {seconds:.2f} s", end="")
    enough(max(ratios), 0.6)  # beside the calls: loading the index from disk, and embedding the sub-questions
