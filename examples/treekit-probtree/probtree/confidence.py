"""Confidence of an answer: mean log-probability of the explanation that leads to it.

The formulas are those of the public code, THU-KEG/ProbTree@ce17f5f, src/*/RoHT/question_answering.py: `postprocess`,
`aggregate_singlehop_answer`, `aggregate_multihop_answer` with `calculate_score2`, and src/*/Tree_Generation/2_postprocess.py."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

LOWEST = -100.0  # confidence of no answer, and of an answer without an explanation
CLOSED, OPEN, CHILD = SOURCES = ("closed-book", "open-book", "child-aggregating")


@dataclass(frozen=True)
class Candidate:
    "Answer of one of the three QA modules."

    source: str  # one of `SOURCES`
    answer: str  # empty: unknown
    confidence: float | None = LOWEST  # None: the server gives no log-probabilities


def mean_logprob(
    tokens,  # (token, log-probability) pairs of a reply; None: the server gives none
    part: str,  # a part of the reply, word for word
) -> float | None:  # None: there are no log-probabilities; `LOWEST`: the part is empty, or isn't there
    "Mean log-probability of the tokens that begin in a part of a reply."
    if tokens is None:
        return None
    start = "".join(token for token, _ in tokens).find(part) if part else -1
    found, at = [], 0
    for token, p in tokens:
        if start <= at + len(token) - len(token.lstrip()) < start + len(part) and token.strip():
            found.append(p)
        at += len(token)
    return sum(found) / len(found) if start >= 0 and found else LOWEST


def combined(
    own: float | None,  # of the explanation
    children: Iterable[float | None],  # of the sub-questions' chosen answers
    decomposition: float | None = None,  # of the list of sub-questions; None: it doesn't count
) -> float | None:
    "Confidence of a child-aggregating answer: the mean over explanation, decomposition and sub-questions."
    parts = [own, *children]
    if None in parts:
        return None
    if decomposition is not None:
        parts.append(decomposition)
    return sum(parts) / len(parts)


def choose(
    candidates: list[Candidate],  # in the order of `SOURCES`
    how: str = "confidence",  # or "random"
    seed: str = "",  # of a random choice
) -> Candidate:
    "Most confident answer; the first of equals. Without log-probabilities the last one: what knows most is asked last."
    answered = [c for c in candidates if c.answer]
    if not answered:
        return Candidate("", "")
    if how == "random":
        return random.Random(seed).choice(answered)
    if any(c.confidence is None for c in answered):
        return answered[-1]
    return max(answered, key=lambda c: c.confidence)
