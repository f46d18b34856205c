"What a process is told: variables that a user may set, and the argument of a notebook's kernel."

import dataclasses
from pathlib import Path

from treekit.config import Command, Replay, command, load_profile, use_command, work_dir

TOLD = Command(
    "toq/table2", "/shared", 7, dict(profile="offline", n=3), Replay("c", "r", "stanza-1", {"lab": {}}, True)
)


def test_a_kernel_is_told_all_that_the_command_knows(monkeypatch):
    for made in (TOLD, TOLD.replay):
        for f in dataclasses.fields(made):  # a new field is tested, too
            default = f.default if f.default is not dataclasses.MISSING else f.default_factory()
            assert getattr(made, f.name) != default, f.name
    monkeypatch.setattr("treekit.config._commands", [Command()])
    exec(TOLD.argument())
    assert command() == TOLD


def test_variables_of_the_user_say_where_files_are(tmp_path, monkeypatch):
    from treekit.experiments.planning import store_path

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TREEKIT_STORE", raising=False)
    assert store_path(load_profile("offline")) == work_dir("store") / "offline.sqlite"
    assert work_dir("x") == tmp_path / "home" / "x"
    monkeypatch.setenv("TREEKIT_STORE", "mine.sqlite")
    assert store_path(load_profile("offline")) == Path("mine.sqlite")


def test_a_replay_asks_the_questions_of_its_cassette(tmp_path):
    from treekit.experiments.cassettes import choose_questions

    assert Replay("c").questions == Replay("c", str(tmp_path)).questions == []
    for ids in ([], ["q1", "f\u00fcnf"]):
        choose_questions(tmp_path, ids)
        assert Replay("c", str(tmp_path)).questions == ids
    assert Replay("c", str(tmp_path)).database("parses") is None
    assert Replay("c", str(tmp_path), packs=True).database("parses") == tmp_path / "parses.sqlite"


def test_a_replay_is_told_nothing_of_the_process_that_verifies(tmp_path, monkeypatch):
    "But for the parser's folder, which is part of the installation."
    from treekit.reports.report import clean_environment

    for name in ("HOME", "STORE", "PARSER_DIR", "BWRAP", "RETRAIN"):
        monkeypatch.setenv(f"TREEKIT_{name}", "p")
    with use_command(**vars(TOLD)):
        told = clean_environment(tmp_path / "home")
    own = {name: value for name, value in told.items() if name.startswith("TREEKIT_")}
    assert own == dict(TREEKIT_HOME=str(tmp_path / "home" / "kit"), TREEKIT_PARSER_DIR="p")
