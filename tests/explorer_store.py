"Runs made by hand, for the explorer's tests: random trees, and two small runs that differ on one question."

import random

from treekit.core.method import Prediction, Trace
from treekit.core.types import Question
from treekit.experiments.results import Row


def kept(store, name, traces, answers=None, payload=""):
    "A run of given traces in a store, each the answer to a question of its own."
    from treekit.config import load_profile
    from treekit.experiments.run_records import save_run

    questions = [
        Question(f"q{i}", "films", f"Question {i}: who filmed it? {payload}", ("Ada",)) for i in range(len(traces))
    ]
    rows = []
    for i, (question, trace) in enumerate(zip(questions, traces)):
        answer = (answers or ["Ada"] * len(traces))[i]
        store.put_prediction(f"{name}{i}", Prediction(answer, trace).to_json())
        rows.append(Row(name, "films", question, answer, "", Prediction("").usage, f"{name}{i}"))
    return save_run(store, {name: questions[0]}, {"films": questions}, load_profile("offline"), rows)


def save_page(store, names, path):
    "Runs as a file."
    from treekit.explorer.page import page_of
    from treekit.utils.atomic_write import write_whole

    write_whole(path, page_of(store, names))
    return path


def grown(n, seed=0, text="node {}"):
    "A random tree."
    rng, trace = random.Random(seed), Trace()
    for i in range(n):
        parent = None if i == 0 else trace.nodes[rng.randrange(max(0, i - 60), i)]
        trace.add(
            "step",
            text.format(i),
            parent=parent,
            evidence=f"evidence {i} " + "word " * rng.randrange(60),
            hits=[dict(id=f"p{i % 50}", title=f"Title {i % 50}", score=1.0)],
        )
    return trace


def searched(n):
    "A Monte Carlo search of so many nodes: each round expands a state of the last fifty."
    rng, trace = random.Random(0), Trace()
    for i in range(n):
        round, value = -(-i // 9), rng.random()
        changes = [[round, 0, value], [round + 1, 1 + n // (i + 1), value / 2]]
        parent = trace.nodes[rng.randrange(max(0, i - 50), i)] if i else None
        state = dict(risk=4 * value) if i else {}
        trace.add("state" if i else "question", f"state {i}", parent=parent, ended=None, changes=changes, **state)
    return trace


def small_runs(store):
    "Two runs that differ on one question; with a search, phrases and links among their trees."

    def phrases(said):
        trace = Trace()
        top = trace.add("phrase", "who filmed it", span=[12, 25], evidence=said)
        trace.add(
            "phrase",
            "it",
            parent=top,
            span=[23, 25],
            evidence="it",
            hits=[dict(id="p", title="P", score=2.0, informativeness=0.5)],
        )
        top.depth = 3
        trace.add("answer", said)
        return trace

    search = Trace()
    top = search.add(
        "question", "why", depth=0, value=0.5, visits=3, ended=None, changes=[[0, 0, 0.0], [1, 1, 0.5], [3, 3, 0.5]]
    )
    for i in (1, 2):
        search.add(
            "state",
            f"state {i}",
            parent=top,
            depth=1,
            value=0.1 * i,
            visits=1,
            ended=2,
            risk=0.3 * i,
            changes=[[1, 0, 0.1 * i], [i + 1, 1, 0.1 * i]],
        )
    path = Trace()
    root = path.add("path", "two steps")
    path.add("sub-question", "first", parent=root, number=1, needs=[])
    path.add("sub-question", "second", parent=root, number=2, needs=[1])
    first = kept(store, "one", [phrases("Ada"), search, path])
    second = kept(store, "other", [phrases("Eve"), search, path], ["Eve", "Ada", "Ada"])
    return first, second
