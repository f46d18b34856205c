"Who computes embeddings: an engine behind the model's name, apart from the plain library in every key."

import numpy as np
import pytest

from treekit.utils.instruction_set import instruction_set
from treekit.utils.model_files import MINILM
from treekit.core.types import Passage
from treekit.retrieval.dense import Dense, Embedder

PAGES = [Passage(str(i), f"Harbour {i}", " ".join(["A lighthouse by the sea."] * (1 + i * i))) for i in range(9)]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))


def test_without_an_engine_nothing_has_another_name():
    assert (Embedder().identity, Embedder(MINILM).engine, Embedder("BAAI/bge-small-en").prefix != "") == (
        MINILM,
        "",
        True,
    )
    assert Dense(PAGES).fingerprint.startswith(f"dense({MINILM}; {instruction_set()}):")


@pytest.mark.long
def test_the_same_vectors_but_for_the_last_bits_and_kept_apart():
    pytest.importorskip("openvino", reason="pip install 'treekit-rag[openvino]'")
    texts = [p.contents for p in PAGES] + ["", "등대", "word " * 3000]
    plain, other = Embedder(), Embedder("@openvino")
    vectors = other(texts)
    assert np.abs(plain(texts) - vectors).max() < 1e-5
    assert all(np.abs(other([t])[0] - v).max() < 1e-6 for t, v in zip(texts, vectors))  # in any company
    asked = other.asked(texts[:3])
    again = Embedder("@openvino")
    again._load = lambda: pytest.fail("a question that is kept is embedded again")
    assert (again.asked(texts[:3]) == asked).all()
    dense = Dense(PAGES, "@openvino")
    hits = [h.passage.id for h in dense.search(["a lighthouse"], 5)[0]]
    assert hits == [h.passage.id for h in Dense(PAGES).search(["a lighthouse"], 5)[0]]
