"Names lead to methods: each name to the one that its module has under it, on the command line too."
import importlib, json

import pytest
from click.testing import CliRunner

import treekit.cli
from treekit.config import UsageError
from treekit.core.types import Question, Step
from treekit.registry import MODULES, find, method, names
from treekit.figures.verdicts import published

EXAMPLES = [Question(f"t{i}", "demo", f"Question {i}?", (f"answer {i}",), decomposition=(Step("Who?", f"answer {i}"),)) for i in range(3)]


@pytest.mark.parametrize("module", MODULES)
def test_the_list_says_what_the_modules_have(module):
    own = importlib.import_module(f"treekit.{module}")
    made = own.METHODS if hasattr(own, "METHODS") else own.methods(EXAMPLES)
    assert set(MODULES[module]) <= set(made) and set(made) <= {p for listed in MODULES.values() for p in listed}
    for name, printed in names().items():
        if printed in MODULES[module]: assert method(name, EXAMPLES) == method(printed, EXAMPLES) == made[printed]


def test_every_method_of_table_1_can_be_had():
    printed = {r["method"] for r in published("treerare", "table1")} - {"Rel. Impr."}
    assert printed <= {p for own in MODULES.values() for p in own}


def test_a_wrong_name_gets_the_nearest():
    assert len(set(names())) == len(names()) and find("ReAct*") == ("ReAct*", "react")
    with pytest.raises(UsageError, match="'react-star'"): find("react-sta")
    with pytest.raises(UsageError, match="without examples"): method("SC (few-shot)")


def ask(tmp_path, monkeypatch, *words):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(dict(id=f"p{i}", title=t, text=x)) + "\n" for i, (t, x) in enumerate({"Velmora": "Velmora is a film by Lio Vant.", "Lio Vant": "Lio Vant was born in Tarn."}.items())))
    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "store.sqlite"))
    result = CliRunner().invoke(treekit.cli.main, ["ask", "Who directed Velmora?", "--corpus", str(corpus), "--set", "retriever=bm25s", "--json", *words])
    return json.loads(result.stdout) if result.exit_code == 0 else result.stderr


def test_ask_takes_any_of_them_and_their_fields(tmp_path, monkeypatch):
    got = ask(tmp_path, monkeypatch, "--method", "sc", "--set", "samples=3", "--set", "temperature=1")
    assert got["calls"] == 3 and "Lio Vant" in got["answer"] and [n["kind"] for n in got["trace"]["nodes"]] == ["answer", "path", "path", "path"]
    got = ask(tmp_path, monkeypatch, "--method", "COT (few-shot)")
    assert got["calls"] == 1 and "Lio Vant" in got["answer"]
    assert "samples should be a whole number" in ask(tmp_path, monkeypatch, "--method", "sc", "--set", "samples=many")
    assert "setting of RetrieveAndRead" in ask(tmp_path, monkeypatch, "--method", "cot", "--set", "samples=3")
