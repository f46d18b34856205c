"The five methods by batch, in a process of its own to be killed."

import multiprocessing, threading

from tqdm import tqdm
from treekit.config import load_profile
from treekit.llm.batch_client import BatchClient
from treekit.store.run_store import Store
from treekit.experiments.resources import load, load_corpus
from treekit.experiments.run import run
from treekit.papers.arise.method import ARISE
from treekit.papers.rdr2.method import RDR2
from treekit.papers.searchr.method import SearchR
from treekit.papers.toq.method import TreeOfQuestion
from treekit.papers.treerare.method import TreeRare
import replies

processes = multiprocessing.get_context("fork")
METHODS = {
    "TreeRare": TreeRare(),
    "ToQ": TreeOfQuestion(),
    "ARISE": ARISE(iterations=2, depth=3, scorer="guess"),
    "SEARCH-R": SearchR(),
    "RDR2": RDR2(),
}


def reply(body):
    "In the form that each of the five asks for; for the rest, anything."
    text = "\n".join(m["content"] for m in body["messages"])
    if "## Document" in text:
        return replies.routes(body)
    if "Sub-question:" in text or "Supporting facts" in text:
        return replies.reasoning(body)
    return replies.various(body)


def passages():
    wanted = {passage for q in asked(4)["hotpotqa"] for passage in q.supporting}
    first = sorted(load_corpus("hotpotqa", "synthetic:100"), key=lambda p: p.id not in wanted)
    return {"hotpotqa": first[:40]}  # few: SEARCH-R parses them all


def asked(n):
    return {"hotpotqa": load("hotpotqa", "synthetic:100", n=n)}


def settings(endpoint):
    return load_profile(
        "local",
        endpoint=endpoint,
        model="gpt-4o-mini",
        data="synthetic:100",
        retriever="bm25s",
        concurrency=32,
    )


def by_batch(url, folder):
    return BatchClient(
        "gpt-4o-mini",
        url,
        "k",
        folder=folder,
        settle=0.15,
        poll=0.05,
        timeout=20,
        pause=0.01,
    )


def told(results):
    "What must not depend on how it was asked."
    return [
        {k: v for k, v in r.record().items() if k not in ("seconds", "hits")} | dict(trace=r.trace.to_json())
        for r in results.rows
    ]


def go(url, store, folder, n, methods=METHODS):
    tqdm.set_lock(threading.RLock())
    kept = Store(store)  # left open: stored rows load their traces from it
    return run(
        methods, asked(n), settings(url), corpora=passages(), chat=by_batch(url, folder), store=kept, progress=False
    )
