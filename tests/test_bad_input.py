"What bad input gets: one line that says what to do, before any work, and the exit code that means it."

import json, subprocess, sys
from pathlib import Path

import pytest

from treekit.config import UsageError, load_profile

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
        (dict(budget="inf"), "budget.*finite"),
    ],
)
def test_settings_that_mean_nothing(setting, said):
    with pytest.raises(UsageError, match=said):
        load_profile("offline", **setting)


def test_a_work_folder_that_cannot_be(tmp_path, monkeypatch, treekit_):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "file"))
    one_line(*treekit_("list"), "TREEKIT_HOME")
    code, said = treekit_("doctor")
    assert code == 2 and "✗ disk" in said and "TREEKIT_HOME" in said


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


def test_code_in_a_folder_with_a_model_is_never_run(tmp_path, monkeypatch):
    "Not even by somebody who says yes to the question that the library puts on a terminal."
    from treekit.retrieval.dense import Embedder
    from treekit.scoring.judges import Entailment
    from treekit.llm.local_client import load_local

    folder, ran = tmp_path / "model", tmp_path / "ran"
    folder.mkdir()
    own = dict(model_type="own", auto_map=dict(AutoConfig="own.C", AutoModelForCausalLM="own.M"))
    (folder / "config.json").write_text(json.dumps(own))
    tokens = dict(tokenizer_class="Own", auto_map=dict(AutoTokenizer=["own.T", None]))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass T: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for load in (lambda f: load_local(str(f)), lambda f: Embedder(str(f))(["a text"])):
        with pytest.raises(UsageError, match="custom code") as e:
            load(folder)
        assert "\n" not in str(e.value)
    with pytest.raises((UsageError, ValueError), match="custom code"):
        Entailment(str(folder))
    assert not ran.exists()
