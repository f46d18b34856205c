"One worker of a run, or all of it, in a process of its own: `python share_worker.py ENDPOINT STORE N CONCURRENCY [SHARE]`."
import os, sys
from dataclasses import dataclass

from treekit.config import RunOptions, load_profile, run_options
from treekit.core.prompts import Prompt
from treekit.core.method import Prediction
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store
from treekit.core.types import Passage, Question
from treekit.experiments.resources import LazyRetriever
from treekit.experiments.run import run
from treekit.retrieval.bm25 import BM25

FIRST = Prompt("share/first", "answer", "Read the question and say what it needs.\n\n$question", TEXT)
THEN = Prompt("share/then", "answer", "Answer in one sentence.\n\nKnown: $known\nQuestion: $question ($wording)", TEXT)
PAGES = [Passage(f"p{i}", f"Film {i}", f"Film {i} was made by Lio{i} Vant.") for i in range(40)]


@dataclass(frozen=True)
class TwoSteps:
    "What the question needs, which all of its kind ask alike, and then an answer in its own wording."
    wording: str = "plain"

    async def __call__(self, question, context):
        first = await context.ask(FIRST, node=context.trace.add("part", "..."), priority=1, question=question.question)
        node = context.trace.add("answer", "...")
        then = await context.ask(THEN, node=node, known=first, question=question.question, wording=self.wording)
        return Prediction(then, context.trace, context.usage)


METHODS = {"TreeRare (DT)": TwoSteps("plain"), "TreeRare (CT)": TwoSteps("careful")}  # five calls for two questions less one: three each


def asked(n): return [Question(f"q{i}", "hotpotqa", f"Who made Film {i}, and where did they live?", (f"Lio{i} Vant",)) for i in range(n)]


def main(endpoint, store, n, concurrency, share=None):
    paid = dict(model=os.environ.get("SHARE_MODEL"), budget=os.environ.get("SHARE_BUDGET"), max_tokens=64)
    profile = load_profile("local", endpoint=endpoint, concurrency=int(concurrency), timeout=20, retries=8, **paid)
    options = RunOptions(share=share or "", command_dir=run_options().command_dir)
    corpora = {"hotpotqa": LazyRetriever(lambda: BM25(PAGES), "pages")}
    results = run(METHODS, {"hotpotqa": asked(int(n))}, profile, corpora=corpora, options=options, store=Store(store), progress=False)
    mine = [r for r in results.rows if r.error != "dealt to another worker"]
    print(len(mine), sum(bool(r.error) for r in mine), flush=True)


if __name__ == "__main__":
    import treekit.llm.openai_client, openai, httpx2  # noqa: E401, F401 (what takes long is there before the clock runs)
    print("ready", flush=True)
    sys.stdin.readline()
    main(*sys.argv[1:])
