"Reports of runs: an archive that is made twice with the same bytes, replays elsewhere, and whose tables are compared byte by byte."

import os, re
from pathlib import Path

import pytest
from commands import inside

from treekit.artefacts.reproduce import placeless
from treekit.experiments.cassettes import about_cassette
from treekit.reports.report import read_archive, write_archive
from treekit.reports.report import verify_archive

ROOT = Path(__file__).resolve().parents[1]
WHAT = "arise/figure3"  # what the fixture `made` reports


@pytest.mark.slow
def test_it_says_what_ran_and_holds_no_path_and_no_host(made):
    "n=3 was said to `reproduce`, and to nobody else."
    path, _, home = made
    files = read_archive(path)
    page = files["README.md"].decode()
    assert f"`treekit reproduce {WHAT} --n 3`" in page and "treekit verify r.zip" in page and "numpy==" in page
    assert {"run.cassette", f"tables/{WHAT}.csv", f"tables/{WHAT}.md"} <= files.keys()
    for name in (n for n in files if n.endswith((".md", ".csv"))):
        text = files[name].decode("utf-8")
        for place in (home["TREEKIT_HOME"], str(Path.home()) + "/", str(ROOT)):
            assert place not in text, (name, place)
        assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", text), name


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes_and_is_ok_elsewhere(made, tmp_path):
    path, words, home = made
    assert inside(*words[:-1], tmp_path / "r.zip", **home)[0] == 0
    assert (tmp_path / "r.zip").read_bytes() == path.read_bytes()
    found = verify_archive(path)
    assert (found.outcome, found.differs) == ("OK", []) and found.same == 2
    code, out, err = inside(*words, "--set", "n=4", **home)
    assert code == 2 and f"{WHAT} was run with n=3" in out + err


OFFICIAL = ROOT / "data" / "fixtures" / "official"
OVER = [
    ("treerare/table1", OFFICIAL, "hotpotqa musique 2wiki ambigdocs asqa"),
    ("toq/table2", "synthetic", "komultihop kogeneral"),
]


@pytest.mark.slow
@pytest.mark.parametrize("table, data, datasets", OVER, ids=[f"{t}-{getattr(d, 'name', d)}" for t, d, _ in OVER])
def test_a_run_over_any_data_with_failed_questions_is_verified_elsewhere(table, data, datasets, server, tmp_path):
    "The server refuses a question of each data set; the replay has the same failures, and every file the same bytes."
    from treekit.config import load_profile
    from treekit.experiments.tables import sample_questions

    asked = sample_questions(load_profile("local", data=str(data), n=2), tuple(datasets.split()))
    assert [*asked] == datasets.split()
    refused = "|".join(re.escape(questions[0].question[-25:]) for questions in asked.values())
    server.script(faults=[dict(kind="400", match=refused, times=10**6, message="odd request")])
    words = (
        "--profile",
        "local",
        "--set",
        f"endpoint={server.url}",
        "--set",
        "api_key_env=LAB_KEY",
        "--set",
        "n=2",
        "--set",
        f"data={data}",
        "--set",
        "judges=",
        "--set",
        "max_tokens=64",
    )
    home = dict(TREEKIT_HOME=str(tmp_path / "home"), LAB_KEY="x")
    code, out, err = inside("reproduce", table, *words, "--out", tmp_path / "out", **home)
    assert code == 1 and "questions failed" in out and "odd request" in out, out + err
    archive, count = tmp_path / "r.zip", server.count
    code, out, err = inside("report", table, "--tables", tmp_path / "out", "--out", archive, *words, **home)
    assert code == 0 and server.count == count, out + err
    found = verify_archive(archive)
    assert (found.outcome, found.differs) == ("OK", []) and found.same > 0 and server.count == count


@pytest.mark.slow
def test_a_profile_of_ones_own_is_verified_where_nobody_has_it(server, tmp_path, monkeypatch):
    "The cassette holds the profile's settings, without server and key."
    home = dict(TREEKIT_HOME=str(tmp_path / "home"), XDG_CONFIG_HOME=str(tmp_path / "config"), LAB_KEY="x")
    (tmp_path / "elsewhere").mkdir()
    assert inside("init", tmp_path / "lab", **home)[0] == 0
    assert inside("trust", "--key", "LAB_KEY", server.url, **home)[0] == 0
    with open(tmp_path / "lab" / "settings.ini", "a") as f:
        f.write(f"\n[lab]\nmodel = m\nendpoint = {server.url}\napi_key_env = LAB_KEY\nn = 2\njudges =\n")
    code, out, err = inside("reproduce", "toq/table2", "--profile", "lab", cwd=tmp_path / "lab", **home)
    assert code == 0, out + err
    archive = tmp_path / "r.zip"
    code, out, err = inside("report", "toq/table2", "--profile", "lab", "--out", archive, cwd=tmp_path / "lab", **home)
    assert code == 0, out + err
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = verify_archive(archive)
    assert (found.outcome, found.differs) == ("OK", []) and found.same > 0
    (tmp_path / "run.cassette").write_bytes(read_archive(archive)["run.cassette"])
    section = about_cassette(tmp_path / "run.cassette")["section"]
    assert section["n"] == "2" and not {"endpoint", "api_key_env"} & section.keys()


def test_settings_lose_their_places(tmp_path):
    (tmp_path / "q.jsonl").write_text("")
    assert (
        placeless(str(tmp_path / "q.jsonl")) == "q.jsonl"
        and placeless("https://u:p@gpu.lab.edu:8000/v1?key=1") == "a server"
    )
    assert placeless("google/t5_xxl_true_nli_mixture") == "google/t5_xxl_true_nli_mixture"
    assert (
        placeless("TMP/models/tiny") == "tiny"
        and placeless("HF_HOME/tiny") == "tiny"
        and placeless("BAAI/bge-m3") == "BAAI/bge-m3"
    )
    assert placeless(r"C:\me\wiki.trees") == "wiki.trees"
    assert (
        placeless("~/prompts.toml") == "prompts.toml"
        and placeless(None) is None
        and placeless("synthetic:1000") == "synthetic:1000"
    )


@pytest.mark.slow
def test_a_changed_table_and_a_changed_reply_are_found_by_the_replay(made, tmp_path):
    "Nothing that an archive says of itself is believed."
    import sqlite3
    from treekit.store.cassette_archive import STORE_FILE, open_archive
    from treekit.store.cassette_archive import write_archive as write_cassette

    files, table = read_archive(made[0]), f"tables/{WHAT}.csv"
    text = files[table].decode()
    cell = re.search(r"\d+\.\d+", text)[0]
    write_archive(tmp_path / "t.zip", files | {table: text.replace(cell, f"{float(cell) + 1:g}", 1).encode()})
    found = verify_archive(tmp_path / "t.zip")
    assert (
        found.outcome == "DIFFERS"
        and re.match(rf"{table}: line \d+: .* in the report, .* here", found.differs[0])
        and found.same == 1
    )
    write_archive(tmp_path / "l.zip", {k: v for k, v in files.items() if k != table})
    assert verify_archive(tmp_path / "l.zip").differs == [
        f"{table}: was made by the replay, and the report leaves it out"
    ]
    (tmp_path / "old").write_bytes(files["run.cassette"])
    with open_archive(tmp_path / "old") as inner:
        tape = {name: read() for name, read in inner.items()}
    (tmp_path / "s").write_bytes(tape[STORE_FILE])
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute(
            "UPDATE calls SET completion = json_set(json_remove(completion, '$.crc'), '$.text', 'FINAL: nobody')"
        )
    db.close()
    write_cassette(tmp_path / "new", tape | {STORE_FILE: (tmp_path / "s").read_bytes()})
    write_archive(tmp_path / "r.zip", files | {"run.cassette": (tmp_path / "new").read_bytes()})
    assert verify_archive(tmp_path / "r.zip").outcome == "DIFFERS"


HOSTILE = {
    name: {name: b"x", "run.cassette": b"x"}
    for name in (
        "../../evil",
        "/etc/evil",
        "tables/../../up.csv",
        "tables/arise/.hidden.csv",
        "tables/arise/x.py",
        "C:\\x.csv",
        "a\nOK: all the same",
        "README.md\x1b[2K\rOK",
        "\x9b2K\u202eKO",
    )
}


@pytest.mark.parametrize("files", [*HOSTILE.values(), {"README.md": b"x"}, {}], ids=repr)
def test_what_is_no_report_gets_one_line(tmp_path, treekit_, files):
    write_archive(tmp_path / "r.zip", files)
    code, said = treekit_("verify", tmp_path / "r.zip")
    assert (
        code == 2 and "is not a report" in said and len(said.strip().splitlines()) == 1 and said.strip().isprintable()
    ), said
