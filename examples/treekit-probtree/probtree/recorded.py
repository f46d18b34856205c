"""Trees that text-davinci-003 wrote for the authors: those among the kit's real replies, and the released results of all 1,500 questions.

The released results are the files src/*/RoHT/results/released.json of THU-KEG/ProbTree (MIT). They don't come with this package."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treekit.corpora.recorded_replies import RecordedReply, load_replies

from .confidence import CHILD, CLOSED, LOWEST, OPEN, Candidate, choose, combined
from .prompts import read_answer
from .tree import QuestionNode, build_tree, read_tree

SOURCE = "THU-KEG/ProbTree"


# --- the kit's real replies
def recorded_trees() -> list[RecordedReply]:
    "Recorded decompositions."
    return [r for r in load_replies("decomposition-json") if r.source.startswith(SOURCE)]


def recorded_answers() -> list[RecordedReply]:
    "Recorded closed-book and open-book replies, with the answer that a careful person reads in each."
    return [r for kind in ("cot", "rag-answer") for r in load_replies(kind) if r.source.startswith(SOURCE)]


def tree_of(reply: RecordedReply) -> QuestionNode:
    "Question tree of a recorded decomposition."
    return build_tree(reply.question, read_tree(reply.reply)[0])[0]


def is_read_as_judged(reply: RecordedReply) -> bool:
    "Whether the answer that is read in a reply is the judged one."
    return (read_answer(reply.reply)[0]["answer"] or "Unknown").casefold() == str(reply.expect).casefold()


# --- the released results
@dataclass(frozen=True)
class ReleasedChoice:
    "Choice at a node of a released tree."

    is_leaf: bool
    source: str  # module whose answer and confidence this package's rules choose; empty: none has an answer
    released: tuple[str, float]  # answer and confidence as released
    here: tuple[str, float]  # the same by this package's rules, from the released answers of the modules

    @property
    def same(self) -> bool:
        return self.here[0] == self.released[0] and abs(self.here[1] - self.released[1]) < 1e-6


def released_choices(tree: list[dict]) -> Iterator[ReleasedChoice]:
    "Choice at each node of a released tree, by `choose` and `combined`, from the released answers of the modules."
    for node in tree:
        sons = [tree[i] for i in node["sons"]]
        candidates = [_candidate(CLOSED, node["cb_answer"]), _candidate(OPEN, node["ob_answer"])]
        if sons:
            candidates.append(_child_candidate(node, [son["answer"][1] for son in sons]))
        chosen = choose(candidates)
        yield ReleasedChoice(not sons, chosen.source, tuple(node["answer"][:2]), (chosen.answer, chosen.confidence))


def _candidate(source, said):
    "Candidate of a released answer. The public code takes an answer for none if it contains one of two words."
    answer, confidence = said[:2]
    lost = "ERROR" in answer or "Unknown" in answer
    return Candidate(source, "" if lost else answer, LOWEST if lost else confidence)


def _child_candidate(node, confidences):
    """Candidate of a released child-aggregating answer. HotpotQA's file has the confidence of the explanation, the others have the
    combined one."""
    made = _candidate(CHILD, node["child_answer"])
    whole = combined(made.confidence, confidences, node["qd_logprob"])
    return made if len(node["child_answer"]) > 2 else Candidate(CHILD, made.answer, whole)


def count_choices(path: Path | str) -> Counter:  # (leaf or node, module) -> nodes; "same", "other" -> nodes
    "Chosen modules in a file of released results, and how many choices are the same here."
    counts = Counter()
    for tree in json.loads(Path(path).read_text(encoding="utf-8")):
        for choice in released_choices(tree):
            counts["leaf" if choice.is_leaf else "node", choice.source] += 1
            counts["same" if choice.same else "other"] += 1
    return counts
