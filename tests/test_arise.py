"ARISE: the same tree whatever answers first, the public code's rounds as it runs them, and what bad replies do."

import asyncio, inspect, math, random
from dataclasses import replace

import pytest

from fakes import FakeChat, FakeShelf
from treekit.papers.arise.method import ARISE
from treekit.papers.arise.prefetch import Scheduling
from treekit.papers.arise.public_code import PUBLIC_CODE, Reading
from treekit.retrieval.bm25 import Hit
from treekit.config import UsageError
from treekit.core.types import Passage, Question
from treekit.core.prompts import Completion, ScoringUnsupported
from treekit.llm.openai_client import OpenAIClient
from treekit.core.method import Context, configure
from treekit.papers.arise.states import ANSWER, DECOMPOSE, FINAL_ANSWER, GUESS, VERIFY, Reasoner, risk_value
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient


CODE = replace(ARISE(), **PUBLIC_CODE)


class Shelf(FakeShelf):
    "One passage for every query, made from it; now and then none."

    def hits(self, query, k):
        return (
            []
            if len(query) % 13 == 0
            else [Hit(Passage(f"p{len(query) % 7}", "", f"facts about {query[-40:]}"), 1.0, 1)]
        )


class Seeded(FakeChat):
    "Replies that depend on the prompt and a seed alone, after a pause that depends on neither."

    def __init__(self, seed, pauses=None, wait=0.002):
        super().__init__(latency=wait if pauses else 0, pauses=pauses, tokens=(10, 3), scores=self.likelihood)
        self.seed = seed

    def draw(self, *what):
        return random.Random(f"{self.seed} {what}")

    def reply(self, request, sample):
        draw = self.draw(request.text, sample)
        if request.prompt is DECOMPOSE:
            asked = draw.choice(
                [
                    "What is the original question here?",
                    f"Who is person {draw.randint(0, 6)} of the matter?",
                    f"Where is place {draw.randint(0, 9)}?",
                ]
            )
            return draw.choice(["", "no idea", *[f"Sub-question: {asked}"] * 8])
        if request.prompt is ANSWER:
            return draw.choice(
                [
                    "No directly relevant facts found.",
                    *[f"Person {draw.randint(0, 30)} is at place {draw.randint(0, 30)}."] * 6,
                ]
            )
        if request.prompt is VERIFY:
            return draw.choice(["7", "3.5", "quite consistent", "10"])
        if request.prompt is GUESS:
            return draw.choice(["What is the question?", "Who is person 3?", "unclear"])
        return f"answer {draw.randint(0, 99)}"

    def likelihood(self, request, continuation):
        return [-5 * self.draw(request.text).random() for _ in continuation.split()]


QUESTION = Question("q", "test", "What is the original question here?")


def search(method, seed=0, chat=None, pauses=None):
    context = Context(chat or Seeded(seed, pauses), Shelf())
    return asyncio.run(method(QUESTION, context)), context.llm


def plain(prediction, depth=True):
    "Everything that two equal searches must share; the place on the critical path only if they were run the same way."
    nodes = prediction.trace.to_json()["nodes"]
    return (
        prediction.answer,
        prediction.trace.notes,
        prediction.usage.calls,
        [{k: v for k, v in n.items() if depth or k != "depth"} for n in nodes],
    )


@pytest.mark.parametrize("case", range(12))
def test_the_tree_is_the_sequential_ones(case):
    "Node for node and value for value, with random latencies; and the critical path doesn't depend on them either."
    draw = random.Random(case)
    settings = dict(
        value=draw.choice(["risk", "risk", "vanilla", "verifier"]),
        scorer=draw.choice(["likelihood", "guess"]),
        depth=draw.randint(2, 5),
        width=draw.randint(1, 5),
        iterations=draw.randint(1, 60),
        pass_n=draw.random() < 0.3,
        checkpoints=(1, 5) if draw.random() < 0.3 else (),
    )
    settings["reading"] = PUBLIC_CODE["reading"] if draw.random() < 0.4 else Reading()
    slow, one = search(ARISE(schedule=Scheduling(one_by_one=True), **settings), case)
    fast, many = search(ARISE(**settings), case, pauses=random.Random(f"a {case}"))
    again, _ = search(ARISE(**settings), case, pauses=random.Random(f"b {case}"))
    assert one.most == 1
    assert plain(fast, depth=False) == plain(slow, depth=False)
    assert sorted(many.texts) == sorted(one.texts), "asked for something that the sequential search doesn't ask"
    asked = [(r.text, r.sample) for r in one.asked]
    assert len(set(asked)) == len(asked)  # tries and rollouts ask the same prompt for new samples
    assert (
        plain(again) == plain(fast)
        and again.usage.critical_path == fast.usage.critical_path <= slow.usage.critical_path
    )


@pytest.mark.parametrize("one_by_one", [True, False])
def test_if_one_fails_none_is_left_that_nobody_awaits(one_by_one):
    begun = []

    async def fails():
        raise LookupError("nothing there")

    async def later():
        begun.append(1)

    async def go():
        each, coroutines = (
            Reasoner(ARISE(schedule=Scheduling(one_by_one=one_by_one)), "?", Context(Seeded(0))).each,
            [fails(), later(), later()],
        )
        with pytest.raises(LookupError):
            await each(coroutines)
        return {inspect.getcoroutinestate(c) for c in coroutines}

    assert asyncio.run(go()) == {inspect.CORO_CLOSED} and len(begun) == (0 if one_by_one else 2)


class Scripted(Seeded):
    "Values by what the last result is called: `tree[path]` are the children's (name, log-probability)."

    def __init__(self, tree):
        super().__init__(0)
        self.tree = tree

    def names(self, request):
        return tuple(r.split()[-1].strip(".") for r in request.inputs["state"].splitlines())

    async def complete(self, request):
        if request.prompt is DECOMPOSE:
            children = [*self.tree.get(self.names(request), {})]
            return [
                Completion(f"Sub-question: What is number {children[i % len(children)]}?" if children else "")
                for i in range(request.n)
            ]
        if request.prompt is ANSWER:
            return [Completion(f"The number here is {request.inputs['question'].split()[-1].strip('?')}.")]
        return [Completion(" ".join(self.names(request)))]

    async def score(self, request, continuation):
        *path, name = self.names(request)
        return [-self.tree.get(tuple(path), {}).get(name, 9.0)]


TREE = {
    (): dict(a=1.0, b=1.5),
    ("a",): dict(aa=0.9, ab=2.0),
    ("b",): dict(ba=0.5),
    ("a", "aa"): dict(aaa=1.0),
    ("a", "ab"): dict(aba=3.0),
    ("b", "ba"): dict(baa=0.4),
    ("aa",): {},
    ("ba",): {},
}


def OneEach():
    return FakeShelf([Passage("p", "", "a fact")], "one each")


def scripted(method, tree=TREE):
    return asyncio.run(method(QUESTION, Context(Scripted(tree), OneEach())))


def numbers(prediction, name):
    [node] = [n for n in prediction.trace.nodes if n.kind == "state" and n.data["result"].endswith(f" {name}.")]
    return node.data


def test_the_papers_rounds_by_hand():
    "Round 1 grows a and b and rolls a out; round 2 opens b, the unvisited one."
    q = lambda risk: risk_value(risk)
    one = scripted(ARISE(iterations=1, width=2))
    a = 0.9 * q(1.0) + 0.1 * max(q(0.9), q(1.0))  # imagined: aa, then aaa
    assert numbers(one, "a")["value"] == pytest.approx(a) and numbers(one, "a")["visits"] == 1
    assert numbers(one, "b")["value"] == pytest.approx(q(1.5)) and numbers(one, "b")["visits"] == 0
    assert one.trace.nodes[0].data["value"] == pytest.approx(a) and one.answer == "a"
    two = scripted(ARISE(iterations=2, width=2))
    ba = 0.9 * q(0.5) + 0.1 * q(0.4)
    assert numbers(two, "b")["value"] == pytest.approx(ba) and numbers(two, "b")["visits"] == 1
    assert two.trace.nodes[0].data["value"] == pytest.approx((a + ba) / 2) and two.trace.nodes[0].data["visits"] == 2


def close(ba):
    "After three rounds a has two visits and b one, and so far apart in value that one percent of exploration decides. Without a, the results aa and aaa are worth another number."
    return {
        (): dict(a=1.0, b=1.5),
        ("a",): dict(aa=0.6),
        ("b",): dict(ba=ba),
        ("a", "aa"): dict(aaa=0.5),
        ("b", "ba"): dict(baa=2.0),
        ("aa",): dict(aaa=0.3),
        ("ba",): dict(baa=2.0),
    }


def visited(tree, **settings):
    return tuple(numbers(scripted(configure(ARISE(width=2), **settings), tree), name)["visits"] for name in "ab")


def test_the_papers_fourth_round_by_hand():
    "w = 1.4 and ln N; a rollout that counts one half, for round numbers."
    q, tree = risk_value, close(1.725)
    a, b = (
        (q(0.6) + q(0.5)) / 2,
        (q(1.725) + q(2.0)) / 2,
    )  # after round 3: a's child aa, b's child ba, each with its rollout
    half = dict(rollout_weight=0.5)
    three = scripted(configure(ARISE(width=2, iterations=3), **half), tree)
    assert [numbers(three, name)["value"] for name in "ab"] == pytest.approx([a, b]) and visited(
        tree, iterations=3, **half
    ) == (2, 1)
    assert a + 1.4 * math.sqrt(math.log(3) / 2) > b + 1.4 * math.sqrt(math.log(3))
    assert a + math.sqrt(2 * math.log(3) / 2) < b + math.sqrt(2 * math.log(3))
    assert visited(tree, iterations=4, **half) == (3, 1)
    assert visited(tree, iterations=4, exploration=1.0, log_factor=2.0, **half) == (
        2,
        2,
    )  # the other constants would choose b


def test_the_codes_rounds_by_hand():
    "Exponential averages, a rollout valued by its newest two results, and w = 1 with 2 ln N."
    q, tree = risk_value, close(1.855)
    one, two, three = [scripted(replace(CODE, iterations=i, width=2), tree) for i in (1, 2, 3)]
    # (aa, aaa) without a; the whole state would be worth q(0.5)
    assert numbers(one, "a")["value"] == pytest.approx(0.9 * q(1.0) + 0.1 * q(0.3))
    # N(root) = 1: no exploration yet; b is unvisited and counts Q + 1
    assert 0.9 * q(1.0) + 0.1 * q(0.3) < q(1.5) + 1 and numbers(two, "b")["visits"] == 1
    a, b = 0.9 * q(0.6) + 0.1 * q(0.3), 0.9 * q(1.855) + 0.1 * q(2.0)
    assert [numbers(three, name)["value"] for name in "ab"] == pytest.approx([a, b])

    def seen(**others):
        return visited(tree, **PUBLIC_CODE | others)

    assert seen(iterations=3) == (2, 1)
    assert a + math.sqrt(2 * math.log(3) / 2) < b + math.sqrt(2 * math.log(3))
    assert a + 1.4 * math.sqrt(math.log(3) / 2) > b + 1.4 * math.sqrt(math.log(3))
    assert seen(iterations=4) == (2, 2)
    assert scripted(replace(CODE, width=2)).trace.nodes[0].data["visits"] == 30
    assert seen(iterations=4, log_factor=1.0, exploration=1.4) == (3, 1)  # the paper's constants would choose a
    whole = scripted(configure(CODE, iterations=1, width=2, newest_two=False), tree)
    assert numbers(whole, "a")["value"] == pytest.approx(0.9 * q(1.0) + 0.1 * q(0.5))


def test_the_codes_rollout_that_finds_nothing_ends_its_child_and_costs_it():
    tree = {(): dict(a=1.0, b=1.5), ("b",): dict(ba=0.5), ("b", "ba"): dict(baa=0.4)}
    one = scripted(replace(CODE, iterations=1, width=2), tree)
    assert numbers(one, "a")["value"] == pytest.approx(0.9 * risk_value(1.0)) and numbers(one, "a")["ended"] == 1
    paper = scripted(ARISE(iterations=1, width=2), tree)
    assert numbers(paper, "a")["value"] == pytest.approx(risk_value(1.0)) and numbers(paper, "a")["ended"] is None


def test_final_answers_are_asked_for_once_or_once_per_end():
    class Counted(Scripted):
        async def complete(self, request):
            if request.prompt is FINAL_ANSWER:
                self.asked.append(self.names(request))
            return await super().complete(request)

    for pass_n in (False, True):
        prediction = asyncio.run(ARISE(width=3, pass_n=pass_n)(QUESTION, Context(chat := Counted(TREE), OneEach())))
        parents = {n.parent for n in prediction.trace.nodes if n.kind == "state"}
        ends = {n.data["result"] for n in prediction.trace.nodes if n.kind == "state" and n.id not in parents}
        results = {n.data["result"] for n in prediction.trace.nodes if n.kind == "state"}
        assert (
            len(chat.asked) == len(set(chat.asked)) == (1 + len(results) if pass_n else 1) and len(ends) == 3
        )  # the root's, too


def test_an_empty_question_and_settings_out_of_range():
    with pytest.raises(UsageError, match="empty"):
        asyncio.run(ARISE()(Question("q", "t", " "), Context(Seeded(0), Shelf())))
    for field, value, span in (
        ("depth", 9, "from 1 to 8"),
        ("width", 0, "from 1 to 20"),
        ("iterations", 0, "from 1 to 10000"),
        ("exploration", -0.1, "from 0"),
        ("top_k", 0, "from 1"),
        ("rollout_weight", 2, "from 0 to 1"),
        ("temperature", 3, "from 0 to 2"),
    ):
        with pytest.raises(UsageError, match=f"{field}.*{span}"):
            configure(ARISE(), **{field: value})
    with pytest.raises(UsageError, match="did you mean|risk"):
        ARISE(value="riks")


def test_a_server_scores_or_lets_the_model_guess(server):
    "Echoed log-probabilities through the store; without them the guessed question, and the trace says so."
    rules = [
        ["Sub-question: \\.\\.\\.", "Sub-question: What is the number of it?"],
        ["Supporting facts", "The number is five."],
        ["original question might be", "What is the original?"],
        ["final answer", "five"],
    ]

    async def main(method):
        chat = CachedClient(OpenAIClient("m", server.url, pause=0.01), Store())
        try:
            return await method(QUESTION, Context(chat, OneEach()))
        finally:
            await chat.close()

    server.script(rules=rules)
    scored = asyncio.run(main(ARISE()))
    mean = sum(map(len, QUESTION.question.split())) / 10 / len(QUESTION.question.split())
    state = scored.trace.nodes[1]
    assert state.data["risk"] == pytest.approx(mean)
    assert state.data["changes"][0][2] == pytest.approx(risk_value(mean))
    assert scored.answer == "five"
    assert len(state.calls) >= 2  # its answer and its score are in the store
    server.script(echo=False)
    guessed = asyncio.run(main(ARISE(scorer="guess")))
    assert guessed.trace.nodes[1].data["risk"] is None
    assert (scored.trace.nodes[0].data["scorer"], guessed.trace.nodes[0].data["scorer"]) == ("likelihood", "guess")
    with pytest.raises(ScoringUnsupported, match="can't score"):
        asyncio.run(main(ARISE()))


def test_the_code_shows_examples_and_searches_with_marks():
    asked, searched = [], []

    class Watch(Scripted):
        async def complete(self, request):
            asked.append(request.prompt.name)
            return await super().complete(request)

    class Shelved(FakeShelf):
        def hits(self, query, k):
            searched.append(query)
            return super().hits(query, k)

    both = (ARISE(iterations=2), "arise.final", False), (replace(CODE, iterations=2), "arise.final_by_example", True)
    for method, prompt, mark in both:
        asked.clear(), searched.clear()
        asyncio.run(method(QUESTION, Context(Watch(TREE), Shelved([Passage("p", "", "a fact")], "one"))))
        assert [p for p in asked if "final" in p] == [prompt]
        assert any(q.startswith("Original question: ") and "\nIntermediate answer: " in q for q in searched) is mark
