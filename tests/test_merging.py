"Stores made into one: whole or not at all, whatever is killed, and beside whoever writes."
import os, random, shutil, signal, subprocess, sys, time

import pytest

from treekit.config import UsageError
from treekit.store.single_flight import claim_soon
from treekit.core.prompts import Completion, Prompt
from treekit.store.store_merge import Merged, merge_stores, unmerged
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store, canonical_request, keys

ASKED = Prompt("test.merging", "answer", "$question", TEXT)
MERGE = "import sys; from treekit.store.store_merge import merge_stores; print('go', flush=True); merge_stores(sys.argv[1], sys.argv[2:])"


def fill(path, questions, text="reply to {}", cost=0.01):
    with Store(path) as store:
        for q in questions:
            request = ASKED(question=str(q))
            [name] = keys(request, "m", "http://here/v1")
            who = dict(method="x", dataset="d", question=str(q))
            store.put_calls({name: Completion(text.format(q), 5, 2)}, canonical_request(request, "m", "http://here/v1", None), "m",
                            "http://here/v1", who, [cost])
            store.put_prediction(f"p{q}", dict(answer=text.format(q), trace=dict(nodes=[dict(calls=[name])], notes=[])))
    return path


def counts(path):
    with Store(path) as s: return [s.query(f"SELECT COUNT(*) FROM {t}")[0][0] for t in ("calls", "predictions", "ledger", "requests")]


@pytest.mark.slow
def test_a_merge_that_is_killed_has_not_happened(tmp_path):
    "SIGKILL at fifteen moments of a merge of two stores: all of both, or nothing; and the next merge ends it."
    start = fill(tmp_path / "start.sqlite", range(50))
    parts = [fill(tmp_path / f"{i}.sqlite", range(100 * i, 100 * i + 1200)) for i in (1, 2)]
    rng, seen = random.Random(3), []
    for i in range(15):
        into = tmp_path / f"into{i}.sqlite"
        shutil.copy(start, into)
        process = subprocess.Popen([sys.executable, "-c", MERGE, into, *parts], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "go\n"
        time.sleep(rng.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        seen.append(counts(into))
        assert seen[-1] in ([50] * 4, [1350, 1350, 2450, 1350]), seen[-1]
        merge_stores(into, parts)
        assert counts(into) == [1350, 1350, 2450, 1350] and merge_stores(into, parts) == Merged()
    assert [50] * 4 in seen


def test_beside_a_store_that_is_open_and_written(tmp_path):
    "A source that is being written, and an INTO that others have open: nobody loses a lock or a row."
    into, part = fill(tmp_path / "into.sqlite", range(10)), fill(tmp_path / "part.sqlite", range(20, 30))
    with Store(into) as a, Store(part) as b:
        b.put_prediction("late", dict(answer="late"))
        assert merge_stores(into, [part]).predictions == 11
        b.put_prediction("later", dict(answer="later"))
        assert unmerged(into, part) and a.get_prediction("late")["answer"] == "late"
        a.put_prediction("own", dict(answer="own"))
        assert merge_stores(into, [part]).predictions == 1
    with Store(into) as a: assert a.get_prediction("own") and a.get_prediction("later") and a.query("PRAGMA integrity_check") == [("ok",)]


def test_what_a_killed_worker_has_written_is_merged(tmp_path):
    code = ("import os, signal; from treekit.store.run_store import Store; s = Store('part.sqlite')\n"
            "for i in range(100): s.put_prediction(f'p{i}', dict(answer=str(i)))\n"
            "os.kill(os.getpid(), signal.SIGKILL)")
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ)).returncode == -9
    assert merge_stores(tmp_path / "into.sqlite", [tmp_path / "part.sqlite"]).predictions == 100


def test_leases_stay_and_those_of_what_came_are_gone(tmp_path):
    import asyncio
    part = fill(tmp_path / "part.sqlite", ["a"])
    [a], [b] = (keys(ASKED(question=q), "m", "http://here/v1") for q in "ab")
    with Store(tmp_path / "into.sqlite") as store, Store(part) as other:
        async def main(): return claim_soon(store, [a, b]).result(), claim_soon(other, [b]).result()
        assert asyncio.run(main()) == ([a, b], [b])
        merge_stores(store.path, [part])
        assert store.query("SELECT key FROM leases") == [(b,)]
        assert len(other.query("SELECT key FROM leases")) == 1


def test_what_contradicts_is_named_and_changes_nothing(tmp_path):
    into = fill(tmp_path / "into.sqlite", range(5))
    parts = [fill(tmp_path / "good.sqlite", range(5, 9)), fill(tmp_path / "bad.sqlite", range(3, 7), "another {}")]
    with pytest.raises(UsageError, match=r"'bad.sqlite' contradicts: call .* 'reply to .' in one and 'another .' in the other"):
        merge_stores(into, parts)
    assert counts(into) == [5, 5, 5, 5]
    made = merge_stores(into, parts, first=True)
    assert (made.calls, made.predictions, made.left) == (4, 4, 4) and counts(into)[:2] == [9, 9]
    with Store(into) as s:
        [used] = s.usage(())
        assert used["calls"] == 9 and abs(used["cost_original"] - 0.09) < 1e-9 and abs(used["cost_now"] - 0.13) < 1e-9


def test_one_reply_that_took_longer_is_no_contradiction(tmp_path):
    paths = [fill(tmp_path / f"{i}.sqlite", ["a"], cost=0.01 * i) for i in (1, 2)]
    assert merge_stores(paths[0], paths[1:]).calls == 0


def test_of_a_damaged_store_what_can_be_read_is_taken(tmp_path):
    "A row that can't be read is skipped; a file whose pages are damaged is refused, and changes nothing."
    into, part = fill(tmp_path / "into.sqlite", range(3)), fill(tmp_path / "part.sqlite", range(5, 50))
    with Store(part) as s: s.submit(lambda db: db.execute("UPDATE calls SET completion='{' WHERE rowid=30")).result()
    made = merge_stores(into, [part])
    assert (made.calls, made.skipped) == (44, 1) and counts(into) == [47, 48, 48, 48]
    part.write_bytes(part.read_bytes()[:30000])
    with pytest.raises(UsageError, match="treekit store salvage"): merge_stores(into, [part])
    assert counts(into) == [47, 48, 48, 48]
