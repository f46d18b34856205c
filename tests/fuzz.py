"""The fuzzing campaign: every reader of replies and files and every renderer, on mutated real inputs.

    make fuzz ARGS="--seconds 60 --seed 1"      a share of the time for each group
    make fuzz ARGS="--count 100000 --only reply"  so many inputs for each reader

The n-th input of a group depends on the seed alone. A finding names its reader, seed and number, is shrunk, and lies in a folder;
the exit code is 1 then.
"""
import argparse, base64, hashlib, json, random, re, signal, sys, time, traceback, warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

PER_MEGABYTE = 1.0  # CPU seconds that a reader may take for a million characters
LEAST = 0.5  # CPU seconds that any input may take
HANGS = 15  # CPU seconds after which an input is broken off


class TooSlow(BaseException):
    "An input took longer than it may. No `Exception`: nothing on the way catches it."


class GetsThrough(AssertionError):
    "What came from outside became markup, a formula, a control character."


@dataclass
class Target:
    "Something that reads or shows what came from outside."
    name: str
    group: str  # targets of a group get the same inputs
    run: Callable[[Any], Any]  # raises what is wrong
    declared: tuple = ()  # exceptions that say what is wrong with the input
    slow: float = 1.0  # times `PER_MEGABYTE` and `LEAST`
    check: Callable[[Any, Any], None] | None = None  # of an input and what `run` made of it, off the clock


@dataclass
class Group:
    "Targets and where their inputs come from."
    name: str
    made: Callable[[random.Random], Any] | None  # an input
    targets: list[Target] = field(default_factory=list)
    share: float = 1.0  # of the time
    small: Callable[[Any], list] | None = None  # smaller versions of an input; None: it isn't shrunk
    strategy: Callable[[], Any] | None = None  # in the place of `made`: what hypothesis draws from, and shrinks


@dataclass
class Finding:
    "What went wrong, once for each place in the code."
    target: str
    seed: int
    number: int
    what: str
    where: str
    value: Any
    times: int = 1


# --- mutations of text

MARKS = """FINAL: Explanation: Thought: Action: Finish[ Search[ Lookup[ Observation: <think> </think> <search> </search> <answer> </answer>
<information> <|begin_of_query|> <|end_of_query|> \\boxed{ ```json ``` ~~~ [[ ## answer ## ]] SCORE: Score: Choice: response: Query:
OUTCOME: Sub-question: Question: Follow-up: Intermediate So the final answer is: [ANSWER] [EXPAND] [REFUSE] <answer>3: <expand> 1. 2) -
* • #1 [ANS_1] <|> <||> ## {"entities": {"answer": {"is_multi_hop": "answer_span" "relevance" semantic_coherence answerability
overall_assessment response_validity true false null None NaN Infinity -0 1e999 [[4]] 7/10 A>B>C 1>2=3 <paragraph> </paragraph>
[Retrieval] [No support [Continue DONE yes no 예 아니요 검색어: 점수 {{ }} {| |} |- || [[ ]] '' ''' == = <ref> </ref> <ref name=x/> <!-- -->
<nowiki> <table> <tr> <td rowspan=9999> colspan=9999> </td> </table> <b> <div> <p> <li> <ul> &amp; &#0; &lt; #REDIRECT [[File: [http://
~~~~ __TOC__ : ; * # > | --- \\ {{a| ( ) ," '=1+1 =cmd +1 -1 @x " ' ` ; , . : / \\n $x$ $$ % <page> </page> <title> <text> <ns>
<revision> ]]> <![CDATA[""".split()
ODD = ["\x00", "\x1b[31m", "\ud800", "\udc00\ud800", "\ufffe", "\uffff", "\u202e", "\u2028", "\x85", "\x0b\x0c", "\ufeff", "\u200b", "\r\n",
       "\r", "\n\n\n", "\t", " " * 40, "e\u0301\u0323\u0301", "\u0130", "\u00df", "\uac00", "\u1100", "\U0001d49c", "\u0663", "\u00b2",
       "\U0001f469\u200d\U0001f467", "9" * 5000, "-" * 300, "." * 300, "[" * 400, '{"a":' * 400, "(" * 300,
       "<" * 300, "\\ud800", "\\ud83d\\ude00", "\\u0000", "{{" * 60,
       "[[" * 60, "<b>" * 100, "\u0301\u0323" * 300]
VALUES = [None, True, False, 0, -1, 2**70, 1e308, float("nan"), float("inf"), "", " ", "x", "x" * 900, "\ud800", "\x00", "9" * 400, [], {},
          [[]], [None], [1], ["a", 2], {"": ""}, {"a": None}, {"title": 1, "text": 2}, [{"a": []}], "=1+1", "<script>", ["\ud83d"]]


def some(rng, text, most=60):
    "A piece of a text."
    if not text: return ""
    at = rng.randrange(len(text))
    return text[at:at + rng.randint(1, most)]


def size_of(rng):
    "How long what is pumped up gets: mostly short, rarely a megabyte."
    draw = rng.random()
    low, high = (4, 12) if draw < 0.985 else (12, 16) if draw < 0.9985 else (16, 20)
    return int(2 ** rng.uniform(low, high))


def at_a_place(rng, text, new):
    at = rng.randint(0, len(text))
    return text[:at] + new + text[at:]


def pumped(rng, text, seeds):
    "A short piece, many times."
    pick = rng.random()
    unit = some(rng, text, 8) if pick < 0.4 else rng.choice(MARKS)
    if pick > 0.8: unit += rng.choice((" ", "\n", "a", "1"))
    if rng.random() < 0.2: unit += rng.choice(MARKS)
    many = (unit or "a") * (size_of(rng) // max(1, len(unit)) + 1)
    return rng.choice((many, text + many, many + text, at_a_place(rng, text, many)))


def json_changed(rng, text, seeds):
    "A JSON value in a text with other values in it, or in another dress."
    start, end = min((i for i in (text.find("["), text.find("{")) if i >= 0), default=-1), max(text.rfind("]"), text.rfind("}"))
    try: value = json.loads(text[start:end + 1])
    except (ValueError, RecursionError): return at_a_place(rng, text, json.dumps(rng.choice(VALUES)))
    value = json_mutated(rng, value)
    dress = rng.random()
    if dress < 0.2: said = repr(value)
    elif dress < 0.4: said = json.dumps(value, indent=1)
    else: said = json.dumps(value, ensure_ascii=rng.random() < 0.3)
    if rng.random() < 0.1: said = re.sub(r"([\]}])", r",\1", said, count=rng.randint(1, 3))
    return text[:start] + said + text[end + 1:]


def json_mutated(rng, value):
    "A JSON value, changed at some of its places."
    for _ in range(rng.choice((1, 1, 1, 2, 4))): value = _changed_at(rng, value)
    return value


def _changed_at(rng, value):
    if rng.random() < (0.15 if isinstance(value, (list, dict)) and value else 0.9): return rng.choice([*VALUES, [value], {"a": value}])
    if isinstance(value, dict) and value:
        k, how = rng.choice(list(value)), rng.random()
        if how < 0.1: return {n: v for n, v in value.items() if n != k}
        if how < 0.2: return value | {rng.choice(MARKS): value[k]}
        return value | {k: _changed_at(rng, value[k])}
    if isinstance(value, list) and value:
        i, how = rng.randrange(len(value)), rng.random()
        if how < 0.1: return value[:i] + value[i + 1:]
        if how < 0.2: return value + [value[i]] * rng.choice((1, 2, 30))
        return [*value[:i], _changed_at(rng, value[i]), *value[i + 1:]]
    return rng.choice(VALUES)


def deep(rng, text, seeds):
    "Brackets in brackets."
    pairs = ("[", "]"), ('{"a":', "}"), ("(", ")"), ("{{a|", "}}"), ("<b>", "</b>"), ("[[", "]]"), ("<div>", "</div>")
    n, pair, inner = int(2 ** rng.uniform(3, 12)), rng.choice(pairs), some(rng, text)
    return at_a_place(rng, some(rng, text, 400), pair[0] * n + inner + (pair[1] * n if rng.random() < 0.6 else ""))


OPERATIONS = [
    lambda rng, t, seeds: (lambda a, b: t[:min(a, b)] + t[max(a, b):])(rng.randint(0, len(t)), rng.randint(0, len(t))),
    lambda rng, t, seeds: t[:rng.randint(0, len(t))],
    lambda rng, t, seeds: t[rng.randint(0, len(t)):],
    lambda rng, t, seeds: at_a_place(rng, t, rng.choice(MARKS)),
    lambda rng, t, seeds: at_a_place(rng, t, rng.choice(MARKS) + " " + rng.choice(MARKS)),
    lambda rng, t, seeds: at_a_place(rng, t, rng.choice(ODD)),
    lambda rng, t, seeds: at_a_place(rng, t, some(rng, t, 200) * rng.choice((1, 2, 8, 40))),
    lambda rng, t, seeds: at_a_place(rng, t, some(rng, rng.choice(seeds), 400)),
    lambda rng, t, seeds: t.replace(some(rng, t, 3) or "a", rng.choice((*MARKS, "", "\n"))),
    lambda rng, t, seeds: t.swapcase() if rng.random() < 0.3 else t.replace(" ", "\n"),
    lambda rng, t, seeds: "".join(rng.sample(lines := t.splitlines(True), len(lines))),
    pumped, pumped, json_changed, json_changed, deep,
]


def mutated(rng, seeds, most=2_200_000):
    "A seed, changed a few times."
    text = rng.choice(seeds)
    if len(text) > 3000 and rng.random() < 0.9:
        half = int(2 ** rng.uniform(6, 10.5))
        text = text[:half] + text[-half:]
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))): text = rng.choice(OPERATIONS)(rng, text, seeds)
    return text[:most]


def mutated_bytes(rng, seeds, text=True):
    "The same for files: text that may not be UTF-8, or bytes."
    if text:
        said = mutated(rng, seeds)
        how = rng.random()
        if how < 0.9: return said.encode("utf-8", "surrogatepass" if how < 0.3 else "replace")
        return said.encode(rng.choice(("utf-16", "utf-8-sig", "latin-1", "euc-kr")), "replace")
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        at, how = rng.randrange(len(data) or 1), rng.random()
        if how < 0.5 and data: data[at] = rng.choice((0, 255, rng.randrange(256), data[at] ^ (1 << rng.randrange(8))))
        elif how < 0.7: del data[at:at + rng.choice((1, 4, 100, 4096))]
        elif how < 0.85: data[at:at] = data[at:at + rng.choice((1, 16, 4096))]
        else: data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 64))))
    return bytes(data)


def smaller(value):
    "Smaller versions of a text or of bytes, the smallest first."
    n, size = len(value), len(value) // 2
    while size:
        for at in range(0, n, size): yield value[:at] + value[at + size:]
        size //= 2


# --- running

def where(error):
    "The innermost place in the kit, and the kind of error: what makes two findings the same."
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/treekit/" in f.filename] or frames
    return f"{type(error).__name__} in {Path(own[-1].filename).stem}.{own[-1].name}" if own else type(error).__name__


def _broken_off(*_): raise TooSlow


def tried(target, value, limit):
    "(what went wrong, where, CPU seconds); nothing: None, ''."
    signal.setitimer(signal.ITIMER_VIRTUAL, max(HANGS, 3 * limit))
    began, seconds = time.process_time(), None
    try:
        made = target.run(value)
        seconds = time.process_time() - began
        if target.check: target.check(value, made)
    except target.declared: pass
    except TooSlow: return "it was broken off", "time", time.process_time() - began
    except Exception as e: return f"{type(e).__name__}: {str(e)[:300]}", where(e), time.process_time() - began
    finally: signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None, "", time.process_time() - began if seconds is None else seconds


def allowed(target, value):
    "CPU seconds that an input may take."
    size = len(value) if isinstance(value, (str, bytes)) else len(repr(value))
    return target.slow * max(LEAST, PER_MEGABYTE * size / 1e6)


def outcome(target, value):
    "(what, where) of an input; None: all is well. What is slow is looked at three times: others use this machine, too."
    limit = allowed(target, value)
    what, at, seconds = tried(target, value, limit)
    if what is None and seconds > limit:
        seconds = min([seconds, *(tried(target, value, limit)[2] for _ in range(2))])
        if seconds > limit: what, at = f"{seconds:.2f} s of CPU where {limit:.2f} s are allowed", "time"
    return None if what is None else (what, at, seconds)


def shrunk(target, group, value, at, seconds=12.0):
    "The smallest input found in some seconds that still goes wrong at the same place."
    end, again = time.process_time() + seconds, group.small is not None
    while again and time.process_time() < end:
        again = False
        for less in group.small(value):
            if time.process_time() > end: break
            found = outcome(target, less)
            if found and found[1] == at:
                value, again = less, True
                break
    return value


class Campaign:
    "Inputs, findings and how many there were."
    def __init__(self, seed, folder):
        self.seed, self.folder, self.findings, self.inputs, self.cpu, self.slowest = seed, folder, {}, Counter(), Counter(), {}
        signal.signal(signal.SIGVTALRM, _broken_off)

    def drawn(self, group, number):
        "Some inputs that hypothesis draws, for all targets of a group; it shrinks what goes wrong."
        from hypothesis import HealthCheck, Phase, given, seed, settings
        many = max(10, 100 // len(group.targets))
        for target in group.targets:
            last, began = None, time.process_time()
            def check(value):
                nonlocal last
                self.inputs[target.name] += 1
                if (found := outcome(target, value)) and ((target.name if found[1] == "time" else "", found[1]) not in self.findings):
                    last = value, *found[:2]
                    raise AssertionError(found[1])
            plan = settings(max_examples=many, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                            phases=(Phase.generate, Phase.shrink), print_blob=False, report_multiple_bugs=False)
            try: seed(f"{self.seed}:{group.name}:{number}")(plan(given(group.strategy())(check)))()
            except AssertionError: self.note(target, group, number, *last)
            self.cpu[target.name] += time.process_time() - began
        return many

    def one(self, group, number):
        "The n-th input of a group, for all its targets; how many that were."
        if group.strategy: return self.drawn(group, number)
        value = group.made(random.Random(f"{self.seed}:{group.name}:{number}"))
        for target in group.targets:
            began = time.process_time()
            found = outcome(target, value)
            spent = time.process_time() - began
            self.inputs[target.name] += 1
            self.cpu[target.name] += spent
            if spent > self.slowest.get(target.name, (0, 0))[0]: self.slowest[target.name] = spent, number
            if found: self.note(target, group, number, value, *found[:2])
        return 1

    def note(self, target, group, number, value, what, at):
        "Keep a finding; only the first of a place is shrunk and written down."
        key = target.name if at == "time" else "", at
        if old := self.findings.get(key):
            old.times += 1
            return
        if not group.strategy: value = shrunk(target, group, value, at)
        self.findings[key] = found = Finding(target.name, self.seed, number, what, at, value)
        said = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value if isinstance(value, str) else repr(value)
        print(f"finding: {found.target}: {what}\n  at {at}; again: --only {group.name} --seed {self.seed} --first {number} --count 1\n"
              f"  input, {len(said):,} characters: {said[:300]!r}{' …' * (len(said) > 300)}", flush=True)
        self.write(found)

    def write(self, found):
        self.folder.mkdir(parents=True, exist_ok=True)
        raw = found.value if isinstance(found.value, bytes) else json.dumps(found.value, default=repr).encode()
        name = re.sub(r"\W+", "-", f"{found.target}-{hashlib.sha256(found.where.encode() + raw).hexdigest()[:8]}")
        about = dict(target=found.target, seed=found.seed, number=found.number, what=found.what, where=found.where,
                     bytes=isinstance(found.value, bytes), input=base64.b64encode(raw).decode())
        (self.folder / f"{name}.json").write_text(json.dumps(about, indent=1), encoding="utf-8")

    def table(self):
        "How much each target was given."
        lines = [f"{'target':<42}{'inputs':>10}{'CPU s':>9}{'slowest':>10}"]
        lines += [f"{n:<42}{c:>10,}{self.cpu[n]:>9.1f}{self.slowest.get(n, (0,))[0]:>10.3f}" for n, c in self.inputs.items()]
        return "\n".join(lines)


def run(groups, seed, seconds, count, first, folder):
    "Inputs for all groups, in turn, until the time is over or each had its number."
    campaign, began = Campaign(seed, folder), time.process_time()
    try: _in_turn(campaign, groups, seconds, count, first)
    except KeyboardInterrupt: print("interrupted: so far")
    print(campaign.table())
    found = len(campaign.findings)
    print(f"{sum(campaign.inputs.values()):,} inputs, {time.process_time() - began:.0f} s of CPU, seed {seed}: "
          f"{found} finding{'s' * (found != 1)}" + (f", in {folder}" if found else ""))
    return campaign


def _in_turn(campaign, groups, seconds, count, first):
    "Half a second for each group, again and again."
    whole, spent, number = sum(g.share for g in groups), Counter(), {g.name: first for g in groups}
    waiting = list(groups)
    while waiting:
        for group in list(waiting):
            allotted = seconds * group.share / whole if seconds else float("inf")
            if (count and number[group.name] >= first + count) or spent[group.name] >= allotted:
                waiting.remove(group)
                continue
            slice_began = time.process_time()
            while time.process_time() - slice_began < 0.5:
                number[group.name] += campaign.one(group, number[group.name])
                if count and number[group.name] >= first + count: break
            spent[group.name] += time.process_time() - slice_began


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0, help="CPU seconds for all groups together; default: 60")
    parser.add_argument("--count", type=int, default=0, help="inputs for each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="groups or targets whose names match this pattern")
    parser.add_argument("--out", type=Path, default=ROOT / ".treekit" / "fuzz", help="folder for findings")
    parser.add_argument("--recorded", type=Path, help="folder of recorded replies; default: ../shared/recorded, or the kit's")
    given = parser.parse_args(arguments)
    import fuzz_targets, recorded_replies
    if given.recorded: recorded_replies.RECORDED = given.recorded
    groups = fuzz_targets.groups()
    if given.only:
        for g in groups: g.targets = [t for t in g.targets if re.search(given.only, f"{g.name} {t.name}")]
        groups = [g for g in groups if g.targets]
    if not groups: parser.error("nothing has that name")
    warnings.simplefilter("ignore")  # of letters that a font lacks
    seconds = given.seconds or (0 if given.count else 60)
    campaign = run(groups, given.seed, seconds, given.count, given.first, given.out)
    return 1 if campaign.findings else 0


if __name__ == "__main__": sys.exit(main())
