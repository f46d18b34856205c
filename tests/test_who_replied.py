"The model that replied is recorded for each answer and named in results, facts and tables; the one that was asked for is in a note."

from dataclasses import dataclass

import pytest

from fakes import FakeChat
from treekit.adapters.compare import comparison_caption
from treekit.config import Profile
from treekit.core.method import Prediction
from treekit.core.prompts import Prompt, sound_completion
from treekit.core.output_parsers import FINAL
from treekit.core.types import Passage, Question
from treekit.experiments.results import answered_by
from treekit.experiments.run import run
from treekit.experiments.run_records import saved_runs
from treekit.figures.tables import to_markdown
from treekit.figures.verdicts import compare
from treekit.store.run_store import Store

ASK = Prompt("test/who", "answer", "$question", FINAL)
CORPUS = {"hotpotqa": [Passage("p", "Ada", "Ada made films.")]}
ASKED = [Question(f"q{i}", "hotpotqa", f"Who made film {i}?", ("Ada",), supporting=("p",)) for i in range(3)]


@dataclass(frozen=True)
class Ask:
    async def __call__(self, question, context):
        return Prediction((await context.ask(ASK, question=question.question))["answer"], context.trace, context.usage)


class Server(FakeChat):
    "Asked for one model, answers with others' names in turn."

    model, endpoint = "gpt-4o-mini", "http://127.0.0.1:1/v1"

    def __init__(self, *names):
        super().__init__(lambda r: "FINAL: Ada")
        self.names = list(names)

    async def complete(self, request):
        [made] = await super().complete(request)
        name, self.names = self.names[0], [*self.names[1:], self.names[0]]
        return [sound_completion(dict(text=made.text, tokens_in=1, tokens_out=1, model=name))]


def go(*names, store=None):
    return run(
        {"Ask": Ask()},
        {"hotpotqa": ASKED},
        Profile("p", endpoint="http://127.0.0.1:1/v1", model="gpt-4o-mini", concurrency=1),
        corpora=CORPUS,
        chat=Server(*names),
        store=store or Store(),
        progress=False,
    )


@pytest.mark.parametrize(
    "names, said",
    [
        (["gpt-4o-mini"], "gpt-4o-mini"),
        ([""], "gpt-4o-mini"),
        (["tiny-1b"], "tiny-1b (asked for: gpt-4o-mini)"),
        (["gpt-4o-mini", "tiny-1b"], "gpt-4o-mini: 2 replies, tiny-1b: 1 replies (asked for: gpt-4o-mini)"),
        (["tiny\x1b[31m\u202e\n1b"], "tiny [31m 1b (asked for: gpt-4o-mini)"),
        (["x" * 9999], f"{'x' * 200} (asked for: gpt-4o-mini)"),
    ],
)
def test_a_run_names_who_replied(names, said):
    store = Store()
    for results in (go(*names, store=store), go("nobody", store=store)):  # the second from the store
        assert results.answered == said and repr(results).endswith(f"model {said}")
        assert comparison_caption(results).startswith(f"Model: {said}.")
        assert results.facts["Ask", "hotpotqa"].served == tuple(sorted({n for r in results.rows for n in r.replied}))


def test_a_saved_run_names_who_replied():
    store = Store()
    go("tiny-1b", store=store)
    assert [run["model"] for run in saved_runs(store)] == ["tiny-1b"]


def test_replies_of_unknown_origin_are_the_requested_models():
    assert answered_by("m", {}) == "m"


def test_a_table_names_who_replied_and_a_note_whom_was_asked():
    where = dict(paper="", artefact="", group="GPT-4o-mini", method="Ask", dataset="HotpotQA", metric="EM")
    printed = [where | dict(value=0.5, unit="share", flag="")]

    def page(*names):
        results = go(*names)
        return compare(printed, results.score(lambda r: 1.0, name="EM"), results)

    same, other = page("gpt-4o-mini-2024-07-18"), page("tiny-1b")
    ran = other[other.reproduced.notna()]
    assert set(ran.model) == {"tiny-1b"} and set(ran.group) == {"tiny-1b"} and set(ran.verdict) == {"not comparable"}
    text = to_markdown(other, "A table")
    assert "Model: tiny-1b." in text and "The model is tiny-1b, by its server's word (asked for: gpt-4o-mini)." in text
    assert set(same[same.reproduced.notna()].group) == {"GPT-4o-mini"}


def test_legends_and_prices_are_of_the_model_that_replied(monkeypatch):
    "The line below a figure, a caption and the price; without a price of its own no cents, and a simulated run keeps its name."
    from treekit.experiments.costs import billed_as
    from treekit.figures.plots import ran_line

    go("tiny-1b")
    assert ran_line("gpt-4o-mini", "real", [3]).startswith("tiny-1b, ")
    assert billed_as("gpt-4o-mini") == ("tiny-1b", None) and billed_as("gpt-4o-mini", "gpt-4o-mini")[1]
    results = go("gpt-4o-mini-2024-07-18")
    name, price = billed_as("gpt-4o-mini")
    assert (
        ran_line("gpt-4o-mini", "", ()) == name == "gpt-4o-mini-2024-07-18"
        and price == billed_as("gpt-4o-mini", "gpt-4o-mini")[1]
    )
    assert ran_line("simulated (offline)", "", ()) == "simulated (offline)" and results.model == "gpt-4o-mini"
