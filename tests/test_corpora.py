"Corpora that lie on disk: passages, vectors, indexes. Small twins of `benchmarks/test_corpora.py`, which has a million."

import pickle, sys
from dataclasses import replace
from importlib.util import find_spec

import pytest

import corpus_worker as worker
from treekit.config import EXTRAS, UsageError, load_profile
from treekit.core.types import Question
from treekit.corpora.documents import tree_of
from treekit.corpora.corpus_hash import Passages
from treekit.corpora.lookup import Documents
from treekit.corpora.passage_store import PassageStore
from treekit.corpora.tree_store import build as build_trees
from treekit.retrieval import faiss_index, vectors
from treekit.retrieval.factory import describe_retrieval

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
    assert (
        len(store) == N and store.fingerprint == Passages.of(list(passages)).fingerprint and Passages.of(store) is store
    )
    assert store[7] == passages[7] and store[-1].id == f"wiki:{N}" and store[10:14] == list(passages[10:14])
    with pytest.raises(IndexError):
        store[N]


def test_exact_search_on_disk_is_exact(place, truth):
    "Half precision moves a neighbour in a hundred at most; a passage finds itself."
    near = worker.opened(place, "exact")
    assert recall(near, truth) > 0.99
    assert near.search(["", "What is said in 7"], 1)[0] == []


@needs_faiss
def test_an_index_finds_what_is_nearest(place, truth):
    near = worker.opened(place, "ivfsq")
    near.build(progress=False)
    assert recall(near, truth) >= 0.95 and near.place.is_file()


@needs_faiss
def test_a_damaged_index_is_refused(place):
    "One line, with what to do; nothing is deleted."
    near = worker.opened(place, "ivfsq")
    near.build(progress=False)
    whole = near.place.read_bytes()
    for content, passages in ((whole[: len(whole) // 2], N), (whole, N - 1)):
        near.place.write_bytes(content)
        with pytest.raises(UsageError, match="delete it and build it again"):
            faiss_index.open_index(near.place, passages)
    near.place.unlink()


def test_without_faiss_one_line_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(UsageError, match=r"pip install 'treekit-rag\[dense\]'"):
        worker.opened(place, "ivfsq").search(["What is 1"])
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
    made = worker.Drawn().compute([p.contents for p in store])
    (tmp_path / "drawn.pkl").write_bytes(pickle.dumps(([str(n) for n in range(1, N + 1)], made)))
    profile = load_profile(
        "offline", retriever="dense", corpus=str(store.path), index=f"exact, vectors={tmp_path / 'drawn.pkl'}"
    )
    question = Question("1", "hotpotqa", "What is said in 77")
    library = Resources(profile, {"hotpotqa": [question]})
    found = library.provide("retriever", "hotpotqa", question).thing
    assert found.label == "2,000 passages" and found.search([question.question], 1)[0][0].passage.id == "wiki:78"
    assert "published as drawn.pkl" in " ".join(describe_retrieval(profile)) and (tmp_path / "home" / "dense").is_dir()
    facts = [
        _searched("hotpotqa", Resources(replace(profile, index=i), {"hotpotqa": [question]}), [question])
        for i in ("exact", "ivfsq, probes=9", profile.index)
    ]
    assert [f["retriever"] for f in facts] == ["dense", "dense (ivfsq, probes=9)", "dense"] and facts[0][
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
