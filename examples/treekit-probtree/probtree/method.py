"ProbTree: a question becomes a tree, and every node of it takes the most confident of up to three answers, from the leaves to the root."

import math
from dataclasses import dataclass
from typing import Literal

from treekit.baselines.iterative import IRCoT, plain_question
from treekit.baselines.prompting import RetrieveAndRead
from treekit.config import UsageError
from treekit.core.logical_clock import Promise
from treekit.core.method import Context, Prediction, check_fields, gather_or_cancel, hit_records
from treekit.core.types import Question
from treekit.language.coreference import render_history

from .confidence import CHILD, CLOSED, LOWEST, OPEN, Candidate, choose, combined, mean_logprob
from .prompts import AGGREGATE, CLOSED_BOOK, DECOMPOSE, OPEN_BOOK
from .tree import QuestionNode, build_tree, fill, slots

RANGES = dict(top_k=(1, 100), sub_k=(0, 100), entity_k=(0, 100), max_questions=(1, 200))


@dataclass(frozen=True)
class ProbTree:
    "Probabilistic tree-of-thought reasoning (Cao et al. 2023)."

    top_k: int = 5  # passages of a question
    sub_k: int = 3  # passages of each question below it, if there are any; the public code has none for HotpotQA
    entity_k: int = 0  # passages of each answer in a leaf's slots; the public code has 5 for HotpotQA
    closed_book: bool = True  # False: the ablation without closed-book answers
    open_book: bool = True  # False: without open-book answers
    child_aggregating: bool = True  # False: without child-aggregating answers
    decomposition: bool = True  # whether the confidence of the decomposition counts
    select: Literal["confidence", "random"] = "confidence"  # how an answer is chosen
    max_questions: int = 30  # of a tree

    def __post_init__(self):
        check_fields(self, RANGES)
        if not self.closed_book and not self.open_book:
            raise UsageError("ProbTree answers a leaf by closed_book or open_book: leave one of them on")

    async def __call__(self, question: Question, context: Context) -> Prediction:
        "Understanding, then reasoning. Raises `UsageError` for an empty question, and what the model's client raises."
        root = await understand(self, plain_question(question), context)
        try:
            await solve(self, root, context)
        finally:
            record(root)
        context.trace.add(
            "answer", root.best.answer, root.record, source=root.best.source, confidence=rounded(root.best.confidence)
        )
        return Prediction(root.best.answer, context.trace, context.usage)


# --- understanding
async def understand(method: ProbTree, question: str, context: Context) -> QuestionNode:
    "Question tree with the confidence of each decomposition."
    node = context.trace.add("question", question)
    decompositions, tokens = await context.ask(DECOMPOSE, node=node, question=question, logprobs=True)
    root, notes = build_tree(question, decompositions, method.max_questions)
    node.notes += notes + ["the model gives no log-probabilities: no answer has a confidence"] * (tokens is None)
    root.record = node
    for each in root:
        if each.children:
            each.decomposition = mean_logprob(tokens, each.written)
        lay_out(method, each, context)
    return root


def lay_out(method: ProbTree, node: QuestionNode, context: Context):
    "Nodes of the trace of a question and its answers. They are made in advance, so that their order doesn't depend on the model's speed."
    if node.parent:
        node.record = context.trace.add("question", node.text, node.parent.record, number=node.number)
    if node.decomposition is not None:
        node.record.data["decomposition"] = rounded(node.decomposition)
    wanted = {CLOSED: method.closed_book, OPEN: method.open_book, CHILD: method.child_aggregating and node.children}
    node.answers = {source: context.trace.add(source, "", node.record) for source, is_on in wanted.items() if is_on}
    node.ready = Promise()


def record(root: QuestionNode):
    "Write the questions as they were asked, and the chosen answers, into the trace."
    for node in root:
        node.record.text = node.question or node.text
        if needs := slots(node.text):
            node.record.data["depends_on"] = needs
        node.record.data |= dict(answer=node.best.answer, source=node.best.source) | confidence_data(
            node.best.confidence, node.best.source
        )
        node.record.depth = max(
            node.record.depth, *(n.depth for n in node.answers.values()), *(c.record.depth for c in node.below), 0
        )


def rounded(confidence):
    return None if confidence is None else round(confidence, 4)


def confidence_data(confidence: float | None, source: str = "") -> dict:
    "A confidence in a node's data, and its probability as the mark that the explorer writes beside the node."
    said = [] if confidence is None or confidence <= LOWEST else [f"p {math.exp(confidence):.2f}"]
    return dict(confidence=rounded(confidence)) | (
        dict(mark=" ".join([source, *said]).strip()) if source or said else {}
    )


# --- reasoning
async def solve(method: ProbTree, node: QuestionNode, context: Context):
    "Answer a question: closed-book at once, the others when its sub-questions are answered."
    await fill_slots(node)
    found = await gather_or_cancel([answer_closed_book(node, context), solve_below(method, node, context)])
    candidates = [c for c in (found[0], *found[1]) if c]
    node.best = choose(candidates, method.select, node.question)
    node.ready.set()


async def fill_slots(node: QuestionNode):
    "The question with the answers of the siblings before it that it needs."
    siblings = node.parent.children if node.parent else []
    needed = {n: siblings[n - 1] for n in slots(node.text) if n < node.number}
    for other in needed.values():
        await other.ready
    known = {n: other.best.answer for n, other in needed.items() if other.best.answer}
    node.question, node.filled = fill(node.text, known), list(known.values())
    if lacking := [n for n in slots(node.text) if n not in known]:
        node.record.notes.append(f"no answer for {', '.join(f'#{n}' for n in lacking)}: asked unchanged")


async def solve_below(method: ProbTree, node: QuestionNode, context: Context) -> list[Candidate | None]:
    "Open-book and child-aggregating answers, after the sub-questions'."
    await gather_or_cancel([solve(method, child, context) for child in node.children])
    return await gather_or_cancel([answer_open_book(method, node, context), aggregate(method, node, context)])


async def answer_closed_book(node: QuestionNode, context: Context) -> Candidate | None:
    "Answer from the model's memory."
    if CLOSED not in node.answers:
        return None
    return await ask(CLOSED, CLOSED_BOOK, node, context)


async def answer_open_book(method: ProbTree, node: QuestionNode, context: Context) -> Candidate | None:
    "Answer from passages: those of the question, of the questions below it, and of the answers in its slots."
    if OPEN not in node.answers:
        return None
    queries = {node.question: method.top_k}
    for other in node.below if method.sub_k else ():
        queries.setdefault(other.question, method.sub_k)
    for answer in node.filled if method.entity_k and not node.children else ():
        queries.setdefault(answer, method.entity_k)
    found = await context.retrieve(list(queries), max(queries.values()))
    hits = {}  # by passage, each once
    for got, k in zip(found, queries.values()):
        for hit in got[:k]:
            hits.setdefault(hit.passage.id, hit)
    node.answers[OPEN].data |= dict(queries=list(queries), hits=hit_records(hits.values()))
    return await ask(OPEN, OPEN_BOOK, node, context, documents=[hit.passage for hit in hits.values()])


async def aggregate(method: ProbTree, node: QuestionNode, context: Context) -> Candidate | None:
    "Answer from the sub-questions' answers."
    if CHILD not in node.answers:
        return None
    history = render_history((child.number - 1, child.question, child.best.answer) for child in node.children)
    made = await ask(CHILD, AGGREGATE, node, context, history=history)
    decomposition = node.decomposition if method.decomposition else None
    confidence = combined(made.confidence, [child.best.confidence for child in node.children], decomposition)
    node.answers[CHILD].data |= dict(explanation_confidence=rounded(made.confidence)) | confidence_data(confidence)
    return Candidate(CHILD, made.answer, confidence)


async def ask(source: str, prompt, node: QuestionNode, context: Context, **inputs) -> Candidate:
    "Answer of a QA module, with the confidence of its explanation."
    step = node.answers[source]
    said, tokens = await context.ask(prompt, node=step, question=node.question, logprobs=True, **inputs)
    confidence = mean_logprob(tokens, said["explanation"])
    step.text = said["answer"] or "unknown"
    step.data |= dict(explanation=said["explanation"]) | confidence_data(confidence)
    return Candidate(source, said["answer"], confidence)


METHODS = {
    "CoT (closed-book)": RetrieveAndRead(top_k=0, reasoning=True),
    "IRCoT": IRCoT(),
    "ProbTree": ProbTree(),
}
ABLATIONS = {
    "ProbTree": ProbTree(),
    "ProbTree w/o closed-book": ProbTree(closed_book=False),
    "ProbTree w/o open-book": ProbTree(open_book=False),
    "ProbTree w/o child-aggregating": ProbTree(child_aggregating=False),
    "ProbTree w/o decomposition confidence": ProbTree(decomposition=False),
    "ProbTree, random choice": ProbTree(select="random"),
}
