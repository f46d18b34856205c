"Every artefact with one of the sources of questions, each of which has its paper: it runs, or says in one line what it lacks."

import re
from pathlib import Path

import pytest

from treekit.artefacts.catalog import runnable
from treekit.artefacts.reproduce import reproduce_all

FIXTURES = Path(__file__).resolve().parents[1] / "data" / "fixtures"
SOURCES = dict(
    real="real",
    official=FIXTURES / "official",
    longbench=FIXTURES / "longbench",
    alce=FIXTURES / "alce",
    hub=f"hub:{FIXTURES / 'hub'}",
)
EACH = dict(
    treerare="official", toq="real", arise="hub", searchr="longbench", rdr2="alce", across="official", real="real"
)  # of papers
RAW = re.compile(r"^\w*(Error|Exception|Warning|Interrupt|Exit)\b(?!.*(UsageError|DataError))")


@pytest.mark.slow
@pytest.mark.parametrize("paper, source", EACH.items())
def test_no_raw_exception(paper, source, tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.setenv(
        "TREEKIT_HOME", str(tmp_path_factory.getbasetemp() / "home")
    )  # one for all, which embeds a corpus once
    names = [f"{r['paper']}/{r['artefact']}" for r in runnable((paper,))]
    tasks, _ = reproduce_all(tuple(names), "offline", str(tmp_path / "out"), 2, {}, data=str(SOURCES[source]), n=2)
    bad = {t.name: t.error for t in tasks if t.code and (RAW.match(t.error) or not t.error.strip() or "\n" in t.error)}
    assert not bad


def test_a_question_without_gold_paragraphs_ends_no_table():
    "ARISE's fact F1 isn't applicable to it; the other questions are judged."
    from treekit.core.method import Trace, Usage
    from treekit.core.types import Passage, Question
    from treekit.experiments.results import Results, Row
    from treekit.papers.arise.evaluation import facts_f1

    trace = Trace()
    trace.add("answer", "Ada", hits=[dict(id="p", title="", score=1.0)])
    pool = (Passage("p", "", "Ada made it."),)
    questions = [
        Question("1", "musique", "?", ("Ada",), paragraphs=pool),
        Question("2", "musique", "?", ("Ada",), paragraphs=pool, supporting=("p",)),
    ]
    rows = [Row("ARISE", "musique", q, "Ada", "", Usage(), load=lambda: trace) for q in questions]
    [score] = Results(rows).score(facts_f1, name="F1")
    assert score["value"] is None and "not applicable: 1 of 2 questions" in score["reason"]
