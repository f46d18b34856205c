"The client against a real socket: every fault that a server can have, samples, limits, scoring."

import asyncio, time

import pytest
from hypothesis import given, settings, strategies as st

from speed import enough
from treekit.config import Profile, UsageError
from treekit.core.prompts import CallFailed, Prompt, Request, ScoringUnsupported
from treekit.llm.openai_client import OpenAIClient
from treekit.core.output_parsers import FINAL, QUESTIONS, TEXT

KEY = "sk-test-0123456789"
asked = Prompt("test.llm", "answer", "$question", FINAL)


def client(server, **more):
    return OpenAIClient("gpt-4o-mini", server.url, KEY, **dict(timeout=5, retries=2, pause=0.01) | more)


def run(chat, request=None):
    async def main():
        try:
            return await chat.complete(request or asked(question="Where is FINAL Lyon?"))
        finally:
            await chat.close()

    return asyncio.run(main())


FAULTS = [  # the fault, what it is called if it stays
    (dict(kind="429", retry_after=0.05), "rate limit"),
    (dict(kind="429"), "rate limit"),
    (dict(kind="500"), "server"),
    (dict(kind="503"), "server"),
    (dict(kind="hang"), "timeout"),
    (dict(kind="drip"), "timeout"),
    (dict(kind="truncated"), "truncated"),
    (dict(kind="cut"), "truncated"),
    (dict(kind="not json"), "malformed"),
    (dict(kind="schema"), "malformed"),
    (dict(kind="error in 200"), "server"),
    (dict(kind="reset"), "server"),
    (dict(kind="empty"), "empty"),
    (dict(kind="null"), "empty"),
]


@pytest.mark.parametrize("fault, kind", FAULTS, ids=[f["kind"] + "+" * len(f) for f, _ in FAULTS])
def test_a_fault_is_retried_and_if_it_stays_recorded(server, fault, kind):
    chat = client(server, timeout=0.6 if kind == "timeout" else 5)
    server.script(faults=[fault])
    assert FINAL.parse(run(chat)[0].text)["answer"]
    assert server.count == 2
    if kind == "timeout":
        chat.retries = 1  # each takes its time
    server.reset(faults=[fault | dict(times=99)])
    began = time.monotonic()
    with pytest.raises(CallFailed) as failed:
        run(chat)
    assert failed.value.kind == kind and failed.value.what_to_do in str(failed.value)
    tries = 2 if kind == "empty" else chat.retries + 1  # at temperature 0 it would be empty again
    assert f"tried {tries} times" in str(failed.value) and server.count == tries
    taken = time.monotonic() - began
    assert KEY not in str(failed.value)
    enough((chat.retries + 1) * (chat.timeout + 8) / taken, 1)


def test_retry_after_is_honoured(server):
    server.script(faults=[dict(kind="429", retry_after=0.5, times=2)])
    run(client(server))
    first, second, third = (r["time"] for r in server.requests)
    assert second - first >= 0.5 and third - second >= 0.5


def test_a_wait_beyond_the_deadline_fails_at_once(server):
    server.script(faults=[dict(kind="429", retry_after=3600, times=9)])
    with pytest.raises(CallFailed) as failed:
        run(client(server))
    assert failed.value.kind == "rate limit" and server.count == 1


@pytest.mark.parametrize("status, advice", [("400", "objects"), ("401", "key")])
def test_what_is_refused_is_not_tried_again_and_shows_no_key(server, status, advice):
    server.script(faults=[dict(kind=status, message=f"bad key {KEY}, or sk-live-9876543210", times=9)])
    with pytest.raises(CallFailed) as failed:
        run(client(server))
    assert failed.value.kind == "refused" and advice in failed.value.what_to_do and server.count == 1
    assert KEY not in str(failed.value) and "9876543210" not in str(failed.value) and failed.value.__cause__ is None


@pytest.mark.parametrize("way", ["field", "tags"])
def test_thinking_is_kept_apart(server, way):
    server.script(thinking="Lyon, surely.", thinking_as=way, rules=[["Lyon", "FINAL: Lyon"]])
    (completion,) = run(client(server))
    assert (completion.text, completion.thinking) == ("FINAL: Lyon", "Lyon, surely.")


def test_usage_is_reported_or_estimated(server):
    (completion,) = run(client(server))
    assert (
        (completion.tokens_in, completion.estimated) == (4, False)
        and completion.tokens_out > 0
        and completion.model == "gpt-4o-mini"
    )
    server.script(usage=False)
    (completion,) = run(client(server))
    assert completion.estimated and completion.tokens_in == 5 and completion.tokens_out > 0


def test_samples_with_and_without_n(server):
    server.script(reply="scripted:numbered")
    request = asked(question="Where?", n=5, temperature=0.7, stop=["\n\n"], max_tokens=7)
    assert len(run(client(server), request)) == 5 and server.count == 1
    sent = {k: server.requests[0][k] for k in ("n", "temperature", "max_tokens", "stop")}
    assert sent == dict(n=5, temperature=0.7, max_tokens=7, stop=["\n\n"])
    server.reset(n=False, latency=0.2)
    assert len(run(client(server), request)) == server.count == 1


def test_logprobs(server):
    (completion,) = run(client(server), Request((dict(role="user", content="Where?"),), logprobs=True))
    assert len(completion.logprobs) == len(completion.text.split()) and completion.logprobs[0][1] == -0.5


def test_the_limit_is_never_exceeded(server):
    server.script(latency=0.02)
    chat = client(server, concurrency=3)

    async def many():
        return await asyncio.gather(*(chat.complete(asked(question=f"Number {i}?")) for i in range(40)))

    assert len(asyncio.run(many())) == 40 and server.most_at_once == 3


def test_no_server_no_key_and_a_wrong_path(server, monkeypatch):
    with pytest.raises(CallFailed) as failed:
        run(OpenAIClient("m", "http://127.0.0.1:9/v1", retries=1, pause=0.01))
    assert (
        failed.value.kind == "unreachable" and "127.0.0.1:9" in str(failed.value) and "curl" in failed.value.what_to_do
    )
    with pytest.raises(CallFailed, match="model's name"):
        run(OpenAIClient("m", server.url + "/v2/nothing", retries=1, pause=0.01), None)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    keyless = Profile("p", endpoint=server.url, api_key_env="NO_SUCH_KEY")
    with pytest.raises(UsageError, match="NO_SUCH_KEY"):
        OpenAIClient.from_profile(keyless)
    monkeypatch.setenv("SOME_KEY", KEY)
    chat = OpenAIClient.from_profile(Profile("p", model="m", endpoint=server.url, api_key_env="SOME_KEY"))
    assert KEY not in repr(chat) + repr(vars(chat)) and run(chat)


def test_only_the_profiles_own_key_is_sent(server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, f"sk-leak-{name}")
    run(OpenAIClient("m", server.url))
    assert "leak" not in server.requests[0]["head"]
    run(client(server))
    assert KEY in server.requests[1]["head"] and "leak" not in server.requests[1]["head"]


def test_score(server):
    request = Request((dict(role="user", content="The capital of France is"),))

    async def score(chat):
        return await chat.score(request, "Paris, of course")

    assert asyncio.run(score(client(server))) == [-0.6, -0.2, -0.6]  # the server gives -len/10 per word
    for echo in (False, "ignored"):
        server.script(echo=echo)
        with pytest.raises(ScoringUnsupported, match="vLLM"):
            asyncio.run(score(client(server)))


line = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(line, st.lists(line, max_size=6))
def test_formats_read_anything(text, items):
    for format in (FINAL, QUESTIONS, TEXT):
        reply = Prompt("test.any", "answer", "$question", format).read(text)
        assert reply.note or reply.value is not None
    words = ["".join(c for c in item if c.isalnum()) for item in items]
    questions = QUESTIONS.parse(QUESTIONS.render([f"What is {i}{word}?" for i, word in enumerate(words)]))
    assert len(questions) == len(items)
    answer = "A" + "".join(c for c in text if c.isalnum()) + "z"
    assert FINAL.parse(FINAL.render(dict(answer=answer, explanation="")))["answer"] == answer
