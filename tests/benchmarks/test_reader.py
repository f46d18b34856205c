"""The extractive reader on ten sets of real questions: exact match, F1 and cover-EM of one answer, and of whole methods.

`python tests/benchmarks/test_reader.py [--n 150] [--methods]` prints the tables
that `nbs/11_models/1_extractive/index.ipynb` shows. COVER-EM
stands apart: a list of answers would raise it, so the mean length of an answer and the share of lists stand beside it."""

import argparse, asyncio, json, os, random, sys
from functools import cache
from pathlib import Path

import pytest

from treekit.config import load_profile
from treekit.core.prompts import Prompt
from treekit.core.output_parsers import FINAL
from treekit.core.types import Passage, Question
from treekit.retrieval.bm25 import BM25
from treekit.scoring.short import cover_em, em, f1

FOLDER = Path(os.environ.get("TREEKIT_REAL") or "/nowhere")
FOLDER = next(
    (p for p in (FOLDER, *(d / "shared" / "data" for d in Path(__file__).resolve().parents[2:5])) if p.is_dir()), FOLDER
)
SETS = (
    "hotpotqa",
    "musique",
    "2wiki",
    "2wiki_hippo",
    "ambignq",
    "ramdocs",
    "asqa",
    "strategyqa",
    "korquad",
    "ko_strategyqa",
)
OVER = {
    "2wiki_hippo": "2wiki_hipporag_corpus",
    "asqa": "asqa_knowledge_corpus",
}  # sets without passages of their own: what is searched
ASKED = Prompt("benchmark.answer", "answer", "$documents\n$question", FINAL)


def lines(name):
    return map(json.loads, (FOLDER / f"{name}.jsonl").open(encoding="utf-8"))


@cache
def shelf(name):
    return BM25([Passage(d["id"], d["title"], d["text"]) for d in lines(name)])


def korquad():
    "Each question with its own paragraph and the four that are most like it."
    pages = [
        (p["title"], q)
        for p in json.loads((FOLDER / "original" / "KorQuAD_v1.0_dev.json").read_text(encoding="utf-8"))["data"]
        for q in p["paragraphs"]
    ]
    passages = [Passage(f"kq-{i}", title, p["context"]) for i, (title, p) in enumerate(pages)]
    search, rows = BM25(passages), []
    for own, (_, p) in zip(passages, pages):
        rows += [(own, qa) for qa in p["qas"]]
    for own, qa in random.Random(0).sample(rows, 400):
        near = [h.passage for h in search.search([qa["question"]], 5)[0] if h.passage.id != own.id][:4]
        yield Question(
            qa["id"],
            "korquad",
            qa["question"],
            tuple(a["text"] for a in qa["answers"]),
            lang="ko",
            paragraphs=(*near, own),
        )


def questions(name: str, n: int, seed: int = 0) -> list[Question]:
    "A sample of a set, each question with the passages that it is read from."
    if name == "korquad":
        return sorted(korquad(), key=lambda q: q.id)[:n]
    rows = list(lines(f"{name}.dev"))
    rows, out = random.Random(seed).sample(rows, min(n, len(rows))), []
    for r in rows:
        if name in OVER:
            pool = [h.passage for h in shelf(OVER[name]).search([r["question"]], 10)[0]]
        elif "facts" in r:
            pool = [Passage(str(i), "", fact) for i, fact in enumerate(r["facts"])]
        else:
            pool = [Passage(p["id"], p["title"], p["text"]) for p in r["paragraphs"]]
        right = tuple(p["id"] for p in r.get("paragraphs", ()) if p.get("is_supporting"))
        out.append(
            Question(
                r["id"],
                name,
                r["question"],
                tuple(r["answers"]),
                lang="ko" if name.startswith("ko_") else "en",
                paragraphs=tuple(pool),
                supporting=right,
            )
        )
    return out


def scores(pairs) -> dict[str, float]:
    "EM, F1 and COVER-EM in percent; words of an answer; percent of answers that are lists; percent without an answer."
    pairs = list(pairs)
    mean = lambda values: sum(map(float, values)) / len(pairs)
    silent = ("unknown", "알 수 없음", "")
    return dict(
        n=len(pairs),
        em=100 * mean(em(a, g) for a, g in pairs),
        f1=100 * mean(f1(a, g) for a, g in pairs),
        cover=100 * mean(cover_em(a, g) for a, g in pairs),
        words=mean(len(a.split()) for a, _ in pairs),
        lists=100 * mean(", or " in a for a, _ in pairs),
        none=100 * mean(a in silent for a, _ in pairs),
    )


def direct(name: str, n: int) -> dict[str, float]:
    "The reader's task *answer* alone."
    from treekit.models.extractive.client import ExtractiveClient

    chat = ExtractiveClient()

    async def said(q):
        [done] = await chat.complete(ASKED(question=q.question, documents=list(q.paragraphs)))
        return ASKED.read(done.text).value["answer"]

    return scores((asyncio.run(said(q)), q.answers) for q in questions(name, n))


def methods():
    from treekit.baselines import prompting, react
    from treekit.papers.searchr.method import SearchR
    from treekit.papers.treerare.method import TreeRare

    return {
        "zero-shot": prompting.methods()["zero-shot"],
        "ReAct*": react.ReAct(search="bm25"),
        "SEARCH-R*": SearchR(),
        "TreeRare (DT)": TreeRare(),
    }


def whole(names, n: int):
    "Whole methods over the questions' own paragraphs."
    from treekit.experiments.run import run

    profile = load_profile("offline", model="extractive", retriever="bm25s", search_scope="own", data=str(FOLDER))
    results = run(methods(), {d: questions(d, n) for d in names}, profile, progress=False)
    for m, d in results.cells():
        yield (
            d,
            m,
            scores((r.answer or "", r.question.answers) for r in results.rows if (r.method, r.dataset) == (m, d)),
        )
    if results.failures:
        print(f"{len(results.failures)} failed", results.failures[0], file=sys.stderr)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder with the sets: ../shared/data, or TREEKIT_REAL")
@pytest.mark.parametrize("name", SETS)
def test_one_answer_a_reply(name):
    "No list, and few words: the reader commits itself."
    found = direct(name, 40)
    assert found["lists"] == 0 and found["words"] < 6, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=150)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", action="store_true")
    given = parser.parse_args()
    show = lambda *names, **s: print(
        *names, " ".join(f"{k} {v:.1f}" if k != "n" else f"n={v}" for k, v in s.items()), flush=True
    )
    if given.methods:
        for d, m, s in whole([d for d in given.sets if d in ("hotpotqa", "musique", "2wiki")], given.n):
            show(d, m, **s)
    else:
        for name in given.sets:
            show(name, **direct(name, given.n))
