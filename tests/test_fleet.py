"Several servers as one endpoint: where requests go, who is left out, what each takes."
import asyncio, threading, time
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import json

import pytest

from openai_server import Server
from virtual_time import run as run_virtually
from treekit.config import Profile, UsageError
from treekit.llm.load_balancer import ServerPool
from treekit.llm.balanced_client import BalancedClient
from treekit.core.prompts import CallFailed, Prompt
from treekit.llm.prices import Price
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
from treekit.artefacts.environment_check import checks, preflight, same_model
from treekit.experiments.resources import chat_for

ASKED = Prompt("test.fleet", "answer", "Answer in one word.\n\n$question", TEXT)


@pytest.fixture
def servers():
    with ExitStack() as stack: yield [stack.enter_context(Server(latency=0.02)) for _ in range(3)]


def chat(servers, **more):
    return BalancedClient("m", ", ".join(s.url for s in servers), **dict(concurrency=8, timeout=5, retries=3, pause=0.02) | more)


def ask_all(chat, numbers, **request):
    async def main():
        got = await asyncio.gather(*(chat.complete(ASKED(question=f"Number {i}?", **request)) for i in numbers), return_exceptions=True)
        found = chat.servers if isinstance(chat, BalancedClient) else None
        await chat.close()
        return got, found
    return asyncio.run(main())


class Counted:
    "A server of virtual time: it takes so many calls at once, and refuses what is beyond."
    def __init__(self, limit, latency=0.02): self.limit, self.latency, self.open, self.answered, self.refused = limit, latency, 0, 0, 0

    async def call(self):
        if self.open == self.limit:
            self.refused += 1
            raise CallFailed("rate limit", "slow down", "")
        self.open += 1
        await asyncio.sleep(self.latency)
        self.open -= 1
        self.answered += 1


async def asked_until_answered(fleet, servers, i):
    "As `BalancedClient` asks."
    refusals = 0
    while True:
        server = await fleet.enter(f"beginning {i % 7}")
        began, failed, took = fleet.clock(), None, None
        try:
            await servers[server.name].call()
            took = fleet.clock() - began
        except CallFailed as e: failed, refusals = e, refusals + 1
        finally: fleet.leave(server, began, failed, took, refusals - 1)
        if not failed: return


def test_limits_are_learned_for_each_server():
    "One takes three at once, one takes six, one takes all: that is found, and hardly anything is refused. The clock is virtual."
    servers = dict(three=Counted(3), six=Counted(6), all=Counted(99))
    async def main():
        fleet = ServerPool(tuple(servers), 8, clock=asyncio.get_running_loop().time)
        waiting = [asyncio.create_task(asked_until_answered(fleet, servers, i)) for i in range(2000)]
        found = []
        while not all(t.done() for t in waiting):
            await asyncio.sleep(0.1)
            found.append([int(s.learned) for s in fleet.servers.values()])
        await asyncio.gather(*waiting)
        return found
    found, seconds = run_virtually(main())
    assert [s.answered for s in servers.values()][2] == pytest.approx(2000 * 8 / 17, rel=0.06)
    assert sum(s.answered for s in servers.values()) == 2000 and servers["all"].refused == 0
    assert sum(s.refused for s in servers.values()) < 0.1 * 2000
    assert seconds < 1.1 * 2000 * 0.02 / (3 + 6 + 8)  # the ideal: each server is always as full as it may be
    settled = found[5:-2]
    assert all(three <= 4 and 4 <= six <= 7 and most == 8 for three, six, most in settled), settled


@pytest.mark.slow
def test_limits_are_learned_over_sockets(servers):
    "The same with real servers: what holds however busy the machine is."
    for server, limit in zip(servers, (3, 6, 99)): server.script(limit=limit)
    got, learned = ask_all(chat(servers), range(200))
    assert not any(isinstance(g, BaseException) for g in got)
    assert sum(s.count for s in servers) == 200 and servers[2].log()["refused"] == 0
    assert all(int(s.learned) <= most for s, most in zip(learned.values(), (5, 8, 8)))


@pytest.mark.long
def test_a_dead_server_is_left_out_and_taken_back(servers, capfd):
    servers[1].script(dead=True)
    fleet = chat(servers)
    async def main():
        first = await asyncio.gather(*(fleet.complete(ASKED(question=f"{i}?")) for i in range(200)))
        before = servers[1].count
        servers[1].script(dead=False)
        until, again = time.monotonic() + 60, 0
        while not servers[1].count and time.monotonic() < until:  # it is tried after one second, or two, four …, by how long the first took
            await asyncio.sleep(0.2)
            await asyncio.gather(*(fleet.complete(ASKED(question=f"{again + i} again?")) for i in range(20)))
            again += 20
        back = servers[1].count
        second = await asyncio.gather(*(fleet.complete(ASKED(question=f"{i} at last?")) for i in range(200)))
        await fleet.close()
        return before, back, again, len(first) + len(second)
    before, back, again, answered = asyncio.run(main())
    assert answered == 400 and before == 0 and back > 0 and servers[1].count - back > 30
    assert sum(s.count for s in servers) == answered + again
    said = capfd.readouterr().err.splitlines()
    assert [line.partition(" ")[2][:7] for line in said] == ["is left", "answers"], said


def test_what_is_billed_and_what_a_budget_holds_stay_right(servers, tmp_path):
    "Calls that fail over are recorded once, and what was set aside is free again."
    servers[0].script(faults=[dict(kind="500", times=5)])
    servers[1].script(limit=2)
    with Store(tmp_path / "s.sqlite") as store:
        stored = CachedClient(chat(servers), store, 5.0, {"m": Price(1.0, 1.0, 1.0)})
        got, _ = ask_all(stored, range(100))
        assert not any(isinstance(g, BaseException) for g in got) and stored.budget.reserved == 0
        [used] = store.usage(())
        assert used["calls"] == 100 and abs(used["cost_now"] - stored.budget.spent) < 1e-9
        assert sum(s.count for s in servers) == 105
        assert store.served("m", servers[0].url) == ("m",)
    with Store(tmp_path / "s.sqlite") as store:  # one server more, another order behind the first: all is found
        again = CachedClient(chat([servers[0], servers[2]]), store)
        ask_all(again, range(100))
    assert sum(s.count for s in servers) == 105


def test_all_dead_is_said_soon(servers):
    for server in servers: server.script(dead=True)
    got, _ = ask_all(chat(servers), range(30))
    assert all(isinstance(g, CallFailed) for g in got) and "closed the connection" in str(got[0])


def test_a_cancelled_turn_is_passed_on():
    async def main():
        fleet = ServerPool(("a",), 1)
        held = await fleet.enter("x")
        waiting = [asyncio.ensure_future(fleet.enter("x")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        fleet.leave(held, fleet.clock(), seconds=0.1)
        waiting[1].cancel()
        await asyncio.sleep(0)
        got = await asyncio.wait_for(waiting[2], 1)
        fleet.leave(got, fleet.clock())
        return fleet.servers["a"].flying
    assert asyncio.run(main()) == 0


def test_the_profile_names_several(servers):
    listed = f"{servers[0].url} {servers[1].url},{servers[2].url}"
    profile = Profile("p", model="m", endpoint=listed)
    made = chat_for(profile)
    assert isinstance(made, BalancedClient) and made.endpoint == servers[0].url and len(made.connections) == 3
    assert type(chat_for(replace(profile, endpoint=servers[0].url))).__name__ == "OpenAIClient"
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


def test_servers_that_disagree_are_noticed(servers):
    "The same name, other replies: one short request is compared."
    from treekit.artefacts.environment_check import canary
    pool = servers[:2]
    profile = Profile("pool", "m", ", ".join(s.url for s in pool))
    assert canary(profile, profile.servers) == ""
    pool[1].script(rules=[["Count from one", "one, two, 3"]])
    said = canary(profile, profile.servers)
    assert "reply differently" in said and "one, two, 3" in said and "\n" not in said
    pool[1].script(dead=True)
    assert canary(profile, profile.servers) == ""  # it doesn't answer, which other checks say
    pool[1].reset(dead=False)
