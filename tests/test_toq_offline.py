"Tree-of-Question's causes of wrong answers, with the simulated model."

from treekit.config import load_profile
from treekit.papers.toq.evaluation import CAUSES, cause
from treekit.experiments.resources import load, load_corpus
from treekit.experiments.run import run
from treekit.papers.toq.method import METHODS


def test_the_rules_for_error_cases_count_each_question_once():
    questions = {"komultihop": load("komultihop", n=12)}
    rows = run({"ToQ (ours)": METHODS["ToQ (ours)"]}, questions, load_profile("offline"), progress=False).rows
    corpus = {p.id: p for p in load_corpus("komultihop")}
    ended = [cause(r, corpus) for r in rows]
    assert set(ended) <= set(CAUSES) and "long-tail" not in ended
    thinned = {i: p for i, p in corpus.items() if i not in {q.supporting[0] for q in questions["komultihop"]}}
    assert all(
        c in ("long-tail", "valid and right", "wrong but judged valid") for c in (cause(r, thinned) for r in rows)
    )
