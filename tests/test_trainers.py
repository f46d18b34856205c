"From questions to a profile that answers: what is refused, what is written, and that a killed training comes to the same weights."

import os, signal, subprocess, sys, time
from dataclasses import replace
from pathlib import Path

import pytest

from commands import ROOT, shell
from treekit.config import UsageError, load_profile
from treekit.training.job import TrainingJob, ready
from treekit.training.sft import load_checkpoint
from treekit.training.profile_writer import check_name, profile_sections, settings_file, write_sections

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


def test_a_section_of_ones_own_is_never_replaced(desk):
    settings_file().write_text(
        settings_file().read_text() + "\n[mine]\nmodel = gpt\nendpoint = https://example.org/v1\n"
    )
    with pytest.raises(UsageError, match="'mine' already"):
        check_name("mine")
    with pytest.raises(UsageError, match="'openai' already"):
        check_name("openai")
    before = load_profile("openai")
    write_sections(profile_sections("other", "router", load_profile("local", model="llama3.1", n=7)))
    made = load_profile("other")
    assert (made.model, made.n, made.router, made.endpoint) == (
        "llama3.1",
        7,
        "other-model",
        "http://localhost:11434/v1",
    )
    text = settings_file().read_text()
    write_sections(profile_sections("other", "router", load_profile("local", model="llama3.1", n=7)))
    assert (
        settings_file().read_text() == text and load_profile("openai") == before and load_profile("mine").model == "gpt"
    )


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


@pytest.mark.slow
def test_the_parser_command_runs_its_recipe(desk, treekit_):
    "What stops the recipe is told in one line."
    code, said = treekit_("train", "parser", "--name", "mine", "--treebanks", desk, "--preset", "tiny")
    assert code == 2 and "the recipe ended with UsageError: treebank file en_ewt_gum.train.conllu is not in" in said


# ---- killed in each stage ----

DRIVER = """
import sys
from dataclasses import replace
from treekit.config import load_profile
from treekit.training.job import TrainingJob
from treekit.papers.searchr.training_job import run_navigator
from treekit.papers.searchr.training import PRESETS
tiny = PRESETS["tiny"]
often = dict(tuning=replace(tiny.tuning, epochs=2, save_every=1), reward=replace(tiny.reward, epochs=1, batch=8, save_every=1),
             ppo=replace(tiny.ppo, rollouts=8, batch=4, passes=1, epochs=1, max_new=24, save_every=1), drawn=1)
print(run_navigator(TrainingJob("mine", "navigator", "tiny", load_profile("offline"), 40), **often))
"""

STAGES = [  # (what is there when it is killed, what isn't yet)
    ("store/offline.sqlite", "trained/mine/pairs.json"),
    ("trained/mine/sft/checkpoint.pt", "trained/mine/sft/log.json"),
    ("trained/mine/reward/checkpoint.pt", "trained/mine/reward/log.json"),
    ("trained/mine/ppo/checkpoint.pt", "trained/mine/ppo/log.json"),
]


def drive(desk, home, until=None):
    "Run the driver; where `until` says so, kill it in a stage. Whether it came to its end."
    env = os.environ | dict(TREEKIT_HOME=str(desk / home), OMP_NUM_THREADS="1", TQDM_DISABLE="1", PYTHONPATH=str(ROOT))
    with open(desk / f"{home}.out", "a") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER], cwd=desk, env=env, stdout=log, stderr=log, start_new_session=True
        )
        there, lacking = until or ("never", "never")
        deadline = time.time() + 1200
        while process.poll() is None and time.time() < deadline:
            if (desk / home / there).exists() and not (desk / home / lacking).exists():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return False
            time.sleep(0.01)
        assert process.poll() == 0, (desk / f"{home}.out").read_text()[-3000:]
        return True


@pytest.mark.slow
def test_killed_in_each_stage_it_comes_to_the_same_weights(desk):
    "Questions, paths, fine-tuning, reward model, PPO: SIGKILL in each, then to the end; the same bytes as without."
    killed = [not drive(desk, "cut", stage) for stage in STAGES]
    assert drive(desk, "cut") and drive(desk, "whole")
    assert all(killed), killed
    places = [desk / home / "trained/mine" for home in ("cut", "whole")]
    weights = [f"{stage}/model/model.safetensors" for stage in ("sft", "reward", "ppo")]
    for part in ("pairs.json", *weights, "ppo/log.json"):
        cut, whole = ((place / part).read_bytes() for place in places)
        assert cut == whole, part
    cut, whole = (
        load_checkpoint(place / "reward" / "model" / "head.pt") for place in places
    )  # its archive has a name of its own inside
    assert cut.keys() == whole.keys() and all(cut[k].equal(whole[k]) for k in cut)
    assert load_profile("mine").navigator == "mine-model"


@pytest.mark.slow
def test_rdr2s_tables_show_a_training_by_name(desk):
    "Five rows trained on one set of samples; the tables and figures made from them say what differs from the paper."
    import pandas as pd
    from treekit.papers.rdr2.training_job import row_folder, run_router
    from treekit.papers.rdr2.training import ROUTER, SETTINGS

    own = job(role="router", questions=60)
    made = run_router(own, "all", epochs=0.2)
    assert [r["row"] for r in made["rows"]] == [*SETTINGS] and all(r["steps"] for r in made["rows"])
    times = {path: path.stat().st_mtime_ns for path in own.folder.rglob("result.json")}
    assert len(times) == 7 and run_router(own, "all", epochs=0.2) == made
    assert {path: path.stat().st_mtime_ns for path in own.folder.rglob("result.json")} == times
    assert load_profile("mine").router == "mine-model" and (row_folder(own, ROUTER) / "trained_as.json").exists()
    with pytest.raises(UsageError, match="other labels"):
        run_router(own, "all", "model")
    shown = ("table3", "table4", "figure6", "figure7")
    words = ("reproduce", *(f"rdr2/{a}" for a in shown), "--set", "trained=mine", "--out", desk)
    code, out, err = shell(*words, TREEKIT_HOME=str(desk / ".treekit"))
    assert not code, out + err
    tables = {a: pd.read_csv(next(desk.rglob(f"rdr2/{a}.csv"))) for a in shown}
    sizes = tables["table3"].set_index(["method", "metric"]).reproduced
    assert sizes["Train", "Total"] == made["samples"]["train"]["Total"] and "Lessons for inst" not in sizes
    cells = tables["table4"][tables["table4"].published.notna() & tables["table4"].reproduced.notna()]
    assert set(cells.verdict) == {"not comparable"} and cells.reason.str.contains("epochs = 0.2").all()
    assert set(tables["figure6"].method) and tables["figure7"].step.min() == 0
