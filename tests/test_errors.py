"Outcomes and their causes: judgements by hand and by a judge."

from dataclasses import replace

import pytest

from fakes import FakeChat
from treekit.analysis.cases import rates, sort
from treekit.config import UsageError, load_profile
from treekit.core.types import Question
from treekit.analysis.attribution import Finding
from treekit.experiments.resources import load
from treekit.core.method import Trace, Usage
from treekit.analysis.outcomes import (
    by_judge,
    calls_of,
    read_annotations,
    write_annotation,
)
from treekit.experiments.run import run
from treekit.store.run_store import Store
from treekit.experiments.results import Row
from treekit.papers.treerare.method import TreeRare

WHEN = Question("q1", "musique", "Where did the founder of the Voss Institute die?", ("Tarn",), supporting=("p1", "p2"))


def row(id="q1", answer="Orlund", method="ours"):
    trace = Trace()
    trace.add("phrase", "the Voss Institute", hits=[dict(id="p1", title="Voss")], evidence="Edda Voss founded it.")
    return Row(method, "musique", replace(WHEN, id=id), answer, "", Usage(), load=lambda: trace)


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
    s = sort(rows, load_profile("offline"), [Finding()] * len(rows), labels, chat=judge, store=Store(), progress=False)
    assert s.leading == "hand" and s.views["hand"][2] == ""
    [cell] = [
        r
        for r in rates(s, "HotpotQA", ("TreeRare", "ReAct"))
        if (r["method"], r["dataset"], r["metric"])
        == ("TreeRare minus ReAct", "HotpotQA, by hand", "Partial Answer rate")
    ]
    assert (cell["value"], cell["n"]) == (1.0, 2)
