"What is exported for verl: the files by their schema; where verl is installed, read by its own classes. No GPU is needed or used."

import asyncio, importlib.util, json, subprocess
from dataclasses import asdict

import pytest

from test_trainers import desk, job  # noqa: F401 (a fixture)
from treekit.config import UsageError
from treekit.papers.searchr.training_data import Pair

pytest.importorskip("torch")
parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'treekit-rag[open]'")


@pytest.fixture
def exported(desk):  # noqa: F811
    "A folder for verl, of a training job whose fine-tuned model has random weights."
    from treekit.papers.searchr.training_job import job_questions
    from treekit.papers.searchr.verl_export import export_verl
    from treekit.training.models import save_model, tiny_model, tokenizer_of
    from treekit.papers.searchr.training import PRESETS, example

    own = job()
    folder = own.begun()
    with pytest.raises(UsageError, match="isn't fine-tuned yet"):
        export_verl(own, desk / "verl")
    questions = [q for qs in job_questions(own, PRESETS["tiny"]).values() for q in qs]
    pairs = [Pair(f"{q.id}/1", q.question, (q.question,), "x", 1.0, True) for q in questions]
    (folder / "pairs.json").write_text(json.dumps(dict(pairs=[asdict(p) for p in pairs], counts={})))
    texts = [e.prompt + e.target for e in (example(p, PRESETS["tiny"]) for p in pairs)]
    tokenizer = tokenizer_of(texts, 500)
    save_model(tiny_model(tokenizer, 32, 1, 2, 64), tokenizer, folder / "sft" / "model")
    (folder / "sft" / "log.json").write_text("{}")
    return own, questions, export_verl(own, desk / "verl"), desk / "verl"


def test_the_files_are_verls(exported, monkeypatch):
    "Columns and types as `RLHFDataset` and the reward managers take them; the reward function is a coroutine that follows a path."
    _, questions, counts, folder = exported
    assert {*counts} == {"train.parquet", "val.parquet", "treekit_reward.py", "treekit_ppo.yaml", "launch.sh"}
    rows = {split: parquet.read_table(folder / f"{split}.parquet").to_pylist() for split in ("train", "val")}
    assert counts["train.parquet"] == len(rows["train"]) and len(rows["train"]) + len(rows["val"]) == len(questions)
    asked = {split: {r["extra_info"]["id"] for r in some} for split, some in rows.items()}
    assert not asked["train"] & asked["val"] and asked["train"] | asked["val"] == {q.id for q in questions}
    for row in rows["train"]:
        assert {*row} == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
        assert [m["role"] for m in row["prompt"]] == ["user"] and row["prompt"][0]["content"]
        assert row["reward_model"]["style"] == "rule" and row["reward_model"]["ground_truth"]
        assert row["extra_info"]["split"] == "train" and row["extra_info"]["index"] >= 0
    spec = importlib.util.spec_from_file_location("treekit_reward", folder / "treekit_reward.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert asyncio.iscoroutinefunction(module.compute_score)
    row = rows["train"][0]
    golds = {q.id: q for q in questions}[row["extra_info"]["id"]]

    def score(reply):
        return asyncio.run(module.compute_score("treekit/navigator", reply, list(golds.answers), row["extra_info"]))

    assert score("no path at all") == 0.0
    assert 0.0 <= score(json.dumps([golds.question])) <= 1.0
    assert subprocess.run(["sh", "-n", str(folder / "launch.sh")]).returncode == 0
