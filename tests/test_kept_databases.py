"Databases of what can be made again, used by threads and processes at once."

import sqlite3, subprocess, sys, textwrap, time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from treekit.utils.sqlite_cache import cache_database

TABLE = "vectors (key INTEGER PRIMARY KEY, vector BLOB)"


def written(path, start, count):
    "Rows, one a transaction, each read again."
    for i in range(start, start + count):
        with cache_database(path, TABLE, "vectors") as db:
            db.execute("INSERT OR IGNORE INTO vectors VALUES (?,?)", (i, bytes(1500)))
        with cache_database(path, TABLE, "vectors") as db:
            assert db.execute("SELECT 1 FROM vectors WHERE key=?", (i,)).fetchone()


@pytest.mark.long
def test_processes_that_come_and_go_lose_nothing(tmp_path):
    "A file that is opened and closed beside a connection loses the connection's locks: the next process to end takes its log away."
    path, here = tmp_path / "kept.sqlite", str(Path(__file__).parent)
    code = f"""
        import sys
        from pathlib import Path
        sys.path.insert(0, {here!r})
        from test_kept_databases import written
        written(Path({str(path)!r}), int(sys.argv[1]), 20)
    """

    def other(n):
        return subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(n)]).returncode

    written(path, 0, 1)
    with ThreadPoolExecutor(3) as pool:
        codes = [pool.submit(other, 1_000_000 * n) for n in range(1, 7)]
        count = 1
        while not all(c.done() for c in codes):
            written(path, count, 1)
            count += 1
    assert [c.result() for c in codes] == [0] * 6
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert db.execute("SELECT COUNT(*) FROM vectors").fetchone() == (count + 6 * 20,)
    db.close()


def test_another_file_in_its_place_is_opened(tmp_path):
    path = tmp_path / "kept.sqlite"
    written(path, 0, 3)
    for file in tmp_path.iterdir():
        file.unlink()
    written(path, 5, 2)
    with cache_database(path, TABLE, "vectors") as db:
        assert db.execute("SELECT COUNT(*) FROM vectors").fetchone() == (2,)


TOGETHER = """
import sys, time
from pathlib import Path
from treekit.utils.sqlite_cache import cache_database
from treekit.store.run_store import Store
for n in range(100):
    folder = Path(sys.argv[1], str(n))
    while not folder.exists(): pass  # all wait for it, and open what is in it at the same moment
    with cache_database(folder / "kept.sqlite", "t (key INTEGER PRIMARY KEY)", "rows") as db:
        db.execute("INSERT INTO t VALUES (?)", sys.argv[2:])
    with Store(folder / "store.sqlite"): pass
    (folder / sys.argv[2]).touch()
"""


@pytest.mark.long
def test_a_new_file_is_opened_by_several_processes_at_once(tmp_path):
    "SQLite refuses the switch to its log at once where another process makes it; none may end because of that."
    several = [subprocess.Popen([sys.executable, "-c", TOGETHER, str(tmp_path), str(i)]) for i in range(4)]
    for n in range(100):
        (tmp_path / str(n)).mkdir()
        while not all((tmp_path / str(n) / str(i)).exists() or p.poll() for i, p in enumerate(several)):
            time.sleep(0.002)
    assert [p.wait() for p in several] == [0] * 4
    for n in range(100):
        with closing(sqlite3.connect(tmp_path / str(n) / "kept.sqlite")) as db:
            assert db.execute("SELECT COUNT(*) FROM t").fetchone() == (4,)
