"Several servers as one endpoint: where requests go, who is left out, what each takes."
import asyncio, threading
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json

import pytest

from openai_server import Server
from treekit.config import Profile, UsageError
from treekit.core.fleet import Fleet, leave
from treekit.core.fleet_chat import FleetChat
from treekit.core.llm import CallFailed, Prompt
from treekit.core.prices import Price
from treekit.core.replies import TEXT
from treekit.core.store import Store
from treekit.core.stored_chat import StoredChat
from treekit.doctor import checks, preflight, same_model
from treekit.experiments.provide import chat_for

ASKED = Prompt("test.fleet", "answer", "Answer in one word.\n\n$question", TEXT)


@pytest.fixture
def servers():
    with ExitStack() as stack: yield [stack.enter_context(Server(latency=0.02)) for _ in range(3)]


def chat(servers, **more):
    return FleetChat("m", ", ".join(s.url for s in servers), **dict(concurrency=8, timeout=5, retries=3, pause=0.02) | more)


def ask_all(chat, numbers, **request):
    async def main():
        got = await asyncio.gather(*(chat.complete(ASKED(question=f"Number {i}?", **request)) for i in numbers), return_exceptions=True)
        found = chat.servers if isinstance(chat, FleetChat) else None
        await chat.close()
        return got, found
    return asyncio.run(main())


def test_limits_are_learned_for_each_server(servers):
    "One takes three at once, one takes six, one takes all: that is found, and hardly anything is refused."
    for server, limit in zip(servers, (3, 6, 99)): server.script(limit=limit)
    got, learned = ask_all(chat(servers), range(600))
    assert not any(isinstance(g, BaseException) for g in got)
    found = [int(s.learned.limit) for s in learned.values()]
    assert found[0] <= 5 and found[2] == 8, found  # at the end the queue is empty, and the last value is a trial
    answered, refused = [s.count for s in servers], [s.log()["refused"] for s in servers]
    assert sum(answered) == 600 and refused[2] == 0 and sum(refused) < 90, (answered, refused)
    shares = [n / sum(answered) * 17 for n in answered]
    assert shares[0] > 2 and shares[1] > 4.4 and shares[2] < 10.5, shares


def test_a_dead_server_is_left_out_and_taken_back(servers, capfd):
    servers[1].script(dead=True)
    fleet = chat(servers)
    async def main():
        first = await asyncio.gather(*(fleet.complete(ASKED(question=f"{i}?")) for i in range(200)))
        before = servers[1].count
        servers[1].script(dead=False)
        await asyncio.sleep(1.1)
        second = await asyncio.gather(*(fleet.complete(ASKED(question=f"{i} again?")) for i in range(200)))
        await fleet.close()
        return before, len(first) + len(second)
    before, answered = asyncio.run(main())
    assert answered == 400 and before == 0 and servers[1].count > 30
    said = capfd.readouterr().err.splitlines()
    assert [line.partition(" ")[2][:7] for line in said] == ["is left", "answers"], said


def test_what_is_billed_and_what_a_budget_holds_stay_right(servers, tmp_path):
    "Calls that fail over are recorded once, and what was set aside is free again."
    servers[0].script(faults=[dict(kind="500", times=5)])
    servers[1].script(limit=2)
    with Store(tmp_path / "s.sqlite") as store:
        stored = StoredChat(chat(servers), store, 5.0, {"m": Price(1.0, 1.0, 1.0)})
        got, _ = ask_all(stored, range(100))
        assert not any(isinstance(g, BaseException) for g in got) and stored.purse.held == 0
        [used] = store.usage(())
        assert used["calls"] == 100 and abs(used["cost_now"] - stored.purse.spent) < 1e-9
        assert sum(s.count for s in servers) == 105
        assert store.served("m", servers[0].url) == ("m",)
    with Store(tmp_path / "s.sqlite") as store:  # one server more, another order behind the first: all is found
        again = StoredChat(chat([servers[0], servers[2]]), store)
        ask_all(again, range(100))
    assert sum(s.count for s in servers) == 105


def test_all_dead_is_said_soon(servers):
    for server in servers: server.script(dead=True)
    got, _ = ask_all(chat(servers), range(30))
    assert all(isinstance(g, CallFailed) for g in got) and "closed the connection" in str(got[0])


def test_a_cancelled_turn_is_passed_on():
    async def main():
        fleet = Fleet(("a",), 1)
        held = await fleet.enter("x")
        waiting = [asyncio.ensure_future(fleet.enter("x")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        leave(fleet, held, fleet.clock(), seconds=0.1)
        waiting[1].cancel()
        await asyncio.sleep(0)
        got = await asyncio.wait_for(waiting[2], 1)
        leave(fleet, got, fleet.clock())
        return fleet.servers["a"].flying
    assert asyncio.run(main()) == 0


def test_the_profile_names_several(servers):
    listed = f"{servers[0].url} {servers[1].url},{servers[2].url}"
    profile = Profile("p", model="m", endpoint=listed)
    made = chat_for(profile)
    assert isinstance(made, FleetChat) and made.endpoint == servers[0].url and len(made.members) == 3
    assert type(chat_for(replace(profile, endpoint=servers[0].url))).__name__ == "OpenAIChat"
    with pytest.raises(UsageError, match="twice"): chat_for(replace(profile, endpoint="http://a/v1, http://a/v2"))


class _Models(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(dict(data=[self.server.model])).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass


def test_the_doctor_looks_at_all_of_them():
    "Another quantisation, or a shorter context, on one of the servers is said before anything is asked."
    with ExitStack() as stack:
        made = []
        for more in (dict(root="llama-fp16"), dict(root="llama-fp16"), dict(root="llama-awq")):
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), _Models))
            server.model = dict(id="m", max_model_len=9000, **more)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            made.append(server)
        urls = [f"http://127.0.0.1:{s.server_port}/v1" for s in made]
        alike, mixed = (Profile("p", model="m", endpoint=", ".join(us)) for us in (urls[:2], urls))
        assert "1 more" in same_model(alike, alike.servers)
        row = {what: (works, found) for what, works, found, _ in checks(mixed)}["model"]
        assert row[0] is False and "llama-awq" in row[1]
        with pytest.raises(UsageError, match="different models"): preflight(mixed, [])
        preflight(alike, [])
