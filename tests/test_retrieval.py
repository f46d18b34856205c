"""Retrieval across modules, threads, processes and real corpora (skipped where they are not there)."""

import json, os, tarfile
from types import SimpleNamespace

import pytest
from sample_questions import folder_of
from treekit.corpora.corpus_hash import Passages
from treekit.retrieval.bm25 import BM25, english
from treekit.config import UsageError, work_dir
from treekit.core.types import Passage
from treekit.retrieval.lucene import Lucene, _stored, cached_index, java_class
import treekit.retrieval.dense as retrieval

CORPORA = {
    "hotpotqa": "hotpotqa_corpus",
    "musique": "musique_corpus",
    "2wiki": "2wiki_pool_corpus",
    "2wiki_hippo": "2wiki_hipporag_corpus",
}


def rows(source, name):
    with open(folder_of(source, f"{name}.jsonl") / f"{name}.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def passages(source, name):
    return [Passage(r["id"], r.get("title") or "", r["text"]) for r in rows(source, name)]


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("treekit")
    monkeypatch.setenv("TREEKIT_HOME", str(folder))
    return folder


def invented(n=400, seed=0):
    "A corpus of odd lengths and repeated words, with ties, possessives, numbers, other scripts and empty passages."
    import random

    rng = random.Random(seed)
    words = (
        "lighthouse keeper Mavel Orrin's river town trekked possibly geology mythologies U.S. 1,851.5 O’Brien naïve Łódź hopping "
        "film films director directed relational the of is 등대지기 灯台 café re-run rock'n'roll running generously "
        "dying skies X ß ΟΔΟΣ"
    ).split()
    words += [
        "".join(rng.choice("bcdfglmnrst") + rng.choice("aeiouy") for _ in range(rng.randint(1, 4))) for _ in range(300)
    ]

    def some(k):
        return " ".join(rng.choices(words, k=k))

    made = [Passage(f"p{i}", some(rng.randint(0, 3)), some(int(rng.paretovariate(0.7)) % 700)) for i in range(n)]
    made += [
        Passage("empty", "", ""),
        Passage("stop", "", "the of is"),
        *(Passage(f"twin{i}", "Twin", made[5].text) for i in range(5)),
    ]
    return made, [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(300)]


def disagreements(a, b, queries, k=10):
    "Queries whose top k differ, beyond the order of scores that are equal to the four decimals which Anserini keeps."
    wrong = []
    for query, x, y in zip(queries, a.search(queries, k + 5), b.search(queries, k + 5), strict=True):
        scores = {hit.passage: hit.score for hit in x}
        top = [h.passage for h in x[:k]], [h.passage for h in y[:k]]
        if top[0] == top[1] and all(abs(p.score - q.score) < 2e-4 for p, q in zip(x[:k], y[:k])):
            continue
        if len(top[0]) != len(top[1]) or any(
            abs(scores.get(h.passage, -1) - h.score) > 2e-4 or abs(g.score - h.score) > 2e-4
            for g, h in zip(x[:k], y[:k])
        ):
            wrong.append(query)
    return wrong


# ---- Lucene and bm25s agree


def test_lucene_and_bm25s_agree_on_invented_text():
    made, queries = invented()
    assert disagreements(Lucene(made), BM25(made), queries) == []


@pytest.mark.long
@pytest.mark.parametrize("source, name", [*(("real", name) for name in CORPORA), ("twin", "musique")])
def test_lucene_and_bm25s_agree_on_written_text(source, name):
    corpus, queries = passages(source, CORPORA[name]), [q["question"] for q in rows(source, f"{name}.dev")]
    assert disagreements(Lucene(corpus), BM25(corpus), queries) == []


def test_terms_equal_anserinis():
    analyze = java_class("io.anserini.analysis.AnalyzerUtils").analyze
    made, queries = invented()
    texts = (
        [p.contents for p in made]
        + queries
        + ["x" * 600, "♯ ♠ 😀😀 👩‍👧 🇰🇷 1️⃣", "日本語です カタカナ", "a_b __c 1:2 a:b 3,4,x C++ AT&T"]
    )
    for text in texts:
        assert english(text) == list(analyze(text).toArray()), text[:60]


@pytest.mark.slow
def test_pyserinis_own_searcher_gives_the_same(monkeypatch):
    "Pyserini's Python side works in a process whose Java the kit started, and finds what the kit finds."
    made, queries = invented()
    lucene = Lucene(made)
    if "OPENAI_API_KEY" not in os.environ:
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")  # Pyserini's import wants one
    from pyserini.search.lucene import LuceneSearcher

    searcher = LuceneSearcher(str(cached_index(lucene.passages, lucene.analyze)))
    for query, hits in zip(queries[:50], lucene.search(queries[:50])):
        assert [(int(h.docid), h.score) for h in searcher.search(query, 15)] == [
            (made.index(h.passage), h.score) for h in hits
        ]


# ---- the index on disk


def index_folder(made):
    return next(work_dir("indexes").glob(f"bm25-{Passages.of(made).fingerprint}-*"))


@pytest.mark.parametrize(
    "fields, title",
    [
        (dict(raw='{"contents": "\\"Tarn\\"\\nA town."}'), "Tarn"),
        (dict(raw="A town."), ""),
        (dict(contents="A town."), ""),
    ],
)
def test_another_index_may_store_json_or_plain_text(fields, title):
    passage = _stored(SimpleNamespace(docid="7", lucene_document=fields))
    assert passage == Passage("7", title, "A town.")


def test_an_index_of_a_killed_process_is_built_again_and_a_damaged_one_refused():
    made, _ = invented(50)
    first = Lucene(made).search(["film"])
    folder = index_folder(made)
    folder.rename(folder.with_name(f"{folder.name}.part"))
    (folder.with_name(f"{folder.name}.part") / "segments_1").unlink()
    assert Lucene(made).search(["film"]) == first and [f.name for f in work_dir("indexes").glob("*.part")] == []
    (folder / "segments_1").write_bytes(b"")
    with pytest.raises(UsageError, match="delete it, it is built again"):
        Lucene(made)


# ---- a Java


# ---- odd input


# ---- Pyserini's prebuilt indexes, without a network


def test_a_prebuilt_index_is_downloaded(tmp_path, monkeypatch):
    import hashlib

    options = [
        "-index",
        str(tmp_path / "toy"),
        "-input",
        "",
        "-collection",
        "JsonCollection",
        "-threads",
        "1",
        "-storeRaw",
    ]
    indexer = java_class("io.anserini.index.SimpleIndexer")(options)
    documents = [
        dict(id="12", contents='"Port Essel"\nA harbour town.'),
        dict(id="13", contents="no title here, but a harbour"),
    ]
    indexer.addRawDocuments([json.dumps(d) for d in documents])
    indexer.close()
    from pyserini import util  # after the kit has started its Java: Pyserini would start the first that it finds

    with tarfile.open(tmp_path / "toy.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "toy", "toy")
    md5 = hashlib.md5((tmp_path / "toy.tar.gz").read_bytes()).hexdigest()
    info = dict(urls=[(tmp_path / "toy.tar.gz").as_uri()], md5=md5, filename="toy.tar.gz")
    monkeypatch.setitem(util.TF_INDEX_INFO, "toy", info)
    monkeypatch.setitem(
        util.TF_INDEX_INFO, "gone", info | dict(urls=[(tmp_path / "gone.tar.gz").as_uri()], filename="gone.tar.gz")
    )
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    hits = Lucene.prebuilt("toy").search(["harbour town"])[0]
    assert [h.passage for h in hits] == [
        Passage("12", "Port Essel", "A harbour town."),
        Passage("13", "", "no title here, but a harbour"),
    ]
    assert Lucene.prebuilt(str(tmp_path / "toy")).search(["harbour town", "x"])[0][0].passage.id == "12"
    with pytest.raises(UsageError, match="'gone'.*could not be downloaded.*network"):
        Lucene.prebuilt("gone")
    with pytest.raises(UsageError, match="did you mean 'wikipedia-dpr-100w'"):
        Lucene.prebuilt("wikipedia-dpr-100")


# ---- dense and re-ranked


def test_what_pools_share_is_embedded_once(monkeypatch):
    made, embedded, real = (
        [Passage(str(i), "", f"a film about harbour {i}") for i in range(6)],
        [],
        retrieval.Embedder.compute,
    )
    monkeypatch.setattr(retrieval.Embedder, "compute", lambda self, texts: embedded.extend(texts) or real(self, texts))
    for pool in (made[:4], made[2:], made):
        for by in (
            retrieval.Embedder(),
            retrieval.Embedder(),
        ):  # the second finds on disk what the first has left there
            found = retrieval.Dense(pool, encoder=by).search(["harbour 3"], 1)[0]
            assert found[0].passage.id == "3"
    assert sorted(embedded) == sorted(["harbour 3", *(p.contents for p in made)])


# ---- what an import costs


def test_the_weighted_sum_is_pyserinis():
    from treekit.retrieval.bm25 import Hit
    from treekit.retrieval.dense import WeightedSum

    class Told:
        fingerprint = "told"

        def __init__(self, **scores):
            self.scores, self.asked = scores, []

        def search(self, queries, k=15):
            self.asked.append(k)
            return [
                [Hit(Passage(i, i, ""), s, rank) for rank, (i, s) in enumerate(self.scores.items(), 1)][:k]
                for _ in queries
            ]

    sparse, dense = Told(a=9.0, b=6.0, c=5.0), Told(d=70.0, b=69.8)
    [hits] = WeightedSum(sparse, dense).search(["who"], 4)
    # what one of them lacks has that one's lowest score: d 70 + .5, a 69.8 + .9, b 69.8 + .6, c 69.8 + .5
    assert [(h.passage.id, round(h.score, 3), h.rank) for h in hits] == [
        ("a", 70.7, 1),
        ("d", 70.5, 2),
        ("b", 70.4, 3),
        ("c", 70.3, 4),
    ]
    assert sparse.asked == dense.asked == [4] and len(WeightedSum(sparse, dense).search(["who"], 2)[0]) == 2
    assert WeightedSum(Told(), Told()).search(["who"]) == [[]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["musique", "komultihop"])
def test_in_memory_finds_what_lucene_finds(name, tmp_path, monkeypatch):
    "The world's corpus is searched in memory: the same passages in the same order, from a kept index, too."
    from treekit.experiments.resources import load, load_corpus
    from treekit.retrieval.bm25 import BM25

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    passages = load_corpus(name)
    queries = (
        [q.question for q in load(name, n=40)] + [p.title for p in passages[::20]] + [p.text for p in passages[::40]]
    )
    lucene = Lucene(passages).search(queries, 15)
    for _ in range(2):  # the second reads what the first has kept
        found = BM25(passages, keep=True).search(queries, 15)
        assert [[h.passage.id for h in hits] for hits in found] == [[h.passage.id for h in hits] for hits in lucene]
        worst = max(abs(a.score / b.score - 1) for one, other in zip(found, lucene) for a, b in zip(one, other))
        assert worst < 1e-4  # Anserini lowers equal scores a little, one after the other
    assert len(list((tmp_path / "indexes").glob("memory-*.npz"))) == 1
