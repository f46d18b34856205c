"What a run would cost: each artefact's own number of questions, real passages, calls in common counted once, and how far off it is."

import asyncio, json, tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from commands import warmly
from fakes import FakeChat
from test_cli import BODY, PARAMETERS, clone, notebook  # noqa: F401 (a fixture)
from sample_questions import folder_of
from treekit.config import load_profile, set_variables
from treekit.core.prompts import Prompt, ScoringUnsupported
from treekit.core.method import Call, Prediction
from treekit.core.output_parsers import FINAL, TEXT
from treekit.store.run_store import Store
from treekit.core.types import Passage, Question
from treekit.artefacts.estimate import counted, estimate_all, estimate_lines
from treekit.experiments.counting import CountedCalls, count_calls
from treekit.llm.cached_client import CachedClient
from treekit.experiments.run import run
from treekit.artefacts.reproduce import reproduce_all

OWN_N = "P = setting(profile, n, settings, offline=3, paper=40, seed=seed, data=data, budget=budget)"


def said(*words, cwd):
    "What `treekit reproduce --estimate` prints; in this process, since another one takes seconds to start."
    with pytest.MonkeyPatch.context() as patch:
        warmly(patch)
        patch.chdir(cwd)
        patch.setenv("TREEKIT_HOME", str(cwd / ".treekit"))
        result = CliRunner().invoke(main, ["reproduce", "--estimate", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def estimated(*words, cwd):
    return json.loads(said(*words, "--json", cwd=cwd))


@pytest.mark.slow
def test_an_artefact_asks_its_own_number_of_questions_and_not_the_profiles(clone):  # noqa: F811
    body = BODY.replace("P = load_profile(profile, n=n, seed=seed, data=data, budget=budget, **settings)", OWN_N)
    body = "from treekit.experiments.tables import setting\n" + body.replace(
        "int(questions) if n is None else n", "P.n"
    )
    notebook(clone / "nbs/reproduce/treerare/table1.ipynb", PARAMETERS, body)
    assert load_profile("openai").n == 500
    made = estimated("treerare/table1", "--profile", "openai", cwd=clone)
    assert [r["n"] for r in made["rows"]] == [40] and made["total"]["calls"] == 40
    assert estimated("treerare/table1", "--profile", "openai", "--n", "7", cwd=clone)["total"]["calls"] == 7


@pytest.mark.slow
def test_a_call_that_two_artefacts_share_is_paid_once(clone):  # noqa: F811
    first = clone / "nbs/reproduce/treerare/table1.ipynb"
    (clone / "nbs/reproduce/treerare/table2.ipynb").write_text(first.read_text().replace("zero-shot", "another name"))
    made = estimated("treerare/table1", "treerare/table2", "--profile", "openai", "--n", "30", cwd=clone)
    one = estimated("treerare/table1", "--profile", "openai", "--n", "30", cwd=clone)
    assert (made["total"]["calls"], made["total"]["answered"]) == (60, 30)
    assert made["total"]["dollars"] == one["total"]["dollars"] > 0


@pytest.mark.slow
def test_a_budget_that_will_not_do_is_said_in_one_line_before_anything_is_paid(clone, monkeypatch):  # noqa: F811
    words = ("treerare/table1", "--profile", "openai", "--n", "100")
    line = said(*words, "--budget", "0.001", cwd=clone).strip().splitlines()[-1]
    assert line.startswith("the budget of $0.00 would end this partway: about $") and "--budget 1" in line
    assert "budget of" not in said(*words, "--budget", "50", cwd=clone)
    monkeypatch.chdir(clone)
    monkeypatch.setenv("TREEKIT_HOME", str(clone / ".treekit"))
    given = dict(n=100, seed=None, data=None)
    assert not list((clone / ".treekit" / "store").glob("*.sqlite"))


ASK = Prompt("test/pilot", "answer", "Passages:\n$documents\n\nQuestion: $question\nFINAL:", FINAL)
NOTE = Prompt("test/note", "name_entities", "Text: $text", TEXT)


@dataclass(frozen=True)
class Indexing:
    "Three calls for its passages, and one for each question."

    requires = ("corpus",)

    async def __call__(self, question, context):
        async def build(own):
            top = own.trace.add("index", "passages")
            for p in context.corpus.passages:
                await own.ask(NOTE, node=top, text=p.text)
            return True

        await context.indexed(build)
        node, documents = context.trace.add("answer", "…"), list(context.corpus.passages)[:1]
        value = await context.ask(ASK, node=node, question=question.question, documents=documents)
        return Prediction(value["answer"], context.trace, context.usage)


def questions(n):
    return [Question(f"q{i}", "demo", f"Who made film number {i}?", ("Lio Vant",)) for i in range(n)]


def sampled(profile, asked, tmp_path, most=6):
    passages = [Passage(str(i), f"Film {i}", f"Film {i} is a film by Lio Vant.") for i in range(3)]
    corpora, store = dict(demo=passages), Store(tmp_path / "counts.sqlite")
    results = count_calls(
        {"graph": Indexing()}, {"demo": asked}, profile, corpora, tmp_path, most, store=store, progress=False
    )
    return results, [("demo/table1", json.loads(p.read_text())) for p in tmp_path.glob("*.json")]


def test_what_is_made_of_the_passages_is_not_scaled_with_the_questions(tmp_path):
    profile = load_profile("openai", data="synthetic", retriever="bm25s")
    results, notes = sampled(profile, questions(300), tmp_path)
    total = counted(notes, profile).total()
    assert total["calls"] == 303 and total["answered"] == 0
    assert (
        len(results.rows) == 300 and len({r.question.id for r in results.rows}) == 300
    )  # the rest of a notebook finds all it looks for


def test_what_the_store_has_is_not_paid_again(tmp_path):
    profile = load_profile("openai", data="synthetic", retriever="bm25s")
    _, notes = sampled(profile, questions(20), tmp_path)
    [cell] = notes[0][1]["cells"]
    whole, half = counted(notes, profile), counted(notes, profile, set(cell["predictions"][:10]))
    assert half.total()["calls"] == whole.total()["calls"] == 23 and half.total()["answered"] == 10
    assert 0 < half.total()["dollars"] < whole.total()["dollars"]


def test_the_keys_of_an_estimate_are_those_of_the_paid_run(tmp_path):
    "So a prediction that was paid for is found again."
    profile = load_profile("openai", data="synthetic", retriever="bm25s")
    _, notes = sampled(profile, questions(4), tmp_path)

    p = [Passage(str(i), f"Film {i}", f"Film {i} is a film by Lio Vant.") for i in range(3)]
    chat = FakeChat("Lio Vant", model="gpt-4o-mini", endpoint=profile.endpoint, defaults=profile.defaults)
    own = dict(progress=False, store=Store(), chat=chat)
    rows = run({"graph": Indexing()}, {"demo": questions(4)}, profile, corpora={"demo": p}, **own).rows
    assert [r.key for r in rows] == notes[0][1]["cells"][0]["predictions"]


def test_a_batch_is_half_the_price(tmp_path):
    found = []
    for batch in ("false", "true"):
        (tmp_path / batch).mkdir()
        profile = load_profile("openai", data="synthetic", retriever="bm25s", batch=batch)
        found.append(counted(sampled(profile, questions(20), tmp_path / batch)[1], profile).total())
    assert found[1]["dollars"] == pytest.approx(found[0]["dollars"] / 2, abs=2e-4) and found[0]["dollars"] > 0


def test_hours_are_said_at_the_pace_of_the_stored_calls(tmp_path):
    profile = load_profile("openai", data="synthetic", retriever="bm25s")
    _, notes = sampled(profile, questions(20), tmp_path)
    found = counted(notes, profile, pace=36.0)
    assert found.total()["hours"] == 0.23 and "about 0.2 hours" in "\n".join(estimate_lines(found))
    assert counted(notes, profile).total()["hours"] is None


@pytest.mark.parametrize("endpoint,scores", [("https://api.openai.com/v1", False), ("http://localhost:8000/v1", True)])
def test_the_stand_in_scores_where_the_server_would(endpoint, scores):
    chat = FakeChat(endpoint=endpoint, defaults=dict(max_tokens=64))
    client = CachedClient(chat, Store(), prices={}).bind(method="m", dataset="d", question="q")
    call = Call(client, ASK(question="Who?", documents=[Passage("1", "a", "b")]), continuation="a b")
    if scores:
        [(_, completion, stored)] = asyncio.run(CountedCalls().request(call))
        assert completion.logprobs and not stored and not chat.asked
    else:
        with pytest.raises(ScoringUnsupported):
            asyncio.run(CountedCalls().request(call))


def within(name, n, most, data, sets, share):
    "Estimate, run, compare: calls asked, calls paid, tokens in and out."
    from treekit.artefacts.catalog import FIELDS

    given = dict(data=str(data), n=n)
    profile = load_profile("offline", **given, **{k: v for k, v in sets.items() if k in FIELDS})
    with tempfile.TemporaryDirectory() as tmp, pytest.MonkeyPatch.context() as patch:
        warmly(patch)
        total = estimate_all((name,), profile, given, sets, most).total()
        store = Path(tmp, "store.sqlite")
        with set_variables(TREEKIT_STORE=str(store)):
            [task], _ = reproduce_all((name,), "offline", f"{tmp}/out", 1, sets, force=True, **given)
        assert not task.code, task.error
        with Store(store) as s:
            asked = s.usage(())[0]["calls"]
            paid = s.query("SELECT COUNT(*), SUM(tokens_in), SUM(tokens_out) FROM calls")[0]
    pairs = dict(
        calls=(total["calls"], asked),
        paid=(total["calls"] - total["answered"], paid[0]),
        tokens_in=(total["tokens_in"], paid[1]),
        tokens_out=(total["tokens_out"], paid[2]),
    )
    assert all(abs(a / b - 1) <= share for a, b in pairs.values()), pairs
    return pairs


@pytest.mark.slow
def test_an_estimate_is_within_a_tenth_of_the_run_on_the_twin():
    "The model of the run answers: what differs is which of the forty questions it is asked."
    within("toq/table2", 40, 12, folder_of("twin"), dict(dataset="hotpotqa"), share=0.1)


def test_no_weights_of_the_hub_are_loaded(tmp_path):
    "Their names stay in the keys."
    keys = []
    for retriever in ("bm25s", "dense:some/encoder"):
        (tmp_path / retriever[:4]).mkdir()
        profile = load_profile("openai", data="synthetic", retriever=retriever)
        _, notes = sampled(profile, questions(4), tmp_path / retriever[:4])
        assert counted(notes, profile).total()["calls"] == 7
        keys.append(notes[0][1]["cells"][0]["predictions"])
    assert not {*keys[0]} & {*keys[1]}
