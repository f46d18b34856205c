"""Prompts of ProbTree, in words of our own: the paper's are few-shot prompts of a completion model, and a chat model needs none.

`data/prompts.csv` names the authors' files. The second word of a prompt is its task: what the offline models do when they are
asked this. A task gives a value, which the prompt's format writes as a reply of ours."""

import re

from treekit.baselines.subquestions import known_answer
from treekit.core.answer_extraction import unfenced
from treekit.core.output_parsers import FINAL, tolerant
from treekit.core.prompts import Prompt

from .tree import TREE

_SO = re.compile(r"\bso,?\s+the\s+(?:final\s+)?answer\s+is\b\s*:?[ \t]*", re.I)


def read_answer(text: str) -> tuple[dict, list[str]]:
    "Explanation and answer of a reply that ends in *So the answer is: …*; an answer that says it is unknown is empty."
    said = unfenced(text).strip()
    marks = list(_SO.finditer(said))
    if not marks:
        value = FINAL.fallback(text)
        value = dict(value, answer=value["answer"] if len(value["answer"].split()) <= 20 else "", explanation="")
        return _known(value), ["no 'So the answer is' in the reply: its explanation has no confidence"]
    answer = said[marks[-1].end() :].strip().partition("\n")[0].strip().strip('*"“”').removesuffix(".").strip()
    return _known(dict(answer=answer, explanation=said[: marks[0].start()].strip())), []


def _known(value):
    return value | dict(answer=known_answer(value["answer"]))


ANSWER = tolerant(read_answer, lambda v: f"{v['explanation']} So the answer is: {v['answer'] or 'Unknown'}.")

DECOMPOSE = Prompt(
    "probtree.decompose",
    "decompose_question",
    """\
Break a question down into a tree of simpler questions. The question itself is the root. Every other question is a part of the one above \
it, and helps to answer it. A question that can be looked up at once is not broken down further.

Write the tree as one JSON object. Its keys are the questions that are broken down, the root first; the value of each is the list of its \
sub-questions. Write #1, #2, … where a sub-question needs the answer of the first, the second, … of the same list.

Question: Is the club that plays at Sark Park older than the harbour of Tarn?
Tree: {"Is the club that plays at Sark Park older than the harbour of Tarn?": ["When was the club that plays at Sark Park founded?", \
"When was the harbour of Tarn built?"], "When was the club that plays at Sark Park founded?": ["Which club plays at Sark Park?", \
"When was #1 founded?"]}

Question: $question
Tree:""",
    TREE,
    defaults=dict(max_tokens=512),
)

_ENDING = "Explain step by step in one to three sentences, and end with the words: So the answer is: …"

CLOSED_BOOK = Prompt(
    "probtree.closed_book",
    "answer_short",
    f"""\
Answer the question from what you know. {_ENDING}

Question: $question
Answer:""",
    ANSWER,
    defaults=dict(max_tokens=256),
)

OPEN_BOOK = Prompt(
    "probtree.open_book",
    "answer_short",
    f"""\
Answer the question from the passages. If they don't answer it, the answer is Unknown. {_ENDING}

Passages:
$documents

Question: $question
Answer:""",
    ANSWER,
    defaults=dict(max_tokens=256),
)

AGGREGATE = Prompt(
    "probtree.child_aggregating",
    "integrate_answers",
    f"""\
A question was broken down. Answer it from the answers of its sub-questions, some of which may be missing or wrong. {_ENDING}

Sub-questions and their answers:
$history

Question: $question
Answer:""",
    ANSWER,
    defaults=dict(max_tokens=256),
)

PROMPTS = (DECOMPOSE, CLOSED_BOOK, OPEN_BOOK, AGGREGATE)
