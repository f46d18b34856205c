"A process that holds a lock: who waits for it says so, and what to do."

import os, select, subprocess, sys
from pathlib import Path

import pytest

import resume_worker
from workers import processes

ROOT = Path(__file__).resolve().parents[1]
HOLDS = """
import sys, time
from pathlib import Path
from treekit.utils.atomic_write import file_lock
from treekit.store.run_store import run_lock
with (run_lock if sys.argv[1].endswith(".sqlite") else file_lock)(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def started(code, *words, **env):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | env,
    )


def line_within(process, seconds):
    "The first line of its errors; none by then is a failure."
    assert select.select([process.stderr], [], [], seconds)[0], "not a word"
    return process.stderr.readline().strip()


@pytest.mark.long
def test_a_second_run_waits_for_the_first_and_pays_nothing_twice(server, tmp_path):
    server.script(latency=0.02)
    runs = [
        processes.Process(target=resume_worker.main, args=(server.url, tmp_path / "s.sqlite", tmp_path / f"{i}", 12))
        for i in (1, 2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(120)
    assert [run.exitcode for run in runs] == [0, 0] and server.count == 12 * 5
    assert (tmp_path / "1" / "table.csv").read_bytes() == (tmp_path / "2" / "table.csv").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    "name, say", [("s.sqlite", "waiting for another run that uses 's.sqlite'"), ("vectors.json", "vectors.json")]
)
def test_a_lock_that_another_process_holds(tmp_path, name, say):
    "The waiting is said in a line; when the other process is killed, the system releases its lock."
    first = started(HOLDS, tmp_path / name, 60)
    try:
        first.stdout.readline()
        second = started(HOLDS, tmp_path / name, 0)
        try:
            assert say in line_within(second, 20)
            first.kill()
            assert second.wait(20) == 0
        finally:
            second.kill(), second.communicate()
    finally:
        first.kill(), first.communicate()
