"Blows at the end of a run: Ctrl-C, a progress file that can't be written, somebody who stops watching, an owner who is gone."

import asyncio, json, random, re, signal, subprocess, sys, threading, time
from pathlib import Path

import pytest

from test_run import PROFILE, Read, Scripted, Shelf, go, questions
from treekit.config import RunOptions
from treekit.utils.process_identity import own_identity
from treekit.store.run_store import Store
from treekit.experiments.resources import LazyRetriever
from treekit.experiments.run import run

HANGING = """
import signal, sys
sys.path.insert(0, {tests!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from test_run import *
from treekit.experiments.resources import chat_for
p = load_profile("local", endpoint={url!r}, concurrency=8, timeout=30)
chat = chat_for(p)
print("ready", flush=True)
run({{"read": Read(steps=2)}}, questions(60), p, corpora={{"toy": LazyRetriever(Shelf, "shelf")}}, chat=chat,
    store=Store({path!r}), progress=False)
"""


def interrupted(server, path, rng):
    "A run against a server that hangs now and then, Ctrl-C at some moment: exit code and errors. It ends long before the server does."
    server.reset(
        latency=0.02, faults=[dict(kind="hang", match=f"number {i} ", times=1, seconds=300) for i in range(0, 60, 3)]
    )
    code = HANGING.format(tests=str(Path(__file__).parent), url=server.url, path=str(path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    time.sleep(rng.uniform(0, 1.0))
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it doesn't end: {process.communicate()[1]}")
    return process.returncode, err


@pytest.mark.slow
def test_ctrl_c_with_a_server_that_hangs(server, tmp_path):
    rng = random.Random(11)
    for i in range(3):
        path = tmp_path / f"{i}.sqlite"
        code, err = interrupted(server, path, rng)
        assert code in (1, 130, -signal.SIGINT) and err.rstrip().endswith("KeyboardInterrupt"), (i, code, err)
        assert not re.search(
            "Fatal Python|Segmentation|core dumped|Exception ignored|never retrieved|was destroyed", err
        ), (i, err)
        told = [r["text"] for r in server.requests if "tokens" in r and r.get("fault") != "hang"]
        kept = 0
        if path.exists():
            with Store(path) as store:
                kept = store.query("SELECT COUNT(*) FROM calls")[0][0]
        assert len(told) - 8 <= kept <= len(told), (i, kept, len(told))  # eight may be under way


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


@pytest.mark.parametrize("what", ["gone", "a file"])
def test_a_run_goes_on_without_its_progress_file(tmp_path, what):
    "Its folder is taken away, or is no folder: before, that ended the run while its calls went on."
    folder, chat = tmp_path / "told", Scripted(latency=0.02)
    folder.mkdir()

    def watch(told):
        if not folder.is_dir() or not told["calls"]:
            return
        for p in folder.iterdir():
            p.unlink()
        folder.rmdir()
        if what == "a file":
            folder.write_text("x")

    results = run(
        {"read": Read(steps=20)},
        questions(5),
        PROFILE,
        corpora={"toy": LazyRetriever(Shelf, "shelf")},
        options=RunOptions(Store(), chat, progress=False, command_dir=folder, watch=watch),
    )
    assert not results.failures and len(results.rows) == 5


PACKING = """
import sys
from treekit.store.run_store import Store
store = Store(sys.argv[1])
print("ready", flush=True)
while True: store.pack(sys.argv[2])
"""


def test_a_pack_that_was_killed_leaves_nothing_for_long(tmp_path):
    "Its file under another name goes with the next cassette to that place, and only that of a dead process does."
    from treekit.core.prompts import Completion

    with Store(tmp_path / "s.sqlite") as store:
        much = {f"k{i}": Completion(random.Random(i).randbytes(2000).hex()) for i in range(1500)}
        store.put_calls(much, json.dumps(dict(messages=[], parameters={})), "m", "e", {}, [0.1] * 1500)
    target, left = tmp_path / "out" / "tape", 0
    for i in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", PACKING, tmp_path / "s.sqlite", target], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(0.03 + 0.01 * i)
        process.kill()
        process.communicate()
        left = max(left, len([p for p in target.parent.glob("*") if p != target]))
        if left:
            break
    assert left, "no kill struck in time: make the store larger"
    (target.parent / f".tape.x.{own_identity().replace('/', '')}.part").write_text("of a living process")
    with Store(tmp_path / "s.sqlite") as store:
        store.pack(target)
    assert [p.name[:7] for p in sorted(target.parent.iterdir())] == [".tape.x", "tape"]
    assert len(Store.replay(target).query("SELECT key FROM calls")) == 1500


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
