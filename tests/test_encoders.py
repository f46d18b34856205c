"What the vectors of a model are called."

import pytest

from treekit.utils.instruction_set import instruction_set
from treekit.utils.model_files import MINILM
from treekit.core.types import Passage
from treekit.retrieval.dense import Dense, Embedder

PAGES = [Passage(str(i), f"Harbour {i}", " ".join(["A lighthouse by the sea."] * (1 + i * i))) for i in range(9)]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))


def test_vectors_are_named_by_their_model_and_instruction_set():
    assert (Embedder().identity, Embedder("BAAI/bge-small-en").prefix != "") == (MINILM, True)
    assert Dense(PAGES).fingerprint.startswith(f"dense({MINILM}; {instruction_set()}):")
