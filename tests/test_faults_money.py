"Blows to the purse: counts of tokens that can't be, redirects, replies that nothing can read, and what an empty reply may cost."

import asyncio

import pytest

from commands import inside
from openai_server import Server
from test_startup import serve  # noqa: F401 (a fixture)
from test_run import Read, Shelf, questions as toys
from treekit.config import Profile, load_profile
from treekit.core.prompts import CallFailed, count_tokens
from treekit.llm.prices import Price, BudgetGuard
from treekit.store.run_store import Store
from treekit.artefacts.environment_check import checks
from treekit.experiments.resources import LazyRetriever, chat_for
from treekit.experiments.run import run
from workers import asked, chat


def ask(stored, *requests):
    async def main():
        try:
            return await asyncio.gather(*(stored.complete(r) for r in requests), return_exceptions=True)
        finally:
            await stored.close()

    return asyncio.run(main())


POISON = [
    dict(prompt_tokens=-1_000_000),
    dict(prompt_tokens=10**18),
    dict(completion_tokens=10**25),
    dict(completion_tokens=-5),
    dict(prompt_tokens=0),
    dict(prompt_tokens=7.5),
    dict(prompt_tokens=True),
    dict(completion_tokens="9"),
    dict(prompt_tokens_details=dict(cached_tokens=10**6)),
    dict(prompt_tokens_details=dict(cached_tokens=-(10**6))),
]


@pytest.mark.parametrize("usage", POISON, ids=map(str, POISON))
def test_counts_that_cant_be_are_estimated(server, tmp_path, usage):
    "They neither make the budget endless nor eat it up, and each call is stored, so that it is bought once."
    server.script(usage=usage)
    stored, requests = (
        chat(tmp_path / "s.sqlite", server.url, 0.01),
        [asked(question=f"Where is {i}?") for i in range(3)],
    )
    found = [c for [c] in ask(stored, *requests)]
    price = sum((count_tokens(r.text) * 0.15 + count_tokens(c.text) * 0.60) / 1e6 for r, c in zip(requests, found))
    assert stored.budget.spent == pytest.approx(price) and all(
        c.estimated and "which can't be: estimated" in c.note for c in found
    )
    ask(again := chat(tmp_path / "s.sqlite", server.url, 0.01), *requests)
    assert (server.count, again.totals.money) == (3, 0)


def test_counts_that_can_be_are_believed(server, tmp_path):
    "What a server puts around a prompt, and thinking that it doesn't show, count."
    server.script(usage=dict(prompt_tokens=400, completion_tokens=1000, prompt_tokens_details=dict(cached_tokens=400)))
    [[c]] = ask(chat(tmp_path / "s.sqlite", server.url), asked(question="Where?"))
    assert (c.tokens_in, c.tokens_out, c.cached_in, c.estimated, c.note) == (400, 1000, 400, False, "")


def test_a_note_of_it_stands_in_the_trace(server):
    server.script(usage=dict(prompt_tokens=-1))
    profile = load_profile("local", endpoint=server.url)
    shelf = {"toy": LazyRetriever(Shelf, "s")}
    [row] = run(
        {"read": Read()}, toys(1), profile, corpora=shelf, store=Store(), chat=chat_for(profile), progress=False
    ).rows
    assert ["can't be: estimated" in note for n in row.trace.nodes for note in n.notes].count(True) == 1


def test_a_redirect_to_another_server_is_refused(server, tmp_path):
    "Neither the prompt nor the key goes there; the line says where it would have gone."
    with Server() as other:
        server.script(faults=[dict(kind="raw", status=307, headers=[f"location: {other.url}/chat/completions"])])
        [failed] = ask(chat(tmp_path / "s.sqlite", server.url, key="sk-secret"), asked(question="Where?"))
        assert (
            isinstance(failed, CallFailed)
            and f"redirects to {other.url.removesuffix('/v1')}" in str(failed)
            and "\n" not in str(failed)
        )
        assert (server.count, other.count) == (1, 0)
    server.reset(faults=[dict(kind="raw", status=307, headers=["location: /v1/chat/completions"])])
    [[found]] = ask(chat(tmp_path / "s.sqlite", server.url), asked(question="Where?"))
    assert found.text and server.count == 2  # within the server it is followed


def test_doctor_shows_no_secret_of_an_address(serve):  # noqa: F811
    "And a name and a password in it reach the server, as they do in a run."
    address, told = serve(**{"v1/models": dict(data=[dict(id="m")])})
    whole = address.replace("//", "//ann:hunter22@") + "/v1"
    rows = list(checks(Profile("p", model="m", endpoint=whole)))
    assert "hunter" not in str(rows) and [r[1] for r in rows if r[0] == "model"] == [True]
    assert told[0][1] == "Basic YW5uOmh1bnRlcjIy"
    for wrong in (
        "http://ann:hunter22@127.0.0.1:9/v1",
        "http://ann:hunter22@127.0.0.1:9x/v1",
        "http://127.0.0.1:9/v1?api-key=hunter22",
    ):
        assert "hunter" not in str(list(checks(Profile("p", model="m", endpoint=wrong))))


UNREADABLE = {
    "deep": dict(body="[" * 200_000),
    "deep inside": dict(body='{"choices": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "digits": dict(body='{"choices": ' + "9" * 5000 + "}"),
    "huge float": dict(body='{"choices": [1e999]}'),
    "logprob": dict(
        body='{"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": 1'
        + "0" * 400
        + "}]}}]}"
    ),
    **{
        charset: dict(headers=[f"content-type: text/html; charset={charset}"], body="<html>")
        for charset in ("base64", "rot13", "idna", "none")
    },
    **{
        f"{charset} 400": dict(status=400, headers=[f"content-type: application/json; charset={charset}"], body="{}")
        for charset in ("base64", "rot13", "idna")
    },
    "deep 500": dict(status=500, body="[" * 200_000),
    "broken gzip": dict(headers=["content-encoding: gzip"], body="x"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_nothing_can_read_is_a_failed_call_and_tried_again(server, tmp_path, name):
    "A `CallFailed` with what to do, and after one such answer the next is read."
    fault = dict(kind="raw", headers=[]) | UNREADABLE[name]
    server.script(faults=[fault | dict(times=99)])
    request = asked(question="Where?", logprobs=name == "logprob")
    [failed] = ask(chat(tmp_path / "s.sqlite", server.url), request)
    assert isinstance(failed, CallFailed) and failed.what_to_do, failed
    assert server.count == (1 if fault.get("status") == 400 and failed.kind == "refused" else 3)
    server.reset(faults=[fault])
    if failed.kind != "refused":
        assert ask(chat(tmp_path / "s.sqlite", server.url), request)[0][0].text and server.count == 2


@pytest.mark.parametrize("charset", ["base64", "rot13", "idna", "utf-8", "nonsense"])
def test_a_good_reply_under_an_odd_charset_is_read(server, tmp_path, charset):
    server.script(faults=[dict(kind="raw", headers=[f"content-type: application/json; charset={charset}"])])
    assert ask(chat(tmp_path / "s.sqlite", server.url), asked(question="Where?"))[0][0].text and server.count == 1


@pytest.mark.parametrize("temperature, tries", [(0, 2), (0.7, 6)])
def test_an_empty_reply_at_temperature_0_is_bought_twice_at_most(server, tmp_path, temperature, tries):
    server.script(faults=[dict(kind="empty", times=99)])
    [failed] = ask(
        chat(tmp_path / "s.sqlite", server.url, retries=5, pause=0.001),
        asked(question="Where?", temperature=temperature),
    )
    assert failed.kind == "empty" and server.count == tries


def test_an_empty_reply_that_was_charged_counts_in_the_progress(server, tmp_path):
    "Calls and tokens of each attempt, by the server's own count or else at their upper bound."
    server.script(faults=[dict(kind="empty", times=99)])
    one = chat(tmp_path / "s.sqlite", server.url, pause=0.001)
    [failed] = ask(one, asked(question="Where?", temperature=0))
    assert failed.kind == "empty" and one.totals.calls == server.count == 2
    assert one.totals.tokens_in == 2  # one for each, as the server says; without its word, the upper bound


def test_a_cancelled_call_counts_as_charged(server, tmp_path):
    "One of several concurrent calls of a question fails, and the others are cancelled, which the server charges all the same."
    server.script(latency=0.4)
    stored, request = chat(tmp_path / "s.sqlite", server.url, 0.01), asked(question="Where?")

    async def main():
        call = asyncio.create_task(stored.complete(request))
        while not server.count:
            await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await stored.close()

    asyncio.run(main())
    most = stored.budget.max_cost(request, stored.defaults)
    assert most > 0 and (stored.budget.spent, stored.budget.reserved, stored.totals.money) == (
        pytest.approx(most),
        0,
        pytest.approx(most),
    )


def test_who_gives_up_waiting_holds_nobody_up():
    "The first call in the queue is cancelled; the next one is admitted when another call has settled."

    async def main():
        one = BudgetGuard(1.0, Price(1, 1, 1))
        await one.reserve(0.9)
        first, second = (asyncio.ensure_future(one.reserve(0.5, priority)) for priority in (9, 0))
        await asyncio.sleep(0.1)
        first.cancel()
        one.settle(0.9, 0.1)
        await asyncio.wait_for(second, 10)
        return one.spent, one.reserved

    assert asyncio.run(main()) == pytest.approx((0.1, 0.5))


def test_help_says_how_hard_the_budget_is():
    said = " ".join(inside("reproduce", "--help")[1].split())
    assert (
        "what a call can cost at most is set aside before it is sent" in said
        and "for the calls in flight, can pass it" in said
    )
