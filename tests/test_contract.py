"No cheat is confirmed, a faithful laboratory is refused nothing, and the three words keep their error rates."

import json, re
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fakes import FakeChat
from treekit.baselines import revising
from treekit.baselines.prompting import RetrieveAndRead
from treekit.config import UsageError, kit_path, load_profile
from treekit.core.method import Prediction, Usage
from treekit.core.prompts import Completion
from treekit.core.types import Passage, Question
from treekit.corpora.load import Files, Hub, is_known
from treekit.experiments import provenance, resources
from treekit.experiments.cassettes import as_record
from facts import facts_as_said
from treekit.experiments.paper_settings import said_of
from treekit.experiments.provenance import (
    choices,
    contract_of,
    differences,
    implementation_of,
    question_key,
    questions_fact,
    sample_key,
    unit_of,
)
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.figures.equivalence import noise
from treekit.figures.tables import to_markdown
from treekit.figures.verdicts import JUDGED, compare, gains, power, published
from treekit.papers.arise.evaluation import covered

MODEL, SETS = "Qwen2.5-7B-Instruct", dict(hotpotqa="5adf2fa3554299334401{:04x}", musique="2hop__{}_1")
SETS["2wiki"] = "{:028x}48001122"
PRINT = [  # a table whose gain is large enough for 200 questions
    dict(paper="arise", artefact="table1", group=MODEL, method=m, dataset=d, metric="EM (covered)", value=v, unit="percent", flag="ok")
    for m, v in (("Vanilla", 40.0), ("ARISE (ours)", 80.0))
    for d in ("HotpotQA", "2WikiMQA", "MuSiQue", "AVG")
]  # fmt: skip


def questions(dataset, n=200, at=0):
    "Questions with ids of the published form, each with a passage of its own."
    passage = Passage("p", "Zarn", "The lamp is kept by somebody.")
    return [
        Question(
            SETS[dataset].format(i),
            dataset,
            f"Who keeps the lamp of Zarn{i}q?",
            (f"Ilbe Mor{i}t",),
            paragraphs=(passage,),
        )
        for i in range(at, n)
    ]


def model(share, name=MODEL):
    "A model that is right in a share of the questions."

    def says(request):
        i = int(re.search(r"Zarn(\d+)q", str(request))[1])
        return Completion(
            f"Explanation: so.\nFINAL: {f'Ilbe Mor{i}t' if i % 10 < 10 * share else 'Nobody'}", 9, 2, model=name
        )

    return FakeChat(says, model=MODEL, endpoint="http://127.0.0.1:9/v1")


@dataclass(frozen=True)
class Gold:
    "The gold answer of two questions in five (or of four), without a call."

    usage: bool = False

    async def __call__(self, question, context):
        i = int(re.search(r"Zarn(\d+)q", question.question)[1])
        context.trace.add("answer", "")
        made = Usage(calls=3, tokens_in=90, tokens_out=9) if self.usage else context.usage
        return Prediction(question.answers[0] if i % 10 < 4 else "Nobody", context.trace, made)


@dataclass(frozen=True)
class Other(RetrieveAndRead):
    "Another class, which asks the model and then does as it likes."

    async def __call__(self, question, context):
        await super().__call__(question, context)
        return await Gold()(question, context)


@dataclass(frozen=True)
class Lab(RetrieveAndRead):
    "A laboratory's own implementation."

    async def __call__(self, question, context):
        return await super().__call__(question, context)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    monkeypatch.setattr(
        provenance, "published_texts", lambda d: frozenset(question_key(q.question) for q in questions(d))
    )
    for name in SETS:
        rows = "".join(json.dumps(as_record(q)) + "\n" for q in questions(name))
        (tmp_path / f"{name}.dev.jsonl").write_text(rows)
    monkeypatch.setattr(resources, "is_known", lambda *_: True)  # the publisher's files
    return tmp_path


def cells(place, method=None, chat=None, sets=("hotpotqa",), asked=questions, average="", row="Vanilla", **settings):
    "Verdict and reason of each cell of a run of one row."
    profile = load_profile(
        "local", model=MODEL, search_scope="own", retriever="bm25", n=200, data=str(place), **settings
    )
    methods = {row: method or revising.methods()["Vanilla"]}
    results = run(methods, {d: asked(d) for d in sets}, profile, chat=chat or model(0.4), progress=False)
    assert not results.failures, results.failures[0].error
    rows = results.score(covered, average=average, name="EM (covered)")
    table = compare(PRINT, rows, results)
    found = {r.dataset: (r.verdict, r.reason) for r in table.itertuples() if r.verdict != "not run"}
    assert found and to_markdown(table)
    return found


def patched(place, monkeypatch):
    monkeypatch.setattr(RetrieveAndRead, "__call__", Gold.__call__)
    monkeypatch.setattr(RetrieveAndRead, "usage", False, raising=False)
    return cells(place)


def of_another_model(place, monkeypatch):
    cells(place, chat=model(0.4, "gpt-4o"))
    return cells(place, chat=model(0.4))


def edited(dataset):
    first, *rest = questions(dataset)
    return [replace(first, question=first.question.replace("lamp", "lantern")), *rest]


def easy(dataset):
    "Those that the model is right in, as often as it takes to score what is printed."
    return [q for i, q in enumerate(questions(dataset)) if i % 2 == 0]


def gold_edited(dataset):
    first, *rest = questions(dataset)
    return [replace(first, answers=("Nobody",)), *rest]


def passage_added(dataset):
    first, *rest = questions(dataset)
    return [replace(first, paragraphs=(*first.paragraphs, Passage("q", "Zarn", "Ilbe Mor0t keeps it."))), *rest]


def repeated(dataset):
    return [replace(q, id=SETS[dataset].format(i)) for i, q in enumerate(questions(dataset, 10) * 20)]


CHEATS = {  # what is done -> how, and what the reason says
    "gold answers": (lambda p, m: cells(p, Gold()), "method="),
    "no calls": (patched, "replies=none of a named model to 200 of 200"),
    "another class under the name": (lambda p, m: cells(p, Other(top_k=2)), "test_contract.Other"),
    "half of the questions": (lambda p, m: cells(p, asked=lambda d: questions(d, 100)), "n=100"),
    "two of three data sets": (lambda p, m: cells(p, sets=("hotpotqa", "musique"), average="AVG"), "without 2WikiMQA"),
    "fabricated usage": (lambda p, m: cells(p, Gold(True)), "replies=none of a named model to 200 of 200"),
    "cached replies of another model": (of_another_model, "gpt-4o"),
    "a renamed model": (lambda p, m: cells(p, chat=model(0.4, "qwen2.5-0.5b")), "qwen2.5-0.5b"),
    "an edited question": (lambda p, m: cells(p, asked=edited), "1 of 200 have texts"),
    "the easy half of the questions": (
        lambda p, m: cells(p, asked=easy),
        "100 of 200, and not those that the kit draws",
    ),
    "an edited gold answer": (lambda p, m: cells(p, asked=gold_edited), "1 of 200 aren't as their source has them"),
    "a passage that says it": (lambda p, m: cells(p, asked=passage_added), "1 of 200 aren't as their source has them"),
    "ten questions, each twenty times": (lambda p, m: cells(p, asked=repeated), "190 of 200 repeat the text"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_is_confirmed(name, place, monkeypatch):
    cheat, named = CHEATS[name]
    found = cheat(place, monkeypatch)
    word, reason = list(found.values())[-1]
    assert word == "not comparable" and named in reason, found


@pytest.mark.parametrize("dataset", SETS)
def test_an_edit_is_noticed_where_the_kit_has_the_question(dataset):
    first, *rest = load(dataset, "real", n=20)
    told = Passage("p", "Zarn", f"The answer is {first.answers[0]}.")
    for edit in (
        dict(answers=("Nobody",)),
        dict(answers=(*first.answers, "Nobody")),
        dict(paragraphs=(*first.paragraphs, told)),
    ):
        found = questions_fact(dataset, [replace(first, **edit), *rest])
        assert found == f"1 of 20 have answers or passages that {dataset} doesn't give"
    assert questions_fact(dataset, [first, *rest]).startswith("published")


def test_an_edited_kit_differs_from_the_release(place, monkeypatch):
    monkeypatch.setattr(provenance, "_hash_of_code", lambda source: "edited" * 3)
    [(word, reason)] = cells(place).values()
    assert word == "not comparable" and "method=treekit.baselines.prompting.RetrieveAndRead editededited" in reason


def test_the_committed_hashes_are_those_of_the_code():
    from implementations import implementations

    committed = kit_path("data", "papers", "implementations.csv").read_text(encoding="utf-8")
    assert committed == implementations(), "after a change of a method: python tests/implementations.py"


def test_an_easy_file_is_no_source(place):
    "A file with the easy questions alone lacks the published rest, and a file that nobody knows confirms nothing."
    rows = (place / "hotpotqa.dev.jsonl").read_text().splitlines(True)
    (place / "hotpotqa.dev.jsonl").write_text("".join(rows[:100]))
    [(word, reason)] = cells(place, asked=lambda d: questions(d, 100)).values()
    assert word == "not comparable" and "a source without 100 of the published questions" in reason


def test_a_file_that_the_kit_does_not_know_confirms_nothing_unless_it_is_declared(place, monkeypatch):
    monkeypatch.setattr(resources, "is_known", is_known)
    [(word, reason)] = cells(place).values()
    assert word == "compatible" and "the file of hotpotqa is none that the kit knows" in reason
    mine = lambda d: questions(d)[::-1]  # noqa: E731
    said = contract(place, f'[data.hotpotqa]\nsample = "{sample_key(mine("hotpotqa"))}"\n')
    [(word, reason)] = cells(place, asked=mine, contract=said).values()
    assert word == "confirmed" and "declared by lab.toml" in reason and "github.com/lab/arise" in reason


def test_a_known_file_is_known_by_its_bytes(tmp_path):
    (tmp_path / "hotpotqa.dev.jsonl").write_bytes(b"{}")
    assert not is_known(Files(tmp_path), "hotpotqa") and is_known(Hub(), "hotpotqa") and not is_known(Hub("x"), "asqa")
    known = kit_path("data", "questions", "files.csv").read_text()
    assert (
        re.findall(r"[0-9a-f]{40}", known) and "9e26dfeeb6e641a33dae4961196235bdb965b21b" not in known
    )  # Git's hash of {}


def contract(place, text):
    (place / "lab.toml").write_text(f'source = "github.com/lab/arise at 1a2b3c4"\n{text}')
    return str(place / "lab.toml")


def of_the_lab(place, hash_):
    facts = '[methods."Vanilla".facts]\nscorer = "likelihood"\n'
    return contract(place, f'[methods."Vanilla"]\nclass = "test_contract.Lab"\nhash = "{hash_}"\n{facts}')


def test_the_kits_own_run_is_confirmed_with_paragraphs_as_the_unit(place):
    "The control of the cheats: nothing but the cheat differs. ARISE's unit is open, and shown."
    found = cells(place, sets=SETS, average="AVG")
    assert {word for word, _ in found.values()} == {"confirmed"} and "AVG" in found, found
    assert all("unit=paragraphs, open in the paper" in reason for _, reason in found.values())


def test_a_model_that_answers_otherwise_is_different(place):
    [(word, reason)] = cells(place, chat=model(0.1)).values()
    assert word == "different" and "95 % of perfect pairs of runs" in reason


@pytest.mark.parametrize("judged, said", [(1, "0.05 of 1 judged"), (30, "1.5 of 30 judged"), (0, "")])
def test_a_table_says_how_many_differences_chance_makes(judged, said):
    rows = [
        dict(
            method="Vanilla", dataset="hotpotqa", metric="EM (covered)", n=200, failures=0, value=0.4, low=0.3, high=0.5
        )
    ]
    table = compare(PRINT, rows, model="simulated" if not judged else MODEL, differs=[])
    table = pd.concat([table[table.reproduced.notna()]] * max(1, judged))
    assert (f"By chance up to {said} cells are different" in to_markdown(table)) == bool(judged)


def test_a_foreign_implementation_is_accepted_by_contract(place):
    known = implementation_of(Lab).split()[-1]
    [(word, reason)] = cells(place, Lab(top_k=2), contract=of_the_lab(place, known)).values()
    assert word == "confirmed" and "declared by lab.toml" in reason and "github.com/lab/arise" in reason
    [(word, reason)] = cells(place, Lab(top_k=2), contract=of_the_lab(place, "0" * 12)).values()
    assert word == "not comparable" and known in reason  # what the contract has to say
    for text in ("[weights]\n", '[methods."Vanilla"]\nclass = "x"\n', "source = 1", "["):
        with pytest.raises(UsageError, match="contract lab.toml"):
            cells(place, Lab(top_k=2), contract=contract(place, text))


def navigated(navigator, **others):
    "Differences of a SEARCH-R run with a navigator, and what is shown of it."
    cell = "searchr", "table2", "musique", "SEARCH-R*"
    facts = facts_as_said(*cell, navigator=navigator, model="gpt-4o-mini", **others)
    return differences(facts, said_of(*cell), "F1"), choices(facts, said_of(*cell))


def test_the_authors_weights_are_accepted_by_contract(place):
    weights = 'model = "authors"\nname = "navigator authors/ppo"\npreset = "8B"\nquestions = 2000\npaths = "gpt-4o-mini"\nrate = 2e-5\n'
    said = contract_of(load_profile("local", contract=contract(place, f"[roles.navigator]\n{weights}")))
    served = SimpleNamespace(endpoint="http://server/v1", model="authors")
    value = provenance._trained(served, said["roles"]["navigator"])
    assert navigated(value)[0] == [] and navigated(provenance._trained(served, {}))[0]
    facts = provenance._with_declared(facts_as_said("searchr", "table2", navigator=value), "SEARCH-R*", said)
    assert "navigator authors/ppo" in facts.declared[0] and "declared by lab.toml" in facts.declared[0]


CELLS = dict(
    arise=("table1", "hotpotqa", "ARISE (ours)"),
    searchr=("table2", "musique", "SEARCH-R*"),
    treerare=("table1", "hotpotqa", "TreeRare (DT)"),
    rdr2=("table1", "asqa", "RDR2 (Ours)"),
)
ROUTER, NAVIGATOR = "router x/tag-prompt-inst-lora-epoch-3.5", "navigator x/ppo"


@pytest.mark.parametrize("cell, role, said, accepted", [
    ("searchr", "navigator", dict(name=NAVIGATOR, preset="8B", paths="gpt-4o-mini", labels="gpt-4o-mini", rate=2e-5), True),
    ("searchr", "navigator", dict(name=NAVIGATOR, preset="8B", base="Llama-3.1-8B", paths="gpt-4o-mini-2024-07-18", rate=2e-5), True),
    ("searchr", "navigator", dict(name=NAVIGATOR, preset="8B", paths="gpt-4o-mini", rate=2e-4), False),
    ("searchr", "navigator", dict(name=NAVIGATOR, preset="8B", paths="gpt-4o-mini"), False),
    ("searchr", "navigator", dict(name=NAVIGATOR, preset="8B", base="Qwen2.5-0.5B", paths="gpt-4o-mini", rate=2e-5), False),
    ("searchr", "navigator", dict(name=NAVIGATOR, preset="8B", questions=1, paths="gpt-4o-mini", rate=2e-5), False),
    ("searchr", "navigator", dict(name=NAVIGATOR, base="preset 8B", paths="gpt-4o-mini", rate=2e-5), False),
    ("rdr2", "router", dict(name=ROUTER, preset="8B", labels="deepseek-chat", rate=1e-5), True),
    ("rdr2", "router", dict(name=ROUTER, preset="8B", labels="deepseek-chat", rate=2e-5), False),
    ("rdr2", "router", dict(name=ROUTER, base="preset 8B, labels by deepseek-v3", rate=1e-5), False),
    ("rdr2", "router", dict(name=f"{ROUTER}, preset 8B, labels by deepseek-v3", preset="tiny", rate=1e-5), False),
])  # fmt: skip
def test_a_recipe_is_the_papers_in_each_part(cell, role, said, accepted):
    cell = cell, *CELLS[cell]
    facts = facts_as_said(*cell, model="gpt-4o-mini", **{role: provenance._recipe(said)})
    assert bool(differences(facts, said_of(*cell))) != accepted, getattr(facts, role)


@pytest.mark.parametrize("words", (100, 200, 350))
def test_chunks_of_any_length_are_accepted_and_shown(words):
    page = Passage("p", "t", " ".join(["word"] * words))
    unit = unit_of([Question("a" * 48, "musique", "?", ("a",), paragraphs=(page, replace(page, text="short")))])
    differ, shown = navigated("navigator x/ppo, preset 8B, 2000 questions, paths by gpt-4o-mini, rate 2e-05", unit=unit)
    assert differ == [] and f"unit=pieces of {words} words, open in the paper" in shown


@pytest.mark.parametrize("paper, fields, is_open", [
    ("arise", "width=3 alpha=-1.0 rollout_weight=0.0", True),
    ("searchr", "fusion=reciprocal", True),
    ("treerare", "leaves=phrase", False),
    ("arise", "top_k=1 iterations=30 value=verifier", False),  # the paper decides
    ("searchr", "masked=0 decomposer=prompted", False),  # what other printed rows are
    ("rdr2", "refuse=False reading=code", False),
])  # fmt: skip
def test_what_the_deviations_call_open_passes_and_is_shown(paper, fields, is_open):
    for field in fields.split():
        facts, said = facts_as_said(paper, *CELLS[paper], reading=(field,)), said_of(paper, *CELLS[paper])
        assert [d for d in differences(facts, said) if field in d] == [f"{field}, not the paper's interpretation"] * (not is_open)  # fmt: skip
        assert (f"{field}, open in the paper" in choices(facts, said)) == is_open


def test_the_fields_that_a_row_names_are_not_open():
    for row, reading in {"depth=3,width=4": ("depth=3", "width=3"), "depth=3,width=5": ("width=3",)}.items():
        cell = "arise", "figure5", "hotpotqa", row
        assert differences(facts_as_said(*cell, reading=reading), said_of(*cell)), row


@pytest.mark.parametrize("model, open_", [("gpt-4o", True), ("gpt-3.5-turbo", False), ("deepseek-v3", False), ("llama3.3", False)])  # fmt: skip
def test_rdr2s_temperature_is_open_for_readers_that_it_does_not_name(model, open_):
    said = said_of("rdr2", "table5", "asqa", "RDR2 (Ours)", model)
    facts = facts_as_said("rdr2", "table5", "asqa", "RDR2 (Ours)", model=model, temperature=0.7)
    assert bool(differences(facts, said)) != open_ and ("temperature=0.7, open in the paper" in choices(facts, said)) == open_  # fmt: skip


def test_ones_own_words_pass_where_no_prompt_is_printed():
    for row, found in {"Vanilla": [], "ARISE (ours)": ["prompts reworded by a file"]}.items():
        cell = "arise", "table1", "hotpotqa", row
        facts = facts_as_said(*cell, prompts="of a file")
        assert differences(facts, said_of(*cell)) == found
        assert ("prompts=of a file, open in the paper" in choices(facts, said_of(*cell))) == (not found)


def test_a_metric_of_the_search_alone_needs_no_replies():
    cell = "arise", "table1", "hotpotqa"
    for row, metric, differ in (
        ("Vanilla", "F1 (facts)", False),
        ("Vanilla", "EM (covered)", True),
        ("ARISE (ours)", "F1 (facts)", True),
    ):
        facts = facts_as_said(*cell, row, replies="", prompts="", temperature=None)
        assert bool(differences(facts, said_of(*cell, row), metric)) == differ


def test_an_unknown_fact_differs():
    "TreeRare without a parser, and a row that nobody's contract names."
    cell = "treerare", "table1", "hotpotqa", "TreeRare (DT)"
    assert differences(facts_as_said(*cell, parser=""), said_of(*cell)) == [
        "parser isn't known, published: Stanza, dependencies and constituents"
    ]
    cell = "treerare", "table1", "hotpotqa", "Row of nobody"
    assert differences(facts_as_said(*cell), said_of(*cell))[0].startswith("method isn't known")


def test_a_cell_that_no_such_sample_can_have_is_not_confirmed():
    "The errata: a share of 500 questions is a multiple of .002. Such a cell is compared, and its measurement is called unknown."
    from fakes import printed_run

    rows = [
        dict(method="zero-shot", dataset="hotpotqa", metric="COVER-EM", n=50_000, failures=0, value=0.45, low=0.449, high=0.451)
    ]  # fmt: skip
    for value, word in ((0.451, "compatible"), (0.45, "confirmed")):
        cells = [c | (dict(value=value) if c["method"] == "zero-shot" and c["dataset"] == "HotpotQA" else {}) for c in published("treerare", "table1")]  # fmt: skip
        cells = [
            c | dict(value=0.9) if c["method"] == "TreeRare (DT)" and c["dataset"] == "HotpotQA" else c for c in cells
        ]
        table = compare(cells, rows, printed_run("treerare", "table1", rows, "gpt-4o-mini", n=50_000))
        [cell] = table.query("verdict != 'not run'").to_dict("records")
        assert cell["verdict"] == word and ("no share" in cell["reason"]) == (word == "compatible"), cell


# metric, printed value, questions, drawn anew, averaged runs: TreeRare, ARISE, SEARCH-R, RDR²
KINDS = [("EM", 0.45, 500, True, 1), ("EM", 0.6, 200, True, 1), ("F1", 0.5, 200, False, 5), ("EM", 0.07, 948, False, 1)]


def words(kind, gain, missing, reps, seed, common=0.5):
    """Shares of the three words in simulated replications: two runs of one experiment, from the second of which the gain may be missing.
    `common` is the share of its variance that a question's two replies have in common."""
    metric, mean, n, drawn, runs = kind
    rng, found = np.random.default_rng(seed), []

    def chances():
        many = 1 / common - 1 if common else 1e9
        return rng.beta(mean * many, (1 - mean) * many, n)

    for _ in range(reps):
        easy = chances()
        print_, own = ((rng.random((runs, n)) < p).mean(0) for p in (chances() if drawn else easy, easy))
        value, half = own.mean(), 1.96 * own.std() / n**0.5
        apart = noise(metric, print_.mean(), value - half, value + half, 1, drawn * n, n)
        found.append(apart.word(value - gain * missing - print_.mean(), gain))
    return {word: found.count(word) / reps for word in JUDGED}


@pytest.mark.parametrize("common", (0, 0.25, 0.5, 0.75, 0.95))
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_rates_of_the_words(kind, common):
    """At least 95 % of perfect replications aren't different, and at most 5 % without the gain are confirmed (less two errors of 400),
    however much two replies to a question have in common."""
    slack = 2 * (0.05 * 0.95 / 400) ** 0.5
    for gain in (0.02, 0.1, 0.2):
        assert words(kind, gain, False, 400, 1, common)["different"] <= 0.05 + slack, gain
        assert words(kind, gain, True, 400, 2, common)["confirmed"] <= 0.05, gain


def test_the_best_printed_baseline_is_never_called_a_replication():
    "X2: with the best baseline as the truth, TreeRare's and ARISE's cells were *reproduced* in 82 and 89 %."
    for paper, unit in (("treerare", 1), ("arise", 100)):
        for r in power(paper, "table1"):
            mean, n, gain = 0.5, r["n"], r["gain"] / unit
            if r["dataset"] == "AVG" or gain <= 0:
                continue
            assert words(("EM", mean, n, True, 1), gain, True, 20, 3)["confirmed"] <= 0.05, r


def test_the_power_table_follows_from_print():
    table = {(r["group"], r["dataset"], r["metric"]): r for r in power("treerare", "table1")}
    row = table["GPT-4o-mini", "HotpotQA", "COVER-EM"]
    assert row["n"] == 500 and row["gain"] == pytest.approx(0.042) and 9_000 < row["needed"] < 11_000
    assert row["out_of_reach"] and power("toq", "figure2") == []  # correlations
    searchr = power("searchr", "table2")
    assert gains([]) == {} and len(searchr) == 17  # of three models, less a cell that can't be read
    assert {(r["needed"] >= 2 * r["n"]) == r["out_of_reach"] for r in searchr if r["needed"]} == {True}
    assert min(r["needed"] for r in searchr if r["needed"]) == 610  # DeepSeek-V3's EM on MuSiQue
    assert power("searchr", "table1") == []  # sizes of data sets


def test_a_replay_reads_what_its_run_found_about_its_questions(tmp_path):
    "A cassette has the asked questions alone, so that how they were drawn can't be found out again."
    from treekit.config import Replay

    said = ["25 of 7405, and not those that the kit draws", True]
    assert Replay("a", str(tmp_path), packs=True).noted("hotpotqa 0f", lambda: said) == said
    assert Replay("a", str(tmp_path)).noted("hotpotqa 0f", lambda: ["", True]) == said
    assert Replay().noted("hotpotqa 0f", lambda: ["", True]) == ["", True]
