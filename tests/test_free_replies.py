"""Replies that cost nothing are written together: found meanwhile, on disk when a run ends, and the numbers are those of single writes."""

import sqlite3
from contextlib import closing

import pytest

from treekit.baselines.prompting import RetrieveAndRead
from treekit.config import load_profile
from treekit.core.prompts import Completion, Prompt
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store, _MAX_DEFERRED, canonical_request, keys
from treekit.llm.cached_client import CachedClient
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.models.simulated.client import SimulatedClient

ASK = Prompt("test/free", "answer", "$question", TEXT)
METHODS = {"a": RetrieveAndRead(), "b": RetrieveAndRead(top_k=3)}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))


def counted(path):
    tables = ("calls", "requests", "predictions", "call_log")
    with closing(sqlite3.connect(path)) as other:
        return {t: other.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in tables}


def asked(store):
    return run(METHODS, {"musique": load("musique", n=12)}, load_profile("offline"), store=store, progress=False)


def test_when_a_run_ends_all_of_it_is_on_disk(tmp_path):
    store = Store(tmp_path / "free.sqlite")
    results = asked(store)
    assert store.connection.deferred and not store.connection.buffer.writes
    found = counted(store.path)  # as another process sees it, while this one has the store open
    assert found["predictions"] == len(results.rows) == 24
    assert (
        found["calls"]
        == found["requests"]
        == len({k for r in results.rows for n in r.trace.nodes for k in n.calls})
        > 0
    )
    assert found["call_log"] >= found["calls"]


def test_a_second_run_finds_them(tmp_path):
    with Store(tmp_path / "free.sqlite") as store:
        first = asked(store)
    again = asked(Store(tmp_path / "free.sqlite"))
    assert all(r.stored for r in again.rows) and [r.answer for r in again.rows] == [r.answer for r in first.rows]


def put(store, i):
    sent = canonical_request(request := ASK(question=f"question {i}"), "m", "simulated:", {})
    [key] = keys(request, "m", "simulated:", {})
    store.put_calls({key: Completion(f"answer {i}")}, sent, "m", "simulated:", dict(method="a"), [0.0])
    return key


def test_what_waits_is_found_and_written_in_groups(tmp_path):
    store = Store(tmp_path / "free.sqlite")
    store.connection.deferred = True
    n = _MAX_DEFERRED + 7
    names = [put(store, i) for i in range(n)]
    waiting = len(store.connection.buffer.writes)
    assert waiting < _MAX_DEFERRED and counted(store.path)["calls"] == n - waiting
    assert [store.calls([k])[k].text for k in names] == [f"answer {i}" for i in range(n)]
    assert store.usage()[0]["calls"] == n  # a sum is taken from the file: what waits is written first
    assert counted(store.path)["calls"] == n


def test_what_a_paid_model_says_is_written_at_once(tmp_path):
    class Paid:
        model, endpoint, defaults = "m", "http://nowhere/v1", {}

    store = Store(tmp_path / "paid.sqlite")
    CachedClient(SimulatedClient(), store)
    put(store, 1)
    assert store.connection.buffer.writes
    CachedClient(Paid(), store)  # a second model over the same store
    put(store, 2)
    assert counted(store.path)["calls"] == 2 and not store.connection.buffer.writes
