"Batches that a server has lost, and answers that contradict each other: nothing is blocked for good, and what was paid counts."

import asyncio, json

import pytest

from batch_server import BatchServer
from test_batch import ASK, TOPICS, asked, chat
from treekit.llm.batch_client import BatchClient
from treekit.llm.batch_journal import Journal
from treekit.llm.openai_client import NeverReached
from treekit.llm.batch_format import read_answers


@pytest.fixture
def server():
    with BatchServer() as server:
        yield server


def forget(server, **what):
    server._ask("/_forget", what)


def test_a_batch_that_is_lost_is_asked_again(server, tmp_path, capfd):
    "A run is stopped while its batch is under way; then the server knows nothing of that batch any more."
    server.script(seconds=600)
    journal = Journal(tmp_path / "j.sqlite")

    async def begin():
        one = chat(server, journal)
        tasks = [asyncio.create_task(one.complete(r)) for r in map(lambda t: ASK(topic=t), TOPICS[:3])]
        while not server.batches():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        for t in tasks:
            t.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await one.close()

    asyncio.run(begin())
    assert len(server.batches()) == 1
    forget(server, batches=True)
    server.script(seconds=0.0)
    got = asyncio.run(asked(chat(server, journal), TOPICS[:3]))
    assert all(not isinstance(c, Exception) and c[0].text for c in got), got
    assert len(server.batches()) == 1 and "404" in capfd.readouterr().err


def test_answers_whose_file_is_lost_are_asked_again(server, capfd):
    server.script(lost_files=4)  # the client tries four times
    got = asyncio.run(asked(chat(server, Journal(":memory:")), TOPICS[:3]))
    assert all(not isinstance(c, Exception) and c[0].text for c in got), got
    assert len(server.batches()) == 2 and "counts 3 more answers" in capfd.readouterr().err


def test_a_broken_upload_is_repeated_and_named_at_once(server, capfd):
    server.script(upload_faults=2)
    got = asyncio.run(asked(chat(server, Journal(":memory:")), TOPICS[:3]))
    assert all(not isinstance(c, Exception) and c[0].text for c in got), got
    said = capfd.readouterr().err
    assert (
        len(server.batches()) == 1
        and said.count("closed the connection") == 1
        and "tried again for up to 60 minutes" in said
    ), said


@pytest.mark.parametrize(
    "odd",
    [
        dict(half_files=2),
        dict(lost_files=1),
        dict(odd_states=["", "{}", "null", "<html>login</html>", '{"status": ']),
        dict(lost_states=3),  # a batch that is unknown for a moment: the list still shows it
        dict(batch_faults=[dict(kind="both", times=9)]),
    ],
)  # answered requests are in the file of errors, too, with status 500
def test_what_is_odd_or_read_by_half_is_read_again_and_not_bought_again(server, odd):
    server.script(**odd)
    got = asyncio.run(asked(chat(server, Journal(":memory:")), TOPICS[:3]))
    assert all(not isinstance(c, Exception) and c[0].text for c in got), got
    assert len(server.batches()) == 1


def test_no_server_is_waited_for_while_none_has_answered(tmp_path, monkeypatch):
    monkeypatch.setattr("treekit.llm.batch_client._START_SECONDS", 0.1)
    one = BatchClient("m", "http://127.0.0.1:9/v1", "k", journal=Journal(":memory:"), settle=0.05, poll=(0.05, 0.1))
    got = asyncio.run(asyncio.wait_for(asked(one, TOPICS[:2]), 10))
    assert all(isinstance(c, NeverReached) for c in got), got


def line(id, status, text=""):
    return json.dumps(dict(custom_id=id, response=dict(status_code=status, body=dict(text=text)), error=None))


def test_a_paid_answer_isnt_overridden():
    "Of two lines with one id, a 200 wins, wherever it is; of two 200s the first."
    for lines in (
        (line("a", 200, "paid"), line("a", 500)),
        (line("a", 500), line("a", 200, "paid")),
        (line("a", 200, "paid"), line("a", 200, "other")),
    ):
        found = read_answers("\n".join(lines))
        assert found["a"].status == 200 and "paid" in found["a"].body


def test_a_line_that_is_none_costs_no_other():
    odd = [
        line("b", float("inf")),
        "17",
        "[" * 100_000,
        '{"custom_id": [1], "response": {}}',
        line("c", "x"),
        '{"custom_id": "d',
    ]
    assert read_answers("\n".join([*odd, line("a", 200, "paid"), *odd])).keys() == {"a"}
