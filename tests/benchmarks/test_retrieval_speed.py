"""How long retrieval takes: an index on disk, a question's own pool, a handful of queries, an import.

    pytest tests/benchmarks/test_retrieval_speed.py -s

On invented text of about 100 words a passage. What is measured is processor time, of all threads, which other work on the machine
changes little (on a quiet one it is wall-clock, or more where threads run side by side); the best of three. The bounds are several times
what a core of 2020 needs.
"""

import os, random, subprocess, sys

import pytest

from treekit.retrieval.bm25 import BM25
from treekit.core.types import Passage
from treekit.retrieval.lucene import Lucene, build_index

rng = random.Random(0)
words = ["".join(rng.choices("abcdefghijklmnoprstu", k=rng.randint(2, 9))) for _ in range(20_000)]


# the commonest: one word in forty
def text(n):
    return " ".join(words[min(int(30 * rng.paretovariate(0.8)), len(words)) - 1] for _ in range(n))


CORPUS = [Passage(str(i), text(3), text(100)) for i in range(6000)]
QUERIES = [text(12) for _ in range(2000)]


def best(measure, times=3):
    "Seconds of processor time, children's included."

    def once(i):
        began = sum(os.times()[:4])
        measure(i)
        return sum(os.times()[:4]) - began

    return min(map(once, range(times)))


@pytest.fixture(scope="module")
def lucene(tmp_path_factory):
    with pytest.MonkeyPatch.context() as m:
        m.setenv("TREEKIT_HOME", str(tmp_path_factory.mktemp("home")))
        yield Lucene(CORPUS)


def test_an_index_on_disk(lucene, tmp_path):
    seconds = best(lambda i: build_index(CORPUS, tmp_path / str(i)))
    print(f"\nLucene indexes {len(CORPUS)} passages in {seconds:.2f} s")
    assert seconds < 6


def test_two_thousand_queries(lucene):
    seconds = best(lambda i: lucene.search(QUERIES, 15))
    memory = BM25(CORPUS)
    in_memory = best(lambda i: memory.search(QUERIES, 15))
    print(f"\n{len(QUERIES)} queries: Lucene {seconds:.2f} s, in memory {in_memory:.2f} s")
    assert seconds < 12 and in_memory < 12


def test_three_queries_at_once(lucene):
    "What a node of TreeRare asks."
    seconds = best(lambda i: [lucene.search(QUERIES[j : j + 3], 15) for j in range(0, 300, 3)]) / 100
    print(f"\nthree queries in Lucene: {1000 * seconds:.1f} ms")
    assert seconds < 0.05


@pytest.mark.parametrize("size", [10, 20])
def test_a_pool_of_its_own(size):
    pools = [CORPUS[i : i + size] for i in range(0, 4000, size)]

    def index(i):
        return [BM25(pool) for pool in pools]

    made = index(0)
    indexing = best(index) / len(pools)
    searching = best(lambda i: [pool.search([query], 15) for pool, query in zip(made * 5, QUERIES)]) / len(pools) / 5
    print(f"\na pool of {size}: indexed in {1000 * indexing:.2f} ms, searched in {1000 * searching:.3f} ms")
    assert indexing < 0.005 and searching < 0.001


def test_import_and_first_search():
    def run(code):
        return best(lambda i: subprocess.run([sys.executable, "-c", code], check=True, timeout=60))

    bare, imported = run("pass"), run("import treekit.retrieval.dense")
    first = run(
        "from treekit.retrieval.lucene import Lucene; from treekit.core.types import Passage; import tempfile, os; "
        "os.environ['TREEKIT_HOME'] = tempfile.mkdtemp(); "
        "Lucene([Passage('a', '', 'film')]).search(['film'])"
    )
    print(
        f"\nimport treekit.retrieval.dense {imported - bare:.2f} s; with Java, a new index and a search {first - bare:.2f} s"
    )
    assert imported - bare < 1.5 and first - bare < 12
