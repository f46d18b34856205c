"The offline reader: its replies are read back, it knows only what it is given, and it is worth beating."

import asyncio

import pytest

from treekit.core.types import Passage
from treekit.experiments.prompts import known_prompts
from treekit.models.extractive.client import HANDLERS, ExtractiveClient
from treekit.models.extractive.answers import answer, answer_ambiguous, subanswers
from treekit.models.extractive.asking import subquestions
from treekit.models.extractive.english_reader import EnglishReader

LAMP = [
    Passage(
        "1",
        "The Lamp (1931 film)",
        "The Lamp is a 1931 Danish silent film directed by Mira Voss and starring Ada Lund. It was shot in Tarn.",
    ),
    Passage(
        "2",
        "Mira Voss",
        "Mira Voss (3 May 1890 – 12 June 1950) was a Danish director. She was born in Ribe. Her mother was the painter Karla Holm.",
    ),
    Passage("3", "Ada Lund", "Ada Lund (born 7 July 1901) was a Norwegian actress."),
    Passage("4", "Harbour (film)", "Harbour is a 1940 Norwegian drama film directed by Jon Berg."),
    Passage(
        "5",
        "Jon Berg",
        "Jon Berg (2 March 1899 – 1 May 1971) was a Norwegian film director and the father of the singer Eva Berg.",
    ),
]


def complete(request):
    return asyncio.run(ExtractiveClient().complete(request))


def inputs_for(prompt):
    "Invented inputs of the shapes that the tasks take."
    known = dict(
        question="Where was the director of The Lamp born?",
        documents=LAMP,
        phrase="the director of The Lamp",
        context=["The Lamp is a film directed by Mira Voss."],
        questions=["Who directed The Lamp?", "Where was Mira Voss born?"],
        exemplars="",
        candidates="5",
        pick="3",
        thought="The Lamp is a film directed by Mira Voss.",
        name="The Lamp",
        descriptions=["The Lamp is a film."],
    )
    return {slot: known.get(slot, "") for slot in prompt.slots if slot not in prompt.defaults}


@pytest.mark.parametrize("name", sorted(known_prompts()))
def test_every_prompt_of_the_kit_is_handled_and_read_back(name):
    prompt = known_prompts()[name]
    assert prompt.task in HANDLERS
    for inputs in (
        inputs_for(prompt),
        inputs_for(prompt) | {k: [] for k in ("documents", "context") if k in prompt.slots},
    ):
        [done] = complete(prompt(**inputs))
        reply = prompt.read(done.text)
        assert reply.note == ""
        assert reply.value == prompt.read(prompt.format.render(reply.value)).value


def test_it_knows_only_what_it_is_given():
    assert answer("What is the capital of France?", [])["answer"] == "unknown"
    assert answer("", [])["answer"] == "unknown"
    assert answer_ambiguous("Who?", [])["answer"] == "unknown"


@pytest.mark.parametrize(
    "question, right",
    [
        ("Who is the mother of the director of The Lamp?", "Karla Holm"),
        ("Who is the child of the director of film Harbour?", "Eva Berg"),
        ("Which film came out first, The Lamp or Harbour?", "The Lamp"),
        ("Who was born later, Mira Voss or Jon Berg?", "Jon Berg"),
        ("Who died first, Mira Voss or Jon Berg?", "Mira Voss"),
        ("Which film has the director who died later, The Lamp or Harbour?", "Harbour"),
        ("Are the directors of The Lamp and Harbour from the same country?", "no"),
        ("Are Ada Lund and Jon Berg of the same nationality?", "yes"),
        ("Are The Lamp and Harbour both films?", "yes"),
    ],
)
def test_small_questions(question, right):
    assert answer(question, LAMP)["answer"] == right


def test_the_three_methods():
    reader = EnglishReader(LAMP)
    assert reader.decompose("Where was the director of The Lamp born?") == [
        "Who is the director of The Lamp?",
        "Where was #1 born?",
    ]
    assert [f.text for f in reader.find("Who directed The Lamp?", 1)] == ["Mira Voss"]
    assert reader.best_sentence("Who is the mother of Mira Voss?") == "Mira Voss's mother was the painter Karla Holm."
    assert reader.find("Who directed The Lamp?", 1)[0].sure and not any(
        f.sure for f in reader.find("Who won the world cup of 1974?")
    )


@pytest.mark.parametrize(
    "strange",
    ["", "?", "()", "¿Dónde nació?", "who " * 5000, "두 사람 중 누가 먼저 태어났나?", '"', "A or B?", "Are they?"],
)
def test_strange_questions_get_a_reply(strange):
    assert answer(strange, LAMP)["answer"] and answer(strange, ["", " ", ":", "?: x"])["answer"]
    assert (
        isinstance(subquestions(strange, strange), list)
        and subanswers([strange], LAMP)
        and answer_ambiguous(strange, LAMP)["answer"]
    )
