"""How well Korean passages are found: recall@5 by morphemes (kiwipiepy), by pairs of syllables, by both, and by words between spaces.

    pytest tests/benchmarks/test_korean_retrieval.py -s

On KorQuAD 1.0's dev file (961 passages, 5,774 questions; the gold passage is the one that a question was asked about), where it lies in
../shared/data/original, with both backends. Lucene's own Korean analyzer is Anserini's for the language "ko".
"""

import json
from pathlib import Path

import pytest

from treekit.retrieval.bm25 import BM25
from treekit.language.morphemes import korean
from treekit.experiments.resources import load
from treekit.language.morphemes import morpheme_terms, spaced_words, syllable_pairs
from treekit.retrieval.lucene import Lucene, java_class
from treekit.scoring.passages import recall_at

FILE = Path(__file__).resolve().parents[3] / "shared" / "data" / "original" / "KorQuAD_v1.0_dev.json"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="KorQuAD's dev file is not there")


@pytest.fixture(scope="module")
def korquad():
    questions = load("korquad", FILE)
    return questions, list({q.paragraphs[0].id: q.paragraphs[0] for q in questions}.values())


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as m:
        m.setenv("TREEKIT_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def anserini_korean(passages, folder):
    "An index with Anserini's own analyzer for Korean, and its searcher."
    indexer = java_class("io.anserini.index.SimpleIndexer")(
        [
            "-index",
            str(folder),
            "-input",
            "",
            "-collection",
            "JsonCollection",
            "-threads",
            "1",
            "-storeRaw",
            "-language",
            "ko",
        ]
    )
    indexer.addRawDocuments(
        [
            json.dumps(dict(id=f"{i:09d}", contents=p.contents, passage=p.id, title=p.title, text=p.text))
            for i, p in enumerate(passages)
        ]
    )
    indexer.close()
    return Lucene.prebuilt(str(folder), language="ko")


def test_recall_at_5(korquad, tmp_path):
    questions, passages = korquad
    texts = [q.question for q in questions]
    ways = {
        f"{name}, {a.__name__}": make(passages, analyze=a)
        for a in (korean, morpheme_terms, syllable_pairs, spaced_words)
        for name, make in (("bm25s", BM25), ("Lucene", Lucene))
    }
    ways["Lucene, Anserini's ko"] = anserini_korean(passages, tmp_path / "ko")
    recall = {}
    for name, retriever in ways.items():
        found = [[h.passage.id for h in hits] for hits in retriever.search(texts, 5)]
        recall[name] = {
            k: sum(recall_at(f, q.supporting, k) for f, q in zip(found, questions)) / len(questions) for k in (1, 5)
        }
        print(f"\n{name:28} recall@1 {recall[name][1]:.2%}  recall@5 {recall[name][5]:.2%}", end="")
    print(f"\n{len(questions)} questions, {len(passages)} passages")
    for backend in ("bm25s", "Lucene"):
        assert (
            recall[f"{backend}, korean"][5]
            > recall[f"{backend}, morpheme_terms"][5]
            > recall[f"{backend}, syllable_pairs"][5]
            > recall[f"{backend}, spaced_words"][5]
        )
    assert recall["Lucene, korean"][5] > recall["Lucene, Anserini's ko"][5]
    assert recall["Lucene, korean"][5] == pytest.approx(recall["bm25s, korean"][5], abs=0.001)
