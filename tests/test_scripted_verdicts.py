"A server that answers as a paper printed is compatible with it in the right cells; one that answers at random differs."

import dataclasses, json, random

import pytest

from openai_server import Server
from treekit.baselines import chainrag, prompting, revising
from treekit.config import load_profile
from treekit.papers.arise import evaluation as arise
from treekit.papers.searchr import evaluation as searchr
from treekit.experiments import provenance
from treekit.experiments.paper_settings import said_of
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.figures import verdicts
from treekit.figures.verdicts import compare, published

IDS = dict(hotpotqa="5adf2fa3554299334401{:04x}", musique="2hop__{}_1")
TABLES = {  # paper/table -> model, data set, rows, metrics
    "treerare/table1": ("gpt-4o-mini", "hotpotqa", {"zero-shot": prompting.methods()["zero-shot"]}, ("COVER-EM",)),
    "searchr/table2": ("gpt-4o-mini", "musique", {"NativeRAG": chainrag.METHODS["NativeRAG"]}, ("F1", "EM")),
    "arise/table1": ("Qwen2.5-7B-Instruct", "hotpotqa", {"Vanilla": revising.methods()["Vanilla"]}, ("EM (covered)",)),
}


@pytest.fixture(scope="module")
def server():
    with Server(latency=0.0) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    "Ten questions a data set, with ids of the published form, each with a passage of its own."
    place = tmp_path_factory.mktemp("ten")
    for dataset, form in IDS.items():
        lines = [
            dict(
                id=form.format(i),
                dataset=dataset,
                question=f"Who keeps the lamp of Zarn{i}q?",
                answers=[f"Ilbe Mor{i}t"],
                paragraphs=[
                    dict(
                        id=f"p{i}",
                        title=f"Zarn{i}q",
                        text=f"The lamp of Zarn{i}q is kept by Ilbe Mor{i}t.",
                        is_supporting=True,
                    )
                ],
            )
            for i in range(10)
        ]
        (place / f"{dataset}.dev.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return place


def said_of_ten(*cell):
    "What the paper would say had it asked these ten questions once, each over its own passages."
    said = {k: v for k, v in said_of(*cell).items() if k != "corpus"}
    few = dict(
        n=("10",),
        runs=("1",),
        search_scope=("own",),
        unit=("*",),
        retriever=("bm25*", "dense*"),
        questions=("published*",),
    )
    return {k: dataclasses.replace(v, accepts=few.get(k, v.accepts)) for k, v in said.items()}


def printed_cells(name, model):
    paper, table = name.split("/")
    cells = published(paper, table)
    return arise.printed(cells) if paper == "arise" else searchr.printed(cells) if paper == "searchr" else cells


def replies(name, model, dataset, row, metrics):
    "What to answer to each of the ten, so that the means are the printed ones, to a tenth or better."
    cells = {
        c["metric"]: c["value"] / (100 if c["unit"] == "percent" else 1)
        for c in printed_cells(name, model)
        if (c["group"].lower(), c["method"], c["dataset"]) == (model.lower(), row, verdicts.printed_name(dataset))
    }
    exact = round(10 * cells[metrics[-1]])
    answers = [f"Ilbe Mor{i}t" if i < exact else "Somebody Else" for i in range(10)]
    if len(metrics) > 1:  # F1 is more than EM: some answers are right in one word of two
        for i in range(exact, exact + round((10 * cells["F1"] - exact) / 0.5)):
            answers[i] = f"Ilbe Else{i}"
    return answers


def outcome(server, folder, monkeypatch, tmp_path, name, answers):
    "The verdicts of a table's row, answered so."
    model, dataset, methods, metrics = TABLES[name]
    wrap = (lambda a: f"Explanation: the documents say so.\nFINAL: {a}") if name.startswith("treerare") else str
    server.script(rules=[[f"Who keeps the lamp of Zarn{i}q", wrap(a)] for i, a in enumerate(answers)])
    profile = load_profile(
        "local", endpoint=server.url, model=model, data=str(folder), search_scope="own", n=10, retriever="bm25"
    )
    monkeypatch.setattr(provenance, "published_texts", lambda dataset: None)  # these ten are made up
    results = run(methods, {dataset: load(dataset, folder)}, profile, store=None, progress=False)
    assert not results.failures, results.failures[0].error
    rows = (
        arise.scored_cells(results, average="", answer=False)
        if name.startswith("arise")
        else [cell for metric in metrics for cell in results.score(metric)]
    )
    monkeypatch.setattr(verdicts, "said_of", said_of_ten)
    table = compare(printed_cells(name, model), rows, results).query("verdict != 'not run'")
    return {(r.method, r.metric): (r.verdict, r.reason) for r in table.itertuples() if r.metric in metrics}


@pytest.mark.parametrize("name", TABLES)
def test_as_printed_and_at_random(server, folder, monkeypatch, tmp_path, name):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    model, dataset, methods, metrics = TABLES[name]
    [row] = methods
    found = outcome(server, folder, monkeypatch, tmp_path, name, replies(name, model, dataset, row, metrics))
    assert {cell: verdict for cell, (verdict, _) in found.items()} == {(row, m): "compatible" for m in metrics}, found
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "again"))
    names = [f"Ilbe Mor{i}t" for i in range(10)]
    found = outcome(
        server, folder, monkeypatch, tmp_path, name, random.Random(3).sample(names[1:] + names[:1], 10)[::-1]
    )
    # ten questions exclude little: EM may lie within its wide tolerance, the first metric doesn't
    assert found[row, metrics[0]][0] == "different" and "perfect runs" in found[row, metrics[0]][1], found
