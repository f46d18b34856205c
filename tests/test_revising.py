"The baselines that write first, over the OpenAI protocol: calls and searches in number and order, by the store's record."
import re

import pytest

from recorded import ASKED, go
from rounds import CHAIN
from treekit.config import UsageError
from treekit.baselines.revising import RATT, CoTSC, Query2Doc, VerifyAndEdit, methods


def model(server, reply):
    server.script(reply=f"rounds:{reply}")
    return server


def test_the_rows_are_those_of_table_1():
    from treekit.figures.verdicts import published
    assert [*methods(), "ARISE (ours)"] == list(dict.fromkeys(r["method"] for r in published("arise", "table1")))
    assert {m.top_k for m in methods().values()} == {2}  # App. B.1


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
    kinds = ["verify" if "checks whether" in t else "edit" if "verified thoughts" in t else "answer" for *_, t in calls[5:]]
    assert sorted(kinds[:4]) == ["answer", "answer", "verify", "verify"] and kinds[4] == "edit"
    assert "Her birthplace is Orle" in "".join(t for *_, t in calls[5:9])  # the chain behind the most frequent answer
    # the sentence without evidence stays, the other is replaced
    assert "Grey Harbour is by Ida Roth." in calls[-1][-1]
    assert "The birthplace of Ida Roth is Tarn." in calls[-1][-1]
    assert "Orle" not in calls[-1][-1].split("Question:")[0]
    assert searches[0] == (ASKED, 2) and {q for q, _ in searches[1:3]} == {CHAIN[0][0], CHAIN[1][0]}


def test_verify_and_edit_leaves_an_agreement_alone(server):
    row, searches, calls = go(VerifyAndEdit(), model(server, "agreeing"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 5, 1)


def test_ratt_drafts_corrects_and_merges_at_each_level(server):
    row, searches, calls = go(RATT(), model(server, "ratt"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 3 * (3 + 3 + 3 + 1) + 1, 3 * 4 + 1)
    levels = [calls[i:i + 10] for i in range(0, 30, 10)]
    for level in levels:
        assert [t for t, *_ in level[:3]] == [0.7] * 3 and "Several thoughts" in level[-1][-1] and level[-1][-1].count("Checked") == 3
        assert sorted("search query" in t for *_, t in level[3:9]) == [False] * 3 + [True] * 3
    assert len(searches) == 3 * (1 + 3) + 1 and all(q.startswith("query for Draft") for q, _ in searches[1:4])
    assert calls[-1][-1].count("Merged") >= 3


def test_ratt_revises_equal_drafts_once(server):
    server.script(rules=[["Next thought:", "The same draft."], ["FINAL", "FINAL: Tarn"], ["", "Words."]])
    row, _, calls = go(RATT(depth=1), server)
    assert (row.answer, row.usage.calls) == ("Tarn", 3 + 1 + 1 + 1 + 1)


def test_cot_sc_votes_over_two_passages(server):
    row, searches, calls = go(CoTSC(), model(server, "chains"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 10, 1)
    assert searches == [(ASKED, 2), (f"{ASKED} Reason 1 about Tarn.", 2)] and {t for t, *_ in calls} == {0.7}
    assert len(re.findall(r"^\[\d\] ", calls[0][-1], re.M)) == 2


def test_an_answer_that_is_an_article_still_has_its_chain(server):
    server.script(rules=[["", "Explanation: The group is on her card.\nFINAL: A"]])
    for method in (CoTSC(), VerifyAndEdit()):
        row, searches, _ = go(method, server)
        assert (row.error, row.answer) == ("", "A") and searches[-1] == (f"{ASKED} The group is on her card.", 2)


@pytest.mark.parametrize("method,name,value", [
    (Query2Doc, "repeats", 0), (Query2Doc, "top_k", 1.5), (VerifyAndEdit, "samples", 2.5), (VerifyAndEdit, "temperature", 9),
    (VerifyAndEdit, "temperature", float("nan")), (VerifyAndEdit, "temperature", "0.7"),
    (RATT, "depth", 1.5), (RATT, "depth", 21), (RATT, "width", 10**6), (RATT, "width", True), (RATT, "temperature", -1),
    (CoTSC, "samples", 2.5), (CoTSC, "top_k", 0), (CoTSC, "temperature", 9)])
def test_a_setting_out_of_range_is_named(method, name, value):
    with pytest.raises(UsageError, match=f"^{name} should be a (whole )?number from .* to .*, not {value!r}"): method(**{name: value})


def test_thoughts_are_kept_apart_from_the_answer(server):
    for how in ("field", "tags"):
        server.reset(thinking="Roth, so Tarn.", thinking_as=how, rules=[["", "FINAL: Voss County"]])
        row, *_ = go(methods()["Vanilla"], server)
        assert row.answer == "Voss County" and row.trace.nodes[0].data["thinking"] == ["Roth, so Tarn."]
