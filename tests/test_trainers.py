"A profile that parses with a trained parser."

import json
from dataclasses import replace

import pytest

from commands import ROOT
from treekit.config import UsageError, load_profile, work_dir
from treekit.training.profile_writer import parser_section, write_sections

pytest.importorskip("torch")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    "A folder as `treekit init` lays it, with settings of its own."
    (tmp_path / "nbs" / "reproduce").mkdir(parents=True)
    (tmp_path / "settings.ini").write_bytes((ROOT / "settings.ini").read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / ".treekit"))
    return tmp_path


def test_a_trained_parser_is_named_by_its_profile(desk, monkeypatch):
    "The profile's parser is the new one, with its own name in tables; it reads what the old one reads."
    import shutil
    from treekit.artefacts.environment_check import checks
    from treekit.syntax.entities import annotator_for
    from treekit.syntax.parser import parser_for

    with pytest.raises(UsageError, match="no profile named 'mine'"):
        load_profile("mine")
    models = work_dir("trained", "mine") / "models"  # what the last cell of nbs/train/parser.ipynb does
    shutil.copytree(ROOT / "data" / "parser", models)
    models.with_name("ready.json").write_text(json.dumps(dict(model="models")))
    write_sections(parser_section("mine"))
    profile, text = load_profile("mine"), "Who founded the town of Ada?"
    new, old = parser_for(profile), parser_for(load_profile("offline"))
    assert (
        new.label == "Stanza models, trained as 'mine'"
        and new.folder != old.folder
        and new.fingerprint == old.fingerprint
    )
    assert new.parse([text]) == old.parse([text]) and annotator_for(profile.parser).parser.folder == new.folder
    found = {what: (works, said) for what, works, said, _ in checks(profile)}
    assert found["parser"] == (True, "mine") and profile.model == "simulated"
    for name in ("bundeld", "combind"):
        with pytest.raises(UsageError, match="did you mean"):
            parser_for(replace(profile, parser=name))
    assert parser_for(replace(profile, parser=str(new.folder))).fingerprint == new.fingerprint
