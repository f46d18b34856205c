"Blows to the store: a full disk, a lock, a kill, a fork, an end without a word. Nothing that was answered is lost or paid twice."

import asyncio, json, os, random, shutil, sqlite3, subprocess, sys, textwrap, threading, time, zlib
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
from treekit.store.errors import StoreFailed
from treekit.experiments.resources import LazyRetriever, chat_for
from treekit.experiments.run import run
from treekit.experiments.run_records import announce_run
from workers import asked, chat

ASK = Prompt("blows/run", "answer", "$question\n\n$noise", TEXT)
NOISE = random.Random(0)


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
    profile = load_profile("local", endpoint=server.url, **dict(concurrency=8, timeout=20) | settings)
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


def test_on_a_disk_that_is_full_already_nothing_is_paid(server, small_disk):
    (_, leave), path = small_disk, small_disk[0] / "s.sqlite"
    with Store(path):
        pass
    leave(500_000)
    with pytest.raises(StoreFailed, match="less than 4 MB are left"):
        go(server, path, 20)
    assert server.count == 0


def test_a_store_that_is_removed_stops_the_run(server, tmp_path):
    "Its answers could be read by nobody, and would be paid again."
    path = tmp_path / "home" / "s.sqlite"
    server.script(latency=0.05)

    def remove():
        while server.count < 40:
            time.sleep(0.005)
        shutil.rmtree(path.parent, ignore_errors=True)  # a file may be made in it meanwhile

    remover = threading.Thread(target=remove)
    remover.start()
    with pytest.raises(StoreFailed, match="was moved or removed while this ran|can't be opened") as failed:
        go(server, path, 150)
    remover.join()
    assert "\n" not in str(failed.value) and 40 <= server.count < 200


def test_a_record_that_the_disk_does_not_take_is_one_line(tmp_path):
    "Not SQLite's own exception."
    profile = load_profile("local")
    questions = {"d": [Question(f"q{i}", "d", random.Random(i).randbytes(3000).hex(), ("x",)) for i in range(9)]}
    keys = {("asks", "d", q.id): "k" for q in questions["d"]}
    with Store(tmp_path / "s.sqlite") as store:
        limit(store, 1)
        with pytest.raises(StoreFailed, match="the disk is full; free some space"):
            announce_run(store, {"asks": Asks()}, questions, profile, keys)


def limit(store, pages):
    store.connection.db.execute(f"PRAGMA max_page_count={pages}")


def test_what_cant_be_written_anywhere_waits_in_memory(server, tmp_path):
    "A file that may not grow, where no room set aside helps."
    stored = chat(tmp_path / "s.sqlite", server.url)

    async def all_of(some):
        asks = (stored.complete(asked(question=NOISE.randbytes(3000).hex() + q)) for q in some)
        return await asyncio.gather(*asks, return_exceptions=True)

    assert asyncio.run(all_of("abc"))
    limit(stored.store, 1)
    results = asyncio.run(all_of("defg"))
    assert all(isinstance(r, StoreFailed) for r in results) and "stored" not in str(results[0])
    before = len(texts(tmp_path / "s.sqlite"))
    limit(stored.store, 1_000_000)
    stored.store.flush()
    assert before == 3 and sorted(t[-50:] for t in texts(tmp_path / "s.sqlite")) == sorted(
        t[-50:] for t in answered(server)
    )


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


def test_a_lock_that_is_never_released_is_one_line(server, tmp_path):
    stored = chat(tmp_path / "s.sqlite", server.url)
    stored.store.connection.db.execute("PRAGMA busy_timeout=100")
    other = sqlite3.connect(tmp_path / "s.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="another process holds its lock; end that process"):
        asyncio.run(stored.complete(asked(question="a")))
    other.close()
    stored.store.flush()  # the reply waited in memory
    assert asyncio.run(stored.complete(asked(question="a"))) and server.count == 1


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


def test_what_waits_in_a_parent_is_written_once(tmp_path):
    "A forked child ends without a write."
    code = """
        ask("a")
        chat.store.log_unpaid(["k"], dict(method="m"))
        def child(work):
            if pid := os.fork(): return os.waitpid(pid, 0)[1]
            work()
            sys.exit()
        print(child(lambda: None))
        ask("b")
        """
    assert ends(tmp_path, code) == (["0"], 2)
    with Store(tmp_path / "s.sqlite") as store:
        assert store.query("SELECT COUNT(*) FROM ledger WHERE outcome = 1") == [(1,)]


@pytest.fixture(scope="session")
def locks(tmp_path_factory):
    'A function that runs the command where locks are "granted" to everybody, or "refused", as on some network file systems.'
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    cc, source = shutil.which("cc"), Path(__file__).with_name("lock_shim.c")
    build = [cc, "-shared", "-fPIC", "-o", library, source, "-ldl"]
    if not cc or sys.platform != "linux" or subprocess.run(build, capture_output=True).returncode:
        pytest.skip("no C compiler for the file system whose locks fail")

    def treekit(kind, home, *words):
        env = os.environ | dict(LD_PRELOAD=str(library), LOCKS=kind, TREEKIT_HOME=str(home))
        done = subprocess.run(
            [sys.executable, "-m", "treekit", *map(str, words)], env=env, capture_output=True, text=True, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    return treekit


@pytest.mark.parametrize(
    "kind, why", [("granted", "two commands would pay for the same calls"), ("refused", "no lock can be taken")]
)
def test_where_locks_do_not_hold_nothing_is_paid(server, locks, tmp_path, kind, why):
    words = ("--profile", "local", "--endpoint", server.url, "--model", "m", "--data", "synthetic")
    for command in (("reproduce", "toq/table2"), ("ask", "Who?"), ("doctor",)):
        code, said = locks(kind, tmp_path, *command, *words)
        assert command == ("doctor",) or not server.requests
        assert code == 2 and why in said and "TREEKIT_HOME" in said and "Traceback" not in said, said
