"One question answered by one method over the OpenAI protocol, and the store's record of what was asked, in the call log's order."

import json, zlib

from treekit.retrieval.bm25 import BM25
from treekit.config import load_profile
from treekit.core.types import Passage, Question
from treekit.experiments.resources import LazyRetriever
from treekit.llm.openai_client import OpenAIClient
from treekit.experiments.run import run
from treekit.store.run_store import Store

ASKED = "In which county is the birthplace of the author of Grey Harbour?"
POOL = [
    Passage(f"p{i}", title, text)
    for i, (title, text) in enumerate(
        [
            ("Grey Harbour", "Grey Harbour is a novel of 1931 by the author Ida Roth."),
            ("Ida Roth", "Ida Roth was a writer. Her birthplace is Tarn."),
            ("Tarn", "Tarn is a town in Voss County."),
            ("Orle", "Orle is a town in Lund County."),
            ("Ada Lund", "Ada Lund was an actress."),
            ("Grey Harbour (film)", "Grey Harbour is a film by Mira Tal."),
        ]
    )
]


class Spied:
    "BM25 over the pool; `queries` has what was searched, with k."

    def __init__(self):
        self.queries, self.index = [], BM25(POOL)

    def search(self, queries, k=15):
        self.queries += [(q, k) for q in queries]
        return self.index.search(queries, k)


def recorded_calls(store):
    "(method, node, sample, parameters, text) of each call, in the order of the call log."
    rows = store.query(
        "SELECT l.method, l.node, c.sample, r.body FROM call_log l JOIN calls c USING (key) JOIN requests r ON r.hash = c.request WHERE "
        "l.outcome = 0 ORDER BY l.rowid"
    )
    bodies = [(m, node, sample, json.loads(zlib.decompress(body))) for m, node, sample, body in rows]
    return [
        (m, node, sample, b["parameters"], "\n".join(x["content"] for x in b["messages"]))
        for m, node, sample, b in bodies
    ]


def timed_calls(store):
    "(node, text, start, end) of each call, by the store's clock."
    rows = store.query(
        "SELECT l.node, r.body, c.time, c.completion FROM call_log l JOIN calls c USING (key) JOIN requests r ON r.hash = c.request "
        "WHERE l.outcome = 0 ORDER BY c.time"
    )
    return [
        (
            node,
            json.loads(zlib.decompress(body))["messages"][0]["content"],
            time - json.loads(completion)["latency"],
            time,
        )
        for node, body, time, completion in rows
    ]


def go(method, server, store=None):
    "The row, the searches, and each call: (prompt's first words, temperature, samples' number, the whole text)."
    shelf, store = Spied(), store or Store()
    results = run(
        {"m": method},
        {"musique": [Question("q", "musique", ASKED, ("Voss County",))]},
        load_profile("offline"),
        chat=OpenAIClient("gpt-4o-mini", server.url, pause=0.01, retries=1),
        store=store,
        corpora={"musique": LazyRetriever(lambda: shelf, "shelf", "a shelf")},
        progress=False,
    )
    calls = [(parameters["temperature"], sample, text) for _, _, sample, parameters, text in recorded_calls(store)]
    return results.rows[0], shelf.queries, calls
