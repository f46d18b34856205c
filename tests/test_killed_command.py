"SIGKILL for `treekit reproduce`, in the middle: the same command again ends it, and no call is answered twice."
import os, signal, subprocess, sys, time

import pytest

import commands
from openai_server import Server
from test_cli import clone  # noqa: F401 (a fixture)
from treekit.store.run_store import Store

N, LATENCY = 60, 0.25
CODE = "from treekit.cli.main import main; main()"


def start(home, server, *more):
    words = ("reproduce", "treerare/table1", "--profile", "local", "--endpoint", server.url, "--data", "synthetic", "--n", N,
             "--set", "concurrency=4", "--set", "timeout=60", *more)
    env = {k: v for k, v in os.environ.items() if k != "TREEKIT_HOME"} | dict(PYTHONPATH=str(commands.ROOT))
    return subprocess.Popen([sys.executable, "-c", CODE, *map(str, words)], cwd=home, env=env, start_new_session=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
            texts |= {json.loads(zlib.decompress(body))["messages"][0]["content"][-200:] for (body,
                ) in s.query("SELECT body FROM requests")}
    return texts


def answered(server): return [r["text"] for r in server.requests if "answered" in r]


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the command", "everybody"])
def test_killed_in_the_middle(clone, whom):  # noqa: F811
    "A notebook ends with its command. What was sent and not answered is asked again, and nothing that lies in a store."
    with Server(latency=LATENCY) as server:
        first = start(clone, server)
        while server.count < N // 4: time.sleep(0.02)
        if whom == "everybody": os.killpg(first.pid, signal.SIGKILL)
        else: first.kill()
        first.wait()
        before = server.count
        time.sleep(3 * LATENCY)
        assert 0 < before < N and server.count - before <= 4, "the notebook goes on without its command"
        known, before = stored(clone), server.count
        ended(start(clone, server))
        texts = answered(server)
        twice = len(texts) - len(set(texts))
        print(f"\n{whom} killed after {before} of {N} calls: {len(known)} were stored, {twice} answered twice", end="")
        assert len(set(texts)) == N
        assert not known & {r["text"] for r in server.requests[before:]}, "a call that was stored is made again"
        assert twice <= 4, "a call was answered twice"  # those in flight at the kill
        count = server.count
        ended(start(clone, server))
        assert server.count == count
    assert list(clone.rglob("treerare/table1.csv"))


def dollars(server):
    "What all requests that the server has got cost at most, answered or not: its own counts, at the model's price."
    return sum((r["tokens"][0] * 0.15 + r["tokens"][1] * 0.60) / 1e6 if "tokens" in r else MOST for r in server.requests)


MOST = 6e-5  # dollars: more than any call of the table can cost with 64 tokens of reply
BUDGET = 30 * MOST  # for two thirds of the calls


@pytest.mark.slow
def test_a_killed_command_and_its_rerun_keep_one_budget(clone):  # noqa: F811
    "SIGKILL of the command alone: what was spent and in flight counts for the rerun. A command that ended by itself leaves nothing."
    paid = ("--model", "gpt-4o-mini", "--budget", f"{BUDGET:.6f}", "--set", "max_tokens=64")
    with Server(latency=LATENCY, usage=dict(prompt_tokens=60, completion_tokens=60)) as server:
        first = start(clone, server, *paid)
        while server.count < 8: time.sleep(0.02)
        time.sleep(2 * LATENCY)
        first.kill()
        first.wait()
        before = server.count
        time.sleep(8 * LATENCY)
        assert server.count - before <= 4, f"{server.count - before} requests after the kill"
        spent = dollars(server)
        second = start(clone, server, *paid)
        out, err = second.communicate(timeout=400)
        print(f"\n{before} requests before the kill, {server.count} in all: ${spent:.6f}, ${dollars(server):.6f} of ${BUDGET:.6f}", end="")
        assert second.returncode == 3 and "was killed" in err, err
        assert spent < dollars(server) <= BUDGET
        assert not [p for p in (clone / ".treekit").rglob("*") if "budget" in p.name.lower()]
