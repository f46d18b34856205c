"""Embeddings on the processor: OpenVINO beside the plain library, and whether the ranking stays.

    pytest tests/benchmarks/test_encoders.py -s

Passages and questions of the real sample, by MiniLM. The plain library is sentence-transformers as it comes (`encode`, in batches of 32,
by length). Both compute with one thread, and processor time is compared, the best of two: other work on the machine changes that little.
In single precision this is a ratio of about two; three and more take a processor that computes with bfloat16.
"""

import time

import numpy as np
import pytest

pytest.importorskip("openvino", reason="pip install 'treekit-rag[openvino]'")
import openvino, torch

from treekit.utils.model_files import MINILM, model_folder
from treekit.experiments.resources import load, load_corpus
from treekit.retrieval.dense import Embedder

PASSAGES, QUESTIONS, TIMED = 400, 100, 64
BFLOAT = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
ENGINES = {"openvino": 1.7} | ({"openvino-bf16": 3.0} if BFLOAT else {})


@pytest.fixture(scope="module")
def plain():
    from sentence_transformers import SentenceTransformer

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = SentenceTransformer(str(model_folder(MINILM)))
    yield lambda texts: model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def texts():
    passages, questions = load_corpus("hotpotqa", "real")[:PASSAGES], load("hotpotqa", "real", n=QUESTIONS)
    return [p.contents for p in passages], [q.question for q in questions]


def cpu(embed, texts, times=2):
    def once():
        began = time.process_time()
        embed(texts)
        return time.process_time() - began

    return min(once() for _ in range(times))


def top(passages, questions, k=10):
    return np.argsort(-(questions @ passages.T).round(5), axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("engine", ENGINES)
def test_faster_and_the_same_ranking(plain, texts, engine):
    passages, questions = texts
    by = Embedder(f"@{engine}")
    by(passages[:8])  # converted and compiled
    some, nodes = passages[:: PASSAGES // TIMED], [questions[i : i + 3] for i in range(0, 30, 3)]
    long = cpu(plain, some) / cpu(by, some)
    short = cpu(lambda lots: [plain(lot) for lot in lots], nodes) / cpu(lambda lots: [by(lot) for lot in lots], nodes)
    mine, theirs = top(by(passages), by(questions)), top(plain(passages), plain(questions))
    overlap = np.mean([len({*a} & {*b}) / 10 for a, b in zip(mine, theirs)])
    print(
        f"\n{engine}: {long:.2f} times the plain library's speed on passages, {short:.2f} on three questions at a time; "
        f"of the first ten of {len(passages)} passages {overlap:.4f} are the same",
        end="",
    )
    assert overlap >= 0.99
    assert long >= ENGINES[engine]
