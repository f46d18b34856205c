"What the offline reader is worth as Tree-of-Question's planner: decompositions, queries, responses and judgements, on the world's train split, in Korean and in English; and what it does with bad input."

import re

import pytest

from treekit.config import load_profile
from treekit.papers.toq.evaluation import CAUSES, cause
from treekit.experiments.resources import load, load_corpus
from treekit.models.extractive.client import HANDLERS
from treekit.experiments.run import run
from treekit.papers.toq.method import METHODS


def handle(task, **inputs):
    return HANDLERS[task](**inputs)


def slots(steps, mark):
    return [tuple(map(int, re.findall(mark, s))) for s in steps]


def test_a_list_is_taken_apart_item_by_item():
    asked = handle(
        "decompose_question",
        question="〈겨울 빙하〉, 〈없어진 봉투〉와 〈A와 B〉 중에서 상영 시간이 가장 긴 것은 무엇인가요?",
    )
    assert asked == [f"{name}의 상영 시간은 얼마인가요?" for name in ("〈겨울 빙하〉", "〈없어진 봉투〉", "〈A와 B〉")]


@pytest.mark.parametrize(
    "question, shape",
    [
        ("BMW i5와 비슷한 가격대의 전기차를 추천해 주세요.", [(), (1,)]),
        ("놀란 감독의 작품 중 오펜하이머가 출연한 영화가 있나요?", [(), ()]),
        ("갤럭시랑 아이폰 중 어느 핸드폰이 배터리 수명이 더 긴가요?", [(), ()]),
        ("캐리비안의 해적 시리즈 중 제일 관객 수가 많은 게 뭐야?", [(), (1,)]),
        ("1977년 고촌 지역의 사진을 보여 주세요.", [()]),
    ],
)
def test_the_papers_own_examples(question, shape):
    "Table 1's four types, and the question of Sec. 5.4 that can't be decomposed."
    assert slots(handle("decompose_question", question=question), r"\[ANS_(\d)\]") == shape


def test_judgements_are_in_range_and_follow_the_response():
    q, grounds = (
        "벨란토 스트란드가 감독한 영화의 음악을 작곡한 사람은 누구인가요?",
        "벨란토 스트란드가 감독한 영화는 〈빌려온 등불〉입니다. 〈빌려온 등불〉의 음악은 모리크 그렌이 맡았다.",
    )
    whole = handle(
        "evaluate_response",
        question=q,
        response=f"벨란토 스트란드가 감독한 영화의 음악을 작곡한 사람은 모리크 그렌입니다. {grounds}",
    )
    other = handle(
        "evaluate_response",
        question=q,
        response=f"벨란토 스트란드가 감독한 영화의 음악을 작곡한 사람은 소르 달입니다. {grounds}",
    )
    silent = handle("evaluate_response", question=q, response="문서에서 답을 찾지 못했습니다.")
    assert whole["response_validity"] and not other["response_validity"] and not silent["response_validity"]
    assert whole["answerability"] > other["answerability"] > silent["answerability"]
    for e in (whole, other, silent):
        assert 1 <= e["semantic_coherence"] <= 10
        assert 0 <= e["answerability"] <= 100
        assert e["overall_assessment"] == (e["semantic_coherence"] + e["answerability"] / 10) / 2


def test_the_rules_for_error_cases_count_each_question_once():
    questions = {"komultihop": load("komultihop", n=12)}
    rows = run(
        {"ToQ (ours)": METHODS["ToQ (ours)"]}, questions, load_profile("offline", model="extractive"), progress=False
    ).rows
    corpus = {p.id: p for p in load_corpus("komultihop")}
    ended = [cause(r, corpus) for r in rows]
    assert set(ended) <= set(CAUSES) and "long-tail" not in ended
    thinned = {i: p for i, p in corpus.items() if i not in {q.supporting[0] for q in questions["komultihop"]}}
    assert all(
        c in ("long-tail", "valid and right", "wrong but judged valid") for c in (cause(r, thinned) for r in rows)
    )
