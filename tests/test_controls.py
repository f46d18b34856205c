"""Controls of the comparison: a sham's component sees another question and nothing else changes; an oracle's evidence is the gold one."""
import asyncio
import random
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from fakes import FakeChat
from treekit.config import UsageError
from treekit.store.run_store import Store
from treekit.core.method import Context, Prediction, configure
from treekit.core.output_parsers import FINAL, QUESTIONS
from treekit.core.prompts import Prompt
from treekit.core.types import Passage, Question, Step
from treekit.papers.comparison import controls
from treekit.papers.comparison.controls import (
    CONTRASTS, ControlClient, ControlledMethod, GoldRetriever, committed_controls, control_outcome, controls_note, controls_of,
    controls_on, failed_controls, gold_replies, random_heads, with_sham_explained, with_tokens)
from treekit.experiments.tables import sample_questions, setting

PLAN = Prompt("test.plan", "plan", "Plan: $question", QUESTIONS)
READ = Prompt("test.read", "answer", "Read: $question", FINAL)
PAGES = (Passage("a", "Orle", "Orle is in Tarn."), Passage("b", "Vel", "Vel is in Tarn."), Passage("c", "Ise", "Ise is in Tarn."))
ASKED = Question("q1", "demo", "Where was the author of Orle born?", ("Tarn",), paragraphs=PAGES, supporting=("b", "c"),
                 decomposition=(Step("Who wrote Orle?", "Vel", "b"), Step("Where was #1 born?", "Tarn", "c")))


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


def shelf(): return SimpleNamespace(instant=True, search=lambda queries, k: [[] for _ in queries], fingerprint="f")


def run(method): return asyncio.run(method(ASKED, Context(Echo(), shelf()))).answer


def test_a_sham_gives_only_its_component_another_question():
    sham = ControlledMethod(Planned(), "other question", ("test.plan",), (ASKED.question, "Who lives in Ise?"))
    assert run(Planned()) == f"{[ASKED.question]} [] {ASKED.question}"
    assert run(sham) == f"{['Who lives in Ise?']} [] {ASKED.question}"


def test_a_plan_may_end_with_the_original_question():
    sham = ControlledMethod(Planned(), "other question", ("test.plan",), ("Who lives in Ise?",), ends_with_question=True)
    assert run(sham) == f"{['Who lives in Ise?', ASKED.question]} [] {ASKED.question}"


def test_a_scored_text_is_swapped():
    class Scores:
        async def complete_keyed(self, request, continuation=None): return continuation
    client = ControlClient(Scores(), "q", "donor", frozenset(["test.read"]))
    assert asyncio.run(client.complete_keyed(READ(question="q"), "q")) == "donor"
    assert asyncio.run(client.complete_keyed(PLAN(question="q"), "q")) == "q"


def test_an_oracle_has_the_gold_plan_and_the_gold_passages():
    oracle = ControlledMethod(Planned(), "gold", ("test.plan",))
    path = gold_replies(ASKED, ("test.plan",))["test.plan"]
    assert run(oracle) == f"{path} ['b', 'c'] {ASKED.question}" and path[0] == "Who wrote Orle?"
    found = GoldRetriever(shelf(), ASKED)
    assert [[h.passage.id for h in hits] for hits in found.search(["x", "y"], 1)] == [["b", "c"]] * 2 and found.fingerprint == "f"


def test_slots_of_a_gold_plan_are_the_planners():
    from treekit.papers.toq.planner import PROMPTS
    name = PROMPTS["decompose", "en"].name
    assert gold_replies(ASKED, (name,))[name] == ["Who wrote Orle?", "Where was [ANS_1] born?"]
    assert "#" not in " ".join(gold_replies(ASKED, ("paths.navigate",))["paths.navigate"])


@pytest.mark.parametrize("seed", range(5))
def test_random_trees_keep_the_shape(seed):
    rng = random.Random(seed)
    heads = [0] + [rng.randint(1, n) for n in range(1, 12)]
    made = random_heads(heads, rng)
    def spans(heads):
        def below(i): return sorted([i, *(w for k, h in enumerate(heads, 1) if h == i for w in below(k))])
        return [below(i) for i in range(1, len(heads) + 1)]
    assert sorted(map(len, spans(made))) == sorted(map(len, spans(heads)))
    assert all(s == list(range(s[0], s[-1] + 1)) for s in spans(made)) and made.count(0) == 1


@pytest.mark.parametrize("name, low, high, outcome", [
    ("sham", -.1, .1, "holds"), ("sham", .01, .1, "fails"), ("sham", -.2, -.1, "harms"),
    ("sham at equal passages", .01, .1, "better"), ("sham at equal passages", -.1, .1, "not better"),
    ("oracle", .01, .1, "holds"), ("oracle", -.1, .1, "fails"), ("component", -.1, .1, "not shown"), ("passages", .1, .2, "shown"),
    ("tokens", -.1, .1, "not shown"), ("tokens", -.2, -.1, "worse"), ("component", -.2, -.1, "worse")])
def test_outcomes(name, low, high, outcome):
    assert control_outcome(name, low, high) == outcome


@pytest.mark.parametrize("sham, equal, outcome", [
    ("fails", "better", "fails"), ("fails", "not better", "by passages"), ("holds", "not better", "holds"), ("harms", "better", "harms")])
def test_passages_explain_what_a_sham_gains_over_fewer_of_them(sham, equal, outcome):
    rows = [dict(contrast="sham", outcome=sham), dict(contrast="sham at equal passages", outcome=equal)]
    assert [r["outcome"] for r in with_sham_explained(rows)] == [outcome, equal]


def test_a_failing_control_is_named():
    rows = [dict(paper="A", contrast="sham", outcome="harms"), dict(paper="B", contrast="oracle", outcome="fails")]
    assert failed_controls(rows) == "Controls that fail: B (oracle)." and failed_controls(rows[:1]) == ""


def test_a_caption_says_which_controls_fail_and_what_is_not_shown():
    rows = [dict(paper=p, contrast=c, outcome=o) for p, c, o in [
        ("A", "sham", "fails"), ("A", "tokens", "not shown"), ("B", "tokens", "worse"), ("B", "oracle", "holds"), ("B", "sham", "harms"),
        ("C", "sham", "holds"), ("C", "component", "worse"), ("D", "sham", "by passages"), ("D", "tokens", "shown")]]
    said = controls_note(rows)
    for sentence in ("Controls that fail: A (sham).", "The sham of C has no effect.", "The sham of D gains by its passages",
                     "The sham of B does harm", "Not shown is a gain at equal tokens for A.", "Worse than the sham: C.",
                     "Worse at equal tokens: B."):
        assert sentence in said
    assert controls_note([]) == controls_note(rows[-1:]) == ""
    assert {r["paper"] for r in committed_controls()} == {c.paper for c in controls_of(setting("offline", 2, {}))}
    assert committed_controls("no such profile") == []


def test_each_plain_reader_takes_as_many_passages_as_a_method_may_read():
    for c in controls_of(setting("offline", 2, {})): assert configure(c.plain, top_k=controls.MOST_PASSAGES).top_k == controls.MOST_PASSAGES


def test_tokens_become_passages():
    assert with_tokens(5, 400, 4000) == 50 and with_tokens(5, 400, 100) == 5 and with_tokens(5, 0, 10**9) == controls.MOST_PASSAGES


def test_every_proposed_method_has_its_controls():
    P = setting("offline", 2, {})
    made = [c.with_donors(("one?", "two?")) for c in controls_of(P)]
    assert [c.paper for c in made] == ["TreeRare", "Tree-of-Question", "ARISE", "SEARCH-R", "RDR²"]
    for c in made:
        assert c.sham.of == c.method == c.oracle.of and c.without != c.method and c.sham.requires == c.oracle.requires
    assert set(CONTRASTS) == {"sham", "sham at equal passages", "passages", "tokens", "component", "oracle"} and controls.DONORS >= 2


def test_what_cannot_be_run_is_left_out_by_name(capsys):
    P = setting("offline", 2, {})
    made = {c.paper: c.datasets for c in controls_on(("hotpotqa",), P)}
    assert made == dict.fromkeys(("TreeRare", "Tree-of-Question", "ARISE", "SEARCH-R"), ("hotpotqa",))
    assert "left out: RDR² on asqa, qampari (not in these data)" in capsys.readouterr().out
    with pytest.raises(UsageError, match="no control can be run on eli5"): controls_on(("eli5",), P)


def test_a_row_reads_as_many_passages_as_the_method(tmp_path):
    P = setting("offline", 3, {})
    questions = sample_questions(P, ("komultihop", "hotpotqa"))
    [base] = [c for c in controls_of(P) if c.paper == "Tree-of-Question"]
    made = controls.run_controls(base, questions, P, store=Store(tmp_path / "store.sqlite"))
    cells = made.cells()
    for d in ("komultihop", "hotpotqa"):
        read = controls.passages_read(cells["method", d])
        assert {len(r.trace.retrieved) for r in cells[controls.PLAIN, d]} == {max(1, round(read))}
        used = {role: controls.tokens_used(cells[role, d]) for role in ("method", controls.PLAIN, controls.TOKENS)}
        assert used[controls.PLAIN] < used[controls.TOKENS] < 1.5 * used["method"]
    assert {r["contrast"] for r in controls.control_rows(base, made)} == set(CONTRASTS)
    assert [r["row"] for r in controls.control_scores(base, made)] == list(controls.ROLES)
