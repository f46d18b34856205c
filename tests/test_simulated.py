"The simulated model: it reads what the world wrote, and its upper bound is reached."

import asyncio
import os
import subprocess
import sys

import pytest

from treekit.config import UsageError, load_profile
from treekit.core.prompts import Prompt, Request
from treekit.core.output_parsers import FINAL
from treekit.experiments.prompts import known_prompts
from treekit.experiments.resources import chat_for
from treekit.figures.verdicts import model_obstacle
from treekit.models.simulated.client import HANDLERS, SimulatedClient
from treekit.models.simulated.ability import PERFECT, Ability, uniform
from treekit.models.simulated.grammar import grammar
from treekit.synthetic.generate import KINDS, SyntheticWiki

WEAK = Ability(
    memory=0.08,
    reading=0.86,
    crowding=0.05,
    middle=0.25,
    chaining=0.45,
    thinking=0.3,
    examples=0.3,
    asking=0.68,
    judging=0.65,
    routing=0.72,
    inventing=0.7,
    ambiguity=0.45,
    confidence=0.45,
    form=0.06,
    shared=0.6,
)
ANSWER = Prompt("test.answer", "answer", "$documents\n$question", FINAL)
THINK = Prompt("test.think", "answer", "Think step by step.\n$documents\n$question", FINAL)
ONE_ANSWER = (
    "bridge",
    "comparison",
    "intersection",
    "hybrid",
    "compositional",
    "inference",
    "bridge_comparison",
    "single",
    "deep_hybrid",
)


def said(chat, prompt, **inputs):
    "What a prompt's reply says."
    [reply] = asyncio.run(chat.complete(prompt(**inputs)))
    return prompt.read(reply.text).value


def share(level, kind, n=30, lang="en", prompt=ANSWER, documents=True):
    "The share of a kind's questions that are answered rightly from their own pools."
    chat, right = SimulatedClient(level), 0
    questions = SyntheticWiki(0, 400, lang).questions(kind, n)
    for q in questions:
        got = said(chat, prompt, question=q.question, documents=q.paragraphs if documents else ())["answer"]
        right += got in q.answers or kind == "list" and all(a in got for a in q.answers)
    return right / len(questions)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_question_and_step_of_the_world_is_understood(lang):
    g, world = grammar(0, 400, lang), SyntheticWiki(0, 400, lang)
    for kind in KINDS:
        for q in world.questions(kind, 25):
            texts = [q.question, *(s.question for s in q.decomposition), *(p.question for p in q.qa_pairs)]
            assert [t for t in texts if g.question(t) is None] == []


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("kind", ONE_ANSWER)
def test_perfect_reads_everything_and_knows_nothing(kind, lang):
    assert share(PERFECT, kind, lang=lang) >= 0.98
    assert share(PERFECT, kind, lang=lang, documents=False) <= 0.02


def test_better_models_answer_more():
    small, strong, perfect = (share(level, "bridge", 60, prompt=THINK) for level in (WEAK, Ability(), PERFECT))
    assert small < strong < perfect


@pytest.mark.long
def test_the_same_words_in_another_process():
    code = (
        "import asyncio; from treekit.synthetic.generate import SyntheticWiki; "
        "from treekit.models.simulated.client import SimulatedClient; "
        "import tests.test_simulated as t\n"
        "for q in SyntheticWiki().questions('compositional', 5):\n"
        "    [c] = asyncio.run(SimulatedClient(t.WEAK).complete(t.THINK(question=q.question, documents=q.paragraphs))); print(c.text)\n"
        "from treekit.models.simulated.corpus_index import corpus_index; print([*corpus_index(articles=40).sentences.items()])"
    )
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

    def run(seed):
        env = os.environ | dict(PYTHONHASHSEED=seed, PYTHONPATH=os.pathsep.join([root, os.path.join(root, "tests")]))
        return subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=root, capture_output=True, text=True, check=True
        ).stdout

    assert run("1") == run("2") != ""


@pytest.mark.parametrize(
    "request_, said",
    [
        (Request([dict(role="user", content="Who directed The Lamp?")]), "not bare messages"),
        (Prompt("mine.rank", "rank", "$question", FINAL)(question="Who?"), "no handler for the task of 'mine.rank'"),
    ],
)
def test_what_is_not_of_the_wiki_is_an_error_that_names_a_profile(request_, said):
    with pytest.raises(UsageError, match=said) as error:
        asyncio.run(SimulatedClient().complete(request_))
    assert str(error.value).endswith("--profile smollm2 reads real text")


def test_a_question_of_the_wiki_stands_in_for_any_other_where_calls_are_counted():
    for prompt in known_prompts().values():
        inputs = {s: "The Lamp is a film.\nWho made it?" for s in prompt.slots if s not in prompt.defaults}
        inputs |= {s: "3" for s in ("number", "limit") if s in inputs}
        if prompt.task in HANDLERS:
            [reply] = asyncio.run(SimulatedClient(any_text=True).complete(prompt(**inputs)))
            assert reply.text is not None, prompt.name


def test_the_profile_names_the_model():
    assert load_profile("offline").model == chat_for(load_profile("offline")).model == "simulated"
    with pytest.raises(UsageError, match="'ability'"):
        load_profile("offline", ability="small")


def test_two_abilities_never_share_a_stored_reply():
    assert (
        len(
            {
                c.endpoint
                for c in (SimulatedClient(), SimulatedClient(PERFECT), SimulatedClient(WEAK), SimulatedClient(seed=1))
            }
        )
        == 4
    )


def test_its_numbers_are_never_compared_with_print():
    assert model_obstacle("simulated", "GPT-4o-mini")


def test_draws_are_even():
    values = [uniform("x", k) for k in range(4000)]
    assert abs(sum(values) / 4000 - 0.5) < 0.02 and min(values) < 0.01 and max(values) > 0.99


def test_the_tables_of_tasks_are_functions_of_a_call():
    assert len(HANDLERS) > 40 and all(callable(f) for f in HANDLERS.values())


def test_a_question_of_another_source_is_refused_and_a_step_in_other_words_gets_a_reply():
    model = SimulatedClient()
    for question in ("Who directed The Lamp?", "누가 〈기생충〉을 감독했나요?"):
        assert model.refuses(question).endswith("--profile smollm2 reads real text")
    assert not model.refuses("Who wrote the novel Taphora?") and not SimulatedClient(any_text=True).refuses("Who?")
    [reply] = asyncio.run(model.complete(ANSWER(question="Which is earlier, 1946 or 1951?", documents=[])))
    assert reply.text == "The documents don't say."
