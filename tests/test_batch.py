"Batches: what is sent when everybody waits, what becomes of one that fails, and that nothing is sent twice."

import asyncio, collections

import pytest

from batch_server import BatchServer
from treekit.llm.batch_client import BatchClient
from treekit.core.prompts import CallFailed, Prompt
from treekit.llm.openai_client import OpenAIClient
from treekit.core.output_parsers import TEXT

ASK = Prompt("batch/ask", "answer", "Say something about $topic", TEXT)


@pytest.fixture(scope="module")
def shared():
    with BatchServer(reply="replies:various") as server:
        yield server


@pytest.fixture
def server(shared):
    shared.reset(reply="replies:various", seconds=0.05)
    return shared


def chat(server, folder, **more):
    quick = dict(settle=0.05, poll=0.05, timeout=5, retries=3, pause=0.01)
    return BatchClient("gpt-4o-mini", server.url, "k", folder=folder, **quick | more)


async def asked(one, topics, **more):
    try:
        return await asyncio.gather(*(one.complete(ASK(topic=t, **more)) for t in topics), return_exceptions=True)
    finally:
        await one.close()


def texts(got):
    return [[c.text for c in completions] for completions in got]


def nothing_twice(server):
    twice = [i for i, times in collections.Counter(server.paid()).items() if times > 1]
    assert not twice, twice


TOPICS = [f"topic {i}" for i in range(30)]


def test_what_waits_is_one_batch_and_the_replies_are_those_of_single_calls(server, tmp_path):
    got = asyncio.run(asked(chat(server, tmp_path), TOPICS, n=2))
    plain = asyncio.run(asked(OpenAIClient("gpt-4o-mini", server.url, pause=0.01), TOPICS, n=2))
    assert texts(got) == texts(plain) and len(server.batches()) == 1
    assert [(c.tokens_in, c.tokens_out) for one in got for c in one] == [
        (c.tokens_in, c.tokens_out) for one in plain for c in one
    ]
    again = asyncio.run(asked(chat(server, tmp_path), TOPICS, n=2))  # as a run does that lost its store
    assert texts(again) == texts(got) and len(server.batches()) == 1
    samples = asyncio.run(asked(chat(server, tmp_path), ["topic 0"] * 2, temperature=1.0, sample=1))
    assert (
        len(server.batches()) == 2 and texts(samples)[0] == texts(samples)[1] and len(server.batches()[1]["ids"]) == 1
    )


def test_who_is_at_work_holds_up_the_round(server, tmp_path):
    one, busy = chat(server, tmp_path), True
    one.busy = lambda: busy

    async def late():
        nonlocal busy
        first = asyncio.create_task(one.complete(ASK(topic="a")))
        await asyncio.sleep(0.4)
        assert not server.batches()
        second, busy = asyncio.create_task(one.complete(ASK(topic="b"))), False
        await asyncio.gather(first, second)
        await one.close()

    asyncio.run(late())
    assert [len(b["ids"]) for b in server.batches()] == [2]


@pytest.mark.parametrize(
    "fault", [dict(kind="expired", share=0.5), dict(kind="errors", share=0.4), dict(kind="garbled")]
)
def test_what_failed_of_a_batch_is_asked_again_and_what_was_answered_is_kept(server, fault, tmp_path):
    server.script(batch_faults=[fault])
    got = asyncio.run(asked(chat(server, tmp_path), TOPICS))
    assert all(c[0].text for c in got)
    first, second = server.batches()
    assert 0 < len(second["ids"]) < len(first["ids"]) == 30
    if fault["kind"] != "garbled":
        nothing_twice(server)


@pytest.mark.parametrize(
    "status, said, kind, advice, sent",
    [
        (400, dict(message="This model's maximum context length is 8192 tokens"), "too long", "longer context", 1),
        (
            400,
            dict(message="The response was filtered by the content management policy"),
            "content filter",
            "filter",
            1,
        ),
        (401, dict(message="Incorrect API key provided"), "refused", "api_key_env", 1),
        (404, dict(message="no such thing", code="model_not_found"), "refused", "/models", 1),
        (429, dict(message="You exceeded your quota", code="insufficient_quota"), "rate limit", "add credit", 1),
        (429, dict(message="Slow down"), "rate limit", "concurrency", 2),
        (400, dict(message="This request is odd"), "refused", "objects to", 1),
    ],
)
def test_a_refused_request_of_a_batch_is_classified_as_a_single_one(server, status, said, kind, advice, sent, tmp_path):
    server.script(batch_faults=[dict(kind="errors", share=1, times=2, status=status, error=said)])
    [failed] = asyncio.run(asked(chat(server, tmp_path, retries=1), TOPICS[:1]))
    assert (failed.kind, advice in failed.what_to_do, f"answered {status}" in str(failed)) == (kind, True, True)
    assert len(server.batches()) == sent


@pytest.mark.parametrize("fault", [500, "reset"])
def test_an_order_whose_reply_is_lost_is_found_by_the_next_run(server, fault, tmp_path):
    server.script(order_faults=[fault])
    assert all(isinstance(c, CallFailed) for c in asyncio.run(asked(chat(server, tmp_path), TOPICS)))
    got = asyncio.run(asked(chat(server, tmp_path), TOPICS))
    assert all(c[0].text for c in got) and len(server.batches()) == 1


def test_a_batch_that_is_refused_as_a_whole_is_not_kept(server, tmp_path):
    server.script(batch_faults=[dict(kind="failed", code="token_limit_exceeded", message="queue is full")])
    [failed] = asyncio.run(asked(chat(server, tmp_path), TOPICS[:1]))
    assert failed.kind == "refused" and "queue is full" in failed.what and "--n" in failed.what_to_do
    assert asyncio.run(asked(chat(server, tmp_path), TOPICS[:1]))[0][0].text and len(server.batches()) == 2


@pytest.mark.parametrize("lost", [False, True])
def test_an_interrupted_run_finds_its_batch_and_one_that_the_server_lost_is_sent_again(server, tmp_path, capfd, lost):
    server.script(seconds=600)

    async def begin():
        one = chat(server, tmp_path)
        tasks = [asyncio.create_task(one.complete(ASK(topic=t))) for t in TOPICS[:3]]
        while not server.batches():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        for t in tasks:
            t.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await one.close()

    asyncio.run(begin())
    [first] = server.batches()
    if lost:
        server._ask("/_forget", dict(batches=True))
    server.script(seconds=0.0)
    server._ask("/_end", {})
    got = asyncio.run(asked(chat(server, tmp_path), TOPICS[:3]))
    assert all(c[0].text for c in got) and len(server.batches()) == 1
    assert (server.batches()[0]["made"] == first["made"], "no more" in capfd.readouterr().err) == (not lost, lost)


def test_scores_go_by_batch_too(server, tmp_path):
    def go(one):
        async def score():
            try:
                return await one.score(ASK(topic="a"), "a continuation")
            finally:
                await one.close()

        return asyncio.run(score())

    assert go(chat(server, tmp_path)) == go(OpenAIClient("gpt-4o-mini", server.url))
    assert [b["endpoint"] for b in server.batches()] == ["/v1/completions"]
