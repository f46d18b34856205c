"What a careful person reads in the recorded replies, and what the kit's readers make of them: for tests/test_recorded_replies.py."

import hashlib, json, re
from collections import Counter
from functools import cache
from pathlib import Path

from treekit.llm.openai_client import split_thinking
from treekit.experiments.prompts import known_prompts

ROOT = Path(__file__).resolve().parents[1]
RECORDED = ROOT.parent / "shared" / "recorded"  # thousands of replies under their own licences; not committed
JUDGED = ROOT / "data" / "words" / "judged.jsonl"
OUTCOMES = ("rightly", "fallback noted", "wrongly", "exception")
READERS = {  # what is asked for -> the prompts whose replies are read so; the first is the one that counts
    "final": ["baselines.cot_zero_shot"],
    "text": ["rdr2.read_long"],
    "turn": ["react.act"],
    "tag": ["search_r1.turn"],
    "ask": ["iterative.follow_up"],
    "query": ["toq.thought_query.en"],
    "next": ["flare.next"],
    "path": ["paths.navigate", "treerare.subquestions", "toq.decompose.en"],
    "names": ["hipporag.entities"],
    "triples": ["hipporag.triples"],
    "graph": ["graphrag.extract"],
    "report": ["graphrag.report"],
    "points": ["graphrag.map"],
    "value": ["tree_of_thoughts.value"],
    "consistency": ["arise.verify"],
    "choice": ["baselines.most_consistent"],
}


def key(reply):
    return hashlib.sha256(reply.encode("utf-8", "replace")).hexdigest()[:12]


@cache
def recorded():
    "All recorded replies, with their kind; an empty list where they aren't there."
    rows = []
    for path in sorted(RECORDED.glob("*.jsonl")):
        if path.stem.startswith("hipporag"):
            continue
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                rows.append(json.loads(line) | dict(kind=path.stem))
    return rows


@cache
def judged():
    return [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]


@cache
def prompts():
    return known_prompts()


def read(prompt, reply):
    "(value, note) of a reply, as it comes through the client; a reply that is nothing but thinking is refused by the client."
    text, thinking = split_thinking(dict(content=reply))
    if not text:
        return None, "all of it is thinking"
    got = prompts()[prompt].read(text)
    return got.value, got.note


def words(text):
    return " ".join(re.findall(r"[^\s\"'“”`*_]+", str(text).replace("\\n", "\n").casefold())).strip(" .")


def same(expected, got):
    "Whether two texts say the same; an expected '…' stands for anything."
    head, dots, tail = expected.partition("…")
    expected, got = words(expected), words(got)
    return got.startswith(words(head)) and got.endswith(words(tail)) if dots else expected == got


def agrees(task, expect, value, note, reply):
    "Whether a reading is what a careful person reads. Nothing readable: nothing is read, and it is said."
    if task == "final":
        answer = "" if value is None else value["answer"]
        if expect == "*":
            return same(reply, answer)
        return same(expect, answer) if expect else not answer and bool(note)
    if task == "text":
        return same(reply if expect == "*" else expect, value) if expect else not value and bool(note)
    if task == "turn":
        if not expect:
            return not value["action"] and not value["argument"] and bool(note)
        return value["action"] == expect[0] and same(expect[1], value["argument"])
    if task in ("tag", "ask"):
        fields = ("search", "answer") if task == "tag" else ("question", "answer")
        if not expect:
            return not any(value[f] for f in fields) and bool(note)
        return same(expect[1], value[expect[0]]) and not any(value[f] for f in fields if f != expect[0])
    if task == "query":
        return same(expect, value["query"]) and (bool(expect) or bool(note))
    if task == "next":
        return same(expect, value)
    if task in ("path", "names"):
        slot = re.compile(r"#\d|<\d>|\[ANS_\d\]|\s?\d\b")
        said = bool(value) or bool(note) or task == "names"
        return said and [words(slot.sub(" ", x)) for x in expect] == [words(slot.sub(" ", x)) for x in value]
    if task == "triples":
        left = int((re.search(r"(\d+) that (?:is|are) no triple", note) or [0, 0])[1])
        if not expect[0]:
            return not value and bool(note)
        return len(value) + left == expect[0] and (not expect[1] or same(expect[1], " > ".join(value[0])))
    if task == "graph":
        own, others = value["entities"], value["relations"]
        return (
            (len(own), len(others)) == (expect[0], expect[1])
            and same(expect[2], own[0]["name"])
            and (same(expect[3], f"{others[-1]['source']} > {others[-1]['target']}"))
        )
    if task == "report":
        return same(expect[0], value["title"]) and value["rating"] == expect[1] and len(value["findings"]) == expect[2]
    if task == "points":
        return len(value) == expect
    lowest = dict(value=1, consistency=0, choice=0)[task]
    return value == lowest and bool(note) if expect is None else value == expect


def outcome(prompt, task, expect, reply):
    "How a reply is read by a prompt's reader: one of OUTCOMES; and what was read."
    prompts()
    try:
        value, note = read(prompt, reply)
    except Exception as e:
        return "exception", repr(e)
    if value is None:
        return ("rightly" if expect in ("", []) else "fallback noted"), note
    if agrees(task, expect, value, note, reply):
        return "rightly", (value, note)
    return ("fallback noted" if note else "wrongly"), (value, note)


def table(rows=None, every=True):
    "kind -> how its judged replies are read; all readers of a task, or its first."
    by_id, counts = {key(r["reply"]): r for r in (rows or recorded())}, {}
    for j in judged():
        if j["id"] not in by_id:
            continue
        for prompt in READERS[j["task"]][: None if every else 1]:
            how, _ = outcome(prompt, j["task"], j["expect"], by_id[j["id"]]["reply"])
            counts.setdefault(j["kind"], Counter())[how] += 1
    return counts


def shown(counts):
    "A table as text."
    total = sum(counts.values(), Counter())
    lines = ["kind".ljust(20) + "".join(o.rjust(16) for o in OUTCOMES)]
    for kind, c in [*sorted(counts.items()), ("all", total)]:
        lines.append(kind.ljust(20) + "".join(str(c[o]).rjust(16) for o in OUTCOMES))
    return "\n".join(lines)


def oracle(row):
    "(task, reading) that the repository keeps of a reply, or that a strict parser gives: found without our readers; None: there is none."
    kind, text, meta = row["kind"], row["reply"], row["meta"]
    if kind == "react" and (m := re.findall(r"^Action ?\d*: ?(\w+)\[(.*)\]\s*$", text, re.M)):
        return "turn", [m[0][0].capitalize(), m[0][1]]
    if kind == "search-r1" and (m := re.search(r"<\|begin_of_query\|>(.*?)<\|end_of_query\|>", text, re.S)):
        return "tag", ["search", m[1]]
    if kind == "search-r1" and "boxed" not in text and (m := re.search(r"<answer>(.*?)</answer>", text, re.S)):
        return "tag", ["answer", m[1]]
    if meta.get("read_as"):
        return "final", meta["read_as"]
    if kind in ("cot", "r1-think") and (m := re.findall(r"<answer>(.*?)</answer>", text, re.S)) and m[-1].strip():
        return "final", m[-1]
    if kind == "judge" and meta.get("score") not in (None, -1):
        return "value", float(meta["score"])
    if kind == "judge" and meta.get("order"):
        return "choices", [i for i, rank in enumerate(meta["order"], 1) if rank == min(meta["order"])]
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if kind == "cot" and isinstance(value, dict) and str(value.get("answer", "")).strip():
        return "final", str(value["answer"])
    if kind == "decomposition-json" and isinstance(value, dict):
        first = next(iter(value.values()))
        return "path", first if isinstance(first, list) else [first]
    if kind == "openie-ner" and value:
        return "names", list(dict.fromkeys(value["named_entities"]))
    if kind == "tot-value" and (m := re.search(r"'evaluation': ([\d.]+)\}\s*$", text)):
        return "value", min(10, max(1, round(10 * float(m[1]), 6)))
    return None


def unlike_oracle(rows=None):
    "How readings compare with the oracle: Counter of (kind, how), and those that differ without a note."
    counts, silent = Counter(), []
    for row in rows or recorded():
        if not (known := oracle(row)):
            continue
        task, expect = known
        prompt = READERS["choice" if task == "choices" else task][0]
        value, note = read(prompt, row["reply"])
        if task == "choices":
            right = value in expect
        else:
            right = value is not None and agrees(task, expect, value, note, row["reply"])
        counts[row["kind"], "as kept" if right else "otherwise, with a note" if note else "otherwise, silently"] += 1
        if not right and not note:
            silent.append((row["kind"], key(row["reply"]), expect, value))
    return counts, silent


def every_reader():
    "One prompt's name for each reader that there is."
    return list({(p.format.parse, p.format.fallback): name for name, p in prompts().items()}.values())
