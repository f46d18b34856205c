"The sample of real questions: what is in it, that it reads as any source does, what is refused, and that it may be shared."

from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.config import UsageError
from treekit.corpora.bundled_questions import (
    REAL,
    BundledQuestions,
    question_paragraphs,
    bundled_vectors,
)
from treekit.experiments.provenance import questions_fact
from treekit.experiments.resources import datasets, exemplars, load, load_corpus

FOLDER = Path(__file__).resolve().parents[1] / "data" / "real"


def test_what_is_in_it():
    "As many questions as are stated, all of them published ones, with their supporting passages in their pool and in the corpus."
    assert {d: len(load(d, "real")) for d in datasets("real")} == {
        "hotpotqa": 200,
        "musique": 135,
        "2wiki": 200,
        "asqa": 84,
    }
    for d in REAL:
        questions, corpus = load(d, "real"), {p.id for p in load_corpus(d, "real")}
        assert questions_fact(d, questions).startswith(f"published {d}")
        for q in questions:
            pool = {p.id for p in q.paragraphs}
            assert q.answers and q.supporting and set(q.supporting) <= pool <= corpus
            assert all(s.support_id in pool for s in q.decomposition)


def test_it_is_a_source_like_others():
    assert load("musique", "real", n=5) == load("musique", "real", n=9)[:5] != load("musique", "real", n=5, seed=1)
    for wrong in (dict(name="eli5"), dict(name="musique", split="train")):
        with pytest.raises(UsageError):
            load(source="real", **wrong)
    with pytest.raises(UsageError, match="no train questions"):
        exemplars("musique", "real")
    assert len(BundledQuestions().passages("all")) == 21_506
    q = next(q for q in load("2wiki", "real") if q.triples)
    assert q.facts and all(q.sentences(p) for p in q.paragraphs)


def test_size_and_licences():
    "At most six megabytes; each set's licence and authors stand in the README; nothing that is only lent."
    assert sum(f.stat().st_size for f in FOLDER.rglob("*") if f.is_file() and "__pycache__" not in f.parts) <= 6_000_000
    said = (FOLDER / "README.md").read_text(encoding="utf-8")
    for words in (
        "CC BY-SA 4.0",
        "CC BY 4.0",
        "Apache-2.0",
        "EMNLP 2018",
        "TACL 2022",
        "COLING 2020",
        "What was changed",
    ):
        assert words in said
    assert {f.name.split(".")[0].removesuffix("_corpus") for f in FOLDER.glob("*.xz")} == {
        *REAL,
        "asqa",
        "asqa_articles",
    }


def test_vectors_fit_their_texts():
    np = pytest.importorskip("numpy")
    for d in REAL:
        vectors = bundled_vectors(d)
        assert {p.contents for p in question_paragraphs(d)} <= vectors.keys() and {
            q.question for q in load(d, "real")
        } <= vectors.keys()
        assert all(abs(float(np.linalg.norm(v)) - 1) < 1e-5 for v in vectors.values())
    title = {p.title: vectors[p.contents] for p in question_paragraphs("2wiki")}  # the vectors of the last set
    q = load("2wiki", "real")[0]
    near = sorted(title, key=lambda t: -float(title[t] @ vectors[q.question]))[:20]
    assert {p.title for p in q.paragraphs if p.id in q.supporting} & set(near)


@pytest.mark.parametrize("question", ["When did OpenAI release ChatGPT?", "Where was Pete Doherty born?"])
@pytest.mark.parametrize("more", [(), ("--data", "real")])
def test_ask_says_which_profile_reads_real_text(tmp_path, monkeypatch, question, more):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    found = CliRunner().invoke(main, ["ask", question, *more, "--method", "zero-shot"])
    assert found.exit_code and "--profile smollm2 reads real text" in found.output and "Traceback" not in found.output
