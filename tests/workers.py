"What the tests run in processes of their own, started by `multiprocessing`'s forkserver, which has the modules loaded already."

import asyncio, multiprocessing

from treekit.core.prompts import Prompt
from treekit.llm.openai_client import OpenAIClient
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient

asked = Prompt("test.store", "answer", "$question", TEXT)
processes = multiprocessing.get_context("forkserver")
# what takes long to import
processes.set_forkserver_preload(
    [
        "openai.types.chat",
        "httpx2",
        "httpcore2",
        "pandas",
        "treekit.core.prompts",
        "treekit.store.run_store",
        "treekit.experiments.run",
        "treekit.figures.verdicts",
        "treekit.retrieval.dense",
    ]
)


def chat(path, url, budget=None, **more):
    return CachedClient(
        OpenAIClient("gpt-4o-mini", url, **dict(timeout=20, retries=2, pause=0.01) | more), Store(path), budget
    )


async def answer(stored, number):
    "A question as a method asks it: three calls, two of them at once, and a prediction."
    key = f"prediction {number}"
    if stored.store.get_prediction(key):
        return
    view = stored.bind(method="two-steps", dataset="test", question=number)
    (first,) = await view.complete(asked(question=f"First step of {number}?"))
    rest = await asyncio.gather(
        view.complete(asked(question=f"Then {number}, {first.text}", n=2, temperature=1)),
        view.complete(asked(question=f"Also {number % 7}?")),
    )
    stored.store.put_prediction(key, dict(answer=rest[0][1].text, trace=[c.text for r in rest for c in r]))


def run_all(path, url, questions):
    "A run that can be killed anywhere and started again."

    async def main():
        stored = chat(path, url, concurrency=4)
        await asyncio.gather(*(answer(stored, number) for number in range(questions)))
        await stored.close()
        stored.store.close()

    asyncio.run(main())
