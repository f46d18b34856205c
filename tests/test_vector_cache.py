"Vectors are apart by the instruction set that made them; those of the kit and of a cassette hold on every processor."

import base64, json

import numpy as np
import pytest

from treekit.config import UsageError
from treekit.utils.instruction_set import PINNED_INSTRUCTIONS, REFERENCE, _features, instruction_set
from treekit.utils.sqlite_cache import shipped_rows
from treekit.core.types import Passage
from treekit.corpora.corpus_hash import Passages
from treekit.retrieval.dense import Dense, Embedder, KnownVectors
from treekit.retrieval.vector_cache import PACKED_FILE, pack_vectors, unpack_vectors, vector_key
from treekit.retrieval.vectors import Vectors, build_vectors
from treekit.synthetic.generate import SyntheticWiki

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

    def _embed(self, texts):
        self.seen += texts
        shift = 0.0 if self.made_with == REFERENCE else 0.01
        return np.float32([[len(t) % 7 + shift, sum(map(ord, t)) % 11, 1] for t in texts])


def test_the_setting_of_a_process_has_a_name(monkeypatch):
    names = set()
    for settings in ({}, dict(MKL_CBWR="AVX2"), dict(MKL_CBWR="AVX2,STRICT"), OTHER, PINNED_INSTRUCTIONS):
        as_on(monkeypatch, settings)
        names.add(instruction_set())
    assert len(names) == 5 and (REFERENCE in names) == ("AVX2" in _features())


def test_a_processor_without_the_reference_has_another_name(monkeypatch):
    monkeypatch.setattr("treekit.utils.instruction_set._features", lambda: {"SSE42"})
    as_on(monkeypatch, PINNED_INSTRUCTIONS)
    assert instruction_set() != REFERENCE and instruction_set().startswith("sse42")


def test_vectors_of_two_instruction_sets_have_two_keys_and_two_fingerprints(monkeypatch):
    made, prints, names = {}, set(), set()
    for settings in ({}, OTHER):
        as_on(monkeypatch, settings)
        by = Drawn()
        made[by.made_with] = by.kept(["a text", "another"])
        assert by.seen == ["a text", "another"], "the vectors of another processor are taken for this one's"
        prints.add(Dense(PAGES, encoder=by).fingerprint)
        names.add(by.made_with)
    assert len(prints) == len(made) == 2 and all(any(name in p for p in prints) for name in names)


def test_the_kit_s_vectors_are_used_on_every_processor(monkeypatch):
    texts, shipped = [p.contents for p in SyntheticWiki().passages()], dict(shipped_rows("vectors"))
    for settings in (OTHER, {}):
        as_on(monkeypatch, settings)
        by = Embedder()
        monkeypatch.setattr(by, "_embed", lambda some: pytest.fail(f"{len(some)} texts are embedded"))
        found = by.kept(texts[:50])
        assert found.astype(np.float16).tobytes() == b"".join(shipped[vector_key(by.identity, t)] for t in texts[:50])


def test_what_the_reference_has_made_is_used_by_all(monkeypatch):
    monkeypatch.setattr("treekit.utils.instruction_set._features", lambda: {"AVX2"})
    as_on(monkeypatch, PINNED_INSTRUCTIONS)
    first = Drawn().kept(["a text"])
    as_on(monkeypatch, OTHER)
    by = Drawn()
    assert (by.kept(["a text"]) == first).all() and not by.seen


def test_a_large_corpus_has_a_file_for_each_instruction_set(monkeypatch):
    monkeypatch.setattr("treekit.retrieval.dense._SMALL", 5)
    as_on(monkeypatch, OTHER)
    first = Dense(PAGES, encoder=Drawn())
    vectors = first.vectors()
    as_on(monkeypatch, {})
    second = Dense(
        PAGES, encoder=(by := Drawn())
    )  # vectors of a cluster are searched on a laptop, and the fingerprint says so
    assert second.fingerprint == first.fingerprint and (second.vectors() == vectors).all() and not by.seen


def test_shards_are_not_continued_with_another_instruction_set(monkeypatch, tmp_path):
    monkeypatch.setattr("treekit.retrieval.vectors.SHARD", 4)
    as_on(monkeypatch, OTHER)
    pages = Passages.of(PAGES)
    build_vectors(pages, by := Drawn(), tmp_path / "v", progress=False)
    as_on(monkeypatch, {})
    assert len(build_vectors(pages, Drawn(), tmp_path / "v", progress=False)) == 9  # whole: it is read anywhere
    (tmp_path / "v" / "00002.npy").unlink()
    with pytest.raises(UsageError, match="another instruction set"):
        build_vectors(pages, Drawn(), tmp_path / "v", progress=False)
    as_on(monkeypatch, OTHER)
    assert len(build_vectors(pages, Drawn(), tmp_path / "v", progress=False)) == 9
    assert Vectors(tmp_path / "v").about["made_with"] == by.made_with


@pytest.mark.parametrize("small", [10_000, 5])
def test_a_cassette_s_vectors_hold_on_another_processor(monkeypatch, tmp_path, small, process_options):
    monkeypatch.setattr("treekit.retrieval.dense._SMALL", small)
    as_on(monkeypatch, OTHER)
    process_options(vectors=tmp_path / "noted.sqlite")
    first, again = Dense(PAGES, encoder=Drawn()), Drawn()
    hits, exact = first.search(["a beacon", "1804"], 5), Drawn()(["a text"])
    packed = pack_vectors(tmp_path / "noted.sqlite")
    assert list(packed) == [PACKED_FILE] and OTHER["MKL_CBWR"].encode() in packed[PACKED_FILE]
    as_on(monkeypatch, {})
    process_options(home=tmp_path / "elsewhere", vectors=unpack_vectors(packed[PACKED_FILE], tmp_path / "laid.sqlite"))
    assert Dense(PAGES, encoder=again).search(["a beacon", "1804"], 5) == hits and (again(["a text"]) == exact).all()
    assert not again.seen
    assert again.kept(["never packed"]).shape == (1, 3) and again.seen == ["never packed"]


def test_the_kit_s_vectors_are_not_packed(monkeypatch, tmp_path, process_options):
    process_options(vectors=tmp_path / "noted.sqlite")
    by = Embedder()
    monkeypatch.setattr(by, "_embed", lambda some: np.ones((len(some), 384), np.float32))
    by.kept([p.contents for p in SyntheticWiki().passages()][:20])
    assert pack_vectors(tmp_path / "noted.sqlite") == {} == pack_vectors(tmp_path / "none.sqlite")


KEY, NUMBERS = "0" * 64, base64.b64encode(np.float16([1, 2]).tobytes()).decode()


@pytest.mark.parametrize(
    "line",
    [
        "[",
        "{}",
        "[1, 2]",
        json.dumps([KEY, 16, NUMBERS]),
        json.dumps([KEY[2:], 16, NUMBERS, "avx2"]),
        json.dumps([KEY, 8, NUMBERS, "avx2"]),
        json.dumps([KEY, 16, NUMBERS + "!", "avx2"]),
        json.dumps([KEY, 16, "", "avx2"]),
        json.dumps([KEY, 16, NUMBERS, "a b\x1b[2J"]),
        json.dumps([KEY, [16], NUMBERS, "avx2"]),
        json.dumps([7, 16, NUMBERS, "avx2"]),
        json.dumps([KEY, 16, NUMBERS, None]),
        json.dumps([KEY, 16, base64.b64encode(np.float16([1, np.nan]).tobytes()).decode(), "avx2"]),
        json.dumps([KEY, 16, base64.b64encode(b"123").decode(), "avx2"]),
        json.dumps([KEY, 16, base64.b64encode(np.ones(9000, np.float16).tobytes()).decode(), "avx2"]),
    ],
)
def test_a_line_that_is_no_vector_is_refused(tmp_path, line):
    with pytest.raises(UsageError, match="vectors can't be read"):
        unpack_vectors(line.encode(), tmp_path / "laid.sqlite")
    unpack_vectors(json.dumps([KEY, 16, NUMBERS, "avx2"]).encode(), tmp_path / "sound.sqlite")
    assert not (tmp_path / "laid.sqlite").exists()


def test_known_vectors_say_who_embeds_the_rest():
    assert KnownVectors({}, by := Embedder(), "8 bits").made_with == by.made_with == instruction_set()


def test_embedding_takes_one_thread(monkeypatch):
    import torch

    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        monkeypatch.setattr(
            "treekit.retrieval.dense._embedded", lambda *_: seen.append(torch.get_num_threads()) or np.ones((1, 2))
        )
        by = Embedder()
        by._loaded = "a model"
        by(["a text"])
        assert seen == [1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_text_has_one_vector_in_every_batch_where_the_instruction_set_is_pinned():
    "Bit by bit as pinned; elsewhere within a tolerance."
    texts, by = [" ".join(["a lighthouse by the sea"] * k) for k in (1, 2, 2, 3, 5, 1, 8)], Embedder()
    together = by(texts)
    for i, text in enumerate(texts):
        alone = by([text])[0]
        assert (together[i] == alone).all() if by.made_with == REFERENCE else np.abs(together[i] - alone).max() < 1e-5
