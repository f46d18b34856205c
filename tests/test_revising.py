"The baselines that write first, over the OpenAI protocol: calls and searches in number and order, by the store's record."

from collections import Counter

import pytest

from recorded import ASKED, go
from rounds import CHAIN
from treekit.config import UsageError
from treekit.core.method import Trace
from treekit.baselines.revising import (
    RATT,
    VERIFY_AND_EDIT_CODE,
    CoTSC,
    Query2Doc,
    VerifyAndEdit,
    chosen_chain,
)


def model(server, reply):
    server.script(reply=f"rounds:{reply}")
    return server


def test_query2doc_searches_with_question_and_pseudo_document(server):
    row, searches, calls = go(Query2Doc(), model(server, "query2doc"))
    made_up = "Ida Roth, the author of Grey Harbour, has her birthplace in Tarn, Voss County."
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 2, 2)
    assert searches == [(" ".join([ASKED] * 5 + [made_up]), 2), (f"{ASKED} {made_up}", 2)]
    assert "Documents" not in calls[0][-1] and "[2] " in calls[1][-1]


def test_verify_and_edit_edits_after_a_disagreement(server):
    row, searches, calls = go(VerifyAndEdit(), model(server, "disagreeing"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 5 + 2 * 2 + 1, 4)
    assert [(t, s) for t, s, _ in calls[:5]] == [(0.7, i) for i in range(5)]
    kinds = [
        "verify" if "checks whether" in t else "edit" if "verified thoughts" in t else "answer" for *_, t in calls[5:]
    ]
    assert sorted(kinds[:4]) == ["answer", "answer", "verify", "verify"] and kinds[4] == "edit"
    assert "Her birthplace is Orle" in "".join(t for *_, t in calls[5:9])  # the chain behind the most frequent answer
    # the sentence without evidence stays, the other is replaced
    assert "Grey Harbour is by Ida Roth." in calls[-1][-1]
    assert "The birthplace of Ida Roth is Tarn." in calls[-1][-1]
    assert "Orle" not in calls[-1][-1].split("Question:")[0]
    assert searches[0] == (ASKED, 2) and {q for q, _ in searches[1:3]} == {CHAIN[0][0], CHAIN[1][0]}


def test_verify_and_edit_takes_the_most_probable_chain(server):
    said = [
        (dict(answer="Tarn", explanation="A"), (("x", -0.1), ("y", -3.0))),
        (dict(answer="Usk", explanation="B"), (("x", -0.01),)),
        (dict(answer="tarn", explanation="C"), (("x", -1.0), ("y", -1.0), ("z", -1.0))),
    ]
    node = Trace().add("chains", "")
    assert chosen_chain(node, said, "Tarn")["explanation"] == "C" and node.data["logprobs"] == [
        -1.55,
        -1.0,
    ]  # the mean, not the sum
    assert (
        chosen_chain(node, said, "Tarn", probable=False)["explanation"]
        == chosen_chain(node, said, "")["explanation"]
        == "A"
    )
    assert not node.notes
    assert (
        chosen_chain(node, [(c, None) for c, _ in said], "Tarn")["explanation"] == "A"
        and "no log-probabilities" in node.notes[0]
    )
    row, *_ = go(VerifyAndEdit(), model(server, "disagreeing"))
    assert len(row.trace.nodes[0].data["logprobs"]) == 2
    assert row.trace.nodes[0].data["explanation"].endswith("Orle.")
    row, *_ = go(VerifyAndEdit(rationale="first"), model(server, "disagreeing"))
    assert "logprobs" not in row.trace.nodes[0].data and not row.trace.nodes[0].notes


def test_verify_and_edits_code_edits_every_question_and_reads_nothing_first(server):
    row, searches, calls = go(VerifyAndEdit(**VERIFY_AND_EDIT_CODE), model(server, "agreeing"))
    assert row.usage.calls == 5 + 2 + 1 and searches[0][0] != ASKED and searches[0][1] == 3


def test_verify_and_edit_leaves_an_agreement_alone(server):
    row, searches, calls = go(VerifyAndEdit(), model(server, "agreeing"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 5, 1)


KINDS = {
    "Several agents": "merge",
    "supplement to it": "unite",
    "search query": "query",
    "bears on the query": "filter",
    "Check the answer": "revise",
    "Earlier answer:": "extend",
    "in a few paragraphs": "draft",
    "verified thoughts": "short",
}


def kind(text):
    return next(k for words, k in KINDS.items() if words in text)


def test_ratt_writes_verifies_and_merges_whole_answers(server):
    row, searches, calls = go(RATT(), model(server, "ratt"))
    kinds = [kind(text) for *_, text in calls]

    # a paragraph takes a query and, for each of two passages, a filter and a revision: five calls; equal ones are kept ones
    def step(drafts, paragraphs, more):
        return drafts + 5 * (drafts * paragraphs + 1) + more

    assert row.usage.calls == step(3, 2, 1) + 2 * step(3, 1, 2) + 1 and Counter(kinds)["extend"] == 6
    assert row.answer == "Voss County" and kinds[:3] == ["draft"] * 3 and kinds[-1] == "short"
    assert {t for t, *_, text in calls if kind(text) == "filter"} == {0.5}
    assert {t for t, *_, text in calls if kind(text) not in ("filter", "short")} == {1.0}
    # the merge reads what was verified, not the drafts
    merge = next(text for *_, text in calls if kind(text) == "merge")
    assert merge.count("Checked") >= 3 and "Agent 3: Draft 2." in merge and "Question" not in merge
    # a paragraph is verified together with what stands before it
    second = [text for *_, text in calls if kind(text) == "query" and "It ends." in text]
    assert len(second) == 3 and all("Checked. Checked.\n\nIt ends." in text for text in second)
    assert len(searches) == (3 * 2 + 1) + 2 * (3 + 1) + 1 and {k for _, k in searches} == {2}


def test_ratt_verifies_equal_drafts_once_and_can_answer_at_length(server):
    server.script(
        rules=[
            ["Answer the question step", "The same draft."],
            ["Several agents", "One answer."],
            ["", "Tarn and Orle."],
        ]
    )
    row, _, calls = go(RATT(steps=1, short=False), server)
    assert (row.answer, row.usage.calls) == ("Tarn and Orle.", 3 + 5 + 1 + 5) and not any(
        kind(t) == "short" for *_, t in calls
    )


@pytest.mark.parametrize(
    "method,name,value",
    [
        (Query2Doc, "repeats", 0),
        (Query2Doc, "top_k", 1.5),
        (VerifyAndEdit, "samples", 2.5),
        (VerifyAndEdit, "temperature", 9),
        (VerifyAndEdit, "temperature", float("nan")),
        (VerifyAndEdit, "temperature", "0.7"),
        (RATT, "steps", 1.5),
        (RATT, "steps", 21),
        (RATT, "agents", 10**6),
        (RATT, "agents", True),
        (RATT, "temperature", -1),
        (CoTSC, "samples", 2.5),
        (CoTSC, "top_k", 0),
        (CoTSC, "temperature", 9),
    ],
)
def test_a_setting_out_of_range_is_named(method, name, value):
    with pytest.raises(UsageError, match=f"^{name} should be a (whole )?number from .* to .*, not {value!r}"):
        method(**{name: value})
