"The baselines over the OpenAI protocol: what the store's record says they asked, how they vote, and what becomes of paths without an answer."

import asyncio
from dataclasses import replace

import pytest

from fakes import FakeChat, FakeShelf
from recorded import recorded_calls
from treekit.baselines.prompting import (
    MOST_CONSISTENT,
    SelfConsistency,
    examples_from,
    methods,
    shown,
)
from treekit.config import UsageError, load_profile
from treekit.core.types import Passage, QAPair, Question, Step
from treekit.experiments.tables import with_enough_examples
from treekit.papers.treerare.evaluation import table1_methods
from treekit.experiments.resources import LazyRetriever
from treekit.llm.openai_client import OpenAIClient
from treekit.core.method import Context
from treekit.figures.verdicts import published
from treekit.experiments.run import run
from treekit.store.run_store import Store

PROFILE = load_profile("offline")
ASKED = "Where was the author of Grey Harbour born?"
HARBOUR = Passage("p1", "Grey Harbour", "Grey Harbour is a novel by Ida Roth.")


def Shelf():
    return FakeShelf([HARBOUR])


def training(dataset, n=5):
    pairs = (QAPair("Which one?", ("one",)), QAPair("Which other?", ("two",))) if dataset == "asqa" else ()
    return [
        Question(
            f"t{i}",
            dataset,
            f"Question {i}?",
            (f"answer {i}",),
            qa_pairs=pairs,
            decomposition=() if pairs else (Step(f"Step {i}?", f"answer {i}"),),
        )
        for i in range(n)
    ]


def question(dataset="musique"):
    return Question("q", dataset, ASKED, ("Tarn",), qa_pairs=(QAPair("a?", ("Tarn",)),) if dataset == "asqa" else ())


def go(chosen, server, dataset="musique", store=None, **client):
    "The results of one question, and the record of its calls."
    store, chat = store or Store(), OpenAIClient("gpt-4o-mini", server.url, **dict(pause=0.01, retries=1) | client)
    results = run(
        chosen,
        {dataset: [question(dataset)]},
        PROFILE,
        chat=chat,
        store=store,
        corpora={dataset: LazyRetriever(Shelf, "shelf", "a shelf")},
        progress=False,
    )
    return results, recorded_calls(store)


def sampled(body):
    "Ten paths for a sampled request, one reply else."
    text = "\n".join(m["content"] for m in body["messages"])
    if "Choice:" in text:
        return "Choice: 2"
    answers = ["Tarn", "Orle", "Tarn.", "Orle", "the Tarn", "Usk", "Orle", "", "Usk", "tarn"]
    kind = "few" if "examples" in text else "zero"  # so that no two rows make the same choice
    if not body.get("n"):
        return f"Explanation: {kind}, so it is.\nFINAL: Tarn"
    return [f"Explanation: {kind} path {i}.\nFINAL: {a}" if a else "I go on and on" for i, a in enumerate(answers)]


@pytest.fixture
def model(server):
    server.script(reply="test_baselines:sampled")
    return server


# --- calls

ROWS = ["zero-shot", "few-shot", "COT (zero-shot)", "COT (few-shot)", "SC (zero-shot)", "SC (few-shot)"]


@pytest.mark.parametrize("dataset, calls", [("musique", [1, 1, 1, 1, 10, 10]), ("asqa", [1, 1, 1, 1, 11, 11])])
def test_each_row_makes_its_calls(model, dataset, calls):
    chosen = methods(training(dataset))
    results, record = go(chosen, model, dataset)
    assert list(chosen) == ROWS and not results.failures
    assert [sum(m == name for m, *_ in record) for name in ROWS] == calls == [r.usage.calls for r in results.rows]
    assert [r.usage.critical_path for r in results.rows] == [1, 1, 1, 1] + [1 + (dataset == "asqa")] * 2
    # each sample is a request of its own, without a temperature other than the server's, as in TreeRare's code
    assert model.count == 4 + 20 + 2 * (dataset == "asqa")
    assert {p["temperature"] for m, _, _, p, t in record if m.startswith("SC") and "Choice:" not in t} == {1.0}
    assert all(len(n.calls) == 1 for r in results.rows[4:] for n in r.trace.nodes if n.kind == "path")


def test_what_each_row_says(model):
    _, record = go(methods(training("musique")), model)
    text = {m: t for m, *_, t in record}
    for name, t in text.items():
        assert ("Let's think step by step.\nQuestion: " + ASKED in t) == (name in ("COT (zero-shot)", "SC (zero-shot)"))
        assert t.count("\nFINAL: answer") == (3 if "few-shot" in name else 0)
        assert t.count("Explanation: 1. Step") == (3 if name in ("COT (few-shot)", "SC (few-shot)") else 0)
        assert ("Explanation: [" in t) == name.startswith(("COT", "SC")) and HARBOUR.text in t
    assert text["SC (few-shot)"] == text["COT (few-shot)"]  # "using the few-shot CoT prompt", App. B


def test_ten_samples_at_their_temperature_in_one_request(model):
    _, record = go({"SC": SelfConsistency()}, model)
    assert [sample for _, _, sample, *_ in record] == list(range(10)) and {p["temperature"] for *_, p, _ in record} == {
        0.7
    }
    assert [(r["n"], r["temperature"]) for r in model.requests] == [(10, 0.7)]


def test_the_choice_comes_after_the_paths_and_is_not_sampled(model):
    results, record = go({"SC": SelfConsistency()}, model, "asqa")
    assert [sample for _, _, sample, *_ in record] == [*range(10), 0]
    *_, parameters, text = record[-1]
    # the path without an answer isn't shown
    assert parameters["temperature"] == 0.0
    assert text.startswith("Several responses")
    assert "[9] zero path 9. FINAL: tarn" in text
    assert "[10]" not in text
    [row] = results.rows
    assert row.answer == "Orle" and row.trace.nodes[row.trace.nodes[0].data["choice"]].text == "Orle"


# --- votes


def test_votes_are_on_normalised_answers_and_written_down(model):
    results, _ = go({"SC": SelfConsistency()}, model)
    [row] = results.rows
    assert row.answer == "Tarn" and row.trace.nodes[0].data["votes"] == {"tarn": 4, "orle": 3, "usk": 2}
    silent = row.trace.nodes[8]
    assert silent.text == "" and silent.data["explanation"] == "I go on and on" and "no vote" in silent.notes[0]


def ask(method, reply, q=None):
    context = Context(FakeChat(reply), Shelf())
    return context, lambda: asyncio.run(method(q or question(), context))


@pytest.mark.parametrize("dataset", ["musique", "asqa"])
def test_no_path_with_an_answer_is_a_recorded_failure(server, dataset):
    server.script(reply="scripted:numbered")  # no FINAL anywhere
    results, record = go({"SC": SelfConsistency()}, server, dataset)
    [row] = results.failures
    assert row.answer == "" and "none of the 10 sampled paths" in row.error and len(record) == 10
    assert [n.kind for n in row.trace.nodes] == ["answer"] + ["path"] * 10 and row.trace.nodes[3].data[
        "explanation"
    ] == "reply 2"
    [score] = results.score("COVER-EM")
    assert (score["n"], score["failures"], score["value"]) == (1, 1, 0.0)
    assert score["reason"].startswith("failed: 1 of 1 questions, most often with none of the 10 sampled paths")


@pytest.mark.parametrize(
    "reply, answer, note",
    [
        ("Choice: 3", "c", ""),
        ("Response 1 is odd. Choice: Response 2", "b", ""),
        ("The 2nd? I'd say 3", "c", "last number"),
        ("All agree.", "a", "no response 0"),
        ("Choice: 99", "a", "no response 99"),
        ("", "a", "no response 0"),
    ],
)
def test_a_choice_is_read_tolerantly_and_never_in_silence(reply, answer, note):
    context, go = ask(
        SelfConsistency(samples=3, aggregation="choice"),
        lambda r, i: reply if r.prompt is MOST_CONSISTENT else f"Explanation: e.\nFINAL: {'abc'[i]}",
    )
    assert go().answer == answer
    assert note in "; ".join(context.trace.nodes[0].notes) and bool(context.trace.nodes[0].notes) == bool(note)


# --- examples


def test_the_question_is_never_among_its_examples(model):
    pool = training("musique", 3) + [
        Question("q", "musique", "Another wording", ("leaked",), decomposition=(Step("leaked?", "leaked"),)),
        Question("t9", "musique", f" {ASKED} ", ("leaked",), decomposition=(Step("leaked?", "leaked"),)),
        *training("hotpotqa", 3),
    ]
    _, record = go(methods(pool[3:] + pool[:3]), model)
    assert len(record) == 24 and not any("leaked" in text for *_, text in record)
    with pytest.raises(UsageError, match="has 2"):
        shown(examples_from(pool[:2]), question(), 3)


def test_a_row_is_run_where_its_own_examples_are():
    bare = [replace(q, decomposition=()) for q in training("musique", 3)]
    sample = {"musique": [question()]}
    assert with_enough_examples(bare, sample) == sample
    assert with_enough_examples(bare, sample, reasoning=True) == {}
    assert with_enough_examples(training("musique", 3), sample, reasoning=True) == sample
    assert (
        with_enough_examples([replace(q, question=ASKED) for q in bare], sample)
        == with_enough_examples(bare[1:], sample)
        == {}
    )
    rows = table1_methods(training("musique", 3))
    assert set(rows) == set(methods(training("musique", 3))) | {
        "ReAct",
        "ReAct*",
        "TOT",
        "TreeRare (DT)",
        "TreeRare (CT)",
    }
    assert rows["TOT"].examples == rows["ReAct"].examples == rows["few-shot"].examples != ()
    assert list(rows) == [m for m in dict.fromkeys(r["method"] for r in published("treerare", "table1")) if m in rows]


# --- settings


@pytest.mark.parametrize(
    "wrong, hint",
    [
        (dict(samples=0), "samples"),
        (dict(temperature=0.0), "above 0"),
        (dict(temperature=3.0), "at most 2"),
        (dict(shots=-1), "shots"),
        (dict(aggregation="majority"), "aggregation"),
        (dict(family="long"), "family"),
    ],
)
def test_wrong_settings_are_named(wrong, hint):
    with pytest.raises(UsageError, match=hint):
        SelfConsistency(**wrong)


# --- offline
