"""The kit's loops with a model that says what recorded models said, turn by turn: for tests/test_recorded_replies.py.

Search and wiki hold other passages than the recorded ones did, so every observation is ours; the recorded words don't know that.
"""

import asyncio, re
from collections import Counter

import recorded_replies

from treekit.baselines.iterative import SelfAsk
from treekit.baselines.react import ReAct
from treekit.baselines.search_r1 import SearchR1
from treekit.baselines.tree_of_thoughts import TreeOfThoughts
from treekit.core.prompts import Completion
from treekit.core.method import Context
from treekit.core.types import Passage, Question
from treekit.corpora.wiki import CorpusWiki
from treekit.retrieval.bm25 import Hit

PASSAGES = [
    Passage("1", "Lyon", "Lyon is a city on the Rhône. It was founded in 43 BC."),
    Passage("2", "Tarn", "Tarn is a town."),
]


class Turns:
    "A chat that says what it is given, in order, up to the request's stop words; asked for more, it says so."

    model, endpoint, defaults = "recorded", "nowhere", {}

    def __init__(self, says, prompts, others="no"):
        self.says, self.prompts, self.others, self.at = says, prompts, others, 0

    async def complete(self, request):
        if not request.prompt.name.startswith(self.prompts):
            return [Completion(self.others)] * request.n
        text = self.says[self.at] if self.at < len(self.says) else "FINAL: (there is no further turn)"
        self.at += 1
        for stop in request.stop:
            text = text.split(stop)[0]
        return [Completion(text, logprobs=tuple((w, -0.01) for w in re.findall(r"\S+\s*", text)) or None)] * request.n

    async def close(self):
        pass


class Elsewhere:
    "A search that always finds the same, none of it what was recorded."

    def search(self, queries, k=15):
        return [[Hit(p, 1.0, i) for i, p in enumerate(PASSAGES[:k], 1)] for _ in queries]


def go(method, says, prompts, question="What?", others="no"):
    chat = Turns(says, prompts, others)
    context = Context(llm=chat, retriever=Elsewhere(), wiki=CorpusWiki(PASSAGES))
    return asyncio.run(method(Question("1", question, "test"), context)), chat


def strict_action(reply):
    "Action and argument of a turn that is written as asked; None where it isn't."
    found = re.findall(r"^Action ?\d*: ?(\w+)\[(.*)\]\s*$", reply, re.M)
    return found[0] if found else None


def trajectories(kind):
    "(source, replies in order) of whole trajectories."
    by = {}
    for r in recorded_replies.recorded():
        if r["kind"] == kind and (name := r["meta"].get("trajectory")):
            by.setdefault((r["source"].split("@")[0], name), []).append(r)
    for (source, _), rows in by.items():
        rows.sort(key=lambda r: r["meta"]["turn"])
        if len(rows) == rows[0]["meta"].get("turns", len(rows)):
            yield source, [r["reply"] for r in rows]


def _compared(counts, source, recorded, read):
    "Each recorded turn with what was read of it: None stands for a turn that has no action in the recorded words either."
    for i, expected in enumerate(recorded):
        got = read[i] if i < len(read) else "lost"
        if expected is None:
            counts[source]["otherwise, no action in its words"] += 1
        elif got != "lost" and recorded_replies.words(expected) == recorded_replies.words(got):
            counts[source]["as recorded"] += 1
        elif got == "lost" and len({recorded_replies.words(e or "") for e in recorded[: i + 1]}) <= i:
            counts[source]["otherwise, a question came twice: the loop concludes"] += 1
        else:
            counts[source]["lost" if got == "lost" else "otherwise"] += 1


def replay_react(method=None, only=None, name="ReAct"):
    counts, ends = {}, Counter()
    for source, says in trajectories("react"):
        if only and only not in source:
            continue
        strict = [strict_action(t) for t in says]
        m = method(len(says)) if method else ReAct(max_steps=len(says))
        prediction, chat = go(m, says, "react.act", others="FINAL: no")
        steps = [n.data for n in prediction.trace.nodes if n.kind == "step" and "action" in n.data]
        where = f"{name}: {source}"
        counts.setdefault(where, Counter())
        _compared(
            counts,
            where,
            [f"{a[0]} {a[1]}" if a else None for a in strict],
            [f"{d['action']} {d['argument']}" for d in steps],
        )
        over = strict[-1] is not None and strict[-1][0].lower() == "finish" and bool(strict[-1][1].strip())
        ended = prediction.answer == " ".join(strict[-1][1].split()) if over else chat.at >= len(says)
        ends["same end" if ended else "another end"] += 1
    return counts, ends


def replay_tree():
    return replay_react(
        lambda n: TreeOfThoughts(candidates=1, depth=n, iterations=n + 2, fallback=False),
        "reflexion",
        "Tree of Thoughts",
    )


def replay_search():
    counts, ends = {}, Counter()
    for source, says in trajectories("search-r1"):
        if "R1-Searcher" not in source:
            continue
        queries, answers = r"<\|begin_of_query\|>(.*?)<\|end_of_query\|>", r"<answer>(.*?)</answer>"
        strict = [next(iter(re.findall(queries, t) or re.findall(answers, t, re.S)), None) for t in says]
        said = [recorded_replies.split_thinking(dict(content=t))[0] or t for t in says]
        prediction, _ = go(SearchR1(turns=len(says), top_k=1), said, "search_r1")
        turns = [n.data["search"] or n.data["answer"] for n in prediction.trace.nodes if n.kind == "turn"]
        where = f"Search-R1: {source}"
        counts.setdefault(where, Counter())
        _compared(counts, where, strict, turns)
        answered = "<answer>" in says[-1]
        ends[
            "same end" if not answered or recorded_replies.same(strict[-1] or "", prediction.answer) else "another end"
        ] += 1
    return counts, ends


def replay_asking():
    "Self-Ask: a recorded chain is cut into its moves; its intermediate answers are given back by the question answerer."
    counts, ends = {"Self-Ask: compositional-reasoning-finetuning": Counter()}, Counter()
    for r in recorded_replies.recorded():
        if r["kind"] != "self-ask" or not re.match(r"\s*Yes\. Follow up:", r["reply"]):
            continue
        pieces = re.split(r"(?=Follow up:|So the final answer is:)", r["reply"].strip().removeprefix("Yes."))
        moves = [m.strip() for m in pieces if m.strip()]
        strict = [re.split(r"Intermediate answer:", m.split(":", 1)[1])[0].strip() for m in moves]
        prediction, _ = go(SelfAsk(rounds=len(moves)), moves, "iterative.follow_up", others="(ours)")
        read = [n.text for n in prediction.trace.nodes if n.kind == "follow-up"]
        over = moves[-1].startswith("So the final")
        if over and len(read) == len(moves) - 1:
            read.append(prediction.answer)
        [where] = counts
        strict = [None if words_loop(s) else s for s in strict]
        _compared(counts, where, strict, read)
        ended = not over or recorded_replies.same(strict[-1] or "", prediction.answer) or prediction.answer == "(ours)"
        ends["same end" if ended else "another end"] += 1
    return counts, ends


def words_loop(text):
    from treekit.core.answer_extraction import is_degenerate

    return is_degenerate(text) or not text.strip()


def shown(counts):
    return "\n".join(
        f"{source:55}" + "; ".join(f"{n} {how}" for how, n in sorted(c.items())) for source, c in counts.items()
    )
