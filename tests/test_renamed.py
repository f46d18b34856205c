"Old names of commands, options and settings: one line with the new name. Saved data with old names is read."
import json, zlib
from dataclasses import fields

import pytest
from click.testing import CliRunner

from treekit.artefacts import dry_run
from treekit.artefacts.build_cache import read_record, write_record
from treekit.classroom.course import course_settings
from treekit.cli.main import main
from treekit.config import (
    RENAMED_COMMANDS, RENAMED_OPTIONS, RENAMED_SETTINGS, Profile, UsageError, current_settings, kit_path, load_profile, profile_names)
from treekit.core.types import Question
from treekit.experiments.cassette_settings import read_about
from treekit.experiments.run_records import find_run, save_run
from treekit.store.run_store import Store

OPTIONS = [(command, old, new) for command, table in RENAMED_OPTIONS.items() for old, new in table.items()]
ARGUMENTS = {"ask": ("Who?",), "cassette pack": ("x.cassette",), "course grade": ("1_retrieval",), "train": ("navigator",)}


def line(*words):
    "What a command that exits with 2 says: one line."
    found = CliRunner().invoke(main, list(map(str, words)))
    assert found.exit_code == 2 and found.stderr.count("\n") == 1, found.output
    return found.stderr.strip().removeprefix("treekit: ")


def command_named(name):
    "A command of the CLI."
    found = main
    for word in name.split(): found = found.get_command(None, word)
    return found


@pytest.mark.parametrize("old", [name for name in RENAMED_COMMANDS if name != "rehearse"])
def test_an_old_command_says_its_new_name(old):
    new = RENAMED_COMMANDS[old]
    assert line(*old.split(), "x") == line(*old.split(), "--help") == f"`{old}` is called `{new}` now"
    assert command_named(new.split(" --")[0])


def test_rehearse_is_an_alias(monkeypatch):
    asked = []
    monkeypatch.setattr(dry_run, "dry_run", lambda *given: asked.append(given[:6]) or [])
    more = ("toq/table4", "--profile", "vllm", "--profile", "local", "--set", "top_k=3", "--json")
    old, new = (CliRunner().invoke(main, [*words, *more]) for words in (("rehearse",), ("reproduce", "--dry-run")))
    assert old.stderr == "treekit: `rehearse` is called `reproduce --dry-run` now\n" and new.stderr == ""
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout) == (0, "[]\n")
    assert asked == [(("toq/table4",), ("vllm", "local"), dict(top_k="3"), 2, 2, False)] * 2


@pytest.mark.parametrize("words, said", [
    (("reproduce", "--profile", "vllm", "--profile", "local"), "--dry-run"), (("reproduce", "--dry-run", "--workers", "2"), "no --workers"),
    (("reproduce", "--dry-run", "--n", "0"), "1 or more"), (("store", "merge"), "INTO FROM"),
    (("store", "merge", "a.sqlite", "--workers"), "takes no files")])
def test_options_that_exclude_each_other(words, said): assert said in line(*words)


@pytest.mark.parametrize("command, old, new", OPTIONS)
def test_an_old_option_says_its_new_name(command, old, new):
    words = (*command.split(), *ARGUMENTS.get(command, ()))
    assert line(*words, old, "1") == f"`{old}` is called `{new}` now"
    found = command_named(" ".join(words) if command == "train" else command)
    assert any(new in option.opts for option in found.params)


@pytest.mark.parametrize("old, new", RENAMED_SETTINGS.items())
def test_an_old_setting_says_its_new_name(old, new, tmp_path):
    said = f"`{old}` is called `{new}` now"
    assert new in {f.name for f in fields(Profile)} and old not in {f.name for f in fields(Profile)}
    for words in (("reproduce", "toq/table4"), ("estimate", "toq/table4"), ("ask", "Who?"), ("corpus", "index")):
        assert line(*words, "--set", f"{old}=1") == said
    with pytest.raises(UsageError, match=f"^{said}$"): load_profile("offline", **{old: "1"})
    for section in ("DEFAULT", "openai"):
        text = kit_path("settings.ini").read_text(encoding="utf-8").replace(f"[{section}]\n", f"[{section}]\n{old} = 1\n")
        (tmp_path / "settings.ini").write_text(text, encoding="utf-8")
        for read in (load_profile, profile_names):
            with pytest.raises(UsageError) as e: read(settings=tmp_path / "settings.ini")
            assert str(e.value) == f"settings.ini, [{section}]: {said}"


def test_an_old_source_of_questions_says_its_new_name(tmp_path):
    for old, new in {"world": "synthetic", "world:100": "synthetic:100"}.items():
        said = f"`data={old}` is called `data={new}` now"
        for words in (("--data", old), ("--set", f"data={old}")):
            assert line("reproduce", "toq/table4", *words) == line("ask", "Who?", *words) == said
    text = kit_path("settings.ini").read_text(encoding="utf-8").replace("data = synthetic", "data = world")
    (tmp_path / "settings.ini").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="data=synthetic"): load_profile("offline", tmp_path / "settings.ini")


def test_saved_data_with_old_names_is_read(tmp_path):
    said = dict(pool="own", competence="small", n=3, data="world:100")
    now = dict(search_scope="own", ability="small", n=3, data="synthetic:100")
    assert current_settings(said) == now == current_settings(now)
    about = dict(what=["toq/table4"], profile="offline", given=dict(n=3, data="world"), sets=dict(pool="own", tier="2", competence="small"))
    found = read_about(json.dumps(about).encode(), "a.cassette")
    assert (found["given"], found["sets"]) == (dict(n=3, data="synthetic"), dict(search_scope="own", ability="small"))
    write_record(tmp_path / "table4.json", parameters=dict(data="world", settings=dict(pool="own")))
    assert read_record(tmp_path / "table4.json")["parameters"] == dict(data="synthetic", settings=dict(search_scope="own"))
    profile = load_profile("offline", **now)
    with Store() as store:
        name = save_run(store, {}, dict(hotpotqa=[Question("1", "hotpotqa", "Who?")]), profile, [])
        [[body]] = store.query("SELECT body FROM kept WHERE key=?", name)
        body = json.loads(zlib.decompress(body))
        old = {new: name for name, new in RENAMED_SETTINGS.items()}
        body["profile"] = {old.get(name, name): value for name, value in body["profile"].items()} | dict(data="world:100")
        with store.transaction() as db: db.execute("UPDATE kept SET body=? WHERE key=?", (zlib.compress(json.dumps(body).encode()), name))
        assert find_run(store, name).profile == profile


def test_an_old_setting_of_an_assignment_says_its_new_name(tmp_path):
    text = kit_path("nbs", "assignments", "course.toml").read_text(encoding="utf-8")
    (tmp_path / "course.toml").write_text(text.replace("ability =", "competence ="), encoding="utf-8")
    with pytest.raises(UsageError, match="^course.toml, 3_evidence: `competence` is called `ability` now$"):
        course_settings("3_evidence", tmp_path)
