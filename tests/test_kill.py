"SIGKILL at random moments: no answered call is made again, and what is there in the end is what an uninterrupted run leaves."

import json, os, random, signal, time, zlib

import pytest

from treekit.store.run_store import Store
from workers import processes, run_all

QUESTIONS = 60


def start(path, url):
    process = processes.Process(target=run_all, args=(path, url, QUESTIONS))
    process.start()
    return process


def recorded(path):
    "The (text, sample) of every call in a store."
    with Store(path) as store:
        rows = store.db.execute("SELECT body, sample FROM calls JOIN requests ON hash = request").fetchall()
        return {(json.loads(zlib.decompress(body))["messages"][0]["content"], sample) for body, sample in rows}


def contents(path):
    "Everything in a store that must not depend on when it was killed."
    with Store(path) as store:
        calls = {key: json.loads(text)["text"] for key, text in store.db.execute("SELECT key, completion FROM calls")}
        predictions = {
            key: store.get_prediction(key) for (key,) in store.db.execute("SELECT key FROM predictions").fetchall()
        }
        usage = [
            {k: u[k] for k in ("method", "dataset", "question", "calls", "tokens_in", "tokens_out", "cost_original")}
            for u in store.usage(by=("method", "dataset", "question"))
        ]
        return calls, predictions, usage


@pytest.mark.long
def test_killed_again_and_again_nothing_is_asked_twice(server, tmp_path):
    server.script(latency=0.03)
    path, rng = tmp_path / "killed.sqlite", random.Random(0)
    stages, kills = [], 0
    while kills < 5:
        known, since = recorded(path) if path.exists() else set(), server.count
        process = start(path, server.url)
        while server.count == since and process.is_alive():
            time.sleep(0.002)  # it is at work
        time.sleep(rng.uniform(0, 0.06))
        alive = process.is_alive()
        if alive:
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert alive, f"the run was over before the kill number {kills + 1}: make it longer"
        kills += 1
        stages.append((known, since))
    known, since = recorded(path), server.count
    last = start(path, server.url)
    last.join(60)
    assert last.exitcode == 0
    log = server.requests
    for (known, since), (_, until) in zip(stages + [(known, since)], stages[1:] + [(known, since), (None, len(log))]):
        asked = [(r["text"], i) for r in log[since:until] for i in range(r["n"] or 1)]
        assert not known & set(asked), "an answered call was made again"
    assert len(recorded(path)) > QUESTIONS * 3
    again = server.count
    whole = tmp_path / "whole.sqlite"
    process = start(whole, server.url)
    process.join(60)
    assert process.exitcode == 0 and contents(whole) == contents(path)
    before = server.count
    process = start(path, server.url)  # and once more: nothing is asked at all
    process.join(60)
    assert server.count == before > again
