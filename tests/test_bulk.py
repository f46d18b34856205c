"Parsing and embedding a corpus in bulk: rows that fail, files that are cut off, results that runs find."

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from treekit.config import UsageError, load_profile
from treekit.core.types import Passage
from treekit.corpora.passage_store import PassageStore, import_passages
from treekit.retrieval import bulk as module
from treekit.retrieval.bulk import bulk, compute, consecutive, job_of, parts, results
from treekit.retrieval.precomputed_vectors import PrecomputedVectors
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


def written(table, file):
    import pyarrow.parquet as pq

    file.parent.mkdir(exist_ok=True)
    pq.write_table(table, file)


def test_a_row_that_fails_is_a_row_and_runs_find_the_others(profile, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "annotator_for", lambda parser, entities: Annotator())
    out = tmp_path / "parses"
    for first, last in ((0, 5), (5, 9)):
        written(compute(dict(data=np.arange(first, last)), "parse", profile), out / f"{first}.parquet")
    (out / "torn.parquet").write_bytes((out / "0.parquet").read_bytes()[:-9])
    files, rows, failed = parts(out)
    assert (len(files), sorted(rows), failed) == (2, list(range(9)), 1) and not (out / "torn.parquet").exists()
    job_of("parse", profile).finish(files)

    kept = [annotated_text(PassageStore(profile.part("corpus"))[n]) for n in range(9) if n != 4]
    found = Annotations(SimpleNamespace(fingerprint=Annotator.fingerprint))(kept)  # parses nothing itself
    assert [a.entities[0].text for a in found] == [t[:7] for t in kept]
    assert found[0].sentences == (TREE,)


@pytest.mark.parametrize("error", [UsageError("no model"), OSError("disk full"), MemoryError()])
def test_what_is_no_rows_fault_ends_the_job(error):
    def function(items):
        raise error

    with pytest.raises(type(error)):
        results(function, [1, 2])


def test_vectors_are_published_ones(profile, tmp_path, monkeypatch):
    "In the order of their rows, whatever the files' names; with a row that failed, they are refused."
    vectors = np.arange(18, dtype=np.float32).reshape(9, 2)
    job, out = job_of("embed", profile), tmp_path / "vectors"
    job.embedder = lambda texts: vectors[[int(t.split()[1]) for t in texts]]
    blocks = consecutive(np.array([0, 1, 2, 3, 6, 7, 8]), 3) + consecutive(np.array([4, 5]), 3)
    assert [b.tolist() for b in blocks] == [[0, 1], [2, 3], [6, 7, 8], [4, 5]]
    for name, block in zip("dbac", blocks):
        written(compute(dict(data=block), "embed", profile), out / f"{name}.parquet")
    read = PrecomputedVectors(out)
    assert np.array_equal(np.concatenate([read.of(0, PASSAGES[:6]), read.of(6, PASSAGES[6:])]), vectors)
    job.embedder = lambda texts: vectors[[dict(x=1)[t] for t in texts]]
    written(compute(dict(data=np.arange(6, 9)), "embed", profile), out / "a.parquet")
    with pytest.raises(UsageError, match="a.parquet: 3 passages have no vector"):
        PrecomputedVectors(out).of(0, PASSAGES)


def test_what_is_missing_is_said_in_one_line(profile, tmp_path, treekit_, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    said = treekit_(
        "corpus", "bulk", "embed", tmp_path / "out", "--set", f"corpus={profile.corpus}", "--set", "retriever=dense"
    )
    assert said == (2, "treekit: ray isn't installed here: pip install 'treekit-rag[ray]'\n")


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray isn't installed: pip install 'treekit-rag[ray]'")
@pytest.mark.long
def test_a_run_with_ray_continues_and_refuses_others(profile, tmp_path, treekit_):
    out = tmp_path / "out"
    words = "corpus", "bulk", "embed", out, "--set", f"corpus={profile.corpus}", "--workers", 1
    assert treekit_(*words, "--set", "retriever=dense")[1].endswith(f"9 of 9 passages are in {out}\n")
    first, second, *others = parts(out)[0]
    second.write_bytes(second.read_bytes()[:-9])
    first.unlink()
    times = [f.stat().st_mtime_ns for f in others]
    assert bulk("embed", profile, out, 1) == (9, 0, 9) and [f.stat().st_mtime_ns for f in others] == times
    made = job_of("embed", profile).embedder([p.contents for p in PASSAGES])
    assert np.allclose(PrecomputedVectors(out).of(0, PASSAGES), made, atol=1e-5)
    with pytest.raises(UsageError, match="job is 'embed', wanted 'parse'"):
        bulk("parse", profile, out)
