"Options of a run: precedence, and how they are handed to child processes."

import dataclasses, json, os, stat
from pathlib import Path

import pytest

from treekit.config import (
    OPTIONS_VARIABLE,
    RunOptions,
    run_options,
    set_variables,
    use_options,
    work_dir,
)

ALL = dict(
    progress=False,
    budget=1.5,
    home=Path("h"),
    store_file=Path("s.sqlite"),
    parser_dir=Path("p"),
    bwrap="/usr/bin/bwrap",
    cassette=Path("c"),
    parses=Path("a"),
    parses_by="stanza-1",
    vectors=Path("v"),
    questions=("q1", "q2"),
    record=Path("r"),
    command_dir=Path("d"),
    section=dict(lab=dict(n="2")),
    owner="host|1|2",
    since=7,
    sealed=True,
    retrain=True,
    about=dict(artefact="toq/table2"),
    command=dict(profile="offline", n=3),
    count_dir=Path("f"),
    count_questions=60,
)
OBJECTS = ("store", "chat", "router", "navigator", "embedder", "watch")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ("HOME", "STORE", "PARSER_DIR", "BWRAP", "OPTIONS"):
        monkeypatch.delenv(f"TREEKIT_{name}", raising=False)


def test_every_field_comes_through_the_file(tmp_path):
    assert ALL.keys() | set(OBJECTS) == {f.name for f in dataclasses.fields(RunOptions)}  # a new field is tested, too
    options = RunOptions(**ALL)
    with set_variables(**options.for_child(tmp_path)):
        assert run_options() == options
    assert run_options() == RunOptions()


def test_the_file_is_for_its_owner_only_and_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    [path] = RunOptions(**ALL).for_child(tmp_path).values()
    assert Path(path).parent == tmp_path and stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "sk-very-secret" not in Path(path).read_text()
    assert json.loads(Path(RunOptions().for_child(tmp_path)[OPTIONS_VARIABLE]).read_text()) == {}


def test_arguments_before_file_before_variables_before_defaults(tmp_path, monkeypatch):
    assert run_options().home is None
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "variable"))
    monkeypatch.setenv("TREEKIT_STORE", "variable.sqlite")
    assert run_options() == RunOptions(home=tmp_path / "variable", store_file=Path("variable.sqlite"))
    assert work_dir("x") == tmp_path / "variable" / "x"
    with use_options(home=tmp_path / "file") as options:
        assert (
            options == RunOptions(home=tmp_path / "file", store_file=Path("variable.sqlite"))
            and work_dir() == tmp_path / "file"
        )
        assert options.given(store_file=Path("given.sqlite"), owner=None).store_file == Path("given.sqlite")
        with use_options(owner="me"):
            assert run_options().home == tmp_path / "file"
        assert not run_options().owner
    assert work_dir() == tmp_path / "variable" and OPTIONS_VARIABLE not in os.environ


def test_a_replay_has_none_of_the_options_of_the_process_that_verifies(tmp_path):
    "But for the parser's folder, which is part of the installation."
    from treekit.reports.verification import clean_environment

    with use_options(**ALL):
        environment = clean_environment(tmp_path / "home")
    with set_variables(**{OPTIONS_VARIABLE: environment[OPTIONS_VARIABLE]}):
        assert run_options() == RunOptions(home=tmp_path / "home" / "kit", parser_dir=Path("p"), sealed=True)
