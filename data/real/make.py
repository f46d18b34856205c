"""Write the sample of real questions anew, from a folder of public data sets in the kit's own JSONL.

python data/real/make.py FOLDER [OUT]             the questions and passages; the same bytes each time
python data/real/make.py FOLDER [OUT] --arrays    also the vectors of the questions and their own paragraphs: some five minutes
"""

import json, lzma, re, sys
from pathlib import Path

from treekit.corpora.formats import parse_passage, ID_PREFIX
from treekit.corpora.load import sample_rows, read_corpus
from treekit.experiments.provenance import PUBLISHED_IDS

N = 200  # questions of each set, if there are so many
CORPORA = {"hotpotqa": "hotpotqa_corpus", "musique": "musique_corpus", "2wiki": "2wiki_pool_corpus"}


def with_articles(folder, out):
    "ASQA's questions that an article lists, and all articles."
    with open(folder / "articles_ambigqa_wiki.jsonl", encoding="utf-8") as f:
        articles = [json.loads(line) for line in f]
    listed = {i for a in articles for i in a.get("asqa_ids") or ()}
    with open(folder / "asqa.dev.jsonl", encoding="utf-8") as f:
        records = [json.loads(line) for line in f]
    kept = ("id", "question", "answers", "qa_pairs", "long_answers")
    written(out / "asqa.dev.jsonl.xz", [{k: r[k] for k in kept} for r in records if r["id"] in listed])
    written(
        out / "asqa_articles.jsonl.xz", [{k: a[k] for k in ("id", "title", "summary", "sections")} for a in articles]
    )


class Asked:
    "A record of a question, with the id that its sample is drawn by."

    def __init__(self, record):
        self.record, self.id = record, record["id"]


def written(path, rows):
    "Rows as JSON lines, compressed."
    text = "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in rows)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{path.name}: {len(rows):,} lines, {path.stat().st_size / 1e6:.2f} MB")


def corpus(folder, name):
    "The passages of a set, by title and text. Their ids are a hash of these, and are left out."
    rows = sorted({(p.title, p.text): p.id for p in read_corpus(folder / f"{CORPORA[name]}.jsonl")}.items())
    wrong = [key for (title, text), key in rows if parse_passage(ID_PREFIX[name], title, text).id != key]
    assert not wrong, f"{len(wrong)} passages of {name} have ids that aren't their hash"
    return [key for _, key in rows], [list(row) for row, _ in rows]


def question(record, place):
    "A question with the places of its paragraphs in the corpus, and where their sentences end."
    pool = record["paragraphs"]
    kept = {
        k: record[k]
        for k in ("id", "question", "answers", "type", "hops", "supporting_facts", "evidences")
        if record.get(k)
    }
    kept["pool"] = [place[p["id"]] for p in pool]
    kept["supporting"] = [place[p["id"]] for p in pool if p["is_supporting"]]
    if any(p.get("sent_ends") for p in pool):
        kept["sent_ends"] = [p["sent_ends"] for p in pool]
    steps = record.get("decomposition") or []
    if steps:
        kept["decomposition"] = [[s["question"], s["answer"], place[s["support_id"]]] for s in steps]
    return kept


def made(folder, out, name):
    "The two files of a set."
    ids, passages = corpus(folder, name)
    place = {key: n for n, key in enumerate(ids)}
    with open(folder / f"{name}.dev.jsonl", encoding="utf-8") as f:
        records = [json.loads(line) for line in f]

    def usable(r):
        return re.fullmatch(PUBLISHED_IDS[name], r["id"]) and all(p["id"] in place for p in r["paragraphs"])

    chosen = sample_rows([Asked(r) for r in records if usable(r)], N, 0)
    written(out / f"{name}.dev.jsonl.xz", [question(a.record, place) for a in chosen])
    written(out / f"{name}_corpus.jsonl.xz", passages)


def vectors(out):
    "The embeddings of the questions and their own paragraphs: a few minutes."
    from treekit.corpora.bundled_questions import REAL, embedded_texts
    from treekit.retrieval.dense import Embedder

    save_vectors(out, {name: Embedder().compute(embedded_texts(name)) for name in REAL})


def save_vectors(out, made):
    "Each vector in steps of its largest number / 127: as whole numbers from -127 to 127."
    import numpy as np

    (out / "arrays").mkdir(exist_ok=True)

    def steps(v):
        return np.round(127 * v / np.abs(v).max(axis=1, keepdims=True)).astype(np.int8)

    np.savez_compressed(out / "arrays" / "minilm.npz", **{name: steps(v) for name, v in made.items()})


if __name__ == "__main__":
    places = [Path(a) for a in sys.argv[1:] if not a.startswith("--")]
    folder, out = places[0], places[1] if len(places) > 1 else Path(__file__).parent
    for name in CORPORA:
        made(folder, out, name)
    with_articles(folder, out)
    if "--arrays" in sys.argv:
        vectors(out)  # made from what lies in the kit's own data/real
