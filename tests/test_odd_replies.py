"Replies with odd fields: they are normalised before they are stored, so that a replay and a rerun can read them."

import asyncio, json

import pytest

from treekit.store.run_store import Store
from workers import asked, chat

CHOICE = dict(index=0, message=dict(role="assistant", content="Lyon"), finish_reason="stop")
USAGE = dict(prompt_tokens=9, completion_tokens=2)
TOKEN = dict(token="Lyon", logprob=-0.5)


def body(choice=(), **more):
    return json.dumps(dict(model="m", choices=[CHOICE | dict(choice)], usage=USAGE) | more)


def tokens(*content):
    return body(dict(logprobs=dict(content=list(content))))


ODD = {
    "finish 1": body(dict(finish_reason=1)),
    "finish true": body(dict(finish_reason=True)),
    "finish {}": body(dict(finish_reason={})),
    "finish half": body(dict(finish_reason="st\ud800op")),
    "token null": tokens(dict(token=None, logprob=-0.5)),
    "token 7": tokens(dict(token=7, logprob=-0.5)),
    "token half": tokens(dict(token="\ud800", logprob=-0.5)),
    "logprob -inf": tokens(TOKEN | dict(logprob=float("-inf"))),
    "no token list": body(dict(logprobs=dict(content="Lyon"))),
    "logprobs a text": body(dict(logprobs="none")),
    "model half": body(model="m\ud800"),
    "model 3": body(model=3),
    "model {}": body(model={}),
    "usage a list": body(usage=[9, 2]),
    "usage a text": body(usage="9 in, 2 out"),
    "usage 3": body(usage=3),
    "usage odd inside": body(usage=dict(USAGE, prompt_tokens={})),
    "details a list": body(usage=dict(USAGE, prompt_tokens_details=[0])),
    "cached a text": body(usage=dict(USAGE, prompt_tokens_details=dict(cached_tokens="none"))),
}


def ask(path, url, question="Where?"):
    "One question; its completion, or the exception."

    async def main():
        stored = chat(path, url, 1.0)
        try:
            return (
                await asyncio.gather(stored.complete(asked(question=question, logprobs=True)), return_exceptions=True)
            )[0]
        finally:
            await stored.close()
            stored.store.close()

    return asyncio.run(main())


@pytest.mark.parametrize("name", ODD)
def test_an_odd_reply_is_paid_once_and_can_be_read_again(server, tmp_path, name):
    "The reply is kept; a replay reads the store, and the second run asks for nothing."
    server.script(faults=[dict(kind="raw", headers=[], body=ODD[name], times=9)])
    path = tmp_path / "s.sqlite"
    [first] = ask(path, server.url)
    assert first.text == "Lyon" and server.count == 1
    [again] = ask(path, server.url)
    assert again == first and server.count == 1
    with Store(path) as store:
        served, packed = store.served("gpt-4o-mini", server.url), store.pack(tmp_path / "tape.treekit")
    assert all(isinstance(s, str) for s in served)
    with Store.replay(packed) as tape:
        [[replayed]] = [list(tape.calls([k for (k,) in tape.query("SELECT key FROM calls")]).values())]
    assert replayed == first
