"Current interfaces of servers: parameters they refuse, reasoning models, cut-off replies, advice by kind of error."

import asyncio, json

import pytest

from fakes import FakeChat
from treekit.config import load_profile
from treekit.core.method import Context
from treekit.core.prompts import CallFailed, Completion, Prompt, Request
from treekit.core.output_parsers import FINAL
from treekit.experiments.resources import chat_for
from treekit.llm.openai_client import OpenAIClient
from treekit.llm.prices import load_prices, price_of
from treekit.store.run_store import Store, keys

asked = Prompt("test.interfaces", "answer", "$question", FINAL)
TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
)


def profile(server, **more):
    return load_profile("local", model="gpt-4o-mini", endpoint=server.url, **more)


def complete(chat, *questions):
    async def main():
        try:
            return await asyncio.gather(*(chat.complete(asked(question=q)) for q in questions or ("Where is Lyon?",)))
        finally:
            await chat.close()

    return [c for got in asyncio.run(main()) for c in got]


def test_openai_gets_max_completion_tokens():
    named = {
        url: OpenAIClient("m", url).limit_field for url in ("https://api.openai.com/v1", "http://localhost:8000/v1")
    }
    assert [*named.values()] == ["max_completion_tokens", "max_tokens"]


def test_a_host_that_passes_on_to_openai_gets_it_once_it_has_refused_the_other(server):
    server.script(refuses={"max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."})
    chat = chat_for(profile(server))
    assert len(complete(chat, "Where?")) == 1 and chat.limit_field == "max_completion_tokens"
    assert [b["body"].get("max_completion_tokens") for b in server.requests] == [None, chat.defaults["max_tokens"]]


def test_a_server_that_streams_all_the_same_is_asked_once(server):
    server.script(faults=[dict(kind="raw", headers=[], body='data: {"choices": []}\n\n')] * 3)
    with pytest.raises(CallFailed, match="doesn't stream"):
        complete(chat_for(profile(server)))
    assert server.count == 1


def test_a_model_without_temperature(server):
    server.script(refuses={"temperature": TEMPERATURE})
    with pytest.raises(CallFailed, match="--set temperature=none"):
        complete(chat_for(profile(server)))
    without = profile(server, temperature="none", reasoning_effort="low")
    assert without.temperature is None and complete(chat_for(without))

    async def own():  # a method's own temperature isn't sent either
        chat = chat_for(without)
        try:
            return await chat.complete(asked(question="Where?", temperature=0.7))
        finally:
            await chat.close()

    assert asyncio.run(own())
    last = server.requests[-1]["body"]
    assert "temperature" not in last and last["reasoning_effort"] == "low"
    request = Request((dict(role="user", content="Where?"),))
    plain = profile(server).defaults
    assert plain == dict(temperature=0.0, max_tokens=1024)  # keys of earlier versions stay
    assert (
        len(
            {
                keys(request, "m", "e", p.defaults)[0]
                for p in (profile(server), without, profile(server, temperature="none"))
            }
        )
        == 3
    )


@pytest.mark.parametrize(
    "usage, out",
    [
        (
            dict(
                prompt_tokens=4,
                completion_tokens=300,
                total_tokens=304,
                completion_tokens_details=dict(reasoning_tokens=290),
            ),
            300,
        ),
        (
            dict(
                prompt_tokens=4,
                completion_tokens=10,
                total_tokens=304,
                completion_tokens_details=dict(reasoning_tokens=290),
            ),
            300,
        ),
        (
            dict(
                prompt_tokens=4,
                completion_tokens=10,
                total_tokens=14,
                completion_tokens_details=dict(reasoning_tokens="many"),
            ),
            10,
        ),
    ],
)
def test_reasoning_tokens_are_counted_and_priced(server, usage, out):
    server.script(usage=usage)
    (completion,) = complete(chat_for(profile(server)))
    price = price_of("gpt-4o-mini", load_prices())
    assert (completion.tokens_out, completion.reasoning) == (out, 290 if out == 300 else 0) and not completion.estimated
    assert price.cost(completion) == pytest.approx((4 * 0.15 + out * 0.60) / 1e6)
    with Store() as store:
        canonical = json.dumps(dict(messages=[], parameters={}))
        store.put_calls(dict(k=completion), canonical, "m", "e", {}, [None])
        assert store.calls(["k"])["k"] == completion


@pytest.mark.parametrize("finish, word", [("length", "max_tokens"), ("content_filter", "content filter"), ("stop", "")])
def test_a_reply_that_was_cut_off_is_noted_and_counted(finish, word):
    context = Context(FakeChat([Completion("FINAL: Lyon", finish=finish)]))
    node = context.trace.add("answer", "Lyon")
    asyncio.run(context.ask(asked, node=node, question="Where?"))
    assert context.usage.cut_off == bool(word) and [word in n for n in node.notes] == [True] * bool(word)
    short = Context(
        FakeChat([Completion("FINAL: Lyon", finish=finish)])
    )  # a limit of the method's own belongs to the method
    asyncio.run(short.ask(asked, question="Where?", max_tokens=5))
    assert short.usage.cut_off == (finish == "content_filter")


@pytest.mark.parametrize("cut, word", [(3, "compatible"), (4, "not comparable")])
def test_a_cell_of_replies_that_were_cut_off_is_not_compared(cut, word):
    "Whatever cut them off: a small max_tokens of the run, or a content filter."
    from fakes import printed_run
    from treekit.core.method import Usage
    from treekit.core.types import Question
    from treekit.experiments.results import Results, Row
    from treekit.figures.verdicts import compare, published

    rows = [
        Row(
            "few-shot",
            "hotpotqa",
            Question(str(i), "hotpotqa", "?", ("a",)),
            "a",
            "",
            Usage(cut_off=int(i < cut)),
            load=None,
        )
        for i in range(100)
    ]
    [row] = Results(rows).score(lambda r: r.question.id in map(str, range(47)), name="COVER-EM")
    assert row["value"] == 0.47  # as printed
    table = compare(
        published("treerare", "table1"), [row], printed_run("treerare", "table1", [row], "gpt-4o-mini", n=500)
    )
    [cell] = table.query("verdict != 'not run'").to_dict("records")
    assert cell["verdict"] == word and (f"replies to {cut} of 100 questions were cut off" in cell["reason"]) == (
        cut > 3
    ), cell["reason"]


@pytest.mark.parametrize(
    "status, message, kind, advice",
    [
        (401, "Incorrect API key provided", "refused", "api_key_env"),
        (
            400,
            "This model's maximum context length is 8192 tokens, however you requested 9000",
            "too long",
            "longer context",
        ),
        (404, "The model `gpt-9` does not exist or you do not have access to it", "refused", "/models"),
        (
            400,
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy",
            "content filter",
            "filter",
        ),
        (400, "Unknown parameter: 'reasoning_effort'", "refused", "reasoning_effort="),
        (400, "This request is odd", "refused", "objects to"),
    ],
)
def test_the_advice_fits_the_refusal(server, status, message, kind, advice):
    server.script(refuse=(status, message))
    with pytest.raises(CallFailed) as failed:
        complete(chat_for(profile(server)))
    assert failed.value.kind == kind and advice in failed.value.what_to_do and server.count == 1
