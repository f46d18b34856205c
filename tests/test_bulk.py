"Parsing and embedding a corpus in bulk: what is missing is computed, and runs find the results."

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from treekit.config import UsageError, load_profile
from treekit.core.types import Passage
from treekit.corpora.passage_store import PassageStore, import_passages
from treekit.retrieval import bulk as module, vectors
from treekit.retrieval.bulk import Worker, bulk, job_of
from treekit.retrieval.factory import vector_search_for
from treekit.syntax.entities import AnnotatedText, Annotations, Entity, SentenceTree, annotated_text

PASSAGES = [Passage(f"p{n}", f"Heron {n}", f"Heron {n} flies.") for n in range(9)]
TREE = SentenceTree((0, 6), (5, 7), (0, 1), ("NOUN", "NUM"))


class Annotator:
    "Fails for a list with the fifth passage."

    fingerprint = "two words"

    def __call__(self, texts):
        if any("Heron 4" in t for t in texts):
            raise ValueError("four")
        return [AnnotatedText((TREE,), (Entity(t[:7], "BIRD", 0, 7),)) for t in texts]


@pytest.fixture
def profile(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    import_passages(PASSAGES, tmp_path / "herons.passages", progress=False)
    return load_profile("offline", corpus=str(tmp_path / "herons.passages"), retriever="dense")


@pytest.fixture
def small(monkeypatch):
    "Blocks and shards of four passages, in this process."
    monkeypatch.setattr(module, "_BLOCK", 4)
    monkeypatch.setattr(vectors, "SHARD", 4)


def test_runs_find_the_parses_and_a_text_that_fails_is_missing(profile, small, monkeypatch):
    monkeypatch.setattr(module, "annotator_for", lambda parser, entities: Annotator())
    worker, job = Worker("parse", profile), job_of("parse", profile)
    assert job.missing() == [0, 1, 2]
    for number in (1, 2):
        job.keep(*worker.compute(number))
    assert job.missing() == [0, 1]  # the fifth passage is in block 1

    kept = [annotated_text(p) for p in PASSAGES[5:]]
    found = Annotations(Annotator()).cached([*kept, annotated_text(PASSAGES[4])])
    assert [found[t].entities[0].text for t in kept] == [t[:7] for t in kept] and len(found) == 4


def test_runs_find_the_vectors(profile, small, monkeypatch):
    numbers = np.arange(18, dtype=np.float32).reshape(9, 2)
    worker, job = Worker("embed", profile), job_of("embed", profile)

    def made(texts):
        return numbers[[int(t.split()[1]) for t in texts]]

    monkeypatch.setattr(worker.job.search.encoder, "compute", made)
    for number in (2, 0, 1):
        assert number in job.missing()
        job.keep(*worker.compute(number))
    near = vector_search_for(profile, PassageStore(profile.part("corpus")))
    near.build(progress=False)
    assert job.missing() == [] and (near._vectors.take(range(9)) == numbers).all()


def test_what_is_missing_is_said_in_one_line(profile, treekit_, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    said = treekit_("corpus", "bulk", "embed", "--set", f"corpus={profile.corpus}", "--set", "retriever=dense")
    assert said == (2, "treekit: ray isn't installed here: pip install 'treekit-rag[ray]'\n")
    with pytest.raises(UsageError, match="has no vectors"):
        job_of("embed", load_profile("offline", corpus=profile.corpus))


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray isn't installed: pip install 'treekit-rag[ray]'")
@pytest.mark.long
def test_a_run_with_ray_continues(profile, treekit_):
    words = "corpus", "bulk", "embed", "--set", f"corpus={profile.corpus}", "--workers", 1
    assert "9 passages\n" in treekit_(*words, "--set", "retriever=dense")[1]
    job = job_of("embed", profile)
    [file] = job.files
    assert np.allclose(np.load(file), job.compute(0), atol=1e-3)
    made = file.stat().st_mtime_ns
    assert bulk("embed", profile, 1) == 9 and file.stat().st_mtime_ns == made
