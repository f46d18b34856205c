"The five methods by batch: rounds, price, kills. Each run is compared with the same one without batches."

import collections, os, random, signal, time

import pytest

import batch_worker as worker
from batch_server import BatchServer
from treekit.llm.openai_client import OpenAIClient
from treekit.llm.prices import load_prices
from treekit.store.run_store import Store
from treekit.experiments.run import run

N = 4


@pytest.fixture(scope="module")
def server():
    with BatchServer() as server:
        yield server


@pytest.fixture(scope="module")
def plain(server):
    "The rows of all five, one call at a time, and what they cost."
    server.reset(reply="batch_worker:reply")
    store = Store()
    chat = OpenAIClient("gpt-4o-mini", server.url, "k", pause=0.01)
    profile = worker.settings(server.url)
    results = run(
        worker.METHODS, worker.asked(N), profile, corpora=worker.passages(), chat=chat, store=store, progress=False
    )
    assert not results.failures, results.failures[0].error
    return worker.told(results), cost(store)


def cost(store):
    return {u["method"]: u["cost_original"] for u in store.usage()}


def nothing_twice(server):
    twice = [i for i, times in collections.Counter(server.paid()).items() if times > 1]
    assert not twice, twice
    texts = collections.Counter(t for b in server.batches() for t in b["texts"])
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TreeRare", "ARISE"])  # most calls at once, most calls in sequence
def test_rounds_are_the_critical_path_and_the_price_is_half(server, plain, tmp_path, name):
    server.reset(reply="batch_worker:reply", seconds=0.1)
    path = tmp_path / "store.sqlite"
    results = worker.go(server.url, path, tmp_path / "batches", N, {name: worker.METHODS[name]})
    rows, money = plain
    assert worker.told(results) == [r for r in rows if r["method"] == name]
    rounds, longest = len(server.batches()), max(r.usage.critical_path for r in results.rows)
    with Store(path) as store:
        own = cost(store)
    print(
        f"\n{name}: {rounds} rounds, critical path {longest}, {sum(r.usage.calls for r in results.rows)} calls, ${own[name]:.6f}",
        end="",
    )
    assert rounds <= longest + 1
    assert own[name] == pytest.approx(money[name] / 2) and load_prices()["gpt-4o-mini"].batch == 0.5
    nothing_twice(server)


@pytest.mark.slow
def test_killed_four_times_no_batch_is_lost_and_no_request_is_sent_twice(server, plain, tmp_path):
    server.reset(reply="batch_worker:reply", seconds=0.6)
    store, folder, rng = tmp_path / "killed.sqlite", tmp_path / "batches", random.Random(0)
    worker.passages()
    for kill in range(4):
        known, since = len(server.batches()), time.time()
        process = worker.processes.Process(target=worker.go, args=(server.url, store, folder, N))
        process.start()
        while len(server.batches()) == known and process.is_alive() and time.time() < since + 60:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.1, 0.4))
        assert process.is_alive(), f"the run was over before kill {kill + 1}"
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    results = worker.go(server.url, store, folder, N)
    assert worker.told(results) == plain[0]
    texts = nothing_twice(server)
    with Store(store) as kept:
        assert {m: pytest.approx(c / 2) for m, c in plain[1].items()} == cost(kept)
        samples = kept.query("SELECT COUNT(*) FROM calls")[0][0]
    print(
        f"\n4 kills: {len(server.batches())} batches, {sum(texts.values())} requests in them, {samples} samples in the store",
        end="",
    )
