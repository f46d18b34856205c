"""Fuzzing with hypothesis: every reader of replies and files and every renderer gets hostile inputs.

    make fuzz ARGS="--seconds 60 --seed 1"      a share of the CPU time for each property
    make fuzz ARGS="--only 'reply|markup'"      properties whose names match a pattern

Hypothesis draws the inputs, shrinks what fails, prints it, and saves it in a folder: the next run begins with it. The exit code is 1 then.
A finding that is mended becomes an explicit example of its property (`fuzz_targets.py`).
"""

import argparse, json, random, re, signal, sys, time, traceback, warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, seed, settings, strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

# CPU seconds that a reader may take for a million characters: three times what the slowest input takes
PER_MEGABYTE = 3.0
LEAST = 1.5  # CPU seconds that any input may take
HANGS = 15  # CPU seconds after which an input is interrupted
EVERYTHING = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False)


class TooSlow(BaseException):
    "An input took longer than it may. Not an `Exception`, so that no reader catches it."


class GetsThrough(AssertionError):
    "Hostile text became markup, a formula or a control character."


@dataclass
class Property:
    "Functions that must hold for every input of a strategy."

    name: str
    inputs: st.SearchStrategy
    runs: dict[str, Callable[[Any], Any]]  # name -> function; raises what is wrong
    declared: tuple = ()  # exceptions that say what is wrong with the input
    share: float = 1.0  # of the time
    slow: float = 1.0  # times `PER_MEGABYTE` and `LEAST`
    check: Callable[[Any, Any], None] | None = None  # of an input and a result, outside of the measured time
    examples: list = field(default_factory=list)  # earlier findings
    inputs_seen: int = 0

    def holds(self, value):
        "Raise an error if a function fails for an input, or takes too long. A slow one is measured three times: the machine may be busy."
        self.inputs_seen += 1
        size = len(value) if isinstance(value, (str, bytes)) else len(repr(value))
        limit = self.slow * max(LEAST, PER_MEGABYTE * size / 1e6)
        for name, run in self.runs.items():
            try:
                for _ in range(3):
                    if (taken := self._measured(run, value, limit)) <= limit:
                        break
            except Exception as e:
                e.add_note(f"{self.name}: {name}")
                raise
            if taken > limit:
                raise AssertionError(f"{name} took {taken:.2f} s of CPU where {limit:.2f} s are allowed")

    def _measured(self, run, value, limit):
        signal.signal(signal.SIGVTALRM, interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, max(HANGS, 3 * limit))
        began = time.process_time()
        try:
            made = run(value)
        except self.declared:
            return time.process_time() - began
        except TooSlow:
            return float("inf")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        taken = time.process_time() - began
        if self.check:
            self.check(value, made)
        return taken

    def test(self, key: str, plan: settings = EVERYTHING):
        "Hypothesis's test of this property; the same inputs for the same key."

        def check(value):
            self.holds(value)

        check.__name__ = re.sub(r"\W+", "_", self.name)  # under which hypothesis saves failures
        made = given(self.inputs)(check)
        for value in self.examples:
            made = example(value)(made)
        return seed(key)(plan(made))


def interrupt(*_):
    raise TooSlow


# --- strategies: texts and files that are changed at some places

MARKS = """FINAL: Explanation: Thought: Action: Finish[ Search[ Lookup[ Observation: <think> </think> <search> </search> <answer> </answer>
<information> <|begin_of_query|> <|end_of_query|> \\boxed{ ```json ``` ~~~ [[ ## answer ## ]] SCORE: Score: Choice: response: Query:
OUTCOME: Sub-question: Question: Follow-up: Intermediate So the final answer is: [ANSWER] [EXPAND] [REFUSE] <answer>3: <expand> 1. 2) -
* • #1 [ANS_1] <|> <||> ## {"entities": {"answer": {"is_multi_hop": "answer_span" "relevance" semantic_coherence answerability
overall_assessment response_validity true false null None NaN Infinity -0 1e999 [[4]] 7/10 A>B>C 1>2=3 <paragraph> </paragraph>
[Retrieval] [No support [Continue DONE yes no 예 아니요 검색어: 점수 {{ }} {| |} |- || [[ ]] '' ''' == = <ref> </ref> <ref name=x/> <!-- -->
<nowiki> <table> <tr> <td rowspan=9999> colspan=9999> </td> </table> <b> <div> <p> <li> <ul> &amp; &#0; &lt; #REDIRECT [[File: [http://
~~~~ __TOC__ : ; * # > | --- \\ {{a| ( ) ," '=1+1 =cmd +1 -1 @x " ' ` ; , . : / \\n $x$ $$ % <page> </page> <title> <text> <ns>
<revision> ]]> <![CDATA[""".split()
ODD = [
    "\x00",
    "\x1b[31m",
    "\ud800",
    "\udc00\ud800",
    "\ufffe",
    "\uffff",
    "\u202e",
    "\u2028",
    "\x85",
    "\x0b\x0c",
    "\ufeff",
    "\u200b",
    "\r\n",
    "\r",
    "\n\n\n",
    "\t",
    " " * 40,
    "e\u0301\u0323\u0301",
    "\u0130",
    "\u00df",
    "\uac00",
    "\u1100",
    "\U0001d49c",
    "\u0663",
    "\u00b2",
    "\U0001f469\u200d\U0001f467",
    "9" * 5000,
    "-" * 300,
    "." * 300,
    "[" * 400,
    '{"a":' * 400,
    "(" * 300,
    "<" * 300,
    "\\ud800",
    "\\ud83d\\ude00",
    "\\u0000",
    "{{" * 60,
    "[[" * 60,
    "<b>" * 100,
    "\u0301\u0323" * 300,
]
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    2**70,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "x",
    "x" * 900,
    "\ud800",
    "\x00",
    "9" * 400,
    [],
    {},
    [[]],
    [None],
    [1],
    ["a", 2],
    {"": ""},
    {"a": None},
    {"title": 1, "text": 2},
    [{"a": []}],
    "=1+1",
    "<script>",
    ["\ud83d"],
]
PAIRS = ("[", "]"), ('{"a":', "}"), ("(", ")"), ("{{a|", "}}"), ("<b>", "</b>"), ("[[", "]]"), ("<div>", "</div>")
SIZES = [*range(4, 13)] * 40 + [14, 16, 18, 20]  # powers of two: mostly short, rarely a megabyte
PLACE = st.floats(0, 1)  # in a text, as a share of its length


def insert(text, at, new):
    i = round(at * len(text))
    return text[:i] + new + text[i:]


def piece(text, at, length):
    i = round(at * len(text))
    return text[i : i + length]


def cut(text, start, end):
    return text[: round(min(start, end) * len(text))] + text[round(max(start, end) * len(text)) :]


def repeat(text, at, length, times, to):
    return insert(text, to, piece(text, at, length) * times)


def splice(text, other, at, length, to):
    return insert(text, to, piece(other, at, length))


def replace(text, at, length, new):
    return text.replace(piece(text, at, length) or "a", new)


def shuffle(text, order):
    return "".join(random.Random(order).sample(lines := text.splitlines(True), len(lines)))


def pump(text, at, length, mark, size, to):
    "A short piece, or a mark, many times."
    unit = mark or piece(text, at, length) or "a"
    return insert(text, to, unit * (2**size // len(unit) + 1))


def nest(text, pair, size, closed, to):
    return insert(text[:400], to, pair[0] * 2**size + "x" + pair[1] * (2**size if closed else 0))


def nodes(value):
    "How many values there are in a JSON value, itself included."
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(nodes, inside))


def json_replaced(value, number, new):
    "A JSON value whose n-th part, in the order of the text, is another one."
    if not number:
        return new
    if not isinstance(value, (dict, list)):
        return value
    number -= 1
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for i, (key, inner) in enumerate(items):
        if 0 <= number < nodes(inner):
            items[i] = key, json_replaced(inner, number, new)
        number -= nodes(inner)
    return dict(items) if isinstance(value, dict) else [v for _, v in items]


def json_changed(value, changes):
    for at, new in changes:
        value = json_replaced(value, round(at * (nodes(value) - 1)), new)
    return value


def change_json(text, changes, write):
    "The JSON value in a text, changed and written in another way."
    start, end = (
        min((i for i in (text.find("["), text.find("{")) if i >= 0), default=-1),
        max(text.rfind("]"), text.rfind("}")),
    )
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return text
    return text[:start] + write(json_changed(value, changes)) + text[end + 1 :]


def trailing_commas(value):
    return re.sub(r"([\]}])", r",\1", json.dumps(value))


def json_changes():
    return st.lists(st.tuples(PLACE, st.sampled_from(VALUES)), min_size=1, max_size=4)


def operation(function, **parts):
    return st.builds(lambda **given: partial(function, **given), **parts)


def operations(seeds):
    "Functions that change a text."
    lengths, mark = st.integers(1, 200), st.sampled_from(MARKS)
    writers = st.sampled_from(
        [json.dumps, repr, partial(json.dumps, indent=1), partial(json.dumps, ensure_ascii=False), trailing_commas]
    )
    return st.one_of(
        operation(cut, start=PLACE, end=PLACE),
        operation(insert, at=PLACE, new=mark | st.sampled_from(ODD)),
        operation(repeat, at=PLACE, length=lengths, times=st.sampled_from((1, 2, 8, 40)), to=PLACE),
        operation(splice, other=st.sampled_from(seeds), at=PLACE, length=st.integers(1, 400), to=PLACE),
        operation(replace, at=PLACE, length=st.integers(1, 3), new=st.sampled_from([*MARKS, "", "\n"])),
        operation(shuffle, order=st.integers(0, 99)),
        st.just(str.swapcase),
        operation(replace, at=st.just(1), length=st.just(0), new=mark),
        operation(
            pump, at=PLACE, length=st.integers(1, 8), mark=st.just("") | mark, size=st.sampled_from(SIZES), to=PLACE
        ),
        operation(change_json, changes=json_changes(), write=writers),
        operation(nest, pair=st.sampled_from(PAIRS), size=st.integers(3, 12), closed=st.booleans(), to=PLACE),
    )


@st.composite
def mutated(draw, seeds, most=2_200_000):
    "A text that is changed a few times."
    text = draw(st.sampled_from(seeds))
    if len(text) > 3000 and draw(st.integers(0, 9)):
        half = 2 ** draw(st.integers(6, 10))
        text = text[:half] + text[-half:]
    for change in draw(st.lists(operations(seeds), min_size=1, max_size=5)):
        text = change(text)[:most]
    return text


def encoded(texts):
    "The same as a file: text that may not be UTF-8."
    others = [(e, "replace") for e in ("utf-16", "utf-8-sig", "latin-1", "euc-kr")]
    how = [("utf-8", "replace")] * 6 + [("utf-8", "surrogatepass")] * 3 + others
    return st.builds(lambda text, how: text.encode(*how), texts, st.sampled_from(how))


def damaged(data: bytes, faults) -> bytes:
    "Bytes with other ones in some places, or without some."
    data = bytearray(data)
    for at, removed, new in faults:
        i = round(at * len(data))
        data[i : i + removed] = new
    return bytes(data)


FAULTS = st.lists(st.tuples(PLACE, st.sampled_from((0, 1, 1, 4, 100, 4096)), st.binary(max_size=64)), max_size=8)


# --- the command


def search(properties, seconds, key, database):
    "Test all properties in turn until the time is over; the names of those that fail."
    whole, spent, rounds, failed = (
        sum(p.share for p in properties),
        dict.fromkeys([p.name for p in properties], 0.0),
        0,
        set(),
    )
    waiting = list(properties)
    while waiting:
        for prop in list(waiting):
            phases = set(Phase) - {Phase.explicit} if rounds else set(Phase)
            plan = settings(EVERYTHING, max_examples=50 if rounds else 2, database=database, phases=phases)
            began = time.process_time()
            try:
                prop.test(f"{key}:{rounds}", plan)()
            except Exception as e:
                failed.add(prop.name)
                traceback.print_exception(e)
            spent[prop.name] += time.process_time() - began
            if spent[prop.name] >= seconds * prop.share / whole or prop.name in failed:
                waiting.remove(prop)
        rounds += 1
    for p in properties:
        print(f"{p.name:<24}{p.inputs_seen:>8,} inputs{spent[p.name]:>8.1f} s of CPU{'   fails' * (p.name in failed)}")
    return failed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds for all properties together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="properties whose names match this pattern")
    parser.add_argument("--out", type=Path, default=ROOT / ".treekit" / "fuzz", help="folder for findings")
    given = parser.parse_args(arguments)
    import fuzz_targets

    properties = [p for p in fuzz_targets.properties() if re.search(given.only, p.name)]
    if not properties:
        parser.error("nothing has that name")
    warnings.simplefilter("ignore")  # of letters that a font lacks
    failed = search(properties, given.seconds, given.seed, DirectoryBasedExampleDatabase(given.out))
    print(
        f"{len(properties)} properties, seed {given.seed}: {len(failed)} with findings"
        + (f", saved in {given.out}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
