"Question trees (HQDT): the format of the reply, the nodes, and slots for the answers of earlier sub-questions."

import json, re
from dataclasses import dataclass, field

from treekit.baselines.subquestions import all_paths
from treekit.core.answer_extraction import unfenced
from treekit.core.logical_clock import Promise
from treekit.core.method import Node
from treekit.core.output_parsers import tolerant

from .confidence import Candidate

MOST_CHILDREN = 8  # sub-questions of one question; further ones are left out


@dataclass(frozen=True)
class Decomposition:
    "A question's sub-questions in a reply, and the words of their list, whose log-probabilities are its confidence."

    question: str  # the first one is the question that was asked, whatever it is called
    subquestions: tuple[str, ...]
    written: str = ""  # empty: the list isn't in the reply in one piece


# --- the reply
_ANS = re.compile(r"\[ANS_(\d+)\]")


def _list_at(text, start, wanted):
    "(start, end) of the JSON list that has a value, from a position on; None if there is none."
    while (start := text.find("[", start)) >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            value, end = None, start
        if value == wanted:
            return start, end
        start += 1
    return None


def _is_tree(value):
    lists = isinstance(value, dict) and value and list(value.values())
    return lists and all(isinstance(items, list) and all(isinstance(t, str) for t in items) for items in lists)


def _objects(text):
    "JSON objects of a text that can be trees."
    start = 0
    while (start := text.find("{", start)) >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            value, end = None, start + 1
        if _is_tree(value):
            yield value, start
        start = end


def read_tree(text: str) -> tuple[list[Decomposition], list[str]]:
    "Decompositions of a reply in order, and what had to be assumed. A list of questions is a tree of one level."
    found = next(_objects(unfenced(text)), None)
    if found is None:
        paths, _ = all_paths(text)
        if not paths:
            return [], ["no JSON object of questions in the reply; the question isn't decomposed"]
        return [Decomposition("", tuple(paths[0]))], [
            "no JSON object of questions in the reply; a list of questions is taken"
        ]
    said, made = unfenced(text), []
    tree, at = found
    for question, subquestions in tree.items():
        place = _list_at(said, at, subquestions)
        if place:
            at = place[1]
        made.append(Decomposition(question, tuple(subquestions), said[slice(*place)] if place else ""))
    return made, []


def write_tree(value) -> str:
    "Reply of a tree. A list of sub-questions, as the offline models give one, is a tree of one level."
    made = value if value and isinstance(value[0], Decomposition) else [Decomposition("question", tuple(value))]
    return json.dumps({d.question: [_ANS.sub(r"#\1", s) for s in d.subquestions] for d in made}, ensure_ascii=False)


TREE = tolerant(read_tree, write_tree)


# --- the tree
@dataclass(eq=False)
class QuestionNode:
    "Question of a tree, with what is found out about it."

    text: str  # with slots
    number: int  # among its siblings, from 1
    parent: "QuestionNode | None" = None
    children: list["QuestionNode"] = field(default_factory=list)
    written: str = ""  # the list of its sub-questions in the reply
    decomposition: float | None = None  # mean log-probability of that list
    question: str = ""  # with the answers in its slots
    filled: list[str] = field(default_factory=list)  # the answers that went into its slots
    best: Candidate = Candidate("", "")  # chosen answer
    record: Node | None = None  # its node in the trace
    answers: dict[str, Node] = field(default_factory=dict)  # source -> its answer's node in the trace
    ready: Promise | None = None  # set when `best` is known

    def __iter__(self):
        "The node and its descendants, each before its children."
        yield self
        for child in self.children:
            yield from child

    @property
    def below(self) -> list["QuestionNode"]:
        "Descendants, each after its children: the order in which they are answered."
        return [n for child in self.children for n in (*child.below, child)]


def build_tree(
    question: str,  # as it was asked
    decompositions: list[Decomposition],
    most: int = 30,  # questions of the tree
) -> tuple[QuestionNode, list[str]]:  # the root, and what was left out
    "Question tree of a reply. A sub-question that repeats a question above it, or itself, ends its branch."
    known, left, notes = {d.question: d for d in decompositions}, most - 1, []
    root = QuestionNode(question, 1)
    waiting = [(root, decompositions[0])] if decompositions else []
    while waiting:
        node, found = waiting.pop(0)
        above = _above(node) | {found.question}
        texts = [" ".join(t.split()) for t in found.subquestions]
        if any(not t or t in above for t in texts):
            if len(texts) > 1:
                notes.append("a list that repeats its question, or has an empty one, is left out")
            continue
        if len(texts) > min(MOST_CHILDREN, left):
            notes.append(f"{len(texts)} sub-questions; the first {min(MOST_CHILDREN, left)} are asked")
            texts = texts[: min(MOST_CHILDREN, left)]
        left -= len(texts)
        node.written = found.written
        node.children = [QuestionNode(text, number, node) for number, text in enumerate(texts, 1)]
        waiting += [(child, known[child.text]) for child in node.children if child.text in known]
    return root, notes


def _above(node):
    "Texts of a node and of the questions above it."
    found = set()
    while node is not None:
        found, node = found | {node.text}, node.parent
    return found


# --- slots
_SLOT = re.compile(r"<(\d{1,2})>|#(\d{1,2})\b|\[ANS_(\d{1,2})\]")


def slots(text: str) -> list[int]:
    "Numbers of the sub-questions whose answers a question needs: `#1` as in MuSiQue's trees, `<1>` as in HotpotQA's."
    return list(dict.fromkeys(int(next(filter(None, m.groups()))) for m in _SLOT.finditer(text)))


def fill(text: str, answers: dict[int, str]) -> str:
    "Question with the known answers in its slots."
    return _SLOT.sub(lambda m: answers.get(int(next(filter(None, m.groups()))), m[0]), text)
