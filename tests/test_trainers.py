"From questions to a profile that answers: what is refused, what is written, and that a killed training comes to the same weights."

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import ROOT
from treekit.config import UsageError, load_profile
from treekit.training.job import TrainingJob, ready
from treekit.training.profile_writer import profile_sections, write_sections

pytest.importorskip("torch")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    "A folder as `treekit init` lays it, with settings of its own."
    (tmp_path / "nbs" / "reproduce").mkdir(parents=True)
    (tmp_path / "settings.ini").write_bytes((ROOT / "settings.ini").read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / ".treekit"))
    return tmp_path


def job(**changes):
    return replace(TrainingJob("mine", "navigator", "tiny", load_profile("offline"), 40), **changes)


def test_one_name_is_one_training(desk):
    job().begun(), job().begun()
    with pytest.raises(UsageError, match="another training .it differs in questions."):
        job(questions=41).begun()
    with pytest.raises(UsageError, match="it differs in profile"):
        job(profile=load_profile("offline", seed=4)).begun()
    job(profile=load_profile("offline", budget=3.0)).begun()  # more money is the same training
    assert TrainingJob.found("mine").record() == job().record()
    with pytest.raises(UsageError, match="nothing is trained"):
        TrainingJob.found("yours")
    for name in ("../up", "", "a b"):
        with pytest.raises(UsageError, match="letters"):
            job(name=name)


def test_a_trained_model_is_served_by_its_name(desk):
    from treekit.experiments.resources import chat_for
    from treekit.training.models import save_model, tiny_model, tokenizer_of

    tokenizer = tokenizer_of(["Who?"] * 3, 300)
    model = job().begun() / "ppo" / "model"
    save_model(tiny_model(tokenizer, 32, 1, 2, 64), tokenizer, model)
    ready(job(), model)
    write_sections(profile_sections("mine", "navigator", job().profile))
    chat = chat_for(load_profile("mine-model"), "navigator")
    assert chat.preset.name == "tiny" and Path(chat.folder) == model and chat.model == "navigator mine/ppo"
    with pytest.raises(UsageError, match="not to answer"):
        chat_for(load_profile("mine-model"))


def test_a_trained_parser_is_named_by_its_profile(desk, monkeypatch):
    "The profile's parser is the new one, with its own name in tables; it reads what the old one reads."
    import shutil
    from treekit.artefacts.environment_check import checks
    from treekit.syntax.entities import annotator_for
    from treekit.syntax.parser import parser_for

    mine = job(role="parser", questions=None)
    with pytest.raises(UsageError, match="no profile named 'mine'"):
        load_profile("mine")
    models = mine.begun() / "models"  # what the last cell of nbs/train/parser.ipynb does
    shutil.copytree(ROOT / "data" / "parser", models)
    ready(mine, models)
    write_sections(profile_sections("mine", "parser", mine.profile))
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


@pytest.mark.parametrize(
    "writer, data, said",
    [
        ("gpt-4o-mini", "hub", []),
        ("gpt-4o-mini", "synthetic", ["synthetic questions, preset 8B"]),
        ("llama3.3:70b", "hub", ["paths by llama3.3:70b, labels by llama3.3:70b"]),
    ],
)
def test_a_navigator_is_trained_as_printed_and_says_by_whom(desk, monkeypatch, writer, data, said):
    "Rate of Sec. 3.1, paths by the model of App. A.1; another writer, or synthetic questions, is a difference."
    from treekit.experiments.paper_settings import said_of
    from treekit.experiments.provenance import RunFacts, _trained, differences
    from treekit.papers.searchr import training_job as jobs

    for name, value in dict(path_pairs=([], {}), train_navigator={}, serve_line="").items():
        monkeypatch.setattr(jobs, name, lambda *_, value=value, **__: value)
    mine = job(preset="8B", questions=None, profile=load_profile("openai", model=writer, data=data))
    jobs.run_navigator(mine)
    model = SimpleNamespace(endpoint="in memory", folder=mine.folder / "ppo" / "model", model="navigator mine/ppo")
    assert json.loads(Path(model.folder, "trained_as.json").read_text())["rate"] == 2e-5
    printed = {"navigator": said_of("searchr", "table2", "musique", "SEARCH-R*")["navigator"]}
    found = differences(RunFacts(navigator=_trained(model, {})), printed)
    assert len(found) == len(said) and all(part in line for part, line in zip(said, found)), found
