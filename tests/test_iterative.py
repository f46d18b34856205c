"The iterative baselines over the OpenAI protocol: each makes the calls and searches that its paper prescribes, in number and order, by the store's record."

import re

import pytest

from recorded import ASKED, go
from rounds import CHAIN
from treekit.config import UsageError
from treekit.baselines.iterative import AutoRAG, IRCoT, IterRetGen, SelfAsk, methods

QUESTIONS, FACTS = [q for q, _ in CHAIN], [a for _, a in CHAIN]


def model(server, reply):
    server.script(reply=f"rounds:{reply}")
    return server


def test_self_ask_follows_up_and_answers_in_turn(server):
    row, searches, calls = go(SelfAsk(), model(server, "self_ask"))
    assert row.answer == "Voss County" and row.usage.calls == row.usage.critical_path == len(calls) == 7
    assert ["Follow up" in text for *_, text in calls] == [True, False] * 3 + [True]
    assert searches == [(q, 2) for q in QUESTIONS] + [(" ".join([ASKED, *FACTS]), 2)]  # the last is the closing search
    for i, (*_, text) in enumerate(calls[::2]):
        assert text.rsplit(ASKED, 1)[1].count("Intermediate answer:") == i
    for (*_, text), question in zip(calls[1::2], QUESTIONS):
        assert question in text and len(re.findall(r"^\[\d\] ", text, re.M)) == 2
    assert [n.kind for n in row.trace.nodes] == ["question"] + ["follow-up"] * 3 + ["answer"]


def test_self_ask_has_to_conclude_at_its_limit(server):
    row, _, calls = go(SelfAsk(rounds=2), model(server, "self_ask"))
    assert (
        (row.answer, row.usage.calls) == ("Voss County", 5)
        and "Steps:\n" in calls[-1][-1]
        and FACTS[1] in calls[-1][-1]
    )


def test_self_ask_stops_when_it_repeats_itself(server):
    row, searches, calls = go(SelfAsk(), model(server, "stubborn"))
    assert (
        row.usage.calls == 4
        and len(searches) == 2
        and any("asked before" in n for node in row.trace.nodes for n in node.notes)
    )


def test_auto_rag_is_one_dialogue(server):
    row, searches, calls = go(AutoRAG(), model(server, "auto_rag"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 4, 4)
    assert [q for q, _ in searches[:3]] == QUESTIONS
    found = [re.findall(r"^\[\d+\] ([^:]+):", text.split("Documents found:")[1], re.M) for *_, text in calls]
    assert not found[0] and all(
        len(a) < len(b) <= len(a) + 2 and b[: len(a)] == a and len(set(b)) == len(b) for a, b in zip(found, found[1:])
    )  # at most two new ones in each round
    assert [n.kind for n in row.trace.nodes] == ["question"] + ["query"] * 3 + ["answer"]


def test_auto_rag_recalls_what_the_retriever_lacks_and_then_concludes(server):
    row, searches, calls = go(AutoRAG(rounds=2, recalls=2), model(server, "endless"))
    kinds = ["recall" if "own knowledge" in t else "decide" if "Refined query" in t else "answer" for *_, t in calls]
    assert (
        kinds == ["decide", "decide", "decide", "recall", "decide", "recall", "decide", "answer"][: len(kinds)]
        and kinds[-1] == "answer"
    )
    assert row.answer == "Voss County" and len(searches) == 3 and "I believe" in calls[-1][-1]


def test_ircot_searches_with_each_sentence_and_reads_at_the_end(server):
    row, searches, calls = go(IRCoT(), model(server, "ircot"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 4, 4)
    assert [q for q, _ in searches] == [
        ASKED,
        FACTS[0],
        FACTS[1],
        " ".join([ASKED, FACTS[0], FACTS[1], "So the answer is: Voss County."]),
    ]
    assert "And so on" not in "".join(text for *_, text in calls)  # of what the model writes, the first sentence counts
    sizes = [len(re.findall(r"^\[\d+\] .+: ", text.split("Question:")[0], re.M)) for *_, text in calls]
    # passages stay; the reader doesn't see the chain
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0] and "Thoughts" not in calls[-1][-1]


def test_ircot_keeps_to_its_limits(server):
    row, searches, calls = go(IRCoT(rounds=3, passages=3), model(server, "rambling"))
    assert (row.answer, row.usage.calls, len(searches)) == ("Tarn", 4, 1 + 3 + 1)
    assert len(re.findall(r"^\[\d+\] ", calls[-1][-1], re.M)) == 3


def test_iter_retgen_searches_with_its_last_answer(server):
    row, searches, calls = go(IterRetGen(rounds=3), model(server, "retgen"))
    assert (row.answer, row.usage.calls, row.usage.critical_path) == ("Voss County", 3, 3)
    assert searches == [
        (ASKED, 2),
        (f"It is Ada Lund Ada Lund actress. Ada Lund Ada Lund actress {ASKED}", 2),
        (f"It is Orle Orle Lund town. Orle Orle Lund town {ASKED}", 2),
        (f"{ASKED} It is Voss County. Voss County", 2),
    ]
    assert all(
        len(re.findall(r"^\[\d\] ", text, re.M)) == 2 for *_, text in calls
    )  # each round sees its own passages only


@pytest.mark.parametrize(
    "method,name,value",
    [
        (SelfAsk, "rounds", 0),
        (SelfAsk, "top_k", 1001),
        (AutoRAG, "rounds", 0),
        (AutoRAG, "recalls", -1),
        (AutoRAG, "top_k", 0),
        (IRCoT, "rounds", "8"),
        (IRCoT, "passages", 0),
        (IterRetGen, "rounds", 1.5),
        (IterRetGen, "top_k", None),
    ],
)
def test_a_setting_out_of_range_is_named(method, name, value):
    with pytest.raises(UsageError, match=f"^{name} should be a whole number from .* to .*, not {value!r}"):
        method(**{name: value})


@pytest.mark.parametrize("name", list(methods()))
def test_an_empty_question_is_said(name):
    import asyncio
    from treekit.core.types import Question
    from treekit.core.method import Context

    with pytest.raises(UsageError, match="empty"):
        asyncio.run(methods()[name](Question("q", "d", " "), Context(None)))


def test_a_question_is_resumed_where_it_stopped(server):
    "The calls of an interrupted question are in the store: only what is missing is asked."
    from treekit.store.run_store import Store

    store = Store()
    server.script(
        reply="rounds:self_ask", faults=[dict(kind="400", match="The birthplace of Ida Roth is Tarn", times=1)]
    )
    first, _, _ = go(SelfAsk(), server, store)
    assert first.error
    before = server.count
    again, _, _ = go(SelfAsk(), server, store)
    assert again.answer == "Voss County" and again.usage.hits >= 4 and server.count - before == 7 - again.usage.hits
