"Vectors are apart by the instruction set that made them; those of the kit and of a cassette hold on every processor."

import base64, json

import numpy as np
import pytest

from treekit.config import UsageError
from treekit.utils.instruction_set import PINNED_INSTRUCTIONS, REFERENCE, _features, instruction_set
from treekit.core.types import Passage
from treekit.retrieval.dense import Dense, Embedder
from treekit.retrieval.vector_cache import unpack_vectors

PAGES = [Passage(str(i), f"Harbour {i}", f"A lighthouse by the sea, built in {1800 + i}.") for i in range(9)]
OTHER = dict(MKL_CBWR="COMPATIBLE", ATEN_CPU_CAPABILITY="default", DNNL_MAX_CPU_ISA="SSE41")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def as_on(monkeypatch, settings):
    "From here on the environment is that of another processor."
    for name in PINNED_INSTRUCTIONS:
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


class Drawn(Embedder):
    "Embeds with numbers that depend on the processor: its texts are counted."

    def __init__(self):
        super().__init__()
        self.seen = []

    def compute(self, texts):
        self.seen += texts
        shift = 0.0 if self.made_with == REFERENCE else 0.01
        return np.float32([[len(t) % 7 + shift, sum(map(ord, t)) % 11, 1] for t in texts])


def test_the_setting_of_a_process_has_a_name(monkeypatch):
    names = set()
    for settings in ({}, dict(MKL_CBWR="AVX2"), dict(MKL_CBWR="AVX2,STRICT"), OTHER, PINNED_INSTRUCTIONS):
        as_on(monkeypatch, settings)
        names.add(instruction_set())
    assert len(names) == 5 and (REFERENCE in names) == ("AVX2" in _features())


def test_vectors_of_two_instruction_sets_have_two_keys_and_two_fingerprints(monkeypatch):
    made, prints, names = {}, set(), set()
    for settings in ({}, OTHER):
        as_on(monkeypatch, settings)
        by = Drawn()
        made[by.made_with] = by(["a text", "another"])
        assert by.seen == ["a text", "another"], "the vectors of another processor are taken for this one's"
        prints.add(Dense(PAGES, encoder=by).fingerprint)
        names.add(by.made_with)
    assert len(prints) == len(made) == 2 and all(any(name in p for p in prints) for name in names)


def test_what_the_reference_has_made_is_used_by_all(monkeypatch):
    monkeypatch.setattr("treekit.utils.instruction_set._features", lambda: {"AVX2"})
    as_on(monkeypatch, PINNED_INSTRUCTIONS)
    first = Drawn()(["a text"])
    as_on(monkeypatch, OTHER)
    by = Drawn()
    assert (by(["a text"]) == first).all() and not by.seen


KEY, NUMBERS = "0" * 64, base64.b64encode(np.float16([1, 2]).tobytes()).decode()


@pytest.mark.parametrize(
    "line",
    [
        "[",
        "{}",
        "[1, 2]",
        json.dumps([KEY]),
        json.dumps([KEY[2:], NUMBERS]),
        json.dumps([KEY, NUMBERS + "!"]),
        json.dumps([KEY, ""]),
        json.dumps([7, NUMBERS]),
        json.dumps([KEY, base64.b64encode(np.float16([1, np.nan]).tobytes()).decode()]),
        json.dumps([KEY, base64.b64encode(b"123").decode()]),
        json.dumps([KEY, base64.b64encode(np.ones(9000, np.float16).tobytes()).decode()]),
    ],
)
def test_a_line_that_is_no_vector_is_refused(tmp_path, line):
    with pytest.raises(UsageError, match="vectors can't be read"):
        unpack_vectors(line.encode(), tmp_path / "laid.sqlite")
    unpack_vectors(json.dumps([KEY, NUMBERS]).encode(), tmp_path / "sound.sqlite")
    assert not (tmp_path / "laid.sqlite").exists()


def test_a_text_has_one_vector_in_every_batch_where_the_instruction_set_is_pinned():
    "Bit by bit as pinned; elsewhere within a tolerance."
    texts, by = [" ".join(["a lighthouse by the sea"] * k) for k in (1, 2, 2, 3, 5, 1, 8)], Embedder()
    together = by.compute(texts)
    for i, text in enumerate(texts):
        alone = by.compute([text])[0]
        assert (together[i] == alone).all() if by.made_with == REFERENCE else np.abs(together[i] - alone).max() < 1e-5
