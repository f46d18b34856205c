"What bad input gets: one line that says what to do, before any work, and the exit code that means it."

import json, shutil, subprocess, sys
from pathlib import Path

import pytest

from treekit.config import UsageError, choose, load_profile, profile_names
from treekit.experiments.resources import Resources, datasets
from treekit.syntax.parser import ParseCache

ROOT = Path(__file__).resolve().parents[1]


def one_line(code, said, *words):
    assert code == 2 and said.startswith("treekit: ") and said.count("\n") == 1, said
    for word in words:
        assert word in said
    return True


@pytest.mark.parametrize(
    "setting, said",
    [
        (dict(search_scope="mine"), "search_scope =.*'mine'.*own"),
        (dict(budget="nan"), "budget.*finite"),
        (dict(budget=float("nan")), "budget.*finite"),
        (dict(temperature="nan"), "temperature.*finite"),
        (dict(timeout="inf"), "timeout.*finite"),
    ],
)
def test_settings_that_mean_nothing(setting, said):
    with pytest.raises(UsageError, match=said):
        load_profile("offline", **setting)


def test_settings_that_are_no_text(tmp_path):
    (tmp_path / "settings.ini").write_bytes(b"[caf\xe9]\nn = 3\n")
    with pytest.raises(UsageError, match="settings.ini: not UTF-8"):
        profile_names(tmp_path / "settings.ini")


def test_a_long_list_of_names_is_cut():
    with pytest.raises(UsageError) as e:
        choose("file", "zzzzzzz", [f"name{i:04}" for i in range(5000)])
    assert len(str(e.value)) < 300 and str(e.value).endswith("name0019, ….")


def test_a_work_folder_that_cannot_be(tmp_path, monkeypatch, treekit_):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "file"))
    one_line(*treekit_("list"), "TREEKIT_HOME")
    code, said = treekit_("doctor")
    assert code == 2 and "✗ disk" in said and "TREEKIT_HOME" in said


def test_a_bare_command_is_taught(treekit_):
    code, said = treekit_()
    assert code == 2 and said.count("\n") > 20 and "treekit reproduce treerare/table1" in said


def test_a_corpus_that_is_none(tmp_path, treekit_):
    (tmp_path / "passages.jsonl").write_text('{"text": "x"}\n')
    one_line(*treekit_("ask", "Who?", "--passages", tmp_path / "passage.jsonl"), "'passage.jsonl'", "'passages.jsonl'")
    one_line(*treekit_("ask", "Who?", "--passages", ""), "file of passages")
    one_line(*treekit_("ask", "Who?", "--passages", tmp_path), "file of passages")


def test_an_output_folder_that_cannot_be(tmp_path, treekit_):
    (tmp_path / "file").write_text("x")
    one_line(*treekit_("reproduce", "treerare/table1", "--n", 1, "--out", tmp_path / "file"), "--out")
    assert not (tmp_path / "home" / "runs").exists()  # nothing was started
    code, said = treekit_("cassette", "pack", tmp_path)
    assert code in (1, 2) and said.startswith("treekit: ") and said.count("\n") == 1


def test_the_doctor_looks_into_the_parser(tmp_path, monkeypatch, treekit_):
    models = tmp_path / "parser"
    shutil.copytree(ROOT / "data" / "parser", models)
    with open(models / "dep.pt", "r+b") as f:
        f.truncate(1000)
    monkeypatch.setenv("TREEKIT_PARSER_DIR", str(models))
    code, said = treekit_("doctor", "--json")
    [parser] = [c for c in json.loads(said) if "parser" in c.values()]
    assert code == 2 and "dep.pt is damaged" in str(parser)


def test_parses_that_are_none(tmp_path):
    (tmp_path / "parses.sqlite").write_text("no database" * 100)
    with pytest.raises(UsageError, match="parses.sqlite.*move it away"):
        ParseCache(tmp_path / "parses.sqlite").get("f", ["x"])


def test_a_folder_is_not_printed_under_a_table(tmp_path):
    library = Resources(load_profile("offline", retriever=f"prebuilt:{tmp_path / 'wiki'}"), {"hotpotqa": []})
    assert library.label("hotpotqa") == "wiki"


@pytest.mark.slow
def test_a_prebuilt_index_is_opened_with_our_java():
    "Pyserini starts the first Java it finds, which may be too old for Anserini."
    code = (
        "import treekit.retrieval.lucene as l\ntry: l.Lucene.prebuilt('nope')\nexcept l.UsageError as e: print(e)\n"
        "print(l.java_class('java.lang.System').getProperty('java.specification.version'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    lines = done.stdout.splitlines()
    assert "no prebuilt index named 'nope'" in lines[0] and int(lines[1]) >= 21, done.stderr[-500:]


@pytest.mark.slow
def test_a_folder_without_questions(tmp_path, treekit_):
    (tmp_path / "empty").mkdir()
    code, said = treekit_("reproduce", "treerare/table1", "--data", tmp_path / "empty", "--out", tmp_path / "out")
    assert code == 2 and "none of hotpotqa" in said and "'empty'" in said


def test_a_folder_with_training_questions_only(tmp_path):
    "Such a dataset can't be evaluated on: it is listed, but not among those with dev questions."
    (tmp_path / "hotpotqa_trainset.jsonl").write_text("")
    (tmp_path / "musique.dev.jsonl").write_text("")
    assert datasets(str(tmp_path)) == ["hotpotqa", "musique"]
    assert datasets(str(tmp_path), "dev") == ["musique"] and datasets(str(tmp_path), "train") == ["hotpotqa"]


def test_a_cassette_that_can_not_be_written(tmp_path):
    from treekit.store.run_store import Store

    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "x.cassette", "/proc/x.cassette"):
        with Store() as store, pytest.raises(UsageError, match="choose another place"):
            store.pack(place)


def test_code_in_a_folder_with_a_model_is_never_run(tmp_path, monkeypatch):
    "Not even by somebody who says yes to the question that the library puts on a terminal."
    from treekit.retrieval.dense import Embedder
    from treekit.scoring.judges import Entailment
    from treekit.training.models import load_model

    folder, ran = tmp_path / "model", tmp_path / "ran"
    folder.mkdir()
    own = dict(model_type="own", auto_map=dict(AutoConfig="own.C", AutoModelForCausalLM="own.M"))
    (folder / "config.json").write_text(json.dumps(own))
    tokens = dict(tokenizer_class="Own", auto_map=dict(AutoTokenizer=["own.T", None]))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass T: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for load in (load_model, lambda f: Embedder(str(f))(["a text"])):
        with pytest.raises(UsageError, match="custom code") as e:
            load(folder)
        assert "\n" not in str(e.value)
    with pytest.raises((UsageError, ValueError), match="custom code"):
        Entailment(str(folder))
    assert not ran.exists()


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '{"base_model_name_or_path": 3}'])
def test_an_adapter_without_its_base_is_one_line(tmp_path, content):
    from treekit.training.models import load_model

    (tmp_path / "adapter_config.json").write_text(content)
    with pytest.raises(UsageError, match="no model") as e:
        load_model(tmp_path)
    assert "\n" not in str(e.value)
