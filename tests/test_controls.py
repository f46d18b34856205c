"""Controls of the comparison: a sham's component sees another question and nothing else changes; an oracle's evidence is the gold one."""

import asyncio
import random
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from fakes import FakeChat
from treekit.store.run_store import Store
from treekit.core.method import Call, Context, Intervened, Prediction, configure
from treekit.core.output_parsers import FINAL, QUESTIONS
from treekit.core.prompts import Prompt
from treekit.core.types import Passage, Question, Step
from treekit.papers.comparison import controls
from treekit.corpora.documents import build_tree
from treekit.papers.comparison.controls import (
    CONTRASTS,
    Gold,
    OtherQuestion,
    RandomRouter,
    RandomTree,
    control_outcome,
    controls_of,
    gold_replies,
    random_places,
    router_shares,
)
from treekit.papers.treerare.phrases import EXAMPLE, phrase_tree
from treekit.experiments.run import run as run_methods
from treekit.experiments.tables import sample_questions, setting

PLAN = Prompt("test.plan", "plan", "Plan: $question", QUESTIONS)
READ = Prompt("test.read", "answer", "Read: $question", FINAL)
PAGES = (
    Passage("a", "Orle", "Orle is in Tarn."),
    Passage("b", "Vel", "Vel is in Tarn."),
    Passage("c", "Ise", "Ise is in Tarn."),
)
ASKED = Question(
    "q1",
    "demo",
    "Where was the author of Orle born?",
    ("Tarn",),
    paragraphs=PAGES,
    supporting=("b", "c"),
    decomposition=(Step("Who wrote Orle?", "Vel", "b"), Step("Where was #1 born?", "Tarn", "c")),
)


@dataclass(frozen=True)
class Planned:
    "A plan, a search and an answer."

    async def __call__(self, question, context):
        plan = await context.ask(PLAN, question=question.question)
        [hits] = await context.retrieve([question.question], 2)
        answer = await context.ask(READ, question=question.question)
        return Prediction(f"{plan} {[h.passage.id for h in hits]} {answer['answer']}", context.trace, context.usage)


class Echo(FakeChat):
    def reply(self, request, sample):
        question = request.inputs["question"]
        return f"response: {question}" if request.prompt.name == "test.plan" else f"FINAL: {question}"


def shelf():
    return SimpleNamespace(instant=True, search=lambda queries, k: [[] for _ in queries], fingerprint="f")


def run(method):
    return asyncio.run(method(ASKED, Context(Echo(), shelf()))).answer


def test_a_sham_gives_only_its_component_another_question():
    sham = Intervened(Planned(), OtherQuestion(("test.plan",), (ASKED.question, "Who lives in Ise?")))
    assert run(Planned()) == f"{[ASKED.question]} [] {ASKED.question}"
    assert run(sham) == f"{['Who lives in Ise?']} [] {ASKED.question}"


def test_a_plan_may_end_with_the_original_question():
    sham = Intervened(Planned(), OtherQuestion(("test.plan",), ("Who lives in Ise?",), ends_with_question=True))
    assert run(sham) == f"{['Who lives in Ise?', ASKED.question]} [] {ASKED.question}"


def test_a_scored_text_is_swapped():
    sham = OtherQuestion(("test.read",), ("donor",)).begin(Question("q1", "demo", "q"))
    for prompt, scored in ((READ, "donor"), (PLAN, "q")):
        assert sham.request(Call(None, prompt(question="q"), continuation="q")).continuation == scored


def test_an_oracle_has_the_gold_plan_and_the_gold_passages():
    oracle = Intervened(Planned(), Gold(("test.plan",)))
    path = gold_replies(ASKED, ("test.plan",))["test.plan"]
    assert run(oracle) == f"{path} ['b', 'c'] {ASKED.question}" and path[0] == "Who wrote Orle?"
    assert [[h.passage.id for h in hits] for hits in oracle.by.begin(ASKED).search(["x", "y"], 1, None)] == [
        ["b", "c"]
    ] * 2


@pytest.mark.parametrize("seed", range(5))
def test_random_trees_keep_the_shape(seed):
    tree = phrase_tree(EXAMPLE)
    made = random_places(tree, EXAMPLE.text, random.Random(seed))
    flat = random_places(tree, EXAMPLE.text, random.Random(seed), nested=False)

    def shape(p):
        return len(p.text.split()), p.type, sorted(shape(c) for c in p.children)

    assert shape(made) == shape(tree) and made.text == tree.text
    for p in made.walk():
        assert p is made or p.text == EXAMPLE.text[p.start : p.end]
        assert all(p.start <= c.start and c.end <= p.end for c in p.children)
        assert all(a.end < b.start for a, b in zip(p.children, p.children[1:]))
    assert sorted(p.text for p in flat.children) == sorted(
        p.text for p in made.walk() if p is not made
    )  # the same phrases
    assert not any(p.children for p in flat.children)


def documents(paragraphs=4):
    "Two documents with two sections each."

    def section(name):
        return [(1, "structure", name), *((2, "content", f"{name}{i}") for i in range(paragraphs))]

    return [build_tree(name, [*section(f"{name} Life"), *section(f"{name} Work")]) for name in "ab"]


def test_shams_and_the_rows_without_have_the_same_evidence(tmp_path):
    P = setting("offline", 4, {})
    made, store = {c.paper: c for c in controls_of(P)}, Store(tmp_path / "store.sqlite")
    questions = sample_questions(P, ("asqa", "hotpotqa"))

    def rows(paper, d):
        c = made[paper]
        cells = run_methods(
            dict(without=c.without, sham=c.sham, method=c.method), {d: questions[d]}, P, store=store
        ).cells()
        return zip(*(cells[role, d] for role in ("without", "sham", "method")))

    for without, sham, method in rows("TreeRare", "hotpotqa"):
        phrases = [sorted(n.text for n in r.trace.nodes if n.kind == "phrase") for r in (without, sham, method)]
        assert phrases[0] == phrases[1] and len(phrases[1]) == len(phrases[2])
    assert made["TreeRare"].sham.handed_up == made["TreeRare"].without.handed_up == "descendants"
    drew, base = [], made["RDR²"]
    method = run_methods(dict(method=base.method), {"asqa": questions["asqa"]}, P, store=store).cells()[
        "method", "asqa"
    ]
    shares = router_shares(method)
    made["RDR²"] = base.on(questions["asqa"], method)
    assert 0 < shares["answer_share"] < 1 and shares["expansions"] > 0
    assert made["RDR²"].sham == RandomRouter(**vars(base.sham) | shares)

    def paragraphs(read):
        return [line for p in read["passages"] for line in p["text"].split("\n") if not line.startswith("=")]

    for without, sham, method in rows("RDR²", "asqa"):
        [drawn], [routed], [real] = (
            [n.data for n in r.trace.nodes if n.kind == "question"] for r in (without, sham, method)
        )
        assert len(paragraphs(drawn)) == len(paragraphs(routed))
        for r in (without, sham):
            assert r.usage.calls - r.usage.hits <= 1  # no router is asked
        for read in (drawn, routed):
            assert all("=" in p["text"] for p in read["passages"])  # headings
        drew.append(routed["passages"] not in (real["passages"], drawn["passages"]))
    assert any(drew)


@pytest.mark.parametrize(
    "name, low, high, outcome",
    [
        ("sham", -0.1, 0.1, "holds"),
        ("sham", 0.01, 0.1, "fails"),
        ("sham", -0.2, -0.1, "harms"),
        ("oracle", 0.01, 0.1, "holds"),
        ("oracle", -0.1, 0.1, "fails"),
        ("component", -0.1, 0.1, "not shown"),
        ("passages", 0.1, 0.2, "shown"),
        ("tokens", -0.1, 0.1, "not shown"),
        ("tokens", -0.2, -0.1, "worse"),
        ("component", -0.2, -0.1, "worse"),
    ],
)
def test_outcomes(name, low, high, outcome):
    assert control_outcome(name, low, high) == outcome


def test_a_failing_control_is_named():
    rows = [
        dict(paper="A", contrast="sham", outcome="harms"),
        dict(paper="B", contrast="oracle", outcome="fails", effect=-1.24),
    ]
    assert (
        controls.failed_controls(rows) == "Controls that fail: B (oracle, −1.2 points)."
        and controls.failed_controls(rows[:1]) == ""
    )


def test_each_plain_reader_takes_as_many_passages_as_a_method_may_read():
    for c in controls_of(setting("offline", 2, {})):
        assert configure(c.plain, top_k=controls.MOST_PASSAGES).top_k == controls.MOST_PASSAGES


def test_every_proposed_method_has_its_controls():
    P = setting("offline", 2, {})
    two = [Question(str(i), "demo", f"{i}?", ("a",)) for i in (1, 2)]
    made = [c.on(two, []) for c in controls_of(P)]
    assert [c.paper for c in made] == ["TreeRare", "Tree-of-Question", "ARISE", "SEARCH-R", "RDR²"]
    for c in made:
        assert c.method == c.oracle.of and c.without not in (c.method, c.sham) and c.sham.requires == c.oracle.requires
        if not isinstance(c.sham, Intervened):
            assert type(c.sham) in (RandomTree, RandomRouter)
        else:
            assert c.sham.of == c.method
    assert set(CONTRASTS) == {"sham", "passages", "tokens", "component", "oracle"} and controls.DONORS >= 2
