"What bridging costs: seconds per corpus, milliseconds per query. Processor time, so that a busy machine says the same."

import time

from treekit.retrieval.bm25 import BM25
from treekit.retrieval.entity_bridging import EntityBridging, MentionIndex
from treekit.experiments.resources import load, load_corpus


def test_seconds_per_corpus_and_milliseconds_per_query(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    passages, questions = (
        load_corpus("musique", "synthetic:2000"),
        [q.question for q in load("musique", "synthetic:2000", n=100)],
    )

    def seconds(f):
        start = time.process_time()
        f()
        return time.process_time() - start

    made, read = seconds(lambda: MentionIndex(passages)), seconds(lambda: MentionIndex(passages))
    words = BM25(passages)
    bridged = EntityBridging(words)
    bridged.search(questions[:1])
    plain, whole = (1000 * seconds(lambda: r.search(questions, 15)) / len(questions) for r in (words, bridged))
    print(
        f"{len(passages):,} passages: mentions {made:.1f} s, read again {read:.2f} s; BM25 {plain:.1f} ms, bridged {whole:.1f} ms per query"
    )
    assert made < 0.001 * len(passages) + 1 and read < made / 3 and whole < 30
