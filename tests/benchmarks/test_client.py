"""How much the client and the store add to a server's latency, and what the store's reads and writes take.

    pytest tests/benchmarks/test_client.py -s

The server runs in its own process with 100 ms a call; prompts have 10 KB. A ratio of 1 is a client that takes no time.
Each ratio is the best of three, since other work on the machine can only add to it.
"""

import asyncio, json, random, sqlite3, sys, time, zlib
from pathlib import Path

import openai
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from openai_server import Server
from speed import enough
from treekit.core.prompts import Completion, Prompt
from treekit.llm.openai_client import OpenAIClient
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient

LATENCY, CHAIN, MANY, LIMIT = 0.1, 20, 650, 16
asked = Prompt("benchmark", "answer", "$question\n\n$documents", TEXT)
rng = random.Random(0)
words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(5000)]
documents = [" ".join(rng.choices(words, k=110)) for _ in range(15)]


@pytest.fixture(scope="module")
def server():
    with Server(latency=LATENCY) as server:
        yield server


def best(measure, times=3):
    return min(measure(i) for i in range(times))


def stored(server, path):
    return CachedClient(OpenAIClient("gpt-4o-mini", server.url, concurrency=LIMIT), Store(path))


def test_a_chain_of_calls(server, tmp_path):
    def measure(i):
        async def main():
            chat = stored(server, tmp_path / f"chain{i}.sqlite")
            began = time.perf_counter()
            for step in range(CHAIN):
                await chat.complete(asked(question=f"Chain {i}, step {step}?", documents=documents))
            took = time.perf_counter() - began
            await chat.close()
            return took / (CHAIN * LATENCY)

        return asyncio.run(main())

    ratio = best(measure)
    print(f"\nchain of {CHAIN} calls: {ratio:.3f} of calls × latency")
    assert ratio <= 1.10


def test_many_calls_under_one_limit(server, tmp_path):
    "Beside the `openai` package alone, whose own work is most of what a call takes."

    async def bare():
        client, free = openai.AsyncOpenAI(base_url=server.url, api_key="-", max_retries=0), asyncio.Semaphore(LIMIT)

        async def one(n):
            message = dict(role="user", content=f"Many {n}?\n\n" + "\n".join(documents))
            async with free:
                await client.chat.completions.create(
                    model="gpt-4o-mini", messages=[message], temperature=0.0, max_tokens=100
                )

        began = time.perf_counter()
        await asyncio.gather(*map(one, range(MANY)))
        took = time.perf_counter() - began
        await client.close()
        return took / (MANY * LATENCY / LIMIT)

    def measure(i):
        async def main():
            chat = stored(server, tmp_path / f"many{i}.sqlite")
            requests = [asked(question=f"Many {i}, {n}?", documents=documents) for n in range(MANY)]
            began, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*(chat.complete(r) for r in requests))
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
            await chat.close()
            print(f"  client: {cpu / MANY * 1e3:.2f} ms of CPU per call")
            return took / (MANY * LATENCY / LIMIT)

        return asyncio.run(main())

    alone, ratio = best(lambda _: asyncio.run(bare())), best(measure)
    print(
        f"{MANY} calls at limit {LIMIT}: {ratio:.3f} of calls × latency / limit; the openai package alone {alone:.3f}"
    )
    assert server.most_at_once == LIMIT
    enough(alone / ratio, 0.8)


class Instant:
    model, endpoint, defaults = "gpt-4o-mini", "http://localhost/v1", dict(temperature=0.0, max_tokens=100)

    async def complete(self, request):
        return [Completion("Lyon is a city. " * 5, 100, 20)]


def test_the_store_alone(tmp_path):
    "Writes and reads through `CachedClient`, beside reading the same number of bytes from SQLite by key."
    store, n = Store(tmp_path / "s.sqlite"), 3000
    chat = CachedClient(Instant(), store)
    requests = [asked(question=f"{i}?", documents=documents) for i in range(n)]
    row = dict(
        question="q",
        answer="Lyon",
        trace=dict(nodes=[dict(id=i, kind="phrase", text=d, calls=["0" * 64]) for i, d in enumerate(documents)]),
    )

    async def all_of_them():
        began = time.perf_counter()
        for request in requests:
            await chat.complete(request)
        return (time.perf_counter() - began) / n

    def timed(each):
        began = time.perf_counter()
        for i in range(n):
            each(str(i))
        return (time.perf_counter() - began) / n

    write, read = asyncio.run(all_of_them()), best(lambda _: asyncio.run(all_of_them()))
    put = timed(lambda key: store.put_prediction(key, row))
    get, lean = (
        best(lambda _: timed(store.get_prediction)),
        best(lambda _: timed(lambda key: store.get_prediction(key, trace=False))),
    )
    bare = sqlite3.connect(tmp_path / "bare.sqlite")
    bare.execute("CREATE TABLE t (key TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID")
    body = zlib.compress(json.dumps(row).encode())
    bare.executemany("INSERT INTO t VALUES (?, ?)", [(str(i), body) for i in range(n)])

    def fetched(key):
        return json.loads(zlib.decompress(bare.execute("SELECT body FROM t WHERE key = ?", (key,)).fetchone()[0]))

    plain = best(lambda _: timed(fetched))
    print(
        f"\nper call: written in {write * 1e6:.0f} µs, read in {read * 1e6:.0f} µs; per prediction (10 KB of trace): "
        f"written in {put * 1e6:.0f} µs, read in {get * 1e6:.0f} µs, without its trace in {lean * 1e6:.0f} µs; "
        f"SQLite alone {plain * 1e6:.0f} µs"
    )
    enough(plain / read, 0.2)
    enough(plain / lean, 0.5)
