"The store against a real socket: deduplicated calls, errors, budget, cassettes, secrets."

import asyncio, sqlite3, zlib

import pytest

from treekit.config import Profile, UsageError
from treekit.core.prompts import CallFailed
from treekit.llm.openai_client import OpenAIClient
from treekit.llm.prices import BudgetExceeded, load_prices
from treekit.store.run_store import Store, keys
from treekit.llm.cached_client import NotOnCassette, ReplayClient, CachedClient
from workers import asked, chat


def run(stored, *requests):
    async def main():
        try:
            return await asyncio.gather(*(stored.complete(r) for r in requests))
        finally:
            await stored.close()

    return asyncio.run(main())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.sqlite"


def test_one_call_however_many_coroutines_ask(server, path):
    server.script(latency=0.1)
    stored = chat(path, server.url)
    replies = run(stored, *[asked(question="Where is Lyon?")] * 50)
    assert (
        server.count == 1
        and len({r[0].text for r in replies}) == 1
        and (stored.totals.calls, stored.totals.hits) == (50, 49)
    )
    again = chat(path, server.url)
    assert run(again, asked(question="Where is Lyon?"))[0][0].text == replies[0][0].text
    assert server.count == 1 and again.totals.money == 0
    (usage,) = again.store.usage(by=("model",))
    assert usage["cost_original"] == usage["cost_now"] > 0 and usage["model"] == "gpt-4o-mini"
    assert again.store.usage(by=(), run=again.store.run)[0] | dict(tokens_in=0, tokens_out=0) == dict(
        calls=1, hits=1, failed=0, tokens_in=0, tokens_out=0, cost_original=usage["cost_original"], cost_now=0
    )


def test_overlapping_samples_are_paid_once(server, path):
    server.script(latency=0.05, reply="scripted:numbered")
    stored = chat(path, server.url)
    replies = run(stored, *(asked(question="Where?", n=n, sample=s) for n, s in ((2, 0), (5, 0), (1, 1), (3, 4))))
    assert sum(r["n"] or 1 for r in server.requests) == 7  # samples 0 to 6
    texts = [[c.text for c in some] for some in replies]
    assert texts[0] == texts[1][:2] and texts[2] == texts[0][1:] and texts[3][0] == texts[1][4]
    assert [[c.tokens_in for c in some] for some in replies] == [
        [1] + [0] * (len(some) - 1) for some in replies
    ]  # a prompt of one word


def test_an_error_is_never_stored(server, path):
    server.script(faults=[dict(kind="500", times=3)])
    stored = chat(path, server.url)
    with pytest.raises(CallFailed):
        run(stored, *[asked(question="Where?")] * 3)  # one call, and all who wait hear of it
    assert server.count == 3
    assert run(stored, asked(question="Where?")) and server.count == 4
    used = stored.store.usage(by=())[0]
    assert (used["calls"], used["hits"], used["failed"]) == (1, 0, 0)  # it was had in the end


def cost(server):
    "What the server would have charged, in dollars."
    return sum((r["tokens"][0] * 0.15 + r["tokens"][1] * 0.60) / 1e6 for r in server.requests if r.get("tokens"))


def test_a_budget_stops_before_it_is_exceeded_and_a_larger_one_goes_on(server, path):
    server.script(latency=0.02)
    requests = [asked(question=f"Where is {i}? " + "word " * 50, max_tokens=20) for i in range(60)]

    async def as_far_as_it_goes(stored):
        results = await asyncio.gather(*(stored.complete(r) for r in requests), return_exceptions=True)
        await stored.close()
        return results

    poor = chat(path, server.url, budget=0.0002)
    results = asyncio.run(as_far_as_it_goes(poor))
    refused = [r for r in results if isinstance(r, BudgetExceeded)]
    assert 0 < len(refused) < 60 and len(refused) + sum(isinstance(r, list) for r in results) == 60
    # it is used up, as far as the bound on the last call lets it
    assert 0.00013 < poor.budget.spent <= 0.0002 and poor.budget.reserved == 0
    assert cost(server) == pytest.approx(poor.budget.spent)
    before = server.count
    assert before == 60 - len(refused)
    rich = chat(path, server.url, budget=0.001)
    assert all(isinstance(r, list) for r in asyncio.run(as_far_as_it_goes(rich))) and server.count == 60
    assert rich.totals.hits == before and rich.totals.money == pytest.approx(cost(server) - poor.budget.spent)


def test_a_budget_needs_a_price(server, path):
    with pytest.raises(UsageError, match="data/prices.csv"):
        CachedClient(OpenAIClient("own-model", server.url), Store(path), budget=1)
    assert CachedClient(OpenAIClient("own-model", server.url), Store(path)).totals.money is None
    header = "model,input,cached_input,output,currency,date,source\n"
    for name, text in dict(currency=f"{header}m,1,1,1,EUR,,\n", number=f"{header}m,1,x,1,USD,,\n").items():
        (path.parent / "p.csv").write_text(text)
        with pytest.raises(UsageError, match="line 2"):
            load_prices(path.parent / "p.csv")


def test_no_secret_enters(server, path, tmp_path):
    key = "-".join(("sk", "secret", "0123456789"))  # made up
    url = server.url.replace("http://", "http://ann:hunter22@") + "/?token=hunter33"
    server.script(faults=[dict(kind="401", message=f"wrong key {key}", match="fails", times=1)])
    stored = CachedClient(OpenAIClient("gpt-4o-mini", url.split("/?")[0], key, retries=0), Store(path))
    run(stored, asked(question="Where?"))
    with pytest.raises(CallFailed):
        run(stored, asked(question="fails"))
    tape = stored.store.pack(tmp_path / "tape")
    bodies = b"".join(zlib.decompress(row[0]) for row in stored.store.db.execute("SELECT body FROM requests"))
    everything = bodies + b"".join(f.read_bytes() for f in tmp_path.iterdir())
    assert b"hunter" not in everything and b"secret-0123" not in everything and b"Where?" in bodies and tape.exists()
    assert keys(asked(question="Where?"), "m", url) == keys(asked(question="Where?"), "m", server.url)


def test_what_is_no_store_is_left_alone(path):
    for content in (b"Dear Ann, " * 500, b"SQLite format 3\0" + b"x" * 5000):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="choose another file"):
            Store(path)
        with pytest.raises(UsageError, match="cassette"):
            Store.replay(path)
        assert path.read_bytes() == content
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(UsageError, match="not a store"):
        Store(path)
    path.unlink()
    with Store(path) as store:
        store.db.execute("PRAGMA user_version=99")
    with pytest.raises(UsageError, match="version 99"):
        Store(path)
    with pytest.raises(UsageError, match="no column named 'metod'"):
        Store().usage(by=("metod",))


def test_a_cassette_replays_without_key_and_server(server, path, tmp_path):
    stored = chat(path, server.url)
    view = stored.bind(method="m", dataset="d", question="q")
    requests = [asked(question=f"Where is {i}?", n=2, temperature=0.5) for i in range(5)]
    replies = run(view, *requests)
    stored.store.put_prediction("p", dict(answer="Lyon"))
    tape = stored.store.pack(tmp_path / "run.treekit")
    content = tape.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("run.")) == ["run.treekit"]
    tape.chmod(0o444)
    replayed = Store.replay(tape)
    elsewhere = Profile("x", model="gpt-4o-mini", endpoint="http://elsewhere/v1")
    chat_again = CachedClient(ReplayClient.of(elsewhere, replayed), replayed).bind(
        method="m", dataset="d", question="q"
    )
    assert run(chat_again, *requests) == replies
    assert replayed.get_prediction("p") is None
    same = ("calls", "tokens_in", "tokens_out", "cost_original")
    assert [[u[k] for k in same] for u in replayed.usage()] == [[u[k] for k in same] for u in stored.store.usage()]
    with pytest.raises(NotOnCassette, match="test.store.*gpt-4o-mini|gpt-4o-mini.*test.store"):
        run(chat_again, asked(question="Who?"))
    assert tape.read_bytes() == content and server.count == 5
