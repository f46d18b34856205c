"Outcomes and their causes: judgements by hand and by a judge, attribution on the trace, and how often it names a seeded fault."

from dataclasses import replace
from pathlib import Path

import pytest

from fakes import FakeChat
from treekit.retrieval.bm25 import BM25
from treekit.analysis.cases import rates, sort
from treekit.config import UsageError, load_profile
from treekit.core.types import Question, Step
from treekit.analysis.attribution import ERROR_KINDS, NOT_APPLICABLE, first_error, breakdown
from treekit.experiments.resources import Batch, load, load_corpus
from treekit.analysis.fault_injection import confusion, seed_faults
from treekit.core.method import Trace, Usage
from treekit.analysis.outcomes import (
    by_judge,
    calls_of,
    read_annotations,
    write_annotation,
)
from treekit.experiments.run import run
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
from treekit.experiments.results import Row
from treekit.models.simulated.ability import PERFECT
from treekit.models.simulated.client import SimulatedClient
from treekit.syntax.parser import parser_for
from treekit.papers.treerare.method import METHODS, TreeRare

ROOT = Path(__file__).resolve().parents[1]
WHEN = Question(
    "q1",
    "musique",
    "Where did the founder of the Voss Institute die?",
    ("Tarn",),
    supporting=("p1", "p2"),
    decomposition=(
        Step("Who founded the Voss Institute?", "Edda Voss", "p1"),
        Step("In which town did #1 die?", "Tarn", "p2"),
    ),
)


def row(id="q1", answer="Orlund", method="ours", error="", question=WHEN, **nodes):
    trace = Trace()
    for text, data in (
        nodes
        or {
            "the Voss Institute": dict(
                queries=["Voss?"], hits=[dict(id="p1", title="Voss")], evidence="Edda Voss founded it."
            )
        }
    ).items():
        trace.add("phrase", text, **data)
    q = (
        question
        if question.id == id
        else Question(
            id,
            question.dataset,
            question.question,
            question.answers,
            supporting=question.supporting,
            decomposition=question.decomposition,
        )
    )
    return Row(method, "musique", q, answer, error, Usage(), load=lambda: trace)


# --- seeded faults


@pytest.mark.slow
def test_seeded_faults_are_named():
    "With a simulated model that takes one step per reply: three in four are named."
    wanted, n = 12, 30
    quota = {kind: round(wanted * share) for kind, share in zip(ERROR_KINDS, (0.04, 0.25, 0.21, 0.25, 0.25))}
    questions = list({q.id: q for d in ("musique", "2wiki", "hotpotqa") for q in load(d, "synthetic", n=n)}.values())
    P = load_profile("offline")
    parser = Batch(lambda: parser_for(P), [q.question for q in questions])
    cases, fate = seed_faults(
        METHODS,
        questions,
        CachedClient(SimulatedClient(replace(PERFECT, chaining=0.0)), Store()),
        BM25(load_corpus("musique", "synthetic")),
        parser,
        quota,
        progress=False,
    )
    table = confusion(cases, [first_error(c.question, c.prediction.trace, c.prediction.answer) for c in cases])
    print("\n" + "\n".join(str(line) for line in table), "\n", dict(fate))
    kinds = set(ERROR_KINDS) - {"parse"}  # TreeRare heals parse faults itself
    assert len(cases) >= 0.9 * wanted and {c.fault.kind for c in cases} >= kinds
    assert table[-1]["both"] >= 0.75 * len(cases)


# --- attribution


def test_attribution_says_where_it_does_not_apply():
    hotpot = Question("h", "hotpotqa", "Who?", ("x",), supporting=("p",))
    assert first_error(hotpot, row().trace, "y").why == "hotpotqa gives no sub-answers with their passages"
    closed = Trace()
    closed.add("answer", "Orlund")
    assert (
        first_error(WHEN, closed, "Orlund").kind == NOT_APPLICABLE
        and "searched" in first_error(WHEN, closed, "Orlund").why
    )
    [line] = breakdown([row(), row("q2", error="timeout", answer=""), row("q3", "Tarn")])
    assert line["n"] == 3 and line["right"] == 1 and line[NOT_APPLICABLE] == 1 and line["why"] == "timeout"


# --- by hand


def test_everything_wrong_in_an_annotation_file_is_named_at_once(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text(
        "annotator,method,dataset,question_id,outcome,note\nada,ours,musique,q1,success,\nada,ours,musique,q1,Success,\n"
        ",ours,musique,q2,Success,\nada,ours,musique,q9,Nonsense,\n"
    )
    with pytest.raises(UsageError) as e:
        read_annotations(file, [row("q1"), row("q2"), row("q3")])
    for piece in (
        "labels.csv, line 2: 'success' is no outcome; did you mean 'Success'?",
        "line 3: q1 (ours, musique) is already judged in labels.csv, line 2",
        "line 4: no annotator",
        "line 5: 'Nonsense' is no outcome; they are Success",
        "line 5: q9 (ours, musique) is not in the sample",
        "ada has not judged 2 of 3: q2 (ours, musique); q3",
    ):
        assert piece in str(e.value), piece


# --- by a judge


class Judge(FakeChat):
    model = "judge"

    def __init__(self, *replies):
        super().__init__(lambda request: replies[(len(self.asked) - 1) % len(replies)], tokens=(10, 5))


def test_a_judgement_is_bought_once_and_can_be_followed_down():
    store, chat = Store(), Judge("OUTCOME: Success")
    for _ in range(2):
        assert by_judge([row()], load_profile("offline"), chat=chat, store=store, progress=False) == ["Success"]
    assert len(chat.asked) == 1
    P, q = load_profile("offline"), load("musique", "synthetic", n=1)
    [made] = run({"TreeRare": TreeRare()}, {"musique": q}, P, store=store, progress=False).rows
    calls = calls_of(made, store)
    assert (
        len(calls) == made.usage.calls
        and all(c["reply"] and c["messages"] for c in calls)
        and q[0].question in calls[0]["messages"][-1]["content"]
    )
    assert sum(c["tokens_in"] for c in calls) == made.usage.tokens_in


# --- figures


def test_labels_by_hand_lead(tmp_path):
    "They come first, and the printed differences are of them. An answer without a majority counts in no share and no difference."
    rows = [row(f"q{i}", "Tarn", m) for m in ("ReAct", "TreeRare") for i in range(3)]
    for who in ("ada", "bo"):
        for r in rows:
            write_annotation(
                tmp_path / "labels.csv",
                who,
                r,
                "Partial Answer"
                if r.method == "TreeRare"
                else "Success"
                if who == "ada" or r.question.id != "q2"
                else "Partial Answer",
            )
    labels, judge = str(tmp_path / "labels.csv"), Judge("OUTCOME: Success")
    s = sort(rows, load_profile("offline"), labels, chat=judge, store=Store(), progress=False)
    assert s.leading == "hand" and s.views["hand"][2] == ""
    [cell] = [
        r
        for r in rates(s, "HotpotQA", ("TreeRare", "ReAct"))
        if (r["method"], r["dataset"], r["metric"])
        == ("TreeRare minus ReAct", "HotpotQA, by hand", "Partial Answer rate")
    ]
    assert (cell["value"], cell["n"]) == (1.0, 2)
