"What every method takes, by the logical clock: critical path, calls and tokens per question; and the clock itself."

import asyncio, json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from treekit.baselines import chainrag, graphrag, hipporag, prompting, react, revising, search_r1, tree_of_thoughts
from treekit.config import load_profile
from treekit.core.prompts import Completion, Prompt
from treekit.core.logical_clock import LogicalClock, Memo, Promise, TimedTask, speculate, gather_or_cancel
from treekit.core.method import Context, configure
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store
from treekit.experiments.run import run
from treekit.experiments.tables import sample_questions
from treekit.papers.arise import method as arise
from treekit.papers.rdr2 import baselines as long_form, method as rdr2
from treekit.papers.searchr import method as searchr
from treekit.papers.toq import method as toq
from treekit.papers.treerare import method as treerare

EXPECTED = json.loads((Path(__file__).parent / "critical_paths.json").read_text(encoding="utf-8"))
QUICK = (
    "TreeRare (DT)",
    "ToQ (ours)",
    "ARISE (ours)",
    "RDR2 (Ours)",
    "Self-Ask",
)  # in every run; the others are marked
OWN_PASSAGES = ("ChainRAG", "HippoRAG", "GraphRAG")  # they make an index of all passages, so they get few


def methods():
    "name -> method, as the printed tables have it; without what would need a trained model."
    found = prompting.methods() | react.methods() | tree_of_thoughts.methods() | treerare.METHODS | treerare.ABLATIONS
    found |= toq.METHODS | revising.methods() | arise.METHODS | arise.VALUE_FUNCTIONS
    found |= (
        chainrag.METHODS | search_r1.METHODS | hipporag.METHODS | graphrag.METHODS | long_form.METHODS | rdr2.ABLATIONS
    )
    found |= {
        "SEARCH-R*": replace(searchr.SearchR(), decomposer="prompted"),
        "SEARCH-R waves": searchr.SearchR(decomposer="prompted", order="waves", decide="rule"),
        "ARISE flight": configure(arise.ARISE(iterations=20), in_flight=3),
        "ARISE one": configure(arise.ARISE(iterations=20), one_by_one=True),
        "ARISE passn": arise.ARISE(iterations=20, pass_n=True, checkpoints=(1, 5)),
    }
    return {name: replace(m, reranker="") if getattr(m, "reranker", "") else m for name, m in found.items()}


def names():
    for name in EXPECTED:
        yield (
            name
            if name in QUICK
            else pytest.param(name, marks=pytest.mark.slow if name in OWN_PASSAGES else pytest.mark.long)
        )


@pytest.fixture(scope="module")
def asked():
    profile = load_profile("offline", n=3, retriever="bm25s")
    few = sample_questions(profile, ("hotpotqa", "musique", "ambigdocs", "komultihop"))
    return profile, few | sample_questions(
        replace(profile, n=6), ("asqa",)
    )  # every other question there is about several things


@pytest.mark.parametrize("name", list(names()))
def test_every_method_takes_what_it_took(name, asked):
    "Expected: as counted before the clock, when each method stated what its calls waited for."
    profile, questions = asked
    expected = EXPECTED[name]
    if name in OWN_PASSAGES:
        profile = replace(profile, search_scope="own")
    wanted = {d: [q for q in questions[d] if f"{d} {q.id}" in expected] for d in questions}
    results = run(
        {name: methods()[name]}, {d: qs for d, qs in wanted.items() if qs}, profile, store=Store(), progress=False
    )
    found = {
        f"{r.dataset} {r.question.id}": [r.usage.critical_path, r.usage.calls, r.usage.tokens_in, r.usage.tokens_out]
        for r in results.rows
    }
    assert not results.failures and found == expected


class Replies:
    "A model that says the prompt's last word."

    model, endpoint = "replies", "offline:test"

    async def complete(self, request):
        await asyncio.sleep(0)
        if "fail" in request.text:
            raise LookupError("no reply")
        return [Completion(request.text.split()[-1])] * request.n


SAY = Prompt("test.say", "say", "$word", TEXT)


def clocked(main):
    "What `main(kit, say)` returned, and the kit."
    context = Context(Replies())

    async def say(word, node=None):
        return await context.ask(SAY, word=word, node=node)

    return asyncio.run(main(context, say)), context


def test_sequential_calls_and_side_by_side():
    async def chain(say, n):
        for _ in range(n):
            await say("x")

    async def main(context, say):
        await say("a")
        await gather_or_cancel([chain(say, 2), gather_or_cancel([chain(say, 1), chain(say, 4)])])
        node = context.trace.add("answer", "")
        await say("b", node)
        return node.depth

    depth, context = clocked(main)
    assert depth == context.usage.critical_path == 1 + 4 + 1 and context.usage.calls == 1 + 2 + 1 + 4 + 1


def test_who_awaits_a_task_continues_after_it_and_others_do_not():
    async def main(context, say):
        async def twice():
            await say("x")
            await say("y")

        task = TimedTask(twice())
        await say("a")
        before = context.clock.now
        await asyncio.sleep(0.01)
        untouched = context.clock.now
        await task
        return before, untouched, context.clock.now

    assert clocked(main)[0] == (1, 1, 2)


def test_a_failed_call_takes_no_time_and_a_failed_task_takes_what_it_had_taken():
    async def main(context, say):
        async def fails():
            await say("x")
            await say("fail")

        with pytest.raises(LookupError):
            await TimedTask(fails())
        alone = context.clock.now
        with pytest.raises(LookupError):
            await gather_or_cancel([fails(), fails()])
        return alone, context.clock.now

    assert clocked(main)[0] == (1, 2)


def test_a_value_that_is_made_once_is_ready_for_its_earliest_reader():
    async def main(context, say):
        async def make():
            await say("x")
            return await say("value")

        async def early():
            return await context.memo(("v",), make), context.clock.now

        async def late():
            for _ in range(4):
                await say("y")
            return await context.memo(("v",), make), context.clock.now

        return await gather_or_cancel([early(), late()])

    assert clocked(main)[0] == [("value", 2), ("value", 4)]


def test_a_prefetched_value_counts_from_where_it_was_started():
    async def main(context, say):
        async def make():
            await say("x")
            return await say("value")

        async def read():
            return await context.memo(("v",), make)

        await say("first")
        began, ahead = context.clock.now, speculate(read())
        for _ in range(2):
            await say("y")
        assert context.usage.critical_path == 3  # what was started ahead of time is on nobody's path yet
        await ahead.task
        value = await context.clock.starting_at(began, read())
        return value, context.clock.now

    assert clocked(main)[0] == ("value", 3)


@pytest.mark.parametrize("first", ["early", "late"])
def test_the_speed_of_speculative_tasks_makes_no_difference(first):
    async def main(context, say):
        async def make():
            return await say("value")

        async def read(pause):
            await asyncio.sleep(pause)
            return await context.memo(("v",), make)

        ahead = [speculate(read(0 if first == "early" else 0.01)), speculate(read(0.01 if first == "early" else 0))]
        for task in ahead:
            await task.task
        await context.clock.starting_at(3, read(0))
        seen = context.clock.now
        await context.clock.starting_at(1, read(0))
        return seen, context.clock.now, context.memos[("v",)].ready

    assert clocked(main)[0] == (4, 4, 2)


def test_a_promise_passes_on_the_clock_of_who_kept_it():
    async def main(context, say):
        promise = Promise()

        async def giver():
            await say("x")
            promise.set("span")
            await say("y")
            await say("z")

        async def taker():
            return await promise, context.clock.now

        _, taken = await gather_or_cancel([giver(), taker()])
        return taken, context.clock.now

    assert clocked(main)[0] == (("span", 1), 3)


def test_two_questions_in_one_task_have_clocks_of_their_own():
    async def main():
        one, other = Context(Replies()), Context(Replies())
        await one.ask(SAY, word="x")
        await other.ask(SAY, word="x")
        await gather_or_cancel([one.ask(SAY, word="y"), other.ask(SAY, word="y")])
        return one.clock.now, other.clock.now, one.usage.critical_path

    assert asyncio.run(main()) == (2, 2, 2)


def test_an_index_is_not_on_the_questions_path():
    async def main(context, say):
        async def build(context):
            await say("x")
            await say("y")
            return "index"

        return await context.indexed(build), context.clock.now

    assert clocked(main)[0] == ("index", 0)


def test_a_memo_that_fails_fails_for_each_reader_and_stop_leaves_nothing_running():
    async def main():
        clock = LogicalClock(SimpleNamespace(critical_path=0))

        async def breaks():
            raise LookupError("broken")

        memo = Memo(clock, breaks)
        for _ in range(2):
            with pytest.raises(LookupError):
                await memo
        context = Context(Replies())
        context.memo(("slow",), lambda: asyncio.sleep(9))
        await context.stop()
        return clock.now, len(asyncio.all_tasks())

    assert asyncio.run(main()) == (0, 1)
