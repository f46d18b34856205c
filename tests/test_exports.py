"A kept run in the formats of others: what goes out is what the run was, and their own readers read it."

import json
from pathlib import Path

import explorer_store
import pytest

from treekit.config import load_profile
from treekit.core.prompts import Completion
from treekit.core.method import Prediction, Trace, Usage
from treekit.store.run_store import Store
from treekit.core.types import Question
from treekit.experiments.run_records import save_run
from treekit.experiments.results import Row
from treekit.exports.export import EXPORTED
from treekit.exports.export import export_parquet
from treekit.explorer.runs import open_run

pq = pytest.importorskip("pyarrow.parquet")
ROOT = Path(__file__).resolve().parents[1]
NASTY = "'; DROP TABLE calls; -- \u0000\u202e <b>&\ud55c\uad6d"


def asked(store, key, text, reply, cost=None):
    "A call as a run leaves it in a store."
    said = dict(messages=[dict(role="user", content=text)], parameters=dict(temperature=0.0))
    request = json.dumps(said | dict(endpoint="https://x", model="m"))
    who = dict(method="M", dataset="films", question="q0")
    store.put_calls({key: Completion(reply, 3, 2, model="m-1", latency=0.5)}, request, "m", "https://x", who, [cost])


def a_run(store, profile="openai", reply="Ada", cost=0.25):
    "Two questions: one answered by two nodes, one failed."
    trace = Trace()
    top = trace.add("phrase", NASTY, hits=[dict(id="p", title="P", score=2.0)], span=[0, 3])
    top.calls.append("a")
    trace.add("answer", "Ada", parent=top).calls.extend(["a", "b", "gone"])
    asked(store, "a", "of nobody's", reply, cost)
    asked(store, "b", "of nobody's, again", NASTY, cost)
    questions = [Question(f"q{i}", "films", NASTY, ("Ada",), hops=2) for i in range(2)]
    store.put_prediction("one", Prediction("Ada", trace, Usage(calls=4, tokens_in=9)).to_json())
    rows = [
        Row("M", "films", questions[0], "Ada", "", Usage(), "one"),
        Row("M", "films", questions[1], "", f"OSError: {Path.home()}/x", Usage(), "two"),
    ]
    return open_run(store, save_run(store, {"M": questions[0]}, {"films": questions}, load_profile(profile), rows))


def exported(runs, folder, **given):
    counts = export_parquet(runs, folder, **given)
    tables = {t: pq.read_table(Path(folder) / f"{t}.parquet").to_pylist() for t in EXPORTED}
    assert counts == {t: len(rows) for t, rows in tables.items()}
    return tables


def test_what_goes_out_is_what_the_run_was(tmp_path):
    run = a_run(Store())
    t = exported([run], tmp_path)
    assert [q["question"] for q in t["questions"]] == [NASTY] * 2
    good, bad = t["predictions"]
    assert (good["answer"], good["value"], good["calls"], good["error"]) == ("Ada", 1.0, 4, "")
    assert (
        bad["value"] == 0.0 and bad["wrong_kind"] == "failed" and bad["error"] and str(Path.home()) not in bad["error"]
    )
    assert [(c["node"], c["place"], c["key"]) for c in t["calls"]] == [
        (0, 0, "a"),
        (1, 0, "a"),
        (1, 1, "b"),
        (1, 2, "gone"),
    ]
    assert (
        t["calls"][2]["reply"] == NASTY
        and t["calls"][3]["reply"] is None
        and t["calls"][0]["messages"][0]["content"] == "of nobody's"
    )
    assert [(n["parent"], n["level"], n["hits"]) for n in t["nodes"]] == [
        (None, 0, [dict(id="p", title="P", score=2.0)]),
        (0, 1, []),
    ]
    means = {c["metric"]: (c["value"], c["n"], c["failures"]) for c in t["cells"]}
    assert means["COVER-EM"] == (0.5, 2, 1) and means["calls"] == (2.0, 2, 1)


def test_what_a_call_cost_is_told_once_and_an_unknown_price_is_none(tmp_path):
    [first, _] = exported([a_run(Store())], tmp_path / "a")["predictions"]
    assert first["dollars"] is None  # one of its calls is gone
    store = Store()
    asked(store, "gone", "the third", "x", 0.5)
    assert exported([a_run(store)], tmp_path / "b")["predictions"][0]["dollars"] == 1.0  # a, b and gone: a is one call
    assert exported([a_run(Store(), "offline", cost=None)], tmp_path / "c")["predictions"][0]["dollars"] == 0.0


def test_the_same_store_gives_the_same_bytes_and_runs_stand_side_by_side(tmp_path):
    store = Store()
    names = explorer_store.small_runs(store)
    runs = [open_run(store, name) for name in names]
    both = exported(runs, tmp_path / "a")
    exported(runs, tmp_path / "b")
    for t in (*(f"{t}.parquet" for t in EXPORTED), "README.md"):
        assert (tmp_path / "a" / t).read_bytes() == (tmp_path / "b" / t).read_bytes()
    assert {p["run"] for p in both["predictions"]} == set(names)
    assert not list(tmp_path.glob(".*")), "no unfinished folder is left"


def test_every_column_is_documented_in_its_file_and_on_the_page(tmp_path):
    export_parquet([a_run(Store())], tmp_path)
    page = (tmp_path / "README.md").read_text()
    for table, columns in EXPORTED.items():
        schema = pq.read_schema(tmp_path / f"{table}.parquet")
        assert schema.names == [c.name for c in columns]
        for c in columns:
            assert schema.field(c.name).metadata[b"description"].decode() == c.says and f"| `{c.name}` |" in page
        assert not [v for v in schema.metadata.values() if str(tmp_path).encode() in v or b"/" in v]


def test_the_command(tmp_path, monkeypatch, treekit_):
    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "offline.sqlite"))
    code, said = treekit_("export")
    assert code == 2 and "nothing was run" in said
    with Store(tmp_path / "offline.sqlite") as store:
        explorer_store.small_runs(store)
    code, said = treekit_("export", "--out", tmp_path / "out", "--json")
    assert code == 0 and json.loads(said)["rows"]["predictions"] == 3
    for words, why in (
        (("nope",), "no run is named 'nope'"),
        (("treerare/table1",), "no run of treerare/table1 is kept"),
        (("--tables", tmp_path / "nowhere"), "no folder of tables at '"),
        (("--to", "xls"), "'xls'"),
        (("--to", "otlp"), "'otlp'"),
    ):
        code, said = treekit_("export", *words, "--out", tmp_path / "out")
        assert code == 2 and why in said, said
    (tmp_path / "file").write_text("")
    code, said = treekit_("export", "--out", tmp_path / "file" / "x")
    assert code in (1, 2) and "Traceback" not in said
