"Blows at the end of a run: Ctrl-C, a progress file that can't be written, somebody who stops watching, an owner who is gone."
import asyncio, os, random, re, signal, subprocess, sys, threading, time
from pathlib import Path

import pytest

from test_run import PROFILE, Read, Scripted, Shelf, go, questions
from treekit.core import leases, writing
from treekit.core.store import Store, keys
from treekit.experiments.provide import Lazy
from treekit.experiments.run import Session, run
from workers import asked, chat, processes

HANGING = """
import signal, sys
sys.path.insert(0, {tests!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from test_run import *
from treekit.experiments.provide import chat_for
p = load_profile("local", endpoint={url!r}, concurrency=8, timeout=30)
chat = chat_for(p)
print("ready", flush=True)
run({{"read": Read(steps=2)}}, questions(60), p, corpora={{"toy": Lazy(Shelf, "shelf")}}, chat=chat, store=Store({path!r}), progress=False)
"""


def interrupted(server, path, rng):
    "A run against a server that hangs now and then, Ctrl-C at some moment: exit code, errors, seconds to the end."
    server.reset(latency=0.02, faults=[dict(kind="hang", match=f"number {i} ", times=1, seconds=60) for i in range(0, 60, 3)])
    code = HANGING.format(tests=str(Path(__file__).parent), url=server.url, path=str(path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    time.sleep(rng.uniform(0, 1.0))
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    try: _, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it doesn't end: {process.communicate()[1]}")
    return process.returncode, err, time.monotonic() - began


def interrupt_often(server, tmp_path, times):
    rng, ends = random.Random(11), []
    for i in range(times):
        path = tmp_path / f"{i}.sqlite"
        code, err, seconds = interrupted(server, path, rng)
        ends.append(seconds)
        assert code in (1, 130, -signal.SIGINT) and err.rstrip().endswith("KeyboardInterrupt"), (i, code, err)
        assert not re.search("Fatal Python|Segmentation|core dumped|Exception ignored|never retrieved|was destroyed", err), (i, err)
        told = [r["text"] for r in server.requests if "tokens" in r and r.get("fault") != "hang"]
        kept = 0
        if path.exists():
            with Store(path) as store: kept = store._all("SELECT COUNT(*) FROM calls")[0][0]
        assert len(told) - 8 <= kept <= len(told), (i, kept, len(told))  # eight may be under way
    return max(ends)


def test_ctrl_c_with_a_server_that_hangs(server, tmp_path): assert interrupt_often(server, tmp_path, 3) < 15


@pytest.mark.slow
def test_ctrl_c_fifty_times(server, tmp_path): print(f"the slowest end took {interrupt_often(server, tmp_path, 50):.1f} s")
