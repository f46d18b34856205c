"SEARCH-R's navigator: its training data, and measures of a path."

import asyncio, json
from dataclasses import replace

import pytest

from treekit.retrieval.bm25 import BM25
from treekit.config import UsageError
from treekit.core.types import Passage, Question, Step
from treekit.experiments.resources import load
from treekit.core.prompts import CallFailed, Completion
from treekit.core.method import Context
from treekit.papers.searchr.training_data import (
    COUNTS,
    Pair,
    collected,
    gold,
    path_measures,
    parted,
    path_em,
    path_f1,
    slotted,
    well_formed,
    wordings,
)
from treekit.papers.searchr.method import SearchR

SHELF = BM25(
    [
        Passage("1", "Tarn", "Tarn is a city. Its population is 41,200."),
        Passage("2", "Ada Roth", "Ada Roth was a painter. She died in Tarn."),
    ]
)
LOOP = SearchR(informative=0, similar=2, decide="rule")
ASKED = Question("q1", "musique", "What is the population of the city where Ada Roth died?", answers=("41,200",))
PATH = ("Where did Ada Roth die?", "What is the population of this place?")


class Scripted:
    "Replies to the generator's prompt as they are given; and answers what SHELF says. It counts its calls."

    endpoint = "script"

    def __init__(self, *replies):
        self.replies, self.model, self.calls = list(replies), "script", 0

    async def complete(self, request):
        self.calls += 1
        if request.prompt.task != "generate_paths":
            asked = request.inputs.get("question", "")
            told = dict(answer="41,200" if "population" in asked else "Tarn", explanation="")
            value = asked.replace("this place", "Tarn") if request.prompt.task == "reformulate" else told
            return [Completion(request.prompt.format.render(value))]
        if isinstance(said := self.replies.pop(0), Exception):
            raise said
        return [Completion(said)]


def made(replies, questions, **changes):
    chat = Scripted(*replies)
    return asyncio.run(collected(questions, lambda q: Context(chat, SHELF), LOOP, at_once=1, **changes))


def test_paths_are_followed_to_their_answers():
    pairs, counts = made([json.dumps([PATH, [ASKED.question]])], [ASKED])
    assert [p.id for p in pairs] == ["q1/1", "q1/2"] and [p.path for p in pairs] == [PATH, (ASKED.question,)]
    assert pairs[0].answer.rstrip(".") == "41,200" and pairs[0].right and pairs[0].f1 == 1.0 and pairs[0].asked == "q1"
    assert counts == dict(
        questions=1, failed=0, unread=0, single=0, odd=0, changed=0, paths=2, right=sum(p.right for p in pairs)
    )
    assert counts.keys() == COUNTS.keys()


@pytest.mark.parametrize(
    "reply, count",
    [
        ("I'd rather not.", dict(unread=1, odd=1)),
        (CallFailed("refused", "no", "ask another"), dict(failed=1)),
        (json.dumps([PATH]), dict(single=1, odd=1)),
        (json.dumps([PATH, PATH]), dict(single=1, odd=1)),
        (json.dumps([["Who?", ""], [f"Who is number {n}?" for n in range(20)]]), dict(changed=2)),
        ('[["Who?"', dict(single=1)),
        ("", dict(unread=1)),
    ],
)
def test_what_a_model_writes_is_counted(reply, count):
    pairs, counts = made([reply, json.dumps([PATH, [ASKED.question]])], [ASKED, replace(ASKED, id="q2")])
    assert {name: counts[name] for name in count} == count
    assert [p.id for p in pairs][-2:] == ["q2/1", "q2/2"]  # the next question is as it would have been


def pairs_of(n):
    "Pairs of two kinds of question: the whole path is right, the question as it is isn't."
    out, places = [], ("city", "town", "village")
    for k in range(n):
        asked, place, name = (
            ("Who is the mayor", "What is the population")[k % 2],
            places[k % 3],
            f"Name{'abcdefgh'[k % 8]}",
        )
        question = f"{asked} of the {place} where {name} Roth died?"
        whole = f"In which {place} did {name} Roth die?", f"{asked} of this {place}?"
        out += [
            Pair(f"q{k}/1", question, whole, "x", 1.0, True),
            Pair(f"q{k}/2", question, (question,), "y", 0.0, False),
        ]
    return out


def test_the_parts_keep_questions_apart():
    pairs = pairs_of(20)
    parts = parted(pairs, 5, seed=1)
    assert len(parts.sft) == 5 and all(p.right for p in parts.sft) and len(parts.reward) == len(parts.ppo) == 20
    assert not {p.asked for p in parts.reward} & {p.asked for p in parts.ppo}
    assert {p.id for p in parts.as_much} == {p.id for p in parts.sft} | {p.id for p in parts.ppo if p.right}
    assert len(parts.as_much) == len({p.id for p in parts.as_much})
    assert parted(pairs, 5, seed=1) == parts != parted(pairs, 5, seed=2)
    with pytest.raises(UsageError, match="0 of them right"):
        parted([p for p in pairs if not p.right])


def test_gold_measures_itself_as_gold():
    for q in load("musique", "synthetic", "train", 60):
        steps = [s.question for s in q.decomposition]
        assert (
            path_f1(slotted(gold(q)), steps) > 0.9
            and path_f1([], steps) == 0
            and all(w in wordings(s) for s in steps for w in [s])
        )
        assert path_em(slotted(gold(q)[:-1]), steps) == 0


@pytest.mark.parametrize(
    "reply, fit",
    [
        (json.dumps(PATH), True),
        (json.dumps(PATH) + ".", False),
        (json.dumps([f"Is it {n}?" for n in range(9)]), False),
        ('["Who?", "who"]', False),
        ('["Who?", 3]', False),
        ("[]", False),
        ("{}", False),
        ("", False),
        ("[" * 3000, False),
    ],
)
def test_well_formed_replies(reply, fit):
    assert bool(well_formed(reply)) == fit
    assert path_measures(
        [replace(ASKED, decomposition=(Step("Where did Ada Roth die?"), Step("What is the population of #1?")))],
        [reply],
    )["JSON"] == [float(fit)]
