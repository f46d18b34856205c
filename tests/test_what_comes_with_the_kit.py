"""data/kept: what a first run needn't make is what it would make"""

import numpy as np, pytest

from treekit.baselines.sentence_graph import sentences_of
from treekit.config import UsageError, load_profile
from treekit.utils.array_cache import write_arrays
from treekit.utils.sqlite_cache import cache_database, shipped_rows
from treekit.corpora.bundled_questions import REAL, BundledQuestions
from treekit.retrieval.dense import Embedder
from treekit.retrieval.vector_cache import vector_key, vector_rows
from treekit.classroom.student_corpora import open_corpus
from treekit.syntax.parser import ParseCache, StanzaParser, parser_for
from treekit.syntax.entities import Annotations, StanzaAnnotator, _unpacked, annotated_text
from treekit.synthetic.generate import SyntheticWiki

TABLE = "vectors (key BLOB PRIMARY KEY, vector BLOB)"


def sample(passages, n):
    "Some passages from all over the wiki."
    whole = list(passages)
    return whole[:: len(whole) // n][:n]


def test_all_passages_of_the_world_are_there():
    passages, annotations, model = SyntheticWiki().passages(), Annotations(), Embedder().identity
    trees, vectors = dict(shipped_rows("entities")), dict(shipped_rows("vectors"))
    assert all(annotations._key(annotated_text(p)) in trees for p in passages)
    assert all(vector_key(model, p.contents) in vectors for p in passages)


def sentences(passages):
    trees = Annotations()([annotated_text(p) for p in passages])
    return [s.stated for p, a in zip(passages, trees) for s, _ in sentences_of(p, a)]


def test_vectors_are_those_of_the_model():
    passages = sample(SyntheticWiki().passages(), 12)
    asked = [
        q.question for name in ("hotpotqa", "musique", "2wiki") for q in sample(SyntheticWiki().dataset(name, 50), 10)
    ]
    texts = [*(p.contents for p in passages), *sentences(passages), *asked]
    model, made = Embedder(), dict(shipped_rows("vectors"))
    there = np.stack([np.frombuffer(made[vector_key(model.identity, t)], np.float16).astype(np.float32) for t in texts])
    np.testing.assert_allclose(there, model(texts), atol=2e-4)


def test_trees_and_entities_are_those_of_the_parser():
    annotations, made = Annotations(), dict(shipped_rows("entities"))
    searched = [q.question for q in SyntheticWiki().dataset("2wiki", 200) if annotations._key(q.question) in made]
    assert len(searched) > 50
    texts = [*searched[:12], *(annotated_text(p) for p in sample(SyntheticWiki().passages(), 12))]
    assert [_unpacked(made[annotations._key(t)]) for t in texts] == StanzaAnnotator()(texts)


def parsed(texts, rows):
    "Those of some texts whose parses come with the kit."
    name = parser_for(load_profile("offline")).fingerprint
    return [t for t in texts if bytes.fromhex(ParseCache.key(name, t)) in rows]


def test_parses_are_those_of_the_parser(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    asked, parser = [q.question for q in SyntheticWiki().dataset("musique", 200)], parser_for(load_profile("offline"))
    there = parsed(asked, dict(shipped_rows("parses")))
    assert len(there) > 150
    assert parser.parse_uncached(there[:12]) == parser.parse(there[:12])
    monkeypatch.setattr(type(parser), "parse_uncached", lambda *_: pytest.fail("a question of the wiki is parsed"))
    assert [p.text for p in parser.parse(there)] == there


@pytest.mark.parametrize("assignment", ["2_syntax_trees", "3_evidence", "6_decomposition"])
def test_a_practice_corpus_needs_no_parser(tmp_path, monkeypatch, assignment):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    monkeypatch.setattr(StanzaParser, "parse_uncached", lambda *_: pytest.fail("a text of the corpus is parsed"))
    made = open_corpus(assignment, file=tmp_path / "none")["questions"][0]
    assert made.get("tokens") or made["pool"][0]["sentences"]


def test_nothing_of_real_questions_is_there():
    annotations, made, parses = Annotations(), dict(shipped_rows("entities")), dict(shipped_rows("parses"))
    real = [q.question for name in REAL for q in BundledQuestions().questions(name)]
    assert not any(annotations._key(q) in made for q in real) and not parsed(real, parses)
    model, vectors = Embedder().identity, dict(shipped_rows("vectors"))
    assert not any(
        vector_key(model, t) in vectors
        for t in [*real, *(p.contents for name in REAL for p in BundledQuestions().passages(name))]
    )


def test_a_vector_that_is_none_is_refused():
    for vector in ([1e5, 0.0], [float("nan"), 0.0]):
        with pytest.raises(UsageError, match="is no vector"):
            vector_rows("a model", ["a text"], np.array([vector]))


@pytest.mark.parametrize("file", ["none", "torn", "mixed"])
def test_a_file_that_is_not_sound_is_as_none(tmp_path, monkeypatch, file):
    monkeypatch.setattr("treekit.utils.sqlite_cache.kit_path", lambda *parts: tmp_path / parts[-1])
    if file == "torn":
        (tmp_path / "vectors.npz").write_bytes(b"PK\x03\x04 torn")
    if file == "mixed":
        write_arrays(
            tmp_path / "vectors.npz",
            dict(keys=np.zeros(32, np.uint8), values=np.zeros(1, np.uint8), ends=np.array([1, 2])),
        )
    with cache_database(tmp_path / "db.sqlite", TABLE, "vectors", "vectors") as db:
        assert db.execute("SELECT COUNT(*) FROM vectors").fetchone() == (0,)
