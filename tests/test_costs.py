"What answers cost: the call log's tokens, the provider's cache, the price, the frontier; and the errata beside them."

import asyncio, csv
from dataclasses import dataclass

import pytest

from fakes import FakeChat
from treekit.config import load_profile, root
from treekit.experiments.costs import billed_as, bills, cost_table, dollars
from treekit.experiments.planning import open_store
from treekit.core.types import Passage, Question
from treekit.experiments.tables import sample_questions
from treekit.core.prompts import Completion, Prompt
from treekit.core.output_parsers import TEXT
from treekit.core.method import Context, Prediction
from treekit.llm.prices import BudgetGuard, Price, load_prices, price_of
from treekit.experiments.run import run
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
from treekit.experiments.results import Results, Row
from treekit.papers.treerare.method import TreeRare
from treekit.baselines import prompting as baselines


# --- samples


class OneCall:
    "As a server that takes `n`: the first sample of a call has the prompt's tokens."

    model, endpoint, defaults = "gpt-4o-mini", "https://example.com/v1", {}

    async def complete(self, request):
        return [
            Completion(f"reply {request.sample + i}", tokens_in=100 * (not i), tokens_out=10) for i in range(request.n)
        ]

    async def close(self):
        pass


@dataclass(frozen=True)
class Samples:
    "Asks for samples of one prompt in several requests."

    parts: tuple  # (first sample, number)

    async def __call__(self, question, context):
        root = context.trace.add("step", "")
        for first, n in self.parts:
            await context.ask(SAMPLED, node=root, n=n, sample=first, temperature=1, question=question.question)
        return Prediction("done", context.trace, context.usage)


SAMPLED = Prompt("test.sampled", "answer", "$question", TEXT)


@pytest.mark.parametrize("earlier", [[], [(0, 2)], [(0, 3)], [(0, 8)], [(3, 1), (0, 1)]])
def test_tokens_of_samples_do_not_depend_on_what_is_stored(tmp_path, earlier):
    "Two requests of a method, of 3 and of 2 samples, cost two prompts, however earlier runs asked for the same samples."
    asked = {"demo": [Question("1", "demo", "Who?", ("x",))]}
    with Store(tmp_path / "store.sqlite") as store:

        def made(parts):
            results = run(
                {"Samples": Samples(tuple(parts))}, asked, load_profile("offline"), store=store, chat=OneCall()
            )
            return results.rows[0].usage

        if earlier:
            made(earlier)
        usage = made([(0, 3), (3, 2)])
    assert (usage.calls, usage.tokens_in, usage.tokens_out) == (5, 200, 50)


def test_what_is_put_into_a_cache_may_be_dearer_and_a_budget_minds_it():
    from treekit.core.prompts import Request

    dear = Price(3.0, 0.3, 15.0, cache_write=3.75)
    assert dollars(dict(tokens_in=2000, tokens_out=0), dear) == pytest.approx(0.006)
    request = Request((dict(role="user", content="x" * 984),), max_tokens=1)
    assert BudgetGuard(1.0, dear).max_cost(request, {}) == pytest.approx((1000 * 3.75 + 15) / 1e6)


# --- the bill

ASK = Prompt("test.ask", "test", "$documents\n\n$question", TEXT)


def Counting():
    "Bills the first of several samples with the prompt, as endpoints do."

    def reply(request, i):
        return Completion(f"fine {i}", 0 if i else 3000, 7, cached_in=0 if i else 256)

    return FakeChat(reply, model="gpt-4o-mini")


def answered(questions, store, n=1, twice=False):
    async def one(q):
        context = Context(CachedClient(Counting(), store).bind(method="m", dataset="d", question=q.id))
        node = context.trace.add("answer", "")
        for more in range(1 + twice):
            await context.ask(
                ASK, node=node, n=n, question=f"{q.question} {more}", documents=[Passage("p", "Page", "tea " * 3000)]
            )
        return Row("m", "d", q, q.answers[0] if q.id != "1" else "wrong", "", context.usage, load=lambda: context.trace)

    return Results([asyncio.run(one(q)) for q in questions], "gpt-4o-mini")


QUESTIONS = [Question(str(i), "d", f"Which tea is number {i}?", ("green",)) for i in range(4)]


def test_bill_is_the_call_logs():
    store = Store()
    [bill] = bills(answered(QUESTIONS, store, n=3, twice=True))
    [logged] = store.usage(("method", "dataset"))
    assert (
        {k: bill[k] for k in ("calls", "tokens_in", "tokens_out")}
        == {k: logged[k] for k in ("calls", "tokens_in", "tokens_out")}
        == dict(calls=24, tokens_in=24000, tokens_out=168)
    )
    price = load_prices()["gpt-4o-mini"]  # the log knows what the provider had cached
    saved = 8 * 256 * (price.input - price.cached_input) / 1e6
    assert logged["cost_original"] == pytest.approx(dollars(bill, price) - saved)


def test_cost_per_question_and_per_correct_answer():
    store, price = Store(), Price(0.1, 0.05, 0.4)
    [row] = cost_table(answered(QUESTIONS, store), price, dict(d="EM"), per=500)
    each = (3000 * 0.1 + 7 * 0.4) / 1e6
    assert row["dollars per 500"] == pytest.approx(500 * each) and row["cents per question"] == pytest.approx(
        100 * each
    )
    assert row["quality"] == 0.75 and row["cents per correct answer"] == pytest.approx(100 * each * 4 / 3)
    [none] = cost_table(
        Results([r for r in answered(QUESTIONS, store).rows if r.question.id == "1"], "m"), price, dict(d="EM")
    )
    assert none["cents per correct answer"] is None and none["quality"] == 0


def test_an_unknown_price_leaves_tokens_without_money():
    name, price = billed_as("a-model-of-tomorrow")
    assert name == "a-model-of-tomorrow" and price is None
    [row] = cost_table(answered(QUESTIONS, Store()), price, dict(d="EM"))
    assert (
        row["dollars per 500"] is row["cents per question"] is row["cents per correct answer"] is None
        and row["tokens_in per question"] == 3000
    )


def test_the_simulated_model_is_billed_as_the_papers_model():
    assert (
        billed_as("simulated") == ("gpt-4o-mini", load_prices()["gpt-4o-mini"])
        and billed_as("simulated", "deepseek-chat")[1] == load_prices()["deepseek-chat"]
    )
    assert (load_prices()["gpt-4o-mini"].input, load_prices()["gpt-4o-mini"].output) == (0.15, 0.60)


def test_every_price_has_its_date_and_source():
    with open(root() / "data" / "prices.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    for r in rows:
        assert r["source"] and r["date"].count("-") == 2 and float(r["cached_input"]) <= float(r["input"]), r["model"]
    assert price_of("openai/gpt-4.1-2025-04-14", load_prices()) == load_prices()["gpt-4.1"]


# --- a real run


def test_a_run_and_its_store_agree(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "s.sqlite"))
    P = load_profile("offline", n=2)
    methods = {"zero-shot": baselines.RetrieveAndRead(), "no tree": TreeRare(tree="none")}
    results = run(methods, sample_questions(P, ("hotpotqa",)), P, progress=False)
    store = open_store(P)
    for bill in bills(results):
        [logged] = [u for u in store.usage(("method", "dataset")) if u["method"] == bill["method"]]
        assert (bill["calls"], bill["tokens_in"], bill["tokens_out"]) == (
            logged["calls"],
            logged["tokens_in"],
            logged["tokens_out"],
        )
    store.close()
    again = run(methods, sample_questions(P, ("hotpotqa",)), P, progress=False)
    assert bills(again) == bills(results)  # answered from the store: the same bill


def test_calls_that_wait_for_a_budget_look_the_less_often_the_more_they_are(monkeypatch):
    guard, pauses, sleep = BudgetGuard(1.0, None), [], asyncio.sleep

    async def look_again(seconds):
        pauses.append(seconds)
        await sleep(0)

    async def call():
        await guard.reserve(1.0)
        await sleep(0)
        guard.settle(1.0, 0.0)

    async def many():
        await asyncio.gather(*(call() for _ in range(200)))

    monkeypatch.setattr(asyncio, "sleep", look_again)
    asyncio.run(many())
    assert max(pauses) > 0.25 > 0.12 > min(pauses) and guard.reserved == guard.waiting == 0
