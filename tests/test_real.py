"The sample of real questions: what is in it, that it reads as any source does, what is refused, and that it may be shared."

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.cli.ask import NOT_FOUND, answer
from treekit.config import UsageError, load_profile
from treekit.corpora.bundled_questions import (
    REAL,
    BundledQuestions,
    question_paragraphs,
    bundled_vectors,
)
from treekit.experiments.provenance import questions_fact
from treekit.experiments.resources import datasets, exemplars, load, load_corpus
from treekit.papers.registry import method
from treekit.retrieval.bm25 import BM25
from treekit.retrieval.answerability import AnswerabilityIndex

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


ANSWERED = (
    "Who directed the film Kiss and Tell?",
    "Where was Pete Doherty born?",
    "Which of Jonny Craig and Pete Doherty has been a member of more bands?",
    "Who is the father of Edward Baring, 1st Baron Revelstoke?",
    "Where was the place of burial of Charles Mathew's father?",
    "Which film was released earlier, Past Minutes or Made Men?",
    "Who was born earlier, Raúl Osorio or James B. Harris?",
    "Who is Gülçiçek Hatun's mother-in-law?",
    "What nationality is Krisztina Nyáry's husband?",
    "Are Darren Benjamin Shepherd and Rémi Lange both American?",
)
UNANSWERED = (
    "What is the shoe size of Pete Doherty?",  # somebody whom the passages know
    "Who won the FIFA World Cup in 2038?",
    "When did OpenAI release ChatGPT?",
    "Who painted the ceiling of the Sistine Chapel?",
    "Which telescope discovered the exoplanet Kepler-442b?",
)
RIGHT = {
    ANSWERED[6]: "James B. Harris",
    ANSWERED[8]: "Hungarian",
    ANSWERED[9]: "no",
}  # of the four that the sample has, with its answers
DATED = "What did Pete Doherty eat for breakfast on 3 May 1999?"  # some of its passages are of that year, and speak of eating


@pytest.mark.slow
def test_ten_questions_and_five_that_nothing_answers():
    grounds = AnswerabilityIndex(BM25(BundledQuestions().passages("all")))
    assert [q for q in ANSWERED if grounds.evidence(q).reason] == []
    assert [q for q in (*UNANSWERED, DATED) if not grounds.evidence(q).reason] == []
    assert grounds.evidence(DATED).spoken_of == 0


@pytest.mark.slow
def test_ask_answers_ten_and_refuses_the_others(tmp_path, monkeypatch):
    "The whole of `ask`, with the default method: what it answers, and who."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    P, named = load_profile("offline", data="real"), "treerare"
    found = {q: answer(q, named, method(named), "ask", P, progress=False) for q in (*ANSWERED, *UNANSWERED, DATED)}
    assert {q for q, a in found.items() if a.record["answer"] == NOT_FOUND} == {*UNANSWERED, DATED}
    assert {q: found[q].record["answer"] for q in RIGHT} == RIGHT
    assert {a.model for a in found.values()} == {"extractive (asked: simulated)"}


@pytest.mark.long
def test_ask_says_what_it_does_not_find(tmp_path, monkeypatch):
    "From the command line; the second time from the store, with the same words."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    command = ["ask", UNANSWERED[2], "--data", "real", "--method", "zero-shot"]
    for _ in range(2):
        found = CliRunner().invoke(main, command)
        assert found.exit_code == 0, found.output
        assert f"answer: {NOT_FOUND}" in found.output and "no passage has 'openai' or 'chatgpt'" in found.output
    said = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    assert said["answer"] == NOT_FOUND and said["unfounded"] and said["stored"]
    found = CliRunner().invoke(main, ["ask", "Where was Pete Doherty born?", "--data", "real", "--method", "zero-shot"])
    assert found.exit_code == 0 and NOT_FOUND not in found.output and "model extractive, " in found.output


def test_the_world_is_asked_as_before():
    from treekit.cli.ask import _unfounded

    assert _unfounded("Who won the FIFA World Cup in 2038?", "unknown", load_profile("offline"), None) == ""
