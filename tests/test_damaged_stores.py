"Damaged stores: a bad row is skipped and named, and `treekit store check` and `treekit store salvage` deal with a bad file."
import asyncio, sqlite3

import pytest
from click.testing import CliRunner

from treekit.config import UsageError
from treekit.core.prompts import Completion
from treekit.store.store_merge import merge_stores
from treekit.store.run_store import Store, canonical_request, keys
from workers import asked, chat

N = 400


def fill(path, n=N, url="http://a"):
    "A store with n calls, as many predictions, and their ledger; the keys of the calls."
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


def command(*words):
    "`treekit store WORDS` with its exit code, and its lines."
    from treekit.cli.main import main
    done = CliRunner().invoke(main, ["store", *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output.splitlines()


BAD = {"no JSON": "{", "no text": '{"text":3}', "a list": "[]", "a number": "3", "null": None, "bytes": b"\xff\xfe",
       "an unknown field": '{"text":"x","colour":"red"}', "logprobs": '{"text":"x","logprobs":[["a"]]}',
       "infinite": '{"text":"x","logprobs":[["a",1e999]]}', "counts": '{"text":"x","tokens_in":-5}'}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_row_is_skipped_and_named(tmp_path, name, capfd):
    "Replay and merge go on without it; the call counts as not cached."
    path = tmp_path / "s.sqlite"
    ks = fill(path, 6)
    change(path, "UPDATE calls SET completion = ? WHERE key = ?", BAD[name], ks[2])
    with Store(path) as store:
        assert set(store.calls(ks)) == set(ks) - {ks[2]}
        packed = store.pack(tmp_path / "tape.treekit")
    with Store.replay(packed) as tape: assert set(tape.calls(ks)) == set(ks) - {ks[2]}
    said = capfd.readouterr().err
    assert "calls" in said and ks[2][:12] in said and "treekit store check" in said and "Traceback" not in said
    made = merge_stores(tmp_path / "all.sqlite", [path])
    assert (made.calls, made.skipped, made.predictions) == (5, 1, 6)
    assert ks[2][:12] in capfd.readouterr().err
    code, lines = command("check", path)
    assert code == 1 and len([line for line in lines if ks[2][:12] in line]) == 1, lines


@pytest.mark.parametrize("name", BAD)
def test_a_bad_reply_is_asked_again_and_replaced(server, tmp_path, name):
    "No endless wait for a call that is there and can't be read: it is made once more, and then it is cached."
    path = tmp_path / "s.sqlite"
    def go():
        async def main():
            stored = chat(path, server.url)
            try: return await asyncio.wait_for(stored.complete(asked(question="Where?")), 20)
            finally:
                await stored.close()
                stored.store.close()
        return asyncio.run(main())
    [first] = go()
    change(path, "UPDATE calls SET completion = ?", BAD[name])
    assert go()[0].text == first.text and server.count == 2
    assert go()[0].text == first.text and server.count == 2
    assert command("check", path)[0] == 0


def test_a_bad_row_of_another_table_is_left_out(tmp_path, capfd):
    path = tmp_path / "s.sqlite"
    ks = fill(path, 6)
    change(path, "UPDATE predictions SET row = '{' WHERE key = 'p1'")
    change(path, "UPDATE requests SET body = x'00' WHERE rowid = 3")
    with Store(path) as store:
        assert store.get_prediction("p1") is None and store.get_prediction("p2")["answer"] == "2"
        assert len(store.requests(ks)) == 5
    made = merge_stores(tmp_path / "all.sqlite", [path])
    assert (made.calls, made.predictions, made.skipped) == (6, 5, 2)
    said = capfd.readouterr().err
    assert "predictions" in said and "requests" in said
    code, lines = command("check", path)
    assert code == 1 and any("predictions" in line and "p1" in line for line in lines) and any("requests" in line for line in lines)


def test_a_sound_store_is_said_to_be_sound(tmp_path):
    fill(tmp_path / "s.sqlite", 5)
    code, [line] = command("check", tmp_path / "s.sqlite")
    assert code == 0 and "5 calls" in line and "5 predictions" in line


def test_salvage_leaves_out_a_bad_row_and_says_so(tmp_path):
    path, new = tmp_path / "s.sqlite", tmp_path / "new.sqlite"
    ks = fill(path, 6)
    change(path, "UPDATE calls SET completion = '{' WHERE key = ?", ks[2])
    before = path.read_bytes()
    code, lines = command("salvage", path, new)
    assert code == 0 and any("1 left" in line for line in lines), lines
    assert path.read_bytes() == before
    with Store(new) as store: assert set(store.calls(ks)) == set(ks) - {ks[2]} and len(store.usage()) == 1
    assert command("check", new)[0] == 0
    code, lines = command("salvage", path, new)  # never over a file
    assert code == 2 and "exists" in lines[-1]


def damaged(path, how):
    "Damage a store's file; the middle page of its calls is found by a text in it."
    whole = bytearray(path.read_bytes())
    if how == "truncated": whole = whole[:int(len(whole) * .7) // 4096 * 4096]
    elif how == "cut inside a page": whole = whole[:int(len(whole) * .7) + 777]
    else:
        at = whole.find(b"reply 200 ") // 4096 * 4096
        whole[at:at + 4096] = bytes(4096) if how == "zeros" else b"\xa5" * 4096
    path.write_bytes(whole)


@pytest.mark.parametrize("how", ["truncated", "cut inside a page", "zeros", "noise"])
def test_a_damaged_file_is_one_clear_line_and_is_salvaged(server, tmp_path, how):
    path, new = tmp_path / "s.sqlite", tmp_path / "new.sqlite"
    ks = fill(path)
    change(path, "DELETE FROM leases")
    damaged(path, how)
    def use():
        with Store(path) as store: return store.calls(ks)
    with pytest.raises(UsageError, match="treekit store salvage") as e: use()
    assert "\n" not in str(e.value) and "treekit store check" in str(e.value)
    for act in (lambda: merge_stores(tmp_path / "all.sqlite", [path]), lambda: Store.replay(path)):
        with pytest.raises(UsageError, match="treekit store salvage"): act()
    assert not (tmp_path / "all.sqlite").exists()
    code, lines = command("check", path)
    assert code == 1 and lines and not any("Traceback" in line for line in lines)
    code, lines = command("salvage", path, new)
    assert code == 0, lines
    with Store(new) as store: found = store.calls(ks)
    least = .4 if "cut" in how or how == "truncated" else .95
    print(how, len(found), lines)
    assert least * N < len(found) < N and found[ks[0]].text.startswith("reply 0")
    assert command("check", new)[0] == 0 and any("left" in line for line in lines)


def test_what_is_no_store_is_said(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Ann, " * 100)
    code, lines = command("check", tmp_path / "letter.txt")
    assert code == 1 and len(lines) == 1 and "Traceback" not in lines[0]
    code, lines = command("salvage", tmp_path / "letter.txt", tmp_path / "new.sqlite")
    assert code == 2 and not (tmp_path / "new.sqlite").exists()
    assert command("check", tmp_path / "nowhere.sqlite")[0] == 2


def test_a_refused_merge_leaves_no_file(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Ann, " * 100)
    for i, text in enumerate(("Lyon", "Paris")):
        with Store(tmp_path / f"{i}.sqlite") as store: store.put_calls({"k": Completion(text)}, "{}", "m", "u", {}, [0.0])
    for sources in (["letter.txt"], ["0.sqlite", "letter.txt"], ["0.sqlite", "1.sqlite"]):
        with pytest.raises(UsageError): merge_stores(tmp_path / "all.sqlite", [tmp_path / s for s in sources])
        assert not list(tmp_path.glob("all.sqlite*"))


def test_a_changed_byte_of_a_reply_is_noticed(tmp_path, capfd):
    "The JSON stays valid, so only the checksum tells; a reply of an earlier version has none."
    from treekit.store.salvage import check_store
    replies = dict(a=Completion("Lyon", 3, 4, latency=0.1), b=Completion("Lyon"))
    with Store(tmp_path / "s.sqlite") as store:
        store.put_calls(replies, '{"messages":[]}', "m", "e", {}, [None, None])
        store.flush()
        with store.transaction() as db:
            db.execute("UPDATE calls SET completion = replace(completion, 'Lyon', 'Lyan') WHERE key = 'a'")
            db.execute("UPDATE calls SET completion = json_remove(completion, '$.crc') WHERE key = 'b'")
        assert store.calls(["a", "b"]) == {"b": Completion("Lyon")}
    assert "can't be read" in capfd.readouterr().err
    assert any(line.startswith("calls: ") for line in check_store(tmp_path / "s.sqlite").findings)
