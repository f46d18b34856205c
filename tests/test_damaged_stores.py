"Damaged stores: a bad row is skipped and named, and a bad file is one line."

import sqlite3

import pytest

from treekit.config import UsageError
from treekit.core.prompts import Completion
from treekit.store.run_store import Store, canonical_request, keys
from workers import asked

N = 400


def fill(path, n=N, url="http://a"):
    "A store with n calls, as many predictions, and their call log; the keys of the calls."
    names = []
    with Store(path) as store:
        for i in range(n):
            request = asked(question=f"Where is {i}? " + "long " * 20)
            [key], sent = keys(request, "m", url), canonical_request(request, "m", url, None)
            who = dict(method="a", dataset="d", question=i)
            store.put_calls({key: Completion(f"reply {i} " * 8)}, sent, "m", store_url := url, who, [0.001])
            store.put_prediction(f"p{i}", dict(answer=f"{i}", trace=dict(nodes=[dict(calls=[key])])))
            names.append(key)
    return names


def change(path, sql, *values):
    db = sqlite3.connect(path)
    db.execute(sql, values)
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("PRAGMA journal_mode=DELETE")
    db.close()


BAD = {
    "no JSON": "{",
    "no text": '{"text":3}',
    "a list": "[]",
    "a number": "3",
    "null": None,
    "bytes": b"\xff\xfe",
    "an unknown field": '{"text":"x","colour":"red"}',
    "logprobs": '{"text":"x","logprobs":[["a"]]}',
    "infinite": '{"text":"x","logprobs":[["a",1e999]]}',
    "counts": '{"text":"x","tokens_in":-5}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_skipped_and_named(tmp_path, name, capfd):
    "A replay goes on without it; the call counts as not cached."
    path = tmp_path / "s.sqlite"
    ks = fill(path, 6)
    change(path, "UPDATE calls SET completion = ? WHERE key = ?", BAD[name], ks[2])
    with Store(path) as store:
        assert set(store.calls(ks)) == set(ks) - {ks[2]}
        packed = store.pack(tmp_path / "tape.treekit")
    with Store.replay(packed) as tape:
        assert set(tape.calls(ks)) == set(ks) - {ks[2]}
    said = capfd.readouterr().err
    assert "calls" in said and ks[2][:12] in said and "asked again" in said and "Traceback" not in said


def damaged(path, how):
    "Damage a store's file; the middle page of its calls is found by a text in it."
    whole = bytearray(path.read_bytes())
    if how == "truncated":
        whole = whole[: int(len(whole) * 0.7) // 4096 * 4096]
    elif how == "cut inside a page":
        whole = whole[: int(len(whole) * 0.7) + 777]
    else:
        at = whole.find(b"reply 200 ") // 4096 * 4096
        whole[at : at + 4096] = bytes(4096) if how == "zeros" else b"\xa5" * 4096
    path.write_bytes(whole)


@pytest.mark.parametrize("how", ["truncated", "cut inside a page", "zeros", "noise"])
def test_a_damaged_file_is_one_clear_line(tmp_path, how):
    path = tmp_path / "s.sqlite"
    ks = fill(path)
    change(path, "DELETE FROM about")
    damaged(path, how)

    def use():
        with Store(path) as store:
            return store.calls(ks)

    for act in (use, lambda: Store.replay(path)):
        with pytest.raises(UsageError, match="is damaged.* move it away, or put a backup in its place") as e:
            act()
        assert "\n" not in str(e.value)


def test_a_changed_byte_of_a_reply_is_noticed(tmp_path, capfd):
    "The JSON stays valid, so only the checksum tells; a reply of an earlier version has none."
    replies = dict(a=Completion("Lyon", 3, 4, latency=0.1), b=Completion("Lyon"))
    with Store(tmp_path / "s.sqlite") as store:
        store.put_calls(replies, '{"messages":[]}', "m", "e", {}, [None, None])
        with store.transaction() as db:
            db.execute("UPDATE calls SET completion = replace(completion, 'Lyon', 'Lyan') WHERE key = 'a'")
            db.execute("UPDATE calls SET completion = json_remove(completion, '$.crc') WHERE key = 'b'")
        assert store.calls(["a", "b"]) == {"b": Completion("Lyon")}
    assert "can't be read" in capfd.readouterr().err
