"What the benchmarks of runs share: a run's seconds against a server, and when a ratio counts."

import os, time

import pytest

from treekit.config import load_profile
from treekit.experiments.resources import chat_for
from treekit.experiments.run import run


def timed(server, methods, questions, concurrency, store, corpora=None, **settings):
    "Results and seconds of a run."
    profile = load_profile("local", endpoint=server.url, concurrency=concurrency, **settings)
    chat, began = chat_for(profile), time.perf_counter()
    results = run(methods, questions, profile, store=store, chat=chat, corpora=corpora or {}, progress=False)
    seconds = time.perf_counter() - began
    assert not results.failures, results.failures[0].error
    return results, seconds


def busy():
    "Whether other work has the processors, so that a time says nothing: how, in words; empty: they are free."
    load, cores = os.getloadavg()[0], os.cpu_count()
    return (
        f"a busy machine (load {load:.0f} on {cores} cores): run it again when it is free" if load > 1.5 * cores else ""
    )


def enough(ratio, least):
    "Fails if the ratio is too low; on a busy machine the test is skipped with what it measured."
    if ratio < least and (how := busy()):
        pytest.skip(f"ratio {ratio:.2f} on {how}")
    assert ratio >= least
