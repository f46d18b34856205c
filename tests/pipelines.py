"""What each adapter is checked for: questions of the synthetic corpus, asked of a simulated model with a price.

`check` runs a method four times: fresh, from the cache with other code, within a budget that is too small, and interrupted and resumed.
"""

import asyncio
from dataclasses import replace
from functools import cache

import pytest

from treekit.config import load_profile
from treekit.core.trace_render import show_tree
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.llm.prices import BudgetExceeded
from treekit.models.simulated.client import SimulatedClient
from treekit.store.run_store import Store

PROFILE = load_profile("offline", n=20, budget=None, concurrency=4)


@cache
def questions(n=20):
    return {"musique": load("musique", n=n)}


class PaidModel(SimulatedClient):
    "The simulated model under the name of one with a price. It counts its calls; its `watch` interrupts the run after some of them."

    model, instant = "gpt-4o-mini", False

    def __init__(self, interrupt_after=None):
        super().__init__()
        self.endpoint, self.asked, self.interrupt_after = "https://paid.example/v1", [], interrupt_after

    async def complete(self, request):
        if self.interrupt_after is not None and len(self.asked) >= self.interrupt_after:
            await asyncio.sleep(60)  # until it is cancelled
        self.asked.append((request.text, request.sample))
        await asyncio.sleep(0)
        return [replace(c, model=self.model) for c in await super().complete(request)]

    def watch(self, progress):
        if len(self.asked) >= self.interrupt_after:
            raise KeyboardInterrupt


def answers(results):
    return [(r.answer, r.error) for r in results.rows]


def counts(results):
    "What a table shows of each question; cached calls count as well."
    return [(u.calls, u.tokens_in, u.tokens_out, u.critical_path) for u in (r.usage for r in results.rows)]


def check(make, tmp_path, calls, searches=1, n=20):
    "Check a method that `make(code)` makes; `calls` is the number of its model calls for each question, `searches` that of its searches."

    def go(code, store, model, **options):
        return run({"mine": make(code)}, questions(n), PROFILE, store=store, chat=model, progress=False, **options)

    with Store(tmp_path / "first.sqlite") as store:
        fresh = go("1", store, first := PaidModel())
        assert [r.error for r in fresh.rows] == [""] * n and len({r.answer for r in fresh.rows}) > n // 6
        assert len(first.asked) == calls * n and [u[0] for u in counts(fresh)] == [calls] * n
        assert sum(fresh.values("COVER-EM")["mine", "musique"]) > 0
        for row in fresh.rows:
            kinds = [node.kind for node in row.trace.nodes]
            assert kinds.count("call") == calls and kinds.count("search") == searches and kinds[-1] == "answer"
            assert row.trace.critical_path == row.usage.critical_path == calls
            assert all(node.calls for node in row.trace.nodes if node.kind == "call")
            drawn = show_tree(row.trace)
            assert row.question.question[:40] in drawn and (row.answer or "(") in drawn
        cached = go("2", store, again := PaidModel())  # other code, so nothing but the calls is reused
        assert again.asked == [] and answers(cached) == answers(fresh) and counts(cached) == counts(fresh)
        assert [r.usage.hits for r in cached.rows] == [calls] * n
    cost = 0.15e-6 * sum(u[1] for u in counts(fresh)) + 0.6e-6 * sum(u[2] for u in counts(fresh))
    limit = cost / 2 + 0.0007  # half of the cost, and room for the longest reply to one call
    with Store(tmp_path / "budget.sqlite") as store:
        with pytest.raises(BudgetExceeded):
            go("1", store, poor := PaidModel(), budget=limit)
        assert poor.asked and store.query("SELECT TOTAL(paid) FROM call_log")[0][0] <= limit
        rich = PaidModel()
        assert answers(go("1", store, rich)) == answers(fresh)
        assert sorted(poor.asked + rich.asked) == sorted(first.asked)
    with Store(tmp_path / "stopped.sqlite") as store:
        stopped = PaidModel(interrupt_after=calls * n // 2)
        with pytest.raises(KeyboardInterrupt):
            go("1", store, stopped, watch=stopped.watch)
        assert len(stopped.asked) == calls * n // 2
    with Store(tmp_path / "stopped.sqlite") as store:
        resumed = PaidModel()
        assert answers(go("1", store, resumed)) == answers(fresh)
        assert sorted(stopped.asked + resumed.asked) == sorted(first.asked)
    return fresh
