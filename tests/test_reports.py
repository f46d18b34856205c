"""\"I reproduced this\": an archive that is made twice with the same bytes, replays elsewhere, and names every byte that was changed."""
import json, os, re, shutil, subprocess, sys, zipfile
from pathlib import Path

import pytest
from commands import inside

from treekit.artefacts.reproduce import placeless
from treekit.config import UsageError, root
from treekit.experiments.cassettes import about_cassette
from treekit.reports.archive import SUMS, read_archive, sha256, write_archive
from treekit.reports.checklist import checked_facts, checklist
from treekit.reports.verification import verify_archive

ROOT = Path(__file__).resolve().parents[1]
WHAT = "arise/figure3"  # what the fixture `made` reports
SHAPED = dict(artefacts=[dict(name=WHAT, tables=[])], modules={}, notebooks={}, data={}, tables={}, cassette=None,
              environment=dict(python="3", packages={}))  # the parts that a report must have


def report_of(path): return json.loads(read_archive(path)[0]["report.json"])


def changed(path, name, new, offset=100):
    "The archive with one byte of one of its files changed, where it stands in the ZIP."
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as z: content, info = z.read(name), z.getinfo(name)
    at = raw.index(content[:200], info.header_offset) + min(offset, len(content) - 1)
    raw[at] ^= 1
    new.write_bytes(raw)
    return new


@pytest.mark.long
def test_it_says_what_ran_and_holds_no_path_and_no_host(made):
    path, _, home = made
    files, wrong = read_archive(path)
    report = json.loads(files["report.json"])
    assert wrong == [] and [a["name"] for a in report["artefacts"]] == [WHAT] and report["artefacts"][0]["as_written"]
    assert report["runs"] and all(r["costs"]["calls"] >= 0 and r["facts"] for r in report["runs"])
    assert {"treekit.papers.arise.method", "treekit.store.run_store"} <= set(report["modules"])
    module = report["modules"]["treekit.papers.arise.method"]
    assert module["sha256"] == sha256((ROOT / "treekit/papers/arise/method.py").read_bytes())
    assert report["environment"]["packages"]["numpy"] and len(report["checklist"]) == 21
    for name in (n for n in files if n.endswith((".json", ".md", ".csv"))):
        text = files[name].decode("utf-8")
        for place in (home["TREEKIT_HOME"], str(Path.home()) + "/", str(ROOT)): assert place not in text, (name, place)
        assert not re.search(rf'"{re.escape(os.uname().nodename)}"', text), name


@pytest.mark.long
def test_how_it_was_run_is_read_from_the_records(made, tmp_path):
    "n=3 was said to `reproduce`, and to nobody else."
    path, words, home = made
    report, page = report_of(path), read_archive(path)[0]["report.md"].decode()
    [line], [way] = report["artefacts"], report["ways"]
    assert (line["given"], line["profile"], way["artefacts"]) == (dict(n=3), "offline", [WHAT])
    assert line["command"] == f"treekit reproduce {WHAT} --n 3" and line["command"] in page and "All ran in one way: n=3." in page
    assert {r["settings"]["n"] for r in report["runs"]} == {3} and report["runs"]
    record = json.loads((Path(home["TREEKIT_HOME"]) / "runs/offline" / f"{WHAT}.json").read_text())
    assert record["parameters"]["n"] == 3 and sorted(record["runs"]) == sorted(r["name"] for r in report["runs"])
    code, _, err = inside(*words[:-1], tmp_path / "x.zip", "--n", "5", **home)
    assert code == 2 and f"{WHAT} was run with n=3, not with n=5" in err and not (tmp_path / "x.zip").exists()


def test_two_ways_of_running_are_told_and_never_packed_as_one(monkeypatch, tmp_path):
    from treekit.config import work_dir
    from treekit.artefacts.catalog import runnable
    from treekit.artefacts.build_cache import write_record
    from treekit.reports.report import one_way, ways_in_words, ways_of
    from treekit.reports.run_summary import artefact_line
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    rows = runnable(("arise/figure3", "arise/table1", "arise/table2"))
    for name, n in (("figure3", dict(n=3)), ("table1", dict(settings=dict(retriever="dense")))):
        record = dict(code=0, parameters=dict(profile="offline", out="figures/mine") | n)
        write_record(work_dir("runs", "mine") / f"arise/{name}.json", **record)
    lines = [artefact_line(r, tmp_path / "mine") for r in rows]
    told = ways_in_words(dict(artefacts=lines, ways=ways_of(lines)))
    assert "They ran in 2 ways, so their numbers don't belong together: n=3 (arise/figure3); retriever=dense (arise/table1)." in told
    assert "No record of a run is here for arise/table2" in told
    assert [line["command"] for line in lines] == ["treekit reproduce arise/figure3 --n 3 --out figures/mine",
                                                   "treekit reproduce arise/table1 --set retriever=dense --out figures/mine", ""]
    mine = tmp_path / "mine"
    with pytest.raises(UsageError, match="replays one way of running, and these ran in 2"): one_way(rows[:2], mine, "offline", {})
    assert one_way(rows[:1], mine, "offline", {}) == dict(n=3)
    with pytest.raises(UsageError, match="under profile 'offline': say --profile offline"): one_way(rows[:1], mine, "openai", {})


def test_another_folder_with_the_run_is_named(monkeypatch, tmp_path):
    "What was run with --n or --data lies in a folder of its own, which a report finds by --tables."
    from treekit.config import work_dir
    from treekit.artefacts.catalog import runnable
    from treekit.artefacts.build_cache import write_record
    from treekit.reports.report import one_way, ran_artefacts
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    rows, mine = runnable((WHAT,)), tmp_path / "mine"
    (tmp_path / "mine-n4/arise").mkdir(parents=True)
    (tmp_path / f"mine-n4/{WHAT}.csv").write_text("cell\n")
    write_record(work_dir("runs", "mine-n4") / f"{WHAT}.json", code=0, parameters=dict(profile="offline", out="figures/mine-n4", n=4))
    with pytest.raises(UsageError, match="nothing was run into 'mine' yet.*, or name the folder .*: --tables .*mine-n4$"):
        ran_artefacts((WHAT,), mine)
    with pytest.raises(UsageError, match="no record here says how the tables in 'mine' were made: leave n away, or .*mine-n4$"):
        one_way(rows, mine, "offline", dict(n=4))
    assert one_way(rows, mine, "offline", dict(n=5)) == dict(n=5)
    write_record(work_dir("runs", "mine") / f"{WHAT}.json", code=0, parameters=dict(profile="offline", out="figures/mine", n=3))
    with pytest.raises(UsageError, match="run with n=3, not with n=4: leave that away, or .*--tables .*mine-n4$"):
        one_way(rows, mine, "offline", dict(n=4))
    with pytest.raises(UsageError, match="run with n=3, not with n=5: leave that away$"): one_way(rows, mine, "offline", dict(n=5))


@pytest.mark.slow
def test_the_same_facts_give_the_same_bytes(made, tmp_path):
    _, words, home = made
    for name in "ab": assert inside(*words[:-1], tmp_path / name, **home)[0] == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.slow
def test_in_a_folder_that_never_saw_the_first_it_is_ok(made, tmp_path):
    found = verify_archive(made[0])
    assert (found.outcome, found.differs) == ("OK", []) and found.same == found.replayed > 0


OFFICIAL = ROOT / "data" / "fixtures" / "official"
OVER = [("treerare/table1", "synthetic", "hotpotqa musique 2wiki ambigdocs asqa"), ("treerare/table1", "real", "hotpotqa musique 2wiki"),
        ("treerare/table1", OFFICIAL, "hotpotqa musique 2wiki ambigdocs asqa"), ("toq/table2", "synthetic", "komultihop kogeneral"),
        ("rdr2/table1", "synthetic", "asqa qampari eli5")]


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
    words = ("--profile", "local", "--set", f"endpoint={server.url}", "--set", "api_key_env=LAB_KEY", "--n", "2", "--data", data,
             "--set", "wiki=corpus", "--set", "qa_judge=offline", "--set", "max_tokens=64")
    home = dict(TREEKIT_HOME=str(tmp_path / "home"), LAB_KEY="x")
    code, out, err = inside("reproduce", table, *words, "--out", tmp_path / "out", **home)
    assert code == 1 and "questions failed" in out and "odd request" in out, out + err
    archive, count = tmp_path / "r.zip", server.count
    code, out, err = inside("report", table, "--cassette", "--tables", tmp_path / "out", "--out", archive, *words, **home)
    assert code == 0 and server.count == count, out + err
    found = verify_archive(archive)
    assert (found.outcome, found.differs) == ("OK", []) and found.same == found.replayed > 0 and server.count == count


@pytest.mark.slow
def test_a_profile_of_ones_own_is_verified_where_nobody_has_it(server, tmp_path, monkeypatch):
    "The cassette holds the profile's settings, without server and key."
    home = dict(TREEKIT_HOME=str(tmp_path / "home"), LAB_KEY="x")
    (tmp_path / "elsewhere").mkdir()
    assert inside("init", tmp_path / "lab", **home)[0] == 0
    with open(tmp_path / "lab" / "settings.ini", "a") as f:
        f.write(f"\n[lab]\nmodel = m\nendpoint = {server.url}\napi_key_env = LAB_KEY\nn = 2\nwiki = corpus\nqa_judge = offline\n")
    code, out, err = inside("reproduce", "toq/table2", "--profile", "lab", cwd=tmp_path / "lab", **home)
    assert code == 0, out + err
    archive = tmp_path / "r.zip"
    code, out, err = inside("report", "toq/table2", "--profile", "lab", "--cassette", "--out", archive, cwd=tmp_path / "lab", **home)
    assert code == 0, out + err
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = verify_archive(archive)
    assert (found.outcome, found.differs) == ("OK", []) and found.same == found.replayed > 0
    (tmp_path / "run.cassette").write_bytes(read_archive(archive)[0]["run.cassette"])
    section = about_cassette(tmp_path / "run.cassette")["section"]
    assert section["n"] == "2" and not {"endpoint", "api_key_env"} & section.keys()


@pytest.mark.slow
def test_one_changed_byte_of_a_cassette_is_named(made, tmp_path):
    found = verify_archive(changed(made[0], "run.cassette", tmp_path / "r.zip", 4000))
    assert found.differs == ["run.cassette: its bytes were changed"] and found.why_not == "its cassette was changed"
    assert found.outcome == "DIFFERS"


@pytest.mark.slow
def test_a_cassette_that_was_changed_with_its_sums_gives_other_tables(made, tmp_path):
    "Somebody who changes a reply and mends all sums is found out by the tables."
    from treekit.store.cassette_archive import STORE_FILE, open_archive
    from treekit.store.cassette_archive import write_archive as write_cassette
    files, _ = read_archive(made[0])
    (tmp_path / "old").write_bytes(files["run.cassette"])
    with open_archive(tmp_path / "old") as inner: tape = {name: read() for name, read in inner.items()}
    import sqlite3
    (tmp_path / "s").write_bytes(tape[STORE_FILE])
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute("UPDATE calls SET completion = json_set(json_remove(completion, '$.crc'), '$.text', 'FINAL: nobody')")
    db.close()
    write_cassette(tmp_path / "new", tape | {STORE_FILE: (tmp_path / "s").read_bytes()})
    files["run.cassette"] = (tmp_path / "new").read_bytes()
    write_archive(tmp_path / "r.zip", {k: v for k, v in files.items() if k != SUMS})
    found = verify_archive(tmp_path / "r.zip")
    assert found.outcome == "DIFFERS" and found.differs


@pytest.mark.slow
def test_one_changed_byte_of_a_table_is_named_with_its_cell(made, tmp_path):
    table = next(n for n in report_of(made[0])["tables"] if n.endswith(".csv"))
    found = verify_archive(changed(made[0], table, tmp_path / "r.zip"))
    assert found.differs[0] == f"{table}: its bytes were changed"
    assert found.why_not == "" and {d.partition(":")[0] for d in found.differs} == {table}
    # mended sums don't help: the replay says which cell
    files, _ = read_archive(made[0])
    text = files[table].decode()
    cell = re.search(r"\d+\.\d+", text)[0]
    files[table] = text.replace(cell, f"{float(cell) + 1:g}", 1).encode()
    report = json.loads(files["report.json"])
    report["tables"][table] = sha256(files[table])
    files["report.json"] = json.dumps(report).encode()
    write_archive(tmp_path / "m.zip", {k: v for k, v in files.items() if k != SUMS})
    found = verify_archive(tmp_path / "m.zip")
    assert len(found.differs) == 1 and found.differs[0].startswith(f"{table}: line ") and " in the report, " in found.differs[0]


@pytest.mark.slow
def test_one_changed_byte_of_a_module_is_named(made, tmp_path):
    "By a kit of its own, in which a comment, then a statement, then a data file is another."
    kit = tmp_path / "kit"
    shutil.copytree(ROOT / "treekit", kit / "treekit", ignore=shutil.ignore_patterns("__pycache__"))
    same = (kit / "treekit").stat().st_dev == ROOT.stat().st_dev
    shutil.copytree(ROOT / "data", kit / "data", copy_function=os.link if same else shutil.copy)
    for name in ("nbs", "settings.ini", "LICENSE"): (kit / name).symlink_to(ROOT / name)
    file = kit / "treekit/papers/arise/mcts.py"
    code = "import sys; from treekit.cli.main import main; main()"

    def verified():
        others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        env = os.environ | dict(PYTHONPATH=os.pathsep.join([str(kit), *others]), TREEKIT_HOME=str(tmp_path / "home"))
        done = subprocess.run([sys.executable, "-c", code, "verify", str(made[0]), "--no-replay", "--json"], cwd=kit, env=env,
                              capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)["differs"]
    assert verified() == []
    text = file.read_text()
    file.write_text(text.replace("# AUTOGENERATED", "# AUTOGENERATEE", 1))
    assert verified() == ["module treekit.papers.arise.mcts: is another here (comments and layout only: it does the same)"]
    number = re.search(r"(?<=[ =(])[2-9](?=[,)\n ])", text)
    file.write_text(text[:number.start()] + "1" + text[number.end():])
    assert verified() == ["module treekit.papers.arise.mcts: is another here"]
    file.write_text(text)
    (kit / "data/prices.csv").unlink()
    (kit / "data/prices.csv").write_bytes((ROOT / "data/prices.csv").read_bytes() + b"\n")
    assert verified() == ["data file prices.csv: is another here"]


def test_what_is_no_report_gets_one_line(tmp_path, treekit_):
    (tmp_path / "x.zip").write_bytes(b"PK no")
    write_archive(tmp_path / "e.zip", {"a": b"b"})
    without = {k: v for k, v in SHAPED.items() if k != "cassette"}
    write_archive(tmp_path / "c.zip", {"report.json": json.dumps(without).encode()})  # without the part "cassette"
    write_archive(tmp_path / "o.zip", {"report.json": b"{\"artefacts\": [{\"name\": 3}], \"cassette\": 7}"})
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as z: z.writestr("a", "b")
    for name, why in (("x.zip", "can't be read as a report"), ("e.zip", "report.json can't be read"),
                      ("o.zip", "report.json can't be read"), ("c.zip", "report.json can't be read"), ("p.zip", "has no SHA256SUMS"),
                      ("gone.zip", "no archive named 'gone.zip'")):
        code, said = treekit_("verify", tmp_path / name)
        assert code == 2 and why in said and len(said.strip().splitlines()) == 1, said
    code, said = treekit_("report", "treerare/table1", "--tables", tmp_path / "nowhere", "--out", tmp_path / "r.zip")
    assert code == 2 and "nothing was run into 'nowhere' yet" in said and not (tmp_path / "r.zip").exists()
    code, said = treekit_("report", "treerere")
    assert code == 2 and "treerare" in said


def test_settings_lose_their_places(tmp_path):
    (tmp_path / "q.jsonl").write_text("")
    assert placeless(str(tmp_path / "q.jsonl")) == "q.jsonl" and placeless("https://u:p@gpu.lab.edu:8000/v1?key=1") == "a server"
    assert placeless("google/t5_xxl_true_nli_mixture") == "google/t5_xxl_true_nli_mixture"
    assert placeless("TMP/models/tiny") == "tiny" and placeless("HF_HOME/tiny") == "tiny" and placeless("BAAI/bge-m3") == "BAAI/bge-m3"
    assert placeless(r"C:\me\wiki.trees") == "wiki.trees"
    assert placeless("~/prompts.toml") == "prompts.toml" and placeless(None) is None and placeless("synthetic:1000") == "synthetic:1000"


@pytest.mark.long
def test_an_answer_of_the_checklist_moves_with_its_facts(made):
    report = report_of(made[0])
    def said(**other): return {line.asks: line.answer for line in checklist(report | other)}
    assert [line._asdict() for line in checklist(report)] == report["checklist"]
    assert said()["ACM: Artifacts Available"] == "no" and said(doi="10.5281/zenodo.7")["ACM: Artifacts Available"] == "yes"
    assert said(doi="https://example.org")["ACM: Artifacts Available"] == "no"
    assert said()["NeurIPS 4: Experimental result reproducibility"] == "yes" and said(cassette=None)[
        "NeurIPS 4: Experimental result reproducibility"] == "partly"
    assert said()["ACM: Results Replicated"] == "no"  # a simulated model: nothing is comparable
    one = report["artefacts"][0]
    claims = [dict(c, outcome="supported") for c in report["claims"]]
    good = said(artefacts=[one | dict(verdicts=dict(reproduced=9))], claims=claims)
    assert good["ACM: Results Replicated"] == "yes"
    assert said(artefacts=[one | dict(verdicts=dict(reproduced=9, outside=1))], claims=claims)["ACM: Results Replicated"] == "partly"
    assert said(artefacts=[one | dict(verdicts=dict(outside=1))], claims=claims)["ACM: Results Replicated"] == "no"
    assert checked_facts(report)["ran"] == 1
    failed = said(artefacts=[one | dict(code=1)])
    assert failed["ACM: Artifacts Evaluated, Functional"] != "yes"


@pytest.mark.slow
def test_a_report_without_a_cassette_is_whole_and_says_that_it_was_not_replayed(made, tmp_path):
    _, words, home = made
    assert inside(*words[:-1], tmp_path / "r.zip", **home)[0] == 0
    code, out, _ = inside("verify", tmp_path / "r.zip", **home)
    assert code == 0 and "WHOLE, NOT REPLAYED: not replayed: no cassette is in it" in out


def test_hostile_archives_are_read_into_memory_only(tmp_path):
    write_archive(tmp_path / "r.zip", {"../../evil": b"x", "/etc/evil": b"y"})
    with pytest.raises(UsageError): verify_archive(tmp_path / "r.zip")
    assert not (tmp_path.parent / "evil").exists() and root()
