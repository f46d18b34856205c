"What a server sends back: an echoed key, proxies of the environment, sizes, what counts as charged."
import asyncio, json
from dataclasses import replace

import pytest

from treekit.config import Profile, UsageError
from treekit.core.output_parsers import TEXT
from treekit.core.prompts import CallFailed, Prompt
from treekit.core.http import without_key
from treekit.llm.openai_client import OpenAIClient

KEY = "sk-canary-0123456789/abc"
REQUEST = Prompt("test.door", "answer", "$question", TEXT)(question="Who directed it?")


def ask(url, key=KEY, request=REQUEST, **more):
    async def main():
        chat = OpenAIClient("m", url, key, **dict(timeout=5, retries=0) | more)
        try: return await chat.complete(request)
        finally: await chat.close()
    return asyncio.run(main())


@pytest.mark.parametrize("form", [KEY, KEY.upper(), KEY.replace("/", "%2F"), KEY.replace("/", "\\/"), KEY.replace("s", "\\u0073")])
def test_an_echoed_key_is_hidden_in_every_field(server, form):
    text = json.dumps(dict(model="MARK", choices=[dict(finish_reason="MARK", message=dict(content="a MARK b", reasoning_content="MARK"))]))
    server.script(faults=[dict(kind="raw", headers=[f"x-echo: {KEY}"], body=text.replace("MARK", form))])
    [got] = ask(server.url)
    assert "canary" not in repr(got).lower() and got.text.startswith("a ")
    refusal = json.dumps(dict(error=dict(message="x" * 290 + "MARK"))).replace("MARK", form)
    server.script(faults=[dict(kind="raw", status=400, headers=[], body=refusal)])
    with pytest.raises(CallFailed) as failed: ask(server.url)
    assert "canary" not in str(failed.value).lower() and "sk-" not in str(failed.value)


def test_placeholders_are_no_keys():
    for word in ("EMPTY", "ollama", "lm-studio", "none"): assert without_key(f"{word} said {word}", word) == f"{word} said {word}"


@pytest.mark.parametrize("name, value", [("HTTP_PROXY", "http://127.0.0.1:9"), ("ALL_PROXY", "socks5://127.0.0.1:9"),
                                         ("all_proxy", "socks4://127.0.0.1:9")])
def test_a_server_on_this_machine_is_asked_without_a_proxy(server, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert ask(server.url)[0].text
    if "socks" in value:
        with pytest.raises(UsageError, match=name): ask("http://models.invalid/v1")


@pytest.mark.parametrize("key", ["sk-a\n", " sk-a", "sk-\r", "sk-é", "sk-\x00b", "열쇠"])
def test_a_key_that_no_header_can_have_is_refused_by_its_variable(monkeypatch, key):
    monkeypatch.setattr("treekit.config.variable", lambda name, default="": key)
    with pytest.raises(UsageError, match="API key in SOME_KEY") as failed: Profile("p", api_key_env="SOME_KEY").key()
    assert "sk-" not in str(failed.value)


def test_only_what_was_sent_is_charged(server):
    charged = []
    request = replace(REQUEST, on_charge=lambda *a: charged.append(a))
    for url in (server.url.replace("http", "https"), "http://127.0.0.1:9/v1"):
        with pytest.raises(CallFailed) as failed: ask(url, request=request)
        assert failed.value.kind == "unreachable"
    with pytest.raises(CallFailed): ask(server.url, "sk-bad\nkey", request=request)
    assert not charged
    server.script(faults=[dict(kind="raw", headers=[], body="x" * (6 << 20))])
    with pytest.raises(CallFailed, match="which max_tokens doesn't allow"): ask(server.url, request=request)
    assert len(charged) == 1


def test_what_a_server_names_has_no_controls(server):
    server.script(faults=[dict(kind="raw", headers=[], body=json.dumps(dict(
        model="m\x1b[31m\u202e", choices=[dict(finish_reason="no\x07vel", message=dict(content="a"))])))])
    [got] = ask(server.url)
    assert (got.model, got.finish) == ("m [31m", "no vel")
