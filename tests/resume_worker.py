"A whole run, in a process of its own to be killed."

import asyncio, threading
from dataclasses import dataclass

from tqdm import tqdm
from treekit.config import load_profile
from treekit.core.types import Passage, Question
from treekit.experiments.resources import LazyRetriever
from treekit.core.prompts import Prompt
from treekit.core.output_parsers import FINAL, TEXT
from treekit.core.method import Prediction
from treekit.figures.tables import save_table
from treekit.figures.verdicts import compare, published
from treekit.retrieval.bm25 import BM25
from treekit.experiments.run import run
from treekit.store.run_store import Store

PART = Prompt("resume/part", "subanswers", "$documents\n\nSay one sentence about part $part of: $question", TEXT)
WHOLE = Prompt("resume/whole", "answer", "$documents\n\nEvidence: $evidence\nQuestion: $question\nFINAL:", FINAL)
PAGES = [Passage(f"p{i}", f"Film {i}", f"Film {i} was made by Lio{i} Vant in Port{i % 7} Essel.") for i in range(40)]


@dataclass(frozen=True)
class Flat:
    async def __call__(self, question, context):
        [hits] = await context.retrieve([question.question], 3)
        value = await context.ask(
            WHOLE,
            node=context.trace.add("answer", "..."),
            question=question.question,
            documents=[h.passage for h in hits],
            evidence="none",
        )
        return Prediction(value["answer"], context.trace, context.usage)


@dataclass(frozen=True)
class Tree:
    "Three leaves at once, then what is above them."

    async def __call__(self, question, context):
        [hits] = await context.retrieve([question.question], 3)
        pages, root = [h.passage for h in hits], context.trace.add("answer", "...")

        async def leaf(i):
            return await context.ask(
                PART,
                node=context.trace.add("part", str(i), root),
                part=str(i),
                question=question.question,
                documents=pages,
            )

        evidence = await asyncio.gather(*map(leaf, range(3)))
        value = await context.ask(
            WHOLE, node=root, question=question.question, documents=pages, evidence=" ".join(evidence)
        )
        return Prediction(value["answer"], context.trace, context.usage)


def main(endpoint, store, folder, n):
    tqdm.set_lock(threading.RLock())  # its own is for several processes, and one that is killed leaves it behind
    profile = load_profile("local", endpoint=endpoint, concurrency=4)
    asked = [
        Question(f"q{i}", "hotpotqa", f"Who made Film {i}, and where?", (f"Lio{i} Vant", f"Port{i % 7}"))
        for i in range(n)
    ]
    results = run(
        {"zero-shot": Flat(), "TreeRare (DT)": Tree()},
        {"hotpotqa": asked},
        profile,
        corpora={"hotpotqa": LazyRetriever(lambda: BM25(PAGES), "pages")},
        store=Store(store),
        progress=False,
    )
    import pandas as pd  # late: most of these processes are killed before

    save_table(
        compare(published("treerare", "table1"), results.score("COVER-EM"), model=results.model), folder, "table"
    )
    save_table(pd.DataFrame(results.cost()), folder, "cost")
    shown = [
        {k: v for k, v in r.record().items() if k not in ("seconds", "hits")} | dict(trace=str(r.trace))
        for r in results.rows
    ]
    save_table(pd.DataFrame(shown), folder, "rows")
