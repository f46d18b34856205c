"How a run uses the places that a limit gives, on a virtual clock: no place is empty while somebody could use it."

import asyncio

import pytest

import batch_worker, virtual_time
from treekit.config import load_profile
from treekit.core.prompts import Completion, Limiter
from treekit.store.run_store import Store
from treekit.experiments.resources import LazyRetriever, load, load_corpus
from treekit.experiments.run import run
from treekit.papers.arise.method import ARISE
from treekit.retrieval.bm25 import BM25

LIMIT = 16


class Slow:
    "A model that takes a virtual second for each call."

    model, endpoint, defaults, calls_before_send = (
        "slow",
        "offline:virtual",
        dict(temperature=0.0, max_tokens=100),
        True,
    )

    def __init__(self):
        self.limiter, self.began = Limiter(LIMIT), []

    async def complete(self, request):
        async with self.limiter(request.priority):
            if request.before_send:
                await request.before_send()
            self.began.append(asyncio.get_running_loop().time())
            await asyncio.sleep(1.0)
        said = batch_worker.reply(dict(messages=request.messages, n=request.n))
        return [Completion(text, 10, 5) for text in (said if isinstance(said, (list, tuple)) else [said] * request.n)][
            : request.n
        ]

    async def close(self):
        self.end = asyncio.get_running_loop().time()


@pytest.mark.slow
def test_fifty_questions_take_calls_over_limit(monkeypatch):
    "Whoever has the most calls still to come goes first, so the last rounds are full, too: within two per cent."
    monkeypatch.setattr(asyncio.events, "new_event_loop", virtual_time.VirtualLoop)
    profile = load_profile(
        "local", endpoint="http://localhost/v1", concurrency=LIMIT, data="synthetic", retriever="bm25s"
    )
    index, chat = BM25(load_corpus("musique", "synthetic")), Slow()
    results = run(
        {"one": ARISE(iterations=2, depth=3, scorer="guess")},
        {"musique": load("musique", "synthetic", n=50)},
        profile,
        chat=chat,
        store=Store(),
        progress=False,
        corpora={"musique": LazyRetriever(lambda: index, "world", "the world")},
    )
    calls = len(chat.began)
    assert not results.failures and calls > 500
    print(f"\n{calls} calls: {chat.end:.2f} s, {chat.end / (calls / LIMIT):.4f} of calls / limit", end="")
    assert chat.end <= 1.02 * calls / LIMIT
