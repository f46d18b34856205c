"Failed questions: shared as failures, shown with their reasons, no base for statistics; and a server that refuses everything is left soon."

import asyncio, csv, json, re
from dataclasses import dataclass

import pytest

from commands import inside
from fakes import FakeChat
from test_cli import clone, small_clone  # noqa: F401 (a fixture)
from openai_server import Server
from treekit.config import Profile, UsageError
from treekit.core.method import Prediction
from treekit.core.prompts import CallFailed, Prompt, Request
from treekit.core.output_parsers import FINAL
from treekit.core.types import Passage, Question
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.llm.openai_client import OpenAIClient
from treekit.store.run_store import Store

asked = Prompt("test.failures", "answer", "$question", FINAL)
QUESTIONS = [Question(f"q{i}", "d", f"Who made film number {i}?", ("Ada",)) for i in range(60)]
REFUSED = "the server answered 400: odd request"


@dataclass(frozen=True)
class Ask:
    "A method that puts a question, with a word before it."

    word: str

    async def __call__(self, question, context):
        value = await context.ask(asked, question=f"{self.word}: {question.question}")
        return Prediction(value["answer"], context.trace, context.usage)


def go(chat, store, words=("one", "other"), n=60, **more):
    corpus = {"d": [Passage("p", "Ada", "Ada made films.")]}
    return run(
        {w: Ask(w) for w in words},
        {"d": QUESTIONS[:n]},
        Profile("p", concurrency=4),
        corpora=corpus,
        store=store,
        chat=chat,
        progress=False,
        **more,
    )


def refuse(word, kind="refused"):
    def says(request):
        if not request.text.startswith(word):
            return "FINAL: Ada"
        raise CallFailed(kind, "127.0.0.1:80 answered 400: odd request", "change it", again=False)

    return FakeChat(says)


def test_a_run_without_a_network_ends_at_its_first_calls():
    "No server has responded yet: the first call ends the run, with what to do. A connection that is lost later is a failure of a question."
    chat = OpenAIClient("m", "http://127.0.0.1:9/v1", retries=9, pause=0.05)
    with (
        Store() as store,
        pytest.raises(UsageError, match=r"no connection to 127.0.0.1:9 .*\(tried 3 times\); check the network.*curl"),
    ):
        go(chat, store)
    with Server() as server:
        asyncio.run(answered_once(lost := OpenAIClient("m", server.url, retries=4, pause=0.01)))
    with Store() as store:
        results = go(lost, store, n=2)
    assert [r.error.count("tried 5 times") for r in results.rows] == [1] * 4


async def answered_once(chat):
    await chat.complete(Request((dict(role="user", content="Who?"),)))
    await chat.close()


def test_a_failure_is_stored_and_goes_when_the_question_has_an_answer():
    with Store() as store:
        go(refuse("other", "server"), store, n=5)
        assert len(store.failures()) == 5
        assert not go(FakeChat("FINAL: Ada"), store, n=5).failures and store.failures() == {}


def test_a_row_of_failures_says_so_in_the_table():
    "Its zeros are no result: they are marked, never in bold, and the most frequent reason is below; a gain counts all its rows' questions."
    from treekit.figures.tables import to_markdown
    from treekit.figures.verdicts import compare, published, relative_improvement

    def row(method, value, failed):
        why = dict(reason=f"failed: {failed} of 60 questions, most often with {REFUSED}") if failed else {}
        return (
            dict(
                method=method,
                dataset="hotpotqa",
                metric="COVER-EM",
                n=60,
                failures=failed,
                value=value,
                low=None,
                high=None,
            )
            | why
        )

    def pages(*rows):
        gain = relative_improvement([*rows], ["TreeRare (DT)"], ["zero-shot", "few-shot"])
        table = compare(published("treerare", "table1"), [*rows, *gain], model="m")
        return to_markdown(table)

    ours, few = row("TreeRare (DT)", 0.9, 30), row("few-shot", 0.0, 60)
    zero, cot = row("zero-shot", 0.5, 0), row("COT (zero-shot)", 0.4, 0)
    page = pages(ours, zero, few, cot)
    assert all(text in page for text in ("0.900 (failed)", "0.000 (failed)", "(failed): so many", REFUSED)), page
    assert "90 of 180 questions failed" in page and "0.500 (failed)" not in page and "**0.500**" in page
    assert "(failed)" not in pages(ours | dict(failures=0, reason=""), zero, few | dict(failures=0, reason=""))


@pytest.mark.slow
def test_a_run_with_failed_questions_is_packed_and_replayed(clone, server, tmp_path):  # noqa: F811
    odd = "|".join(re.escape(q.question) for q in load("hotpotqa", n=12)[3:5])  # two of the notebook's questions
    server.script(faults=[dict(kind="400", match=odd, times=999, message="odd request")])
    words = ("--profile", "local", "--set", f"endpoint={server.url}", "--set", "api_key_env=LAB_KEY", "--set", "n=12")
    mine = dict(cwd=clone, LAB_KEY="x")  # who replays or verifies needs no key
    code, out, err = inside("reproduce", "treerare/table1", *words, "--budget", "none", **mine)
    assert code == 1 and f"    2 × {REFUSED}" in out, out + err
    [table] = (clone / "figures").glob("local*/treerare/table1.csv")
    with open(table, newline="") as f:
        ran = [r for r in csv.DictReader(f) if r["reproduced"]]
    assert ran and all(REFUSED in r["reason"] and r["verdict"] == "not comparable" for r in ran)
    count = server.count
    tape = tmp_path / "some.cassette"
    code, out, err = inside("cassette", "pack", tape, "treerare/table1", *words, "--json", **mine)
    assert code == 0 and server.count == count, out + err
    with Store.replay(tape) as packed:  # failures are no calls
        assert packed.query("SELECT COUNT(*) FROM calls") == [(json.loads(out)["calls"],)]
    code, out, err = inside(
        "cassette", "replay", tape, "--out", tmp_path / "out", cwd=clone, TREEKIT_HOME=str(tmp_path / "home")
    )
    assert code == 1 and "2 questions failed" in out, out + err
    for ending in (".csv", ".md"):  # a page doesn't name what only calls need
        assert (tmp_path / "out/treerare/table1").with_suffix(ending).read_bytes() == table.with_suffix(
            ending
        ).read_bytes()
    code, out, err = inside("reproduce", "treerare/table1", *words, **mine)  # they are tried again
    assert code == 1 and server.count == count + 2
