"Replies with odd fields: they are normalised before they are stored, so that a replay and a rerun can read them."

import asyncio, json, sqlite3

import pytest

from treekit.core.prompts import Completion
from treekit.store.run_store import Store, canonical_request, keys
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


OLD = dict(
    finish=['"finish":1', '"finish":true', '"finish":{}'],
    token=['"logprobs":[[null,-0.5]]'],
    model=['"model":"m\\ud800"', '"model":{}'],
)


@pytest.mark.parametrize("field", [f for fields in OLD.values() for f in fields])
def test_an_odd_reply_in_an_older_store_is_read_by_the_same_rule(tmp_path, field):
    "A store that an earlier version wrote isn't damaged by such a reply."
    path, request = tmp_path / "s.sqlite", asked(question="Where?")
    [key], sent = keys(request, "m", "http://a"), canonical_request(request, "m", "http://a", None)
    with Store(path) as store:
        store.put_calls({key: Completion("Lyon")}, sent, "m", "http://a", {}, [0.0])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE calls SET completion = ?", ('{"text":"Lyon",%s}' % field,))
    db.close()
    with Store(path) as store:
        [found] = store.calls([key]).values()
        assert found.text == "Lyon" and isinstance(found.finish, str) and isinstance(found.model, str)
        assert all(isinstance(s, str) for s in store.served("m", "http://a"))
        packed = store.pack(tmp_path / "tape.treekit")
    with Store.replay(packed) as tape:
        assert tape.calls([key]) == {key: found}
