"Blows to the store: a full disk, a lock, a kill, a fork, an end without a word. Nothing that was answered is lost or paid twice."

import json, os, random, sqlite3, subprocess, sys, textwrap, threading, time, zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes import FakeShelf
from treekit.config import load_profile
from treekit.core.prompts import Prompt
from treekit.core.method import Prediction
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import RESERVE, Store
from treekit.core.types import Passage, Question
from treekit.store.schema import StoreFailed
from treekit.experiments.resources import LazyRetriever, chat_for
from treekit.experiments.run import run

ASK = Prompt("blows/run", "answer", "$question\n\n$noise", TEXT)


@dataclass(frozen=True)
class Asks:
    "Two calls a question, the second after the first; each prompt is long."

    async def __call__(self, question, context):
        noise = random.Random(question.id).randbytes(3000).hex()
        for step in ("first", "then"):
            said = await context.ask(
                ASK, node=context.trace.add("answer", step), question="x", noise=f"{noise} {step} {question.id}"
            )
        return Prediction(said, context.trace, context.usage)


def go(server, path, n, **settings):
    "A run of n questions against the server."
    profile = load_profile("local", endpoint=server.url, **dict(concurrency=8) | settings)
    asking = {"d": [Question(f"q{i}", "d", f"What is {i}?", ("x",)) for i in range(n)]}
    shelf = {"d": LazyRetriever(lambda: FakeShelf([Passage("p", "t", "x")]), "shelf")}
    with Store(path) as store:
        return run(
            {"asks": Asks()}, asking, profile, corpora=shelf, store=store, chat=chat_for(profile), progress=False
        )


def texts(path):
    "The end of each recorded call's prompt, as the server's log has it."
    with Store(path) as store:
        bodies = store.query("SELECT body FROM requests JOIN calls ON request = hash")
    return [json.loads(zlib.decompress(body))["messages"][-1]["content"][-200:] for (body,) in bodies]


def answered(server):
    return [r["text"] for r in server.requests if "tokens" in r]


@pytest.fixture
def small_disk(tmp_path):
    "A disk of forty megabytes, and a function that leaves so many bytes of it."
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.name != "posix"
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", disk], capture_output=True).returncode
    ):
        pytest.skip("no right to mount a small disk")

    def leave(size):
        state = os.statvfs(disk)
        (disk / "filler").write_bytes(bytes(state.f_bavail * state.f_frsize - size))

    try:
        yield disk, leave
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.long
def test_a_full_disk_stops_the_run_and_loses_nothing(server, small_disk):
    "It fills up in the middle: what was under way is recorded, nothing new is asked, and with room the run goes on."
    (disk, leave), path = small_disk, small_disk[0] / "s.sqlite"
    server.script(latency=0.02)
    leave(RESERVE + 3_000_000)
    with pytest.raises(StoreFailed, match="is full.*free some space.*questions are left") as failed:
        go(server, path, 150)
    assert "\n" not in str(failed.value)
    paid = answered(server)
    assert 20 < len(paid) < 250 and len(paid) == server.count
    (disk / "filler").unlink()
    assert sorted(texts(path)) == sorted(paid)
    results = go(server, path, 150)
    assert not results.failures and len(answered(server)) == len(set(answered(server))) == 300


def locked_for(path, seconds, server, calls):
    "Another connection takes the lock once some calls are answered, and keeps it."

    def hold():
        other = sqlite3.connect(path, isolation_level=None, timeout=60)
        while server.count < 20:
            time.sleep(0.01)
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")
        other.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        return go(server, path, calls)
    finally:
        thread.join()


@pytest.mark.long
def test_a_lock_that_is_held_loses_and_doubles_nothing(server, tmp_path):
    server.script(latency=0.1)
    with Store(tmp_path / "s.sqlite"):
        pass
    results = locked_for(tmp_path / "s.sqlite", 3, server, 60)
    assert not results.failures, results.failures[0].error
    assert server.count == len(set(answered(server))) == 120 and sorted(texts(tmp_path / "s.sqlite")) == sorted(
        answered(server)
    )


SCRIPT = """
import asyncio, os, sqlite3, sys, threading, time
sys.path.insert(0, {tests!r})
from fakes import FakeChat
from workers import asked
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
chat = CachedClient(FakeChat("Lyon"), Store({path!r}))
def ask(*names):
    async def main(): await asyncio.gather(*(chat.complete(asked(question=n)) for n in names))
    asyncio.run(main())
def count(): return sqlite3.connect({path!r}).execute("SELECT COUNT(*) FROM calls").fetchone()[0]
"""


def ends(tmp_path, code, seconds=60):
    "A program of its own, and what it prints; it must end by itself."
    path = str(tmp_path / "s.sqlite")
    whole = SCRIPT.format(tests=str(Path(__file__).parent), path=path) + textwrap.dedent(code)
    run = [
        sys.executable,
        "-W",
        "ignore:This process:DeprecationWarning",
        "-c",
        whole,
    ]  # 3.12 warns of a fork beside threads
    done = subprocess.run(run, capture_output=True, text=True, timeout=seconds)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    with Store(path) as store:
        return done.stdout.split(), store.query("SELECT COUNT(*) FROM calls")[0][0]


def test_a_process_ends_and_what_waits_is_written(tmp_path):
    "Not closed, not waited for."
    assert ends(tmp_path, "ask('a', 'b')") == ([], 2)
