"Kill a whole run twenty times at random moments: no completed call is made again, and the tables equal an uninterrupted run's."

import json, random, time, zlib

import pytest
import resume_worker
from openai_server import Server
from treekit.store.run_store import Store
from workers import processes

QUESTIONS, KILLS = 100, 20
CALLS = QUESTIONS * (1 + 4)


def start(server, store, folder):
    process = processes.Process(target=resume_worker.main, args=(server.url, store, folder, QUESTIONS))
    process.start()
    return process


def finish(process):
    process.join(120)
    assert process.exitcode == 0


def completed(path):
    "The ends of the messages of every call that a store holds, as the server's log has them."
    if not path.exists():
        return []
    with Store(path) as store:
        return [
            "\n".join(m["content"] for m in json.loads(zlib.decompress(body))["messages"])[-200:]
            for (body,) in store.query("SELECT body FROM requests")
        ]


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    rng, lost = random.Random(7), 0
    with Server(latency=0.02) as server:
        finish(start(server, tmp_path / "whole.sqlite", tmp_path / "whole"))
        assert server.count == CALLS
        store, killed = tmp_path / "killed.sqlite", 0
        for attempt in range(KILLS):
            have = completed(store)
            server.reset(latency=0.02)
            process, after = start(server, store, tmp_path / "killed"), rng.randrange(0, 2 * CALLS // KILLS)
            while process.is_alive() and server.count < after:
                time.sleep(0.002)
            time.sleep(rng.random() * 0.05)
            killed += process.is_alive()
            process.kill()
            process.join()
            asked = [r["text"] for r in server.requests]
            assert not set(have) & set(asked), "a completed call was made again"
            assert len(asked) == len(set(asked))
            lost += len(asked) - (len(completed(store)) - len(have))
        have = completed(store)
        server.reset(latency=0.02)
        finish(start(server, store, tmp_path / "killed"))
        asked = [r["text"] for r in server.requests]
        assert not set(have) & set(asked) and len(asked) == CALLS - len(have)
        assert killed == KILLS and 0 < len(have) < CALLS
        assert lost <= 4 * KILLS  # at most what was in flight at each kill
        server.reset(latency=0.02)
        finish(start(server, store, tmp_path / "again"))
        assert server.count == 0
    for name in ("table.csv", "table.md", "cost.csv", "rows.csv"):
        assert (
            (tmp_path / "killed" / name).read_bytes()
            == (tmp_path / "whole" / name).read_bytes()
            == (tmp_path / "again" / name).read_bytes()
        ), name
