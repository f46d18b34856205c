"""A synthetic corpus, and the processes that import, embed, index and search it: for `test_corpora.py` here and in `benchmarks/`.

    python corpus_worker.py write FILE N              the passages, as DPR writes them
    python corpus_worker.py build FOLDER KIND         import FOLDER/psgs.tsv, embed it, index it; killed, it goes on where it was
    python corpus_worker.py search FOLDER KIND N      N questions one by one: their milliseconds, what was found, the most memory

The vectors stand in for MiniLM's: 384 dimensions, with the spectrum that its embeddings of 4,774 real passages have (those that come with
the kit's real sample), in topics of about 500 passages and articles of ten. A question's similarity to the passage that it is about is .62,
as for the real questions; to the tenth best it is about .4 there and here.
"""

import json, random, resource, sys, time
from pathlib import Path

import numpy as np

from treekit.corpora.passage_store import PassageStore, import_passages
from treekit.retrieval.faiss_index import VectorSearch, parse_index

DIMENSIONS, TOPICS, ARTICLE = 384, 2000, 10
SPECTRUM = (
    (0, 1),
    (1, 0.8835),
    (3, 0.5821),
    (7, 0.4286),
    (15, 0.2886),
    (31, 0.2127),
    (63, 0.133),
    (127, 0.067),
    (255, 0.0136),
    (383, 0.001),
)
NEAR = 0.62  # of a question to its passage


def deviations():
    "Of each dimension: square roots of the measured spectrum, between whose points the logarithm is a line. The sum of squares is 1."
    at, value = zip(*SPECTRUM)
    found = np.exp(np.interp(np.arange(DIMENSIONS), at, np.log(value)))
    return np.sqrt(found / found.sum()).astype(np.float32)


class Drawn:
    "Stands for the embedder: a text's vector is drawn from the number that it ends with."

    identity = "drawn with MiniLM's spectrum"

    def __init__(self):
        self.scale = deviations()
        self.topics = np.random.default_rng(0).normal(size=(TOPICS, DIMENSIONS)).astype(np.float32) * self.scale

    def article(self, number):
        "The vectors of an article's passages."
        rng = np.random.default_rng([1, number])
        drawn = rng.standard_normal((ARTICLE + 1, DIMENSIONS), dtype=np.float32) * self.scale
        found = (0.3**0.5) * self.topics[rng.integers(TOPICS)] + (0.3**0.5) * drawn[0] + (0.4**0.5) * drawn[1:]
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def compute(self, texts):
        numbers, made = [int(t.rpartition(" ")[2]) for t in texts], {}
        for a in {n // ARTICLE for n in numbers}:
            made[a] = self.article(a)
        return np.stack([made[n // ARTICLE][n % ARTICLE] for n in numbers])

    def __call__(self, texts, questions=False):
        "Questions about passages."
        about = self.compute(texts)
        noise = np.stack(
            [np.random.default_rng([2, int(t.rpartition(" ")[2])]).normal(size=DIMENSIONS) * self.scale for t in texts]
        )
        noise -= (noise * about).sum(1, keepdims=True) * about
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        return (NEAR * about + (1 - NEAR**2) ** 0.5 * noise).astype(np.float32)


def questions(n, among):
    return [f"What is said in {i}" for i in random.Random(7).sample(range(among), n)]


def write(file, n):
    "Passages of about 100 words."
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnoprstu", k=rng.randint(2, 9))) for _ in range(20_000)]
    texts = [" ".join(rng.choices(words, k=98)) for _ in range(1000)]
    with open(file, "w", encoding="utf-8") as f:
        f.write("id\ttext\ttitle\n")
        for i in range(n):
            f.write(f"{i + 1}\t{texts[i % 1000]} {i}\tArticle {i // ARTICLE}\n")


def memory():
    "The most that this process has held, mapped files included, in MB."
    for said in Path("/proc/self/status").read_text().splitlines():
        if said.startswith("VmHWM"):
            return int(said.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def opened(folder, kind, progress=False):
    file = folder / "psgs.passages"
    store = PassageStore(file) if file.exists() else import_passages(folder / "psgs.tsv", file, progress=progress)
    near = VectorSearch(store, drawn := Drawn(), drawn, parse_index(kind))
    near.folder = folder / "dense"
    near.place = near.folder / "ivfsq.faiss"
    return near


def build(folder, kind):
    began, took = time.time(), {}
    near = opened(folder, kind)
    took["import"], began = time.time() - began, time.time()
    near.build(progress=False)
    took["embed and index"] = time.time() - began
    print(json.dumps(dict(passages=len(near.passages), seconds=took, memory=memory())))


def search(folder, kind, n):
    near, milliseconds, processor, found = opened(folder, kind), [], [], []
    asked = questions(n, len(near.passages))
    near.search(questions(3, 17), 10)  # opens the index
    for question in asked:
        began, used = time.perf_counter(), time.process_time()
        [hits] = near.search([question], 10)
        milliseconds.append(1e3 * (time.perf_counter() - began))
        processor.append(1e3 * (time.process_time() - used))
        found.append([int(hit.passage.id.removeprefix("wiki:")) - 1 for hit in hits])
    print(json.dumps(dict(milliseconds=milliseconds, processor=processor, found=found, memory=memory())))


def best(folder, n, k=10):
    "The `k` best passages for each question among all, in single precision."
    drawn, vectors = Drawn(), opened(folder, "exact")
    vectors.build(progress=False)
    asked, top = drawn(questions(n, len(vectors.passages))), None
    for first, block in vectors._vectors.blocks():
        scores = asked @ block.T
        near = np.argpartition(-scores, min(k, len(block) - 1), axis=1)[:, :k]
        new = np.stack([np.take_along_axis(scores, near, 1), near + first])
        top = new if top is None else np.concatenate([top, new], axis=2)
        order = np.argsort(-top[0], axis=1, kind="stable")[:, :k]
        top = np.stack([np.take_along_axis(part, order, 1) for part in top])
    return top[1].astype(int).tolist(), top[0]


if __name__ == "__main__":
    what, place, *rest = sys.argv[1:]
    if what == "write":
        write(place, int(rest[0]))
    elif what == "build":
        build(Path(place), rest[0])
    else:
        search(Path(place), rest[0], int(rest[1]))
