"""Four workers, four servers, one of them slow and one dying: how close that comes to what the servers' limits allow.

    pytest tests/benchmarks/test_workers.py -s -m "slow or not slow"

Servers and workers are eight processes. A call takes three seconds (six at the slow server), so that two cores have little to do: what is
measured is the dealing. The ideal is the time in which the servers can answer all calls if none of their places is ever empty; the dying
one's are there until it dies. The workers load their modules, and begin together; measured is from the first call to the last answer.
"""
import os, subprocess, sys, threading
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import share_worker
from openai_server import Server
from treekit.store.store_merge import Merged, merge_stores
from treekit.store.run_store import Store

LATENCY, SLOW, LIMIT, WORKERS = 3.0, 6.0, 24, 4
# questions, and the least share of the ideal: of fewer questions the hash gives one worker relatively more
SIZES = [pytest.param(2000, 0.9, marks=pytest.mark.slow), pytest.param(400, 0.7, marks=pytest.mark.long)]


def started(server_list, store, n, share=None):
    words = [sys.executable, share_worker.__file__, server_list, store, n, LIMIT, *([share] if share else [])]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return subprocess.Popen([*map(str, words)], **pipes, text=True, env=dict(os.environ))


def begun(*processes):
    "They have loaded what they need, and begin now."
    assert all(p.stdout.readline() == "ready\n" for p in processes)
    for p in processes: p.stdin.write("\n"), p.stdin.flush()


def content(path):
    "What is in a store, but for times and for what a call took."
    with Store(path) as s:
        calls = s.query("SELECT key, request, sample, json_extract(completion, '$.text') FROM calls ORDER BY key")
        rows = s.query("SELECT key, json_extract(row, '$.answer') FROM predictions ORDER BY key")
        ledger = s.query("SELECT method, dataset, question, node, key, outcome FROM ledger WHERE outcome < 2 ORDER BY 5, 1, 3, 4, 6")
        return calls, rows, ledger, s.usage(()), s.query("SELECT COUNT(*) FROM leases")


@pytest.mark.parametrize("n, least", SIZES)
def test_two_thousand_questions_on_four_workers(tmp_path, n, least):
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(latency=SLOW if i == 2 else LATENCY, limit=LIMIT)) for i in range(4)]
        listed = ", ".join(s.url for s in servers)
        stores = [tmp_path / f"all.{i}of{WORKERS}.sqlite" for i in range(1, WORKERS + 1)]
        workers = [started(listed, store, n, f"{i}/{WORKERS}") for i, store in enumerate(stores, 1)]
        begun(*workers)
        dying = n / 100 * LATENCY  # seconds: a fifth of the whole
        dies = threading.Timer(dying, lambda: servers[3].script(dead=True))
        dies.start()
        said = [w.communicate(timeout=500) for w in workers]
        logs = [s.requests for s in servers]
        refused = [s.log()["refused"] for s in servers]
        assert all(w.returncode == 0 for w in workers), said
        assert sum(int(out.split()[0]) for out, _ in said) == 2 * n and all(out.split()[1] == "0" for out, _ in said)
        answered = [e for log in logs for e in log if "answered" in e]
        took = max(e["answered"] for e in answered) - min(e["time"] for log in logs for e in log)
        calls = 3 * n
        pace = LIMIT / LATENCY * 2 + LIMIT / SLOW  # calls a second of those that stay
        ideal = (calls - min(took, dying) * LIMIT / LATENCY) / pace
        texts = [e["text"] for e in answered]
        print(f"\n{n} questions, {calls} calls: {took:.1f} s, ideal {ideal:.1f} s, {ideal / took:.3f} of its throughput; answered by each "
              f"{[sum('answered' in e for e in log) for log in logs]}, refused {refused}, doubled {len(texts) - len(set(texts))}")
        assert len(set(texts)) == len(texts) == calls
        merged = merge_stores(tmp_path / "all.sqlite", stores)
        assert (merged.calls, merged.predictions, merged.differing) == (calls, 2 * n, [])
        assert merge_stores(tmp_path / "all.sqlite", stores) == Merged()
        for server in servers: server.script(latency=0.0, dead=False, limit=LIMIT)
        before = sum(s.count for s in servers)
        again = started(listed, tmp_path / "all.sqlite", n)
        begun(again)
        out, err = again.communicate(timeout=400)
        assert (out.split(), sum(s.count for s in servers)) == ([str(2 * n), "0"], before), err  # a plain run finds everything
        single = started(listed, tmp_path / "one.sqlite", n)
        begun(single)
        out, err = single.communicate(timeout=500)
        assert out.split() == [str(2 * n), "0"], err
        one, whole = content(tmp_path / "one.sqlite"), content(tmp_path / "all.sqlite")
        assert one[:3] == whole[:3] and one[4] == whole[4] == [(0,)]
        assert [{k: u[k] for k in ("calls", "hits", "failed", "tokens_in", "tokens_out")} for u in one[3]] == [
            {k: u[k] for k in ("calls", "hits", "failed", "tokens_in", "tokens_out")} for u in whole[3]]
        assert ideal / took >= least
