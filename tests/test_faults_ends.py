"Blows at the end of a run: Ctrl-C, a progress file that can't be written, somebody who stops watching, an owner who is gone."

import asyncio, signal, subprocess, sys, threading, time
from pathlib import Path

import pytest

from test_run import Scripted, go, questions


def test_a_run_that_is_cancelled_before_it_begins_asks_nothing(monkeypatch):
    "Ctrl-C in the moment between the thread's start and its loop's."
    chat, real = Scripted(), asyncio.run

    def late(main):
        time.sleep(2)
        return real(main)

    monkeypatch.setattr(asyncio, "run", late)

    def interrupt(told):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(asked=questions(50), chat=chat, watch=interrupt)
    assert chat.asked == []


def test_whatever_ends_a_run_ends_its_calls():
    "Somebody who watches raises an error: before, the run went on, and went on paying."
    chat, seen = Scripted(latency=0.05), []

    def watch(told):
        seen.append(told)
        if told["calls"]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go(asked=questions(600), chat=chat, watch=watch)
    so_far = len(chat.asked)
    time.sleep(0.3)
    assert len(chat.asked) == so_far < 600 and "treekit-run" not in [t.name for t in threading.enumerate()]


SLOW_TO_CLOSE = """
import asyncio, signal, sys
sys.path.insert(0, {tests!r})
signal.signal(signal.SIGINT, signal.default_int_handler)
from test_run import *
class Slow(Scripted):
    async def complete(self, *asked):
        print("asking", flush=True)
        return await super().complete(*asked)
    async def close(self):
        await asyncio.sleep(1)
        print("closed", flush=True)
shelf = {{"toy": LazyRetriever(Shelf, "shelf")}}
try: run({{"read": Read()}}, questions(500), PROFILE, corpora=shelf, chat=Slow(20), store=Store(), progress=False)
finally: print("ended", flush=True)
"""


@pytest.mark.long
def test_after_ctrl_c_the_runs_thread_is_waited_for():
    "Python's `join` takes it for ended when Ctrl-C strikes (bpo-45274): it then ran into the interpreter's end, at worst into a crash."
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW_TO_CLOSE.format(tests=str(Path(__file__).parent))],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout.readline().strip() == "asking"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0].split()[-2:] == ["closed", "ended"]
