"""A small twin of the folder of real questions: the same file names and fields, written from the kit's own world.

What needs real questions skips where there are none, and runs on the twin everywhere. Its numbers are those of made-up text:
they say that the code works, not how well it reads.
"""

import functools, json, tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from treekit.corpora.articles import Article, Section
from treekit.experiments.resources import load, load_corpus
from treekit.synthetic.generate import SyntheticWiki

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
CORPORA = {
    "hotpotqa": "hotpotqa_corpus",
    "musique": "musique_corpus",
    "2wiki": "2wiki_pool_corpus",
    "asqa": "asqa_knowledge_corpus",
}
SOURCES = ("real", "twin")


def folder_of(source: str, *files: str) -> Path:
    "The folder of the real questions, or of their twin; a test that needs a file which isn't there is skipped."
    folder = REAL if source == "real" else _twin()
    if lacking := [f for f in files if not (folder / f).exists()]:
        pytest.skip(f"no {lacking[0]} among the {source} questions here")
    if not folder.is_dir():
        pytest.skip("no real questions beside the clone")
    return folder


@functools.cache
def _twin():
    "Forty questions of each data set with their passages, and forty articles."
    folder = Path(tempfile.mkdtemp(prefix="twin"))
    for name, corpus in CORPORA.items():
        lines(folder / f"{name}.dev.jsonl", (record(q) for q in load(name, "synthetic", n=40)))
        lines(folder / f"{name}_trainset.jsonl", (record(q) for q in load(name, "synthetic", "train", n=20)))
        lines(folder / f"{corpus}.jsonl", (asdict(p) for p in load_corpus(name, "synthetic")))
    lines(folder / "articles_freshwiki.jsonl", (page(a) for a in SyntheticWiki(60).articles()))
    return folder


def lines(path, records):
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")


def record(question) -> dict:
    "A question in the kit's own keyed lines, each paragraph marked as the real ones are."
    plain = asdict(question)
    ends = question.meta.get("sent_ends", {})

    def mark(p):
        return dict(is_supporting=p.id in question.supporting) | (dict(sent_ends=ends[p.id]) if p.id in ends else {})

    marks = [mark(p) for p in question.paragraphs]
    plain["paragraphs"] = [p | m for p, m in zip(plain["paragraphs"], marks, strict=True)]
    return {k: v for k, v in plain.items() if k not in ("meta", "facts")} | dict(
        supporting_facts=[list(f) for f in question.facts]
    )


def page(article: Article) -> dict:
    "An article as the real pages are written: nested sections with a title and a text."

    def sections(parts):
        return [dict(title=s.heading, text=text(s), sections=sections(s.sections)) for s in parts if s.heading]

    def text(section: Section):
        return "\n".join(p.passage.text for p in section.paragraphs)

    lead = " ".join(text(s) for s in article.sections if not s.heading)
    return dict(id=article.id, title=article.title, text=lead, sections=sections(article.sections))
