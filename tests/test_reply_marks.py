"Replies as open conventions: marks of thinking, reasons of ending, leftovers of templates, empty completions."

import json

import pytest

from treekit.core.answer_extraction import reply_oddities, without_thinking
from treekit.core.prompts import CallFailed, Prompt
from treekit.core.output_parsers import TEXT
from treekit.llm.openai_client import OpenAIClient, _completions, _refusal

REQUEST = Prompt("test.marks", "answer", "$question", TEXT)(question="Who directed it?")
WRONG, RIGHT = "Perhaps Olin Tarsk. No.", "Mira Venn"
MARKED = (
    "<thought>{}</thought> ",
    "<thoughts>{}</thoughts>",
    "<think>Hm.</think><think>{}</think>",
    "[THINK]{}[/THINK]",
    "◁think▷{}◁/think▷",
    "<seed:think>{}</seed:think>",
    "<thinking>\n{}\n</thinking>\n",
    "<reasoning>{}</reasoning>",
    "{}</think>",
    "{}[/THINK]\n",
    "<|begin_of_thought|>{}<|end_of_thought|>",
    "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>",
    "analysis{}assistantfinal",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>",
    "Here is my thought process:\n{}\nHere is my response:\n",
    "<|channel>thought\n{}<channel|>",
    "<unused94>thought\n{}<unused95>",
    "Here are my reasoning steps:\n{}\n[BEGIN FINAL RESPONSE]\n",
)


def body(message, finish="stop", **more):
    return json.dumps(
        dict(choices=[dict(finish_reason=finish, message=message)], usage=dict(prompt_tokens=9, completion_tokens=2))
        | more
    )


@pytest.mark.parametrize("mark", MARKED)
def test_thinking_in_any_known_mark_is_apart(mark):
    said, thought = without_thinking(mark.format(WRONG) + RIGHT)
    assert said.strip() == RIGHT and WRONG in thought and not reply_oddities(said)


@pytest.mark.parametrize(
    "text",
    [
        "<search>Mira Venn</search>",
        "<answer>Mira Venn</answer>",
        "<|begin_of_query|>Venn<|end_of_query|>",
        '("entity"<|>Venn)<|COMPLETE|>',
        "\\boxed{Venn}",
        "[OMITTED] is the word",
        "The tag <think> opens a thought.",
        "final: Venn",
    ],
)
def test_the_papers_own_tags_stay(text):
    assert without_thinking(text) == (text, "") and not reply_oddities(text)


@pytest.mark.parametrize(
    "text, finish, note",
    [
        ("Venn<|im_end|>", "stop", "im_end"),
        ("Venn</s>", "stop", "</s>"),
        ("Venn<|eot_id|>", "stop", "eot_id"),
        ("Venn<end_of_turn>", "stop", "end_of"),
        ("[INST] Venn", "stop", "INST"),
        ("<scratchpad>Tarsk</scratchpad>Venn", "stop", "unknown block"),
        ("[PONDER]Tarsk[/PONDER]Venn", "stop", "unknown block"),
        ("Venn", "novel", "finish_reason novel"),
        ("Venn", 5, "finish_reason 5"),
        ("Venn", None, "finish_reason None"),
        ('<details type="reasoning"><summary>Thought</summary>Tarsk</details>Venn', "stop", "unknown block"),
        ("Venn[|endofturn|]", "stop", "turn"),
        ("Venn<unused12>", "stop", "unused12"),
        *(
            (f"{mark}Tarsk{mark[0]}/{mark[1:]}Venn", "stop", "unknown block")
            for mark in ("<思考>", "<ｔｈｉｎｋ>", "(thinking)", "{ponder}", "【思考】", "«thought»")
        ),
        ("&lt;think&gt;Tarsk&lt;/think&gt;Venn", "stop", "unknown block"),
        ("```thinking\nTarsk\n```\nVenn", "stop", "unknown block"),
    ],
)
def test_what_is_unknown_is_noted(text, finish, note):
    assert note in _completions(body(dict(content=text), finish), REQUEST, 0.1)[0].note


@pytest.mark.parametrize(
    "finish",
    ["error", "abort", "server_error", "timeout", "engine_overloaded", "ERROR_TIMEOUT", "insufficient_system_resource"],
)
def test_a_reply_that_was_broken_off_is_a_temporary_failure(finish):
    with pytest.raises(CallFailed, match=finish) as failed:
        _completions(body(dict(content="Numos Tal"), finish), REQUEST, 0.1)
    assert failed.value.again and failed.value.kind == "truncated"


@pytest.mark.parametrize(
    "message, says",
    [
        (dict(content=None, reasoning_content="Olin Tarsk"), "came as thinking.*without .* a reasoning parser"),
        (dict(content="", reasoning="Olin Tarsk"), "came as thinking"),
        (dict(content="<think>Olin Tarsk"), "came as thinking"),
        (dict(content=None, tool_calls=[dict(function=dict(name="search"))]), "has no text"),
        (dict(content=""), "the completion has no text"),
    ],
)
def test_an_empty_completion_says_what_came(message, says):
    with pytest.raises(CallFailed, match=says):
        _completions(body(message), REQUEST, 0.1)


def test_streams_are_refused_and_named(server):
    sent = []
    chat = OpenAIClient("m", server.url)

    async def send(path, body, *_):
        sent.append(body) or [].pop()

    chat.send = send
    with pytest.raises(IndexError):
        __import__("asyncio").run(chat.complete(REQUEST))
    assert sent[0]["stream"] is False
    with pytest.raises(CallFailed, match="doesn't stream"):
        _completions('data: {"choices": []}\n\n', REQUEST, 0.1)


@pytest.mark.parametrize(
    "said, advice",
    [
        ("max_tokens must be at least 16", "raise max_tokens"),
        ("max_tokens is too small", "raise max_tokens"),
        ("max_tokens is too large: 9999", "lower max_tokens"),
    ],
)
def test_the_advice_on_max_tokens_goes_the_right_way(said, advice):
    assert _refusal(400, said, "e")[1].startswith(advice)
