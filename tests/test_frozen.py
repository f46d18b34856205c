"Frozen abilities and margins: who changes them sees which tables were made before."
import csv
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from treekit.artefacts.catalog import runnable
from treekit.artefacts.environment_check import checks
from treekit.artefacts.reproduce import _ability
from treekit.cli.main import main
from treekit.config import load_profile, root
from treekit.figures import frozen
from treekit.figures.frozen import (
    FROZEN, abilities_hash, frozen_hash, frozen_note, made_otherwise, margins_hash, otherwise_note, record_frozen)
from treekit.figures.index_page import index_page
from treekit.models.simulated.ability import PRESETS
from treekit.papers.plugin import Paper
from treekit.scoring.margins import frozen_margins

OFFLINE = root() / "figures" / "offline"


def test_the_hash_in_the_file_is_todays():
    assert frozen_margins()["hash"] == frozen_hash(), (
        f"abilities or margins changed: enter {frozen_hash()} and today's date in data/margins.toml, then run treekit reproduce")


def test_committed_tables_were_made_with_todays():
    assert made_otherwise(OFFLINE) == {}
    with open(OFFLINE / FROZEN, encoding="utf-8", newline="") as f: rows = {r["artefact"]: r for r in csv.DictReader(f)}
    assert set(rows) == {f"{r['paper']}/{r['artefact']}" for r in runnable()}
    assert {r["artefact"] for r in rows.values() if not r["abilities"]} >= {"real/vanilla", "across/errata", "toq/inconsistencies"}
    assert frozen_note(OFFLINE) in (OFFLINE / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def made(tmp_path):
    "A folder of results with three artefacts, one of which needs no model."
    for name in ("arise/table1", "toq/algorithm1", "toq/table2"):
        record_frozen(tmp_path, name, "strong")
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("n\n1\n")
    return tmp_path


def test_a_changed_ability_marks_all_tables_until_they_are_run_again(made, monkeypatch):
    assert made_otherwise(made) == {} and frozen_note(made).endswith("All artefacts were made with them.")
    monkeypatch.setitem(PRESETS, "strong", replace(PRESETS["strong"], judging=.99))
    assert made_otherwise(made) == dict(abilities=["arise/table1", "toq/table2"])
    record_frozen(made, "toq/table2", "strong")
    assert made_otherwise(made) == dict(abilities=["arise/table1"]) and "changed since then" in frozen_note(made)
    assert "arise/table1." in index_page(made) and otherwise_note(made, "toq") == "" != otherwise_note(made, "arise/table1")
    assert otherwise_note(made, "arise", "arise/table1") == ""  # a report doesn't name itself


@pytest.mark.parametrize("command", ["list", "claims"])
def test_commands_name_tables_that_were_made_with_other_abilities(command, monkeypatch):
    assert "than the frozen ones" not in CliRunner().invoke(main, [command, "toq"]).output
    monkeypatch.setitem(PRESETS, "strong", replace(PRESETS["strong"], judging=.99))
    said = CliRunner().invoke(main, [command, "toq"]).output
    assert "Made with other abilities of the simulated model than the frozen ones: " in said and "toq/table2" in said


def test_an_ability_in_the_file_counts_too(made, monkeypatch):
    changed = {k: dict(v) for k, v in frozen.frozen_presets().items()} | {"small": dict(memory=.5)}
    monkeypatch.setattr(frozen, "frozen_presets", lambda: changed)
    assert made_otherwise(made) == dict(abilities=["arise/table1", "toq/table2"])


def test_set_marks_the_one_table_that_was_run_with_it(made):
    record_frozen(made, "toq/table2", "strong, reading=.8")
    record_frozen(made, "toq/algorithm1", "strong, reading=.8")  # no model
    record_frozen(made, "arise/table1", None)  # another model
    assert made_otherwise(made) == dict(abilities=["toq/table2"])


@pytest.mark.parametrize("change", ["file", "claim"])
def test_a_changed_margin_marks_all(made, monkeypatch, change):
    if change == "file": monkeypatch.setitem(frozen_margins()["verdicts"], "normal", 3.0)
    else:
        rows = Paper.rows
        def wider(self, file): return [r | dict(margin="9") if r.get("margin") else r for r in rows(self, file)]
        monkeypatch.setattr(Paper, "rows", wider)
    assert made_otherwise(made) == dict(margins=["arise/table1", "toq/algorithm1", "toq/table2"])


def test_a_table_without_a_record_is_named(made):
    (made / "arise" / "table2.csv").write_text("n\n1\n")
    assert made_otherwise(made) == dict(record=["arise/table2"])
    (made / FROZEN).unlink()
    assert frozen_note(made) == ""  # of an earlier version


def test_doctor_names_them(made, monkeypatch):
    monkeypatch.setattr("treekit.artefacts.environment_check.root", lambda: made.parent)
    here = made.parent / "figures" / "offline"
    here.parent.mkdir()
    here.symlink_to(made)
    def found(): return [c for c in checks(load_profile("offline")) if c[0] == "frozen"]
    assert found() == []
    record_frozen(made, "toq/table2", "small")
    [(_, works, said, todo)] = found()
    assert works is None and "toq/table2" in said and "reproduce" in todo


def test_the_ability_of_a_task():
    def of(settings, **profile): return _ability(SimpleNamespace(parameters=dict(settings=settings)), load_profile("offline", **profile))
    assert of({}) == "strong" and of(dict(ability="strong, reading=.8")) == "strong, reading=.8" and of({}, ability="small") == "small"
    assert of(dict(model="extractive")) is None
    assert _ability(SimpleNamespace(parameters={}), load_profile("vllm")) is None


def test_hashes_are_short_and_differ():
    assert len({abilities_hash(), margins_hash(), frozen_hash(), abilities_hash("small")}) == 4
    assert all(len(h) == 8 for h in (abilities_hash(), margins_hash(), frozen_hash())) and isinstance(OFFLINE, Path)
