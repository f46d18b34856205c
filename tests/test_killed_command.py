"SIGKILL for `treekit reproduce`, in the middle: the same command again ends it, and no call is answered twice."

import os, subprocess, sys, time

import pytest

import commands
from openai_server import Server
from test_cli import clone  # noqa: F401 (a fixture)
from treekit.store.run_store import Store

N, LATENCY = 60, 0.25
CODE = "from treekit.cli.main import main; main()"


def start(home, server, *more):
    words = (
        "reproduce",
        "treerare/table1",
        "--profile",
        "local",
        "--endpoint",
        server.url,
        "--data",
        "synthetic",
        "--n",
        N,
        "--set",
        "concurrency=4",
        *more,
    )
    env = {k: v for k, v in os.environ.items() if k != "TREEKIT_HOME"} | dict(PYTHONPATH=str(commands.ROOT))
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *map(str, words)],
        cwd=home,
        env=env,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    return out


def stored(home):
    "The prompts of all calls that lie in a store."
    import json, zlib

    texts = set()
    for path in (home / ".treekit/store").glob("*.sqlite"):
        with Store(path) as s:
            texts |= {
                json.loads(zlib.decompress(body))["messages"][0]["content"][-200:]
                for (body,) in s.query("SELECT body FROM requests")
            }
    return texts


def answered(server):
    return [r["text"] for r in server.requests if "answered" in r]


@pytest.mark.slow
def test_killed_in_the_middle(clone):  # noqa: F811
    "A notebook ends with its command. What was sent and not answered is asked again, and nothing that lies in a store."
    with Server(latency=LATENCY) as server:
        first = start(clone, server)
        while server.count < N // 4:
            time.sleep(0.02)
        first.kill()
        first.wait()
        time.sleep(2)  # a kernel looks for its parent once a second
        before = server.count
        time.sleep(3 * LATENCY)
        assert 0 < before == server.count < N, "the notebook goes on without its command"
        known, before = stored(clone), server.count
        ended(start(clone, server))
        texts = answered(server)
        twice = len(texts) - len(set(texts))
        print(f"\nkilled after {before} of {N} calls: {len(known)} were stored, {twice} answered twice", end="")
        assert len(set(texts)) == N
        assert not known & {r["text"] for r in server.requests[before:]}, "a call that was stored is made again"
        assert twice <= 4, "a call was answered twice"  # those in flight at the kill
        count = server.count
        ended(start(clone, server))
        assert server.count == count
    assert list(clone.rglob("treerare/table1.csv"))
