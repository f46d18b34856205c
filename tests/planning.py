"""A model that plans: the questions of Tree-of-Question's Table 1, what they are decomposed into, and what is found for each part.

As a `LLMClient` (`Planner`) and as replies for the local server (`reply`). It knows no more than a model would: a response holds what the
documents say of what is needed, and is valid if nothing is missing.
"""

import json, random, re
from dataclasses import dataclass, field

from fakes import FakeChat, FakeShelf
from treekit.retrieval.bm25 import Hit
from treekit.core.types import Passage


@dataclass
class Example:
    question: str
    decompositions: dict  # question -> sub-questions
    facts: dict  # question -> what is found for it: its span
    needed: dict  # question -> what its response must hold
    shape: list = field(default_factory=list)  # (level, number, depends_on) of the sub-questions
    valid_at: int = 2


def two(question, found, slot=""):
    "Two sub-questions, with what is found for each; `slot` is the second as it is planned, if it needs the first's answer."
    first, second = found
    return Example(
        question,
        {question: [first, slot or second]},
        found,
        {question: [*found.values()]},
        [(2, 1, []), (2, 2, [1] if slot else [])],
    )


def hybrid(question, first, slot, among, single, films, numbers):
    asked = among.format(", ".join(films))
    return Example(
        question,
        {question: [first, slot], asked: [single.format(f) for f in films]},
        {first: ", ".join(films)} | {single.format(f): n for f, n in zip(films, numbers)},
        {question: [films[1], numbers[1]], asked: [films[1], *numbers]},
        [(2, 1, []), (2, 2, [1]), *((3, i, []) for i in range(1, 6))],
        3,
    )


NUMBERS = ("656.3", "1044", "960", "865", "794")
EXAMPLES = {
    ("bridging", "ko"): two(
        "BMW i5와 비슷한 가격대의 전기차 추천해주세요.",
        {
            "BMW i5의 가격대는 얼마인가요?": "1억 2천만 원",
            "1억 2천만 원과 비슷한 가격대의 전기차는 무엇인가요?": "EQE 350",
        },
        "[ANS_1]와(과) 비슷한 가격대의 전기차는 무엇인가요?",
    ),
    ("intersection", "ko"): two(
        "놀란 감독의 작품 중 오펜하이머가 출연한 영화가 있나요?",
        {"오펜하이머의 출연작은 무엇인가요?": "다큐멘터리 두 편", "놀란 감독의 작품은 무엇인가요?": "메멘토, 덩케르크"},
    ),
    ("comparison", "ko"): two(
        "갤럭시랑 아이폰 중 어느 핸드폰이 배터리 수명이 더 긴가요?",
        {"갤럭시의 배터리 수명은 얼마인가요?": "31시간", "아이폰의 배터리 수명은 얼마인가요?": "29시간"},
    ),
    ("hybrid", "ko"): hybrid(
        "캐리비안의 해적 시리즈중 제일 관객수가 많은게 뭐야?",
        "캐리비안의 해적 시리즈에는 어떤 영화가 있나요?",
        "[ANS_1] 중에서 관객 수가 가장 많은 영화는 무엇인가요?",
        "{} 중에서 관객 수가 가장 많은 영화는 무엇인가요?",
        "{}의 관객 수는 몇 명인가요?",
        [f"캐리비안의 해적 {i}" for i in range(1, 6)],
        [f"{n}백만 명" for n in NUMBERS],
    ),
    ("bridging", "en"): two(
        "Recommend an electric car in a similar price range to the BMW i5.",
        {"How much is a BMW i5?": "120 million won", "Which electric cars cost about 120 million won?": "the EQE 350"},
        "Which electric cars cost about [ANS_1]?",
    ),
    ("intersection", "en"): two(
        "Are there any films by Director Nolan starring Oppenheimer?",
        {
            "Which films is Oppenheimer in?": "two documentaries",
            "Which films are by Director Nolan?": "Memento, Dunkirk",
        },
    ),
    ("comparison", "en"): two(
        "Which phone has a longer battery life, Galaxy or iPhone?",
        {"How long does a Galaxy's battery last?": "31 hours", "How long does an iPhone's battery last?": "29 hours"},
    ),
    ("hybrid", "en"): hybrid(
        "Which of the Pirates of the Caribbean series has the largest audience?",
        "Which films are in the Pirates of the Caribbean series?",
        "Which of [ANS_1] has the largest audience?",
        "Which of {} has the largest audience?",
        "How large is the audience of {}?",
        [f"Pirates of the Caribbean {i}" for i in range(1, 6)],
        [f"{n} million" for n in NUMBERS],
    ),
}
BY_QUESTION = {q: e for e in EXAMPLES.values() for q in (e.question, *e.decompositions, *e.facts)}


def said(task, q, text, example):
    "The reply to a prompt; `text` is what follows the question or the documents in it."
    needed = example.needed.get(q, [example.facts.get(q, "an answer that nobody has")])
    there = [s for s in needed if s in text]
    if task == "decompose":
        return (
            "\n".join(f"{i}. {s}" for i, s in enumerate(example.decompositions[q], 1))
            if q in example.decompositions
            else q
        )
    if task == "query":
        return f"Query: {q}"
    if task == "respond":
        return f"Found: {'; '.join(there)}." if there else "Nothing found."
    if task == "integrate":
        return json.dumps(
            dict(relevance="relevant", answer_span=needed[0])
            if len(there) == len(needed)
            else dict(relevance="irrelevant", answer_span="None"),
            ensure_ascii=False,
        )
    good = len(there) == len(needed)
    return json.dumps(
        dict(
            semantic_coherence=9 if good else 5,
            answerability=95 if good else 20,
            overall_assessment=9 if good else 4,
            response_validity=good,
        )
    )


def reply(body):
    "For tests/openai_server.py: the task and the question by the prompt's words."
    text = "\n".join(m["content"] for m in body["messages"])
    task = next(
        t
        for t, mark in dict(
            integrate='"answer_span"', decompose="[ANS_N]", query='"Query:"', evaluate="semantic_coherence", respond=""
        ).items()
        if mark in text
    )
    q = re.findall(r"^(?:질문|Question): (.*)$", text, re.M)[-1]
    if task == "respond":
        text = text.rsplit(q, 1)[0]  # the documents stand before the question
    else:
        text = text.rsplit(q, 1)[1]
    return said(task, q, text, BY_QUESTION[q])


class Shelf(FakeShelf):
    "Finds what an example has for a question, and a page that doesn't matter."

    def __init__(self):
        super().__init__(self.of, "shelf")

    def of(self, query):
        fact = BY_QUESTION[query].facts.get(query) if query in BY_QUESTION else None
        return [
            Hit(Passage(f"p{i}", "", t), 3.0 - i, i + 1)
            for i, t in enumerate([fact, "A page about something else."])
            if t
        ]


class Replies(FakeChat):
    "A `LLMClient` whose replies are a function of part of the method, question and inputs."

    def __init__(self, says, pauses=None, at_once=None):
        super().__init__(
            latency=1 / 500 if pauses else 0, pauses=pauses and random.Random(pauses), at_once=at_once, tokens=(5, 2)
        )
        self.says = says

    def reply(self, request, sample):
        return self.says(request.prompt.name.split(".")[1], request.inputs["question"], request.inputs)

    @property
    def parts(self):
        return [(r.prompt.name.split(".")[1], r.inputs["question"]) for r in self.asked]


def planner(part, q, inputs):
    "What `Replies` says of the examples."
    return said(
        part,
        q,
        "\n".join(getattr(d, "text", d) for d in inputs.get("documents", [])) + inputs.get("response", ""),
        BY_QUESTION[q],
    )
