"SEARCH-R's navigator: its training data, and measures of a path."

import asyncio, json
from dataclasses import replace

import pytest

from treekit.retrieval.bm25 import BM25
from treekit.core.types import Passage, Question, Step
from treekit.experiments.resources import load
from treekit.core.prompts import CallFailed, Completion
from treekit.core.method import Context
from treekit.language.coreference import slots_to_words
from treekit.papers.searchr.training_data import (
    collected,
    followed,
    path_em,
    path_f1,
    path_measures,
    slotted,
    well_formed,
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


class Reader:
    "Answers what SHELF says."

    endpoint = model = "script"

    async def complete(self, request):
        asked = request.inputs.get("question", "")
        if request.prompt.task == "generate_paths":
            return [Completion(json.dumps([PATH, [asked]]))]
        told = dict(answer="41,200" if "population" in asked else "Tarn", explanation="")
        value = asked.replace("this place", "Tarn") if request.prompt.task == "reformulate" else told
        return [Completion(request.prompt.format.render(value))]


def test_a_path_is_labelled_by_the_answer_along_it():
    pair = asyncio.run(followed(ASKED, PATH, Context(Reader(), SHELF), LOOP))
    assert pair.path == PATH and pair.answer.rstrip(".") == "41,200" and pair.right and pair.f1 == 1.0
    wrong = asyncio.run(followed(replace(ASKED, answers=("7",)), PATH, Context(Reader(), SHELF), LOOP))
    assert not wrong.right and wrong.f1 == 0.0


def test_a_model_writes_two_paths_and_both_are_followed():
    pairs = asyncio.run(collected([ASKED], lambda q: Context(Reader(), SHELF), LOOP))
    assert [pair.path for pair in pairs] == [PATH, (ASKED.question,)] and pairs[0].right


def test_a_question_whose_call_fails_is_left_out_and_said(capsys):
    class Refusing(Reader):
        async def complete(self, request):
            if "Roth" in request.text:
                return await super().complete(request)
            raise CallFailed("content filter", "refused", "take another model")

    other = replace(ASKED, question="What is in Lyon?")
    pairs = asyncio.run(collected([other, ASKED], lambda q: Context(Refusing(), SHELF), LOOP))
    assert pairs[0].path == PATH and "1 of 2 questions have no paths" in capsys.readouterr().err
    with pytest.raises(CallFailed, match="refused"):
        asyncio.run(collected([other], lambda q: Context(Refusing(), SHELF), LOOP))


def test_gold_measures_itself_as_gold():
    for q in load("musique", "synthetic", "train", 60):
        steps = [s.question for s in q.decomposition]
        path = slots_to_words(steps)
        assert path_f1(slotted(path), steps) > 0.9 and path_f1([], steps) == 0
        assert path_em(slotted(path[:-1]), steps) == 0


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
