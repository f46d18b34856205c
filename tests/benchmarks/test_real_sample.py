"Whether the sample of real questions stands for the whole sets: its recalls beside theirs, where the folder with them is at hand."

import csv, os
from pathlib import Path

import pytest

from treekit.corpora.bundled_questions import REAL
from treekit.experiments.resources import load, load_corpus
from treekit.retrieval.bm25 import BM25
from treekit.retrieval.entity_bridging import EntityBridging
from treekit.scoring.statistics import bootstrap

FIELDS = "dataset retriever metric n sample low high n_whole whole n_rest rest".split()
MEASURED = (
    Path(__file__).resolve().parents[2] / "data" / "measured" / "real_sample.csv"
)  # written with TREEKIT_MEASURE=1
WHOLE = Path(os.environ.get("TREEKIT_REAL") or Path(__file__).resolve().parents[3] / "shared" / "data")


def recalls(retriever, questions, k):
    "Share of each question's supporting passages among the first k."
    found = retriever.search([q.question for q in questions], k)
    return [
        len({h.passage.id for h in hits} & set(q.supporting)) / len(q.supporting) for q, hits in zip(questions, found)
    ]


@pytest.mark.skipif(not WHOLE.is_dir(), reason="no folder with the whole sets: ../shared/data, or TREEKIT_REAL")
def test_recalls_of_the_sample_beside_the_whole_sets():
    outside, rows = [], []
    print(f"\n{'':>10} {'':>15} {'':>4} {'sample':>22} {'whole set':>18} {'the rest':>10}")
    for d in REAL:
        whole = [q for q in load(d, WHOLE) if q.supporting]
        chosen, rest = load(d, "real"), {q.id: q for q in whole}
        for q in chosen:
            assert rest.pop(q.id).answers == q.answers
        there, corpus = load_corpus(d, WHOLE), load_corpus(d, "real")
        assert {p.id for p in corpus} == {p.id for p in there}
        words = BM25(corpus)
        for name, retriever in (("BM25", words), ("BM25, bridging", EntityBridging(words))):
            for k in (2, 5):
                mean, low, high = bootstrap(recalls(retriever, chosen, k), seed=0)
                values = recalls(retriever, whole, k)
                every = sum(values) / len(values)
                others = recalls(retriever, list(rest.values()), k)
                said = f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}] n={len(chosen)}"
                left = f"{100 * sum(others) / len(others):.1f}" if others else "–"
                print(f"{d:>10} {name:>15} R@{k} {said:>25} {100 * every:9.1f} n={len(whole)} {left:>8}")
                ours = [f"{100 * v:.1f}" for v in (mean, low, high)]
                rows.append(
                    [
                        d,
                        name,
                        f"R@{k}",
                        len(chosen),
                        *ours,
                        len(whole),
                        f"{100 * every:.1f}",
                        len(rest),
                        left.strip("–"),
                    ]
                )
                if not low <= every <= high:
                    outside.append((d, name, k))
    if os.environ.get("TREEKIT_MEASURE"):
        with open(MEASURED, "w", encoding="utf-8", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows([FIELDS, *rows])
    assert not outside
