"""How much memory an export takes, however long the run.

    pytest tests/benchmarks/test_exports_memory.py -s

Two runs made by hand, of 25,000 and of 100,000 calls with prompts of two to three kilobytes, each exported by a process of its own that
says how much memory it has had at most. Calls, trees and rows of tables are written as they are read, SQLite's cache is two megabytes, and
intervals are drawn in blocks. What is left to grow is the run's own list of questions and answers: 4 kB an answer at most, here 3,750 of
them more, or 15 MB. Measured: 192 and 202 MB.
"""

import json, subprocess, sys, time, zlib
from pathlib import Path

import pytest

from treekit.config import load_profile
from treekit.core.method import Prediction, Trace, Usage
from treekit.store.run_store import Store
from treekit.core.types import Question
from treekit.experiments.run_records import save_run
from treekit.experiments.results import Row

EXPORT = """
import json, resource, sys, time
from treekit.store.run_store import Store
from treekit.explorer.runs import open_run
from treekit.exports.parquet import export_parquet
began = time.perf_counter()
counts = export_parquet([open_run(Store(sys.argv[1]), "last")], sys.argv[2])
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(dict(calls=counts["calls"], seconds=time.perf_counter() - began, mb=most)))
"""


def made(path, questions, each=20):
    "A store with a run of `questions` × `each` calls, none like another."
    asked, rows = (
        [Question(f"q{i}", "films", f"Who filmed the film {i}?", ("Ada",), hops=i % 4) for i in range(questions)],
        [],
    )
    with Store(path) as store:
        for q in asked:
            trace, calls, requests = Trace(), [], []
            for j in range(each):
                node, key = (
                    trace.add("step", f"step {j} of {q.id}", hits=[dict(id=f"p{j}", title=f"Page {j}", score=1.0)]),
                    f"{q.id}-{j}",
                )
                node.calls.append(key)
                said = dict(
                    messages=[dict(role="user", content=f"{key} " + f"passage {j} of the long prompt. " * 90)],
                    parameters={},
                )
                calls.append((key, key, 0, json.dumps(dict(text=f"reply {key} " * 8)), 700, 20, 0.0001, 1e9))
                requests.append((key, "m", "https://x", zlib.compress(json.dumps(said).encode(), 1)))
            record = Prediction("Ada", trace, Usage(calls=each)).to_json()
            rest, packed = (
                {k: v for k, v in record.items() if k != "trace"},
                zlib.compress(json.dumps(record["trace"]).encode()),
            )
            with store.transaction() as db:
                db.executemany("INSERT INTO calls VALUES (?,?,?,?,?,?,?,?)", calls)
                db.executemany("INSERT INTO requests VALUES (?,?,?,?)", requests)
                db.execute("INSERT INTO predictions VALUES (?,?,?,?)", (q.id, json.dumps(rest), packed, 1e9))
            rows.append(Row("M", "films", q, "Ada", "", Usage(), q.id))
        save_run(store, {"M": asked[0]}, {"films": asked}, load_profile("openai"), rows)
    return path


def exported(path, out):
    done = subprocess.run([sys.executable, "-c", EXPORT, path, out], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def test_a_run_of_a_hundred_thousand_calls_in_bounded_memory(tmp_path):
    pytest.importorskip("pyarrow")
    small = exported(made(tmp_path / "small.sqlite", 1_250), tmp_path / "small")
    began = time.perf_counter()
    store = made(tmp_path / "large.sqlite", 5_000)
    large = exported(store, tmp_path / "large")
    size = sum(f.stat().st_size for f in Path(tmp_path / "large").iterdir()) / 1e6
    for one in (small, large):
        print(f"\n{one['calls']:,} calls: {one['mb']:.0f} MB at most, {one['seconds']:.1f} s", end="")
    print(
        f"\nstore {store.stat().st_size / 1e6:.0f} MB, Parquet {size:.1f} MB; made and exported in {time.perf_counter() - began:.0f} s"
    )
    grown = large["mb"] - small["mb"]
    print(
        f"four times the calls: {large['mb'] / small['mb']:.2f} of the memory, {1000 * grown / 3_750:.1f} kB for each further answer"
    )
    assert (small["calls"], large["calls"]) == (25_000, 100_000)
    assert grown < 15 and large["mb"] < 1.1 * small["mb"]
