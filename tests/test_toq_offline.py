"What the offline reader is worth as Tree-of-Question's planner: decompositions, queries, responses and judgements, on the world's train split, in Korean and in English; and what it does with bad input."

import re, unicodedata
from functools import cache

import pytest

from treekit.retrieval.bm25 import BM25
from treekit.config import load_profile
from treekit.core.types import Passage
from treekit.papers.toq.evaluation import CAUSES, cause
from treekit.experiments.resources import load, load_corpus
from treekit.models.extractive.client import HANDLERS
from treekit.experiments.run import run
from treekit.papers.toq.method import METHODS

N = 60  # questions, of four types


def handle(task, **inputs):
    return HANDLERS[task](**inputs)


@cache
def shelf(name):
    corpus = load_corpus(name)
    return BM25(corpus)


def found(name, question, k=3):
    return [h.passage for h in shelf(name).search([handle("search_query", question=question)], k)[0]]


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


@pytest.mark.long
def test_responses_are_short_korean_with_fitting_particles():
    for q in load("komultihop", split="train", n=N):
        R = handle("respond", question=q.question, queries="", documents=found("komultihop", q.question))
        assert R and not re.search(r"[은이을과]\([는가를와]\)|\[ANS_", R) and len(re.findall(r"[다요]\.", R)) <= 5


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


HOSTILE = [
    "",
    " ",
    "?",
    "😀",
    "😀 영화 중에서 가장 긴 것은?",
    "중에서",
    "가장 중에서 가장",
    "〈〈〈",
    "와 과 와 과",
    "[ANS_1]",
    "[ANS_1] 중에서 가장 긴 것은 무엇인가요?",
    "가" * 5000,
    "벨란토가 감독한 영화의 음악은 " * 280,
    "the film that " * 360 + "?",
    "A and B " * 620,
    "X와 Y 중에서 " * 500,
    unicodedata.normalize("NFD", "서울의 인구는 몇 명인가요?"),
    "韓國의 수도는 어디인가요?",
    '{"a": 1}\n\0',
    "Who is " + "X's " * 1000,
    "서울 population은 얼마?",
]


@pytest.mark.parametrize("question", HOSTILE, ids=lambda q: repr(q[:12]))
def test_hostile_questions_and_responses(question):
    documents = [
        Passage("1", "빌려온 등불 (1974년 영화)", "〈빌려온 등불〉은 벨란토 스트란드가 감독한 모험 영화이다."),
        "",
        "질문? ",
        "a" * 5000,
        Passage("2", "", ""),
        "소르의 인구는 몇 명인가요?: 소르의 인구는 6만 명입니다.",
    ]
    steps = handle("decompose_question", question=question)
    assert steps and all(isinstance(s, str) for s in steps) and len(steps) <= 1000
    assert isinstance(handle("search_query", question=question), str)
    assert isinstance(handle("thought_query", question=question)["query"], str)
    assert isinstance(handle("respond", question=question, queries=question, documents=documents), str)
    assert handle("integrate_answer", question=question, documents=documents)["relevance"] in ("relevant", "irrelevant")
    for q, r in ((question, question), ("소르의 인구는 몇 명인가요?", question), ("Who directed The Lamp?", question)):
        assert isinstance(handle("evaluate_response", question=q, response=r)["response_validity"], bool)
    said = handle("follow_up", question=question, steps=["Follow up: a Intermediate answer: b", "junk"])
    assert bool(said["question"]) != bool(said["answer"]) and handle(
        "thought", question=question, documents=documents, thoughts=["a"]
    )


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
