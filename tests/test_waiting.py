"A stopped process that holds locks: who waits for it says so, and what to do."
import os, select, signal, sqlite3, subprocess, sys, time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from treekit.config import RunOptions
from workers import ask_all, processes

ROOT = Path(__file__).resolve().parents[1]
ASKS = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from workers import asked, chat
async def main():
    stored = chat({path!r}, {url!r})
    print("ready", flush=True)
    await stored.complete(asked(question="Where?"))
    await stored.close()
asyncio.run(main())
"""
HOLDS = """
import sys, time
from pathlib import Path
from treekit.utils.atomic_write import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def started(code, *words, **env):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=ROOT, env=os.environ | env)


def line_within(process, seconds):
    "The first line of its errors; none by then is a failure."
    assert select.select([process.stderr], [], [], seconds)[0], "not a word"
    return process.stderr.readline().strip()


@pytest.mark.long
def test_a_call_that_a_stopped_process_has_under_way(server, tmp_path):
    "The line names the process; when that goes on, both end, and the call was made once."
    server.script(latency=1.0)
    code = ASKS.format(tests=str(ROOT / "tests"), path=str(tmp_path / "s.sqlite"), url=server.url)
    first = started(code)
    try:
        while not server.count: time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)
        second = started(code, **RunOptions(command_dir=tmp_path).for_child(tmp_path))
        try:
            second.stdout.readline()
            said = line_within(second, 20)
            assert str(first.pid) in said and "stopped" in said and f"kill -CONT {first.pid}" in said and f"kill -KILL {first.pid}" in said
            assert said in (tmp_path / "notices.txt").read_text()  # for the terminal of the command
            first.send_signal(signal.SIGCONT)
            assert second.wait(30) == first.wait(30) == 0 and server.count == 1
        finally: second.kill(), second.communicate()
    finally: first.kill(), first.communicate()


@pytest.mark.long
def test_a_file_that_another_process_keeps_to_itself(tmp_path):
    place = tmp_path / "vectors.json"
    first = started(HOLDS, place, 60)
    try:
        first.stdout.readline()
        second = started(HOLDS, place, 0)
        try:
            assert "vectors.json" in line_within(second, 20)
            first.kill()
            assert second.wait(20) == 0
        finally: second.kill(), second.communicate()
    finally: first.kill(), first.communicate()


@pytest.mark.long
def test_a_run_locks_the_calls_in_flight_and_a_few_more(server, tmp_path):
    "Of eighty calls that wait for four places, six are locked; a second run makes some of the others, and none is made twice."
    path, questions = tmp_path / "s.sqlite", [f"Question {n}?" for n in range(80)]
    server.script(latency=0.1)
    runs, most = [processes.Process(target=ask_all, args=(path, server.url, questions, 4)) for _ in range(2)], 0
    for run in runs: run.start()
    while any(run.is_alive() for run in runs):
        if path.exists():
            with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as db:
                most = max([most, *(n for n, in db.execute("SELECT COUNT(*) FROM leases GROUP BY owner"))])
        time.sleep(0.01)
    assert [run.exitcode for run in runs] == [0, 0] and server.count == 80 and 4 <= most <= 6
    assert server.most_at_once > 4  # both runs asked
