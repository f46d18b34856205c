"""A model that walks reasoning paths: questions with their paths, and what is found for each sub-question once its references are written
out.

As what `planning.Replies` says (`guide`) and as replies for the local server (`reply`); and a corpus for them, with trees and entities
that take no parser.
"""

import json, re
from dataclasses import dataclass

from fakes import RunsOfCapitals
from treekit.core.types import Passage
from treekit.syntax.entities import Annotations
from treekit.experiments.resources import Corpus
from treekit.language.coreference import UNFOUND, depends_on, find_references, parse_history


@dataclass
class Example:
    question: str
    path: list  # the sub-questions
    facts: dict  # sub-question as it is asked -> answer, in the path's order
    answer: str
    calls: int
    critical_path: int


EXAMPLES = dict(
    table6=Example(
        "Who plays the wife of the producer of Here Comes the Boom in Grown Ups?",
        ["Who is the producer of Here Comes the Boom?", "Who plays the wife of this producer in Grown Ups?"],
        {
            "Who is the producer of Here Comes the Boom?": "Kevin James",
            "Who plays the wife of Kevin James in Grown Ups?": "Maria Bello",
        },
        "Maria Bello",
        6,
        6,
    ),
    chain=Example(
        "In which county is the birthplace of the author of Grey Harbour?",
        ["Who wrote Grey Harbour?", "Where was this author born?", "In which county is this place?"],
        {
            "Who wrote Grey Harbour?": "Ida Roth",
            "Where was Ida Roth born?": "Tarn",
            "In which county is Tarn?": "Voss County",
        },
        "Voss County",
        9,
        9,
    ),
    # MuSiQue's "A -> C, B -> C, C -> D" (Sec. 3.1)
    branch=Example(
        "When did the person die who was born where Norden Lyceum is and studied where Orrin Sark did?",
        [
            "Where is Norden Lyceum?",
            "Where did Orrin Sark study?",
            "Who was born in #1 and studied at #2?",
            "When did this person die?",
        ],
        {
            "Where is Norden Lyceum?": "Tarn",
            "Where did Orrin Sark study?": "Sark Academy",
            "Who was born in Tarn and studied at Sark Academy?": "Ilsa Brandt",
            "When did Ilsa Brandt die?": "1702",
        },
        "1702",
        10,
        9,
    ),
    comparison=Example(
        "Who was born first, Ada Roth or Ida Lund?",
        ["When was Ada Roth born?", "When was Ida Lund born?", "Which of these two is the earlier date?"],
        {
            "When was Ada Roth born?": "1702",
            "When was Ida Lund born?": "1671",
            "Which of 1702 and 1671 is the earlier date?": "1671",
        },
        "Ida Lund",
        7,
        6,
    ),
    whole=Example(
        "Who wrote Grey Harbour?",
        ["Who wrote Grey Harbour?"],
        {"Who wrote Grey Harbour?": "Ida Roth"},
        "Ida Roth",
        2,
        2,
    ),
)
BY_QUESTION = {e.question: e for e in EXAMPLES.values()}
FACTS = {q: a for e in EXAMPLES.values() for q, a in e.facts.items()}
PASSAGES = [Passage(f"p{i}", "", f"{q} It is {a}.") for i, (q, a) in enumerate(FACTS.items())] + [
    Passage("plain", "", "nothing here is a name"),
    Passage("empty", "", "…"),
]


def corpus(passages=PASSAGES):
    return Corpus(passages, "examples", Annotations(RunsOfCapitals()))


def rewritten(question, earlier):
    "The question with answers in place of the words that refer to them."
    answers = {n: a for n, _, a in earlier if a}
    for r in reversed(find_references(question, earlier)):
        if r.form in ("noun", "owner") and r.to and all(n in answers for n in r.to):
            said = " and ".join(answers[n] for n in r.to) + "'s" * (r.form == "owner")
            question = question[: r.start] + said + question[r.end :]
    return question


def said(part, question, history="", documents=""):
    "The reply to a prompt of `treekit.baselines.subquestions` or of SEARCH-R."
    if part == "navigate":
        return json.dumps(BY_QUESTION[question].path)
    if part == "generate":
        return json.dumps([BY_QUESTION[question].path, [question]])
    if part == "unclear":
        return (
            "Yes" if depends_on([*(q for _, q, _ in parse_history(history)), question])[-1] or "#" in question else "No"
        )
    if part == "reformulate":
        return rewritten(question, tuple(parse_history(history)))
    if part == "answer":
        return (
            f"Explanation: a document says so.\nFINAL: "
            f"{FACTS[question] if question in FACTS and FACTS[question] in documents else 'unknown'}"
        )
    return f"FINAL: {BY_QUESTION[question].answer if UNFOUND not in history else 'unknown'}"


def guide(part, question, inputs):
    "What `planning.Replies` says of the examples."
    return said(part, question, inputs.get("history", ""), " ".join(d.text for d in inputs.get("documents", [])))


# the last ones are looked for last
MARKS = dict(
    generate="two lists",
    navigate="Sub-questions:",
    unclear="Yes or No:",
    reformulate="Rewritten:",
    integrate="Sub-questions and their answers:",
    answer="Documents:",
)


def part_of(text):
    "Which prompt a text is."
    return next(part for part, mark in MARKS.items() if mark in text)


def reply(body):
    "For tests/openai_server.py: the prompt and the question by the text's words."
    text = body["messages"][-1]["content"]
    part = part_of(text)
    question = re.findall(r"^(?:Question|Next): (.*)$", text, re.M)[-1]
    return said(part, question, text, text)
