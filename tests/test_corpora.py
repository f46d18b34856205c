"Corpora that lie on disk: passages, vectors, indexes. Small twins of `benchmarks/test_corpora.py`, which has a million."

import json, random, sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

import corpus_worker as worker
from treekit.config import EXTRAS, UsageError, load_profile
from treekit.core.types import Passage, Question
from treekit.corpora.documents import tree_of
from treekit.corpora.corpus_hash import Passages, corpus_hash
from treekit.corpora.lookup import Documents
from treekit.corpora.passage_store import PassageStore, import_passages
from treekit.corpora.tree_store import TreeStore, build as build_trees
from treekit.retrieval import faiss_index, vectors
from treekit.retrieval.factory import describe_retrieval
from treekit.retrieval.faiss_index import VectorSearch, parse_index_kind

N = 2000
needs_faiss = pytest.mark.skipif(
    not find_spec("faiss"), reason="FAISS isn't installed here: pip install 'treekit-rag[dense]'"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    "A corpus of 2,000 passages with its vectors, in shards and parts so small that there are several."
    folder = tmp_path_factory.mktemp("corpus")
    worker.write(folder / "psgs.tsv", N)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(vectors, "SHARD", 256)
        m.setattr(faiss_index, "_PART", 2)
        worker.opened(folder, "exact").build(progress=False)
        yield folder


@pytest.fixture(scope="module")
def truth(place):
    return worker.best(place, 100)[0]


def recall(near, truth):
    hits = near.search(worker.questions(len(truth), N), 10)
    return (
        sum(len({int(h.passage.id[5:]) - 1 for h in found} & set(best)) for found, best in zip(hits, truth))
        / len(truth)
        / 10
    )


def test_a_corpus_in_a_file_is_the_corpus(place):
    "The same passages, the same name as the list has, whatever is read of it."
    store = PassageStore(place / "psgs.passages")
    passages = Passages(store)
    assert len(store) == N and store.fingerprint == corpus_hash(list(passages)) and Passages.of(store) is store
    assert store[7] == passages[7] and store[-1].id == f"wiki:{N}" and store[10:14] == list(passages[10:14])
    with pytest.raises(IndexError):
        store[N]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    "A passage store and a tree store of 100 entries each."
    folder = tmp_path_factory.mktemp("stores")
    passages = [Passage(f"p{i}", f"Title {i}", f"Text {i}: é, and {i * i} words.") for i in range(100)]
    trees = [tree_of(dict(id=f"t{i}", title=f"Title {i}", text=f"Text {i}.\n\nAnd {i * i} words.")) for i in range(100)]
    return import_passages(passages, folder / "w.passages", progress=False), build_trees(
        trees, folder / "w.trees", progress=False
    )


@pytest.mark.parametrize("kind", [PassageStore, TreeStore])
def test_a_flipped_byte_of_a_store_is_one_line_or_changes_nothing(stores, tmp_path, kind):
    "In the headers of file and pages, and anywhere else: never another exception, another passage or another tree."
    store = next(s for s in stores if isinstance(s, kind))
    whole, content, path, rng = store.path.read_bytes(), list(store), tmp_path / "flipped", random.Random(5)
    spots = [
        *range(18, 72),
        *(page + rng.randrange(12) for page in range(0, len(whole), 4096)),
        *rng.sample(range(len(whole)), 150),
    ]
    lines = 0
    for at in spots:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
        try:
            assert list(kind(path)) == content, at
        except UsageError as e:
            lines += "\n" not in str(e) and path.name in str(e)
        else:
            lines += 1
    assert lines == len(spots)


def test_exact_search_on_disk_is_exact(place, truth):
    "Half precision moves a neighbour in a hundred at most; a passage finds itself."
    near = worker.opened(place, "exact")
    assert recall(near, truth) > 0.99
    assert near.search(["", "What is said in 7"], 1)[0] == []


@needs_faiss
@pytest.mark.parametrize("kind", ["ivfsq, lists=32, probes=16", "hnsw, links=8"])
def test_an_index_finds_what_is_nearest(place, truth, kind):
    near = worker.opened(place, kind)
    near.build(progress=False)
    assert recall(near, truth) >= 0.95
    assert sorted(f.name for f in near.place.iterdir()) == sorted(
        ["index.faiss", "index.json"] + ["lists.bin"] * kind.startswith("ivf")
    )


class Cut(Exception):
    "Where a kill is pretended."


@needs_faiss
def test_a_build_that_ends_anywhere_goes_on(place, tmp_path, monkeypatch):
    "It is cut before each file that it would write; what it wrote stays as it is, and the index is the one of a build in one go."

    def built(folder):
        near = VectorSearch(
            PassageStore(place / "psgs.passages"),
            worker.Drawn(),
            worker.Drawn(),
            parse_index_kind("ivfsq, lists=32"),
            folder,
        )
        near.build(progress=False)
        return near

    whole, writes, times = built(tmp_path / "whole"), faiss_index._put, {}

    def put(index, file):
        if file.name not in times:
            times[file.name] = None
            raise Cut(file.name)
        writes(index, file)
        times[file.name] = file.stat().st_mtime_ns

    monkeypatch.setattr(faiss_index, "_put", put)
    for _ in range(50):
        try:
            again = built(tmp_path / "cut")
            break
        except Cut:
            kept = {f.name: f.stat().st_mtime_ns for f in (tmp_path / "cut").rglob("*.faiss")}
        assert all(times[name] == at for name, at in kept.items())
    assert len(times) >= 5 and (again.place / "lists.bin").read_bytes() == (whole.place / "lists.bin").read_bytes()


@needs_faiss
def test_another_or_an_older_index_is_refused(place, tmp_path):
    "One line, with what to do; nothing is deleted."
    near = worker.opened(place, "ivfsq, lists=32, probes=16")
    near.build(progress=False)
    about, file = vectors.Vectors(place / "dense" / "vectors").about, near.place / "index.json"
    whole = json.loads(file.read_text())

    def refused(manifest, words, about=about, kind=near.kind):
        file.write_text(json.dumps(manifest))
        with pytest.raises(UsageError, match=words) as e:
            faiss_index.open_index(near.place, about, kind)
        assert "\n" not in str(e.value) and ("delete" in str(e.value) or "build it again" in str(e.value))

    try:
        refused(whole | dict(format=0), "built by another version of treekit")
        refused(whole | dict(corpus="0123"), "corpus is '0123'")
        refused(whole, "model is", about=about | dict(model="another"))
        refused(whole, "'lists': 32.*wanted.*'lists': 64", kind=replace(near.kind, lists=64))
        refused({}, "not whole")
        lists = (near.place / "lists.bin").read_bytes()
        (near.place / "lists.bin").write_bytes(lists[:-1])
        refused(whole, "cut off")
        (near.place / "lists.bin").write_bytes(lists)
        (near.place / "index.faiss").write_bytes(bytes((near.place / "index.faiss").stat().st_size))
        refused(whole, "damaged")
    finally:
        for f in near.place.iterdir():
            f.unlink()
        near.place.rmdir()


def test_without_faiss_one_line_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(UsageError, match=r"pip install 'treekit-rag\[dense\]'"):
        worker.opened(place, "hnsw").search(["What is 1"])
    assert EXTRAS["dense"] == ("faiss",)


# ---- through a profile


def test_a_profile_searches_a_corpus_on_disk(place, tmp_path, monkeypatch):
    "Passages from the store, vectors from a published file; the label, the key and the facts say so."
    from treekit.experiments.provenance import _searched
    from treekit.experiments.resources import Resources

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))

    class Known(worker.Drawn):
        def __init__(self, model="", **other):
            super().__init__()

    monkeypatch.setattr("treekit.retrieval.dense.Embedder", Known)
    monkeypatch.setattr("treekit.retrieval.dense.embedder", Known)
    store = PassageStore(place / "psgs.passages")
    np.save(tmp_path / "drawn.npy", worker.Drawn()([p.contents for p in store]))
    (tmp_path / "drawn.ids").write_text("\n".join(str(n) for n in range(1, N + 1)))
    profile = load_profile(
        "offline", retriever="dense", corpus=str(store.path), index=f"exact, vectors={tmp_path / 'drawn.npy'}"
    )
    question = Question("1", "hotpotqa", "What is said in 77")
    library = Resources(profile, {"hotpotqa": [question]})
    found = library.provide("retriever", "hotpotqa", question).thing
    assert found.label == "2,000 passages" and found.search([question.question], 1)[0][0].passage.id == "wiki:78"
    assert "published as drawn.npy" in " ".join(describe_retrieval(profile)) and (tmp_path / "home" / "dense").is_dir()
    facts = [
        _searched("hotpotqa", Resources(replace(profile, index=i), {"hotpotqa": [question]}), [question])
        for i in ("exact", "ivfpq, probes=9", profile.index)
    ]
    assert [f["retriever"] for f in facts] == ["dense", "dense (ivfpq, probes=9)", "dense"] and facts[0][
        "index"
    ] != facts[1]["index"]
    with pytest.raises(UsageError, match="no passage store 'nowhere'"):
        Resources(replace(profile, corpus="nowhere"), {"hotpotqa": [question]}).provide(
            "retriever", "hotpotqa", question
        )


def test_chunks_of_a_tree_store_are_a_store(tmp_path, monkeypatch):
    "RDR2's corpus: the chunks of trees in a file lie in a file; the same chunks as in memory."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    records = [dict(id=str(i), title=f"Page {i}", text="word " * 250) for i in range(20)]
    trees = build_trees(records, tmp_path / "pages.trees", workers=1, progress=False)
    stored, held = Documents(trees).corpus(), Documents(map(tree_of, records)).corpus()
    assert (
        isinstance(stored, PassageStore) and stored.fingerprint == held.fingerprint and len(stored) == len(held) == 60
    )


# ---- killed
