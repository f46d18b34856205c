"""data/kept: what a first run needn't make is what it would make"""
import numpy as np, pytest

from treekit.core.kept_database import cache_database, pack_rows, shipped_rows
from treekit.core.array_cache import write_arrays
from treekit.retrieval.dense import Embedder, _vector_key
from treekit.syntax.entities import Annotations, StanzaAnnotator, annotated_text
from treekit.world.generate import World

TABLE = "vectors (key BLOB PRIMARY KEY, vector BLOB)"


def sample(passages, n):
    "Some passages from all over the wiki."
    whole = list(passages)
    return whole[::len(whole) // n][:n]


def test_all_passages_of_the_world_are_there():
    passages, annotations, model = World().passages(), Annotations(), Embedder().identity
    trees, vectors = dict(shipped_rows("entities")), dict(shipped_rows("vectors"))
    assert all(annotations._key(annotated_text(p)) in trees for p in passages)
    assert all(_vector_key(model, p.contents) in vectors for p in passages)


def test_vectors_are_those_of_the_model():
    texts = [p.contents for p in sample(World().passages(), 12)]
    model, made = Embedder(), dict(shipped_rows("vectors"))
    there = np.stack([np.frombuffer(made[_vector_key(model.identity, t)], np.float16).astype(np.float32) for t in texts])
    np.testing.assert_allclose(there, model(texts), atol=2e-4)


def test_trees_and_entities_are_those_of_the_parser():
    texts = [annotated_text(p) for p in sample(World().passages(), 12)]
    annotations, made = Annotations(), dict(shipped_rows("entities"))
    again = dict(zip(texts, StanzaAnnotator()(texts)))
    assert [made[key] for key, _ in annotations.rows(again)] == [value for _, value in annotations.rows(again)]


def test_nothing_of_the_world_is_embedded_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    model = Embedder()
    monkeypatch.setattr(model, "_embed", lambda texts: pytest.fail(f"{len(texts)} texts are embedded"))
    texts = [p.contents for p in World().passages()]
    assert model.kept(texts).shape == (len(texts), 384)


def test_a_kept_vector_is_the_same_when_it_is_made_and_when_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    first, second = Embedder().kept(["a text that no wiki has"]), Embedder().kept(["a text that no wiki has"])
    assert np.array_equal(first, second)


@pytest.mark.parametrize("file", ["none", "torn", "mixed"])
def test_a_file_that_is_not_sound_is_as_none(tmp_path, monkeypatch, file):
    monkeypatch.setattr("treekit.core.kept_database.kit_path", lambda *parts: tmp_path / parts[-1])
    if file == "torn": (tmp_path / "vectors.npz").write_bytes(b"PK\x03\x04 torn")
    if file == "mixed":
        write_arrays(tmp_path / "vectors.npz", pack_rows([(b"k" * 32, b"v")]) | dict(ends=np.array([1, 2])))
    with cache_database(tmp_path / "db.sqlite", TABLE, "vectors", "vectors") as db:
        assert db.execute("SELECT COUNT(*) FROM vectors").fetchone() == (0,)


def test_a_database_that_is_there_stays_as_it_is(tmp_path):
    path = tmp_path / "db.sqlite"
    with cache_database(path, TABLE, "vectors") as db: db.execute("INSERT INTO vectors VALUES (?,?)", (b"k", b"v"))
    from treekit.core.kept_database import _closed
    _closed()
    with cache_database(path, TABLE, "vectors", "vectors") as db:
        assert db.execute("SELECT * FROM vectors").fetchall() == [(b"k", b"v")]
