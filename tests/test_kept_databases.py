"Databases of what can be made again, used by threads and processes at once."

import sqlite3, subprocess, sys, time
from contextlib import closing

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
