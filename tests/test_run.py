"run: every failure counted, nothing stored that failed, stopped cleanly and resumed, the same inside a running loop, warm without anything heavy."

import dataclasses, functools, json, signal, subprocess, sys, time
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes import FakeChat, FakeShelf
from treekit.artefacts.build_cache import last_logged
from treekit.config import Replay, load_profile, use_command
from treekit.experiments.costs import cost_table
from treekit.core.types import Passage, QAPair, Question
from treekit.experiments.resources import LazyRetriever
from treekit.core.prompts import CallFailed, Prompt
from treekit.core.output_parsers import FINAL
from treekit.core.method import Prediction
from treekit.llm.prices import BudgetExceeded
from treekit.experiments.execution import GIVE_UP, RunFailed
from treekit.experiments.run import run
from treekit.llm.cached_client import NotOnCassette
from treekit.store.run_store import Store

ROOT = Path(__file__).resolve().parents[1]
PROFILE = load_profile("offline")
ASK = Prompt("test/run", "answer", "Question: $question\nPassages:\n$documents\nFINAL:", FINAL)


class Scripted(FakeChat):
    "Answers with the question's last word."

    model, endpoint = "gpt-4o-mini", "http://nowhere/v1"
    defaults = dict(temperature=0.0, max_tokens=100)

    def __init__(self, latency=0.0, fail=()):
        super().__init__(latency=latency, tokens=(100, 10))
        self.fail = list(fail)

    def reply(self, request, sample):
        question = request.inputs["question"]
        if any(f in question for f in self.fail):
            return CallFailed("server", "the server said 500", "try later")
        return f"FINAL: {question.split()[-1]}"

    def questions(self):
        return [r.inputs["question"] for r in self.asked]


def Shelf():
    return FakeShelf(lambda q, k: [Passage(str(i), q, "…") for i in range(k)])


@dataclass(frozen=True)
class Read:
    k: int = 2
    steps: int = 1

    async def __call__(self, question, context):
        value = {"answer": question.question}
        for _ in range(self.steps):
            [hits] = await context.retrieve([question.question], self.k)
            asked = f"{question.question} {value['answer']}"
            value = await context.ask(
                ASK, node=context.trace.add("answer", "…"), question=asked, documents=[h.passage for h in hits]
            )
        return Prediction(value["answer"], context.trace, context.usage)


@dataclass(frozen=True)
class Parsing(Read):
    requires = ("parser",)

    async def __call__(self, question, context):
        context.trace.add("parse", str(context.parse([question.question])))
        return await super().__call__(question, context)


def questions(n, dataset="toy", **more):
    return {dataset: [Question(f"q{i}", dataset, f"What is number {i}", (str(i),), **more) for i in range(n)]}


def go(methods=None, asked=None, profile=PROFILE, **more):
    more = (
        dict(
            corpora={d: LazyRetriever(Shelf, "shelf", "a shelf") for d in asked or {"toy": 0}},
            chat=Scripted(),
            progress=False,
        )
        | more
    )
    if more.get("store") is None:
        more["store"] = Store()
    return run(methods or {"read": Read()}, asked or questions(3), profile, **more)


def exact(row):
    return float(row.answer in row.golds)


def test_rows_come_in_the_given_order():
    results = go({"b": Read(), "a": Read(k=1)}, questions(5, "y") | questions(2, "x"))
    assert [(r.method, r.dataset, r.question.id) for r in results.rows] == [
        (m, d, f"q{i}") for m in "ba" for d, n in (("y", 5), ("x", 2)) for i in range(n)
    ]


def test_a_failed_question_is_a_row_counts_as_zero_and_is_tried_again():
    store, chat = Store(), Scripted(fail=["number 1"])
    first = go(store=store, chat=chat)
    assert [bool(r.error) for r in first.rows] == [False, True, False] and "500" in first.rows[1].error
    [cell] = first.score(exact)
    assert (cell["n"], cell["failures"], cell["value"]) == (3, 1, pytest.approx(2 / 3))
    chat.fail.clear()
    second = go(store=store, chat=chat)
    assert not second.failures and [r.stored for r in second.rows] == [True, False, True]
    assert len(chat.asked) == 4


def test_a_metric_that_some_questions_lack_the_gold_for_is_not_applicable():
    read = Question(
        "r", "part", "Which of them is number 9", ("9",), qa_pairs=(QAPair("Which?", ("9",), "Nine (film)"),)
    )
    bare = questions(2, "part")["part"]
    results = go(
        {"a": Read()}, {"all": [read], "part": [read, *bare]}, chat=Scripted(fail=["number 1"])
    )  # a failed question lacks it, too
    cells = {c["dataset"]: c for c in results.score("AR", average="AVG")}
    assert (cells["all"]["n"], cells["all"]["value"], cells["all"].get("reason")) == (1, 1, None)
    assert (cells["part"]["n"], cells["part"]["failures"], cells["part"]["value"], cells["part"]["low"]) == (
        1,
        1,
        None,
        None,
    )
    assert (
        cells["part"]["reason"] == cells["AVG"]["reason"] == "not applicable: 2 of 3 questions of part have no readings"
    )
    assert cells["AVG"]["value"] is None
    assert results.values("AR")["a", "part"] == [1, None, None]
    costs = {c["dataset"]: c for c in cost_table(results, None, dict(all="AR", part="AR"))}
    assert (costs["all"]["quality"], costs["part"]["quality"], costs["part"]["cents per correct answer"]) == (
        1,
        None,
        None,
    )


def test_warm_rows_are_the_same_rows():
    store = Store()
    first, second = go(store=store), go(store=store, chat=Scripted(fail=[""]))
    assert [r.record() for r in first.rows] == [r.record() for r in second.rows]
    assert [r.trace for r in first.rows] == [r.trace for r in second.rows]
    assert first.cost() == second.cost()
    assert all(r.stored for r in second.rows)


def test_the_key_changes_with_whatever_shapes_a_prediction():
    store = Store()
    go(store=store)
    fresh = lambda **more: [r.stored for r in go(store=store, **more).rows]
    assert fresh() == [True] * 3
    assert fresh(methods={"read": Read(k=3)}) == [False] * 3
    assert fresh(corpora={"toy": LazyRetriever(Shelf, "another shelf")}) == [False] * 3
    other = Scripted()
    other.model = "gpt-4o"
    assert fresh(chat=other) == [False] * 3
    hotter = Scripted()
    hotter.defaults = dict(temperature=0.7, max_tokens=100)
    assert fresh(chat=hotter) == [False] * 3
    assert fresh(asked=questions(3, meta={"x": 1})) == [False] * 3
    assert fresh(methods={"another name": Read()}) == [True] * 3


def test_a_budget_stops_cleanly_and_the_next_run_goes_on():
    store, chat = Store(), Scripted()
    poor, rich = (dataclasses.replace(PROFILE, budget=b) for b in (0.0006, 1.0))
    with pytest.raises(BudgetExceeded, match="are left.*larger budget"):
        go(asked=questions(50), profile=poor, store=store, chat=chat)
    done = len(chat.asked)
    assert 0 < done < 50
    results = go(asked=questions(50), profile=rich, store=store, chat=chat)
    assert not results.failures and len(chat.asked) == 50 and sum(r.stored for r in results.rows) == done


def test_a_run_in_which_nothing_succeeds_gives_up_early():
    chat = Scripted(fail=["number"])
    with pytest.raises(RunFailed, match=f"first {GIVE_UP} questions all failed.*500"):
        go(asked=questions(1000), chat=chat)
    store = Store()
    go(asked=questions(1), store=store)
    assert (
        len(go(asked=questions(60), store=store, chat=Scripted(fail=["number"])).failures) == 59
    )  # something had worked before


@pytest.mark.parametrize("kind, most", [("refused", 40), ("timeout", 60)])
def test_identical_refusals_in_a_row_end_a_method(kind, most, capsys):
    "The rest of its questions isn't asked, though its first was answered; a timeout may pass."

    class Refusing(Scripted):
        def reply(self, request, sample):
            first = len(self.asked) == 1
            return super().reply(request, sample) if first else CallFailed(kind, "no such model", "choose another")

    chat = Refusing()
    results = go(asked=questions(60), chat=chat, profile=dataclasses.replace(PROFILE, concurrency=1))
    unasked = [r for r in results.failures if "not asked, after 20 identical refusals" in r.error]
    assert len(results.failures) == 59 and 20 < len(chat.asked) <= most and len(unasked) == 60 - len(chat.asked)
    assert (
        ("identical refusals in a row: no such model" in capsys.readouterr().err)
        == bool(unasked)
        == (kind == "refused")
    )


def test_questions_are_parsed_in_one_batch_before_the_first_call(monkeypatch):
    import treekit.syntax.parser

    batches, chat = [], Scripted()

    class Parser:
        fingerprint = "p"

        def parse(self, texts):
            batches.append((len(texts), len(chat.asked)))
            return [t.split() for t in texts]

    monkeypatch.setattr(treekit.syntax.parser, "parser_for", lambda profile: Parser())
    assert not go({"parsing": Parsing(), "read": Read()}, questions(20), chat=chat).failures and batches == [(20, 0)]


@dataclass(frozen=True)
class Indexing(Read):
    requires = ("corpus",)

    async def __call__(self, question, context):
        async def read(context):
            return [
                (
                    await context.ask(
                        ASK, node=context.trace.add("passage", p.title), question=f"what of {p.title}", documents=[]
                    )
                )["answer"]
                for p in context.corpus.passages
            ]

        return Prediction(" ".join(await context.indexed(read)), context.trace, context.usage)


def test_what_is_made_of_the_passages_is_made_once_and_paid_once(tmp_path):
    pages = [Passage(str(i), f"page{i}", "…") for i in range(3)]
    questions = {"d": [Question(f"q{i}", "d", f"Who is {i}?", ("x",)) for i in range(5)]}

    def again(qs, chat):
        return go({"indexing": Indexing()}, qs, corpora={"d": pages}, store=Store(tmp_path / "s.sqlite"), chat=chat)

    first = again({"d": questions["d"][:4]}, chat := Scripted(latency=0.01))
    assert (
        chat.questions() == [f"what of page{i}" for i in range(3)]
        and [r.answer for r in first.rows] == ["page0 page1 page2"] * 4
    )
    assert all(r.usage.calls == 0 for r in first.rows)
    assert first.indexing["indexing", "d"].calls == 3
    assert first.indexing["indexing", "d"].critical_path == 3  # it asks about one passage after the other
    more = again(questions, chat := Scripted())
    assert (
        chat.asked == []
        and more.rows[4].answer == "page0 page1 page2"
        and more.indexing["indexing", "d"].tokens_in == 300
    )
    warm = again(questions, chat := Scripted())
    assert all(r.stored for r in warm.rows) and chat.asked == [] and warm.indexing == more.indexing
    [bill] = cost_table(warm, None, {"d": lambda row: 1.0})
    assert "dollars for the index" in bill


SCRIPT = """
import signal, sys; sys.path.insert(0, {tests!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from test_run import *
go({{"read": Read(steps=3)}}, questions(200), chat=Scripted(latency=0.2), store=Store({store!r}))
"""


def test_an_interrupt_stops_in_time_and_keeps_what_was_answered(tmp_path):
    path = str(tmp_path / "store.sqlite")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(tests=str(ROOT / "tests"), store=path)],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    deadline = time.time() + 30
    while time.time() < deadline:
        if Path(path).exists():
            with Store(path) as s:
                if s.usage(()) and s.usage(())[0]["calls"]:
                    break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "everything answered so far is stored" in err and process.returncode != 0
    with Store(path) as s:
        kept = s.usage(())[0]["calls"]
    chat = Scripted()
    go({"read": Read(steps=3)}, questions(200), chat=chat, store=Store(path))
    assert kept > 0 and len(chat.asked) == 400 - kept  # the second and the third step ask the same


def test_progress_is_told_to_whoever_started_this_and_the_runs_of_a_command_share_its_budget(tmp_path, monkeypatch):
    "What the call log says was paid since the command began counts, and nothing before."

    def paid(first, last, budget):
        shelf, some = {"toy": LazyRetriever(Shelf, "shelf")}, {"toy": questions(20)["toy"][first:last]}
        return run(
            {"read": Read()},
            some,
            dataclasses.replace(PROFILE, budget=budget),
            corpora=shelf,
            chat=Scripted(),
            progress=False,
        )

    monkeypatch.setenv("TREEKIT_STORE", str(tmp_path / "s.sqlite"))
    paid(0, 5, None)
    began = last_logged(tmp_path / "s.sqlite")
    with use_command(folder=str(tmp_path), since=began):
        paid(5, 15, 0.01)
    [part] = [json.loads(p.read_text()) for p in tmp_path.glob("*.json")]
    assert (part["done"], part["total"], part["calls"]) == (10, 10, 10) and part["money"] == pytest.approx(
        10 * (100 * 0.15 + 10 * 0.6) / 1e6
    )
    with use_command(since=began):
        assert not paid(15, 19, 0.01).failures
    one = (
        1000 * 0.15 + Scripted.defaults["max_tokens"] * 0.60
    ) / 1e6  # dollars: one call fits, but not beside the fourteen
    with use_command(since=began), pytest.raises(BudgetExceeded, match=r"\$0.000294 spent"):
        paid(19, 20, one)
    with use_command(since=last_logged(tmp_path / "s.sqlite")):
        assert not paid(19, 20, one).failures


def test_in_a_replay_only_stored_calls_answer(tmp_path):
    "A given store's in the place of the cassette's; a given chat answers all the same."
    source, tape = Store(tmp_path / "source.sqlite"), tmp_path / "run.cassette"
    go(store=source)
    source.pack(tape)
    profile = dataclasses.replace(
        PROFILE, model=Scripted.model, endpoint=Scripted.endpoint, temperature=0.0, max_tokens=100
    )

    def replayed(k=2, **fields):
        shelf = {"toy": LazyRetriever(Shelf, "shelf", "a shelf")}
        return run({"read": Read(k)}, questions(3), profile, corpora=shelf, progress=False, **fields)

    cassette = functools.partial(Store.replay, tape)
    with use_command(replay=Replay(str(tape))):
        found = [replayed(), replayed(store=cassette()), replayed(chat=Scripted())]
        with pytest.raises(NotOnCassette):
            replayed(k=1, chat=Scripted())
    with use_command(replay=Replay(str(tmp_path / "none.cassette"))):
        found.append(replayed(store=source))
    assert [[r.answer for r in results.rows] for results in found] == [[str(i) for i in range(3)]] * 4
    with pytest.raises(NotOnCassette):
        replayed(k=1, store=cassette())
    assert not replayed(k=1, chat=Scripted(), store=cassette()).failures


def test_the_key_knows_each_thing_that_is_needed():
    "Another thing under a need is another prediction; what only others need is not in the key."

    @dataclass(frozen=True)
    class Free(Read):
        requires: tuple = ()

    pages, others = [Passage("p", "Tarn", "Tarn is a town.")], [Passage("p", "Tarn", "Tarn was a town.")]

    class Other(Scripted):
        model = "gpt-4o"

    def key(*requires, corpora=pages, **more):
        return go({"m": Free(requires=requires)}, questions(1), corpora={"toy": corpora}, **more).rows[0].key

    assert key("router") != key("router", router=Other()) != key("router", router=Scripted())
    assert (
        key("wiki") == key("wiki", router=Other(), navigator=Other(), embedder=Other()) != key("wiki", corpora=others)
    )
    assert key("embedder") != key("embedder", embedder=Other()) and key("wiki", "corpus") == key("wiki", "corpus")
