"Batches that a server has lost, and answers that contradict each other: nothing is blocked for good, and what was paid counts."

import asyncio, json

import pytest

from batch_server import BatchServer
from test_batch import ASK, TOPICS, asked, chat
from treekit.llm.batch_journal import Journal
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
