"Blows to the purse: counts of tokens that can't be, redirects, replies that nothing can read, and what an empty reply may cost."

import asyncio

import pytest

from test_startup import serve  # noqa: F401 (a fixture)
from treekit.core.prompts import CallFailed, count_tokens
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


@pytest.mark.parametrize("temperature, tries", [(0, 2), (0.7, 6)])
def test_an_empty_reply_at_temperature_0_is_bought_twice_at_most(server, tmp_path, temperature, tries):
    server.script(faults=[dict(kind="empty", times=99)])
    [failed] = ask(
        chat(tmp_path / "s.sqlite", server.url, retries=5, pause=0.001),
        asked(question="Where?", temperature=temperature),
    )
    assert failed.kind == "empty" and server.count == tries


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
