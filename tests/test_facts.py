"A verdict is due where a run is the paper's, fact by fact; whatever differs is named, and nothing is assumed."

import dataclasses

import pytest

from fakes import printed_run
from treekit.config import Profile, UsageError, load_profile
from treekit.experiments.provenance import (
    JUDGED_BY,
    NOTED,
    RunFacts,
    differences,
)
from treekit.papers.plugin import papers
from facts import facts_as_said
from treekit.experiments.paper_settings import profile_settings, said_of
from treekit.figures.tables import to_markdown
from treekit.figures.verdicts import JUDGED, compare, model_obstacle, published

# a cell in which the fact bears on the verdict, and another value of it
FLIPS = {
    "questions": ("treerare", "table1", "hotpotqa", "few-shot", "COVER-EM", "synthetic wiki"),
    "n": ("treerare", "table1", "hotpotqa", "few-shot", "COVER-EM", 20),
    "runs": ("searchr", "table2", "hotpotqa", "ChainRAG", "F1", 1),
    "unit": ("arise", "table1", "hotpotqa", "Vanilla", "F1", ""),
    "method": ("arise", "table1", "hotpotqa", "ARISE (ours)", "EM", "lab.Arise 0123456789ab"),
    "replies": ("arise", "table1", "hotpotqa", "ARISE (ours)", "EM", "none to 7 of 200 questions"),
    "policy": ("searchr", "table2", "musique", "Search-R1", "F1", "Llama-3.1-8B"),
    "documents": ("rdr2", "table1", "asqa", "RDR2 (Ours)", "EM", "140 documents"),
    "search_scope": ("arise", "table1", "hotpotqa", "ARISE (ours)", "EM", "corpus"),
    "corpus": ("treerare", "table1", "asqa", "few-shot", "COVER-EM", "2,748 passages"),
    "retriever": ("treerare", "table1", "hotpotqa", "few-shot", "COVER-EM", "dense"),
    "reranker": ("treerare", "table2", "hotpotqa", "Tree-Retrieval (DT)", "COVER-EM", "minilm"),
    "embedder": ("searchr", "table2", "hotpotqa", "ChainRAG", "F1", "contriever"),
    "parser": ("treerare", "table1", "hotpotqa", "TreeRare (DT)", "COVER-EM", "bundled"),
    "entities": ("searchr", "table2", "musique", "SEARCH-R*", "F1", "bundled"),
    "wiki": ("treerare", "table1", "hotpotqa", "ReAct", "COVER-EM", "corpus"),
    "router": ("rdr2", "table1", "asqa", "RDR2 (Ours)", "EM", "the model that answers"),
    "navigator": ("searchr", "table2", "musique", "SEARCH-R*", "F1", "the model that answers"),
    "qa_judge": ("treerare", "table1", "asqa", "few-shot", "Dis-F1", "a-reader"),
    "nli_judge": ("rdr2", "table1", "eli5", "RDR2 (Ours)", "Cla", "a-judge"),
    "mauve_model": ("rdr2", "table1", "asqa", "RDR2 (Ours)", "MAUVE", "gpt2"),
    "scorer": ("arise", "table1", "hotpotqa", "ARISE (ours)", "EM", "guess"),
    "temperature": ("arise", "table1", "hotpotqa", "ARISE (ours)", "EM", 0.0),
    "length_control": ("rdr2", "table1", "asqa", "RDR2 (Ours)", "EM", "True"),
    "prompts": ("treerare", "table1", "hotpotqa", "TreeRare (DT)", "COVER-EM", "of a file"),
    "reading": ("arise", "table1", "hotpotqa", "ARISE (ours)", "EM", ("dead_ends=True",)),
}
GROUP = dict(treerare="GPT-4o-mini", arise="Qwen2.5-7B-Instruct", searchr="GPT-4o-mini", rdr2="ChatGPT")


def cells(paper, artefact):
    "The printed cells, their groups called by the model."
    return [
        c | dict(group=c["group"].removeprefix("Reader: ").removeprefix("Llama-3.1-8B+"))
        for c in published(paper, artefact)
    ]


def table(fact, value=None):
    "The table of a cell that has just been run as printed, but for one fact."
    paper, artefact, dataset, method, metric, _ = FLIPS[fact]
    model, printed = "Llama-3.1-8B" if fact == "policy" else GROUP[paper], cells(paper, artefact)
    from treekit.figures.verdicts import printed_name

    wanted = (model, method, printed_name(dataset), metric)
    [cell] = [c for c in printed if (c["group"].rpartition("+")[2], c["method"], c["dataset"], c["metric"]) == wanted]
    number = cell["value"] / (100 if cell["unit"] == "percent" else 1)
    rows = [dict(method=method, dataset=dataset, metric=metric, n=500, failures=0, value=number, low=None, high=None)]
    others = {} if value is None else {fact: value}
    return compare(printed, rows, printed_run(paper, artefact, rows, model, **others))


@pytest.mark.parametrize("fact", FLIPS)
def test_each_fact_takes_the_verdict_with_it(fact):
    [cell] = table(fact).query("verdict != 'not run'").to_dict("records")
    assert cell["verdict"] in JUDGED, cell["reason"]
    other = FLIPS[fact][-1]
    [cell] = table(fact, other).query("verdict != 'not run'").to_dict("records")
    assert cell["verdict"] == "not comparable"
    named = dict(prompts="prompts", reading="dead_ends=True", unit="unit isn't known").get(fact, f"{fact}={other}")
    assert cell["reason"].startswith(named), cell["reason"]


def test_every_fact_that_counts_is_flipped():
    compared = {f.name for f in dataclasses.fields(RunFacts)} - set(NOTED)
    assert compared == set(FLIPS)


def test_asqa_on_gold_passages_is_never_compared():
    "Not with the annotators' passages, not with a question's own, whatever else is right."
    for other in (
        dict(corpus="2,748 passages"),
        dict(corpus="own paragraphs", search_scope="own"),
        dict(corpus="9,572 passages"),
    ):
        for artefact in ("table1", "table2", "table3"):
            facts = facts_as_said("treerare", artefact, "asqa", "few-shot", **other)
            assert differences(facts, said_of("treerare", artefact, "asqa", "few-shot"), "COVER-EM")
    facts = facts_as_said("rdr2", "table1", "asqa", "RDR2 (Ours)", corpus="140 documents in chunks of 100 words")
    assert [
        d.partition("=")[0] for d in differences(facts, said_of("rdr2", "table1", "asqa", "RDR2 (Ours)"), "EM")
    ] == ["corpus"]


def test_a_judge_matters_where_it_judges():
    facts = facts_as_said("treerare", "table1", "asqa", "few-shot", qa_judge="a-reader")
    said = said_of("treerare", "table1", "asqa", "few-shot")
    assert differences(facts, said, "COVER-EM") == [] and differences(facts, said, "Dis-F1")
    assert set(JUDGED_BY.values()) <= {f.name for f in dataclasses.fields(RunFacts)}


def test_models_that_are_not_what_their_name_says():
    for model in (
        "deepseek-chat",
        "Llama-3.3-70B-Instruct-AWQ",
        "meta-llama/Llama-3.3-70B-Instruct-FP8",
        "llama3.3",
        "llama3.3:70b",
    ):
        assert model_obstacle(model), model
        verdict, _, group = one_cell(model, 0.5)
        assert verdict == "not comparable" and group in ("Llama3.3-70B", "DeepSeek-V3")
    assert not model_obstacle("meta-llama/Llama-3.3-70B-Instruct") and not model_obstacle("llama3.3:70b-instruct-fp16")
    assert "several models" in model_obstacle("gpt-4o-mini", ("gpt-4o-mini-2024-07-18", "gpt-4o-mini-2025-01-01"))
    assert not model_obstacle("gpt-4o-mini", ("gpt-4o-mini-2024-07-18",))


def test_what_differs_stands_in_the_page():
    df = table("parser", "bundled")
    page = to_markdown(df)
    assert "parser=bundled (1)" in page and "Published settings:" in page and "Stanza" in page


def test_the_papers_settings_are_settings():
    "What the profile `paper` sets can be set, and its value is one that the comparison accepts."
    for paper in (p.name for p in papers()):
        for artefact in ("table1", "table2", "table3"):
            given = profile_settings(paper, artefact)
            load_profile("offline", **{k: v for k, v in given.items() if k in Profile.__dataclass_fields__})
            for fact, said in said_of(paper, artefact).items():
                if fact in given and said.accepts:
                    assert not [
                        d for d in differences(RunFacts(**{fact: given[fact]}), {fact: said}) if d.startswith(fact)
                    ], (paper, fact)


def test_a_set_field_reaches_the_methods_of_a_table(tmp_path):
    "`--set` of a method's field runs the table with it, and every cell says so; a word that nobody knows is refused with the nearest."
    from treekit.artefacts.catalog import runnable
    from treekit.artefacts.reproduce import plan_tasks

    sets = dict(dead_ends="true", search_scope="corpus", iterations="3")
    [task] = plan_tasks(runnable(("arise/table1",)), "out", dict(profile="offline"), sets)
    assert (
        task.parameters["settings"] == dict(search_scope="corpus", switches="dead_ends=true")
        and task.parameters["iterations"] == "3"
    )
    with pytest.raises(UsageError, match="dead_ends"):
        plan_tasks(runnable(("arise/table1",)), "out", {}, dict(ded_ends="true"))
    from treekit.experiments.run import run
    from treekit.experiments.tables import sample_questions
    from treekit.papers.treerare import method as treerare

    profile = load_profile("offline", n=1, switches="min_tokens=4")
    results = run(
        dict(list(treerare.METHODS.items())[:1]), sample_questions(profile, ("hotpotqa",)), profile, progress=False
    )
    [facts] = results.facts.values()
    assert facts.reading == ("min_tokens=4",) and differences(facts, {})[0].startswith("min_tokens=4")


def test_a_runs_record_has_the_facts_of_its_cells(tmp_path, monkeypatch):
    "Those of the run, also where its profile doesn't say them."
    from treekit.baselines import prompting
    from treekit.experiments.run import run
    from treekit.experiments.run_records import find_run
    from treekit.experiments.tables import sample_questions
    from treekit.explorer.runs import open_run
    from treekit.store.run_store import Store

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    profile, methods = load_profile("offline", n=2), {"zero-shot": prompting.methods()["zero-shot"]}
    with Store(tmp_path / "runs.sqlite") as store:
        made = run(methods, sample_questions(profile, ("hotpotqa",)), profile, store=store, progress=False)
        assert find_run(store, made.kept).facts == made.facts != {}
        assert open_run(store, made.kept).kept.facts == made.facts


def test_the_profile_paper_asks_for_what_the_paper_had():
    from treekit.artefacts.catalog import runnable
    from treekit.artefacts.reproduce import plan_tasks

    def plan(name, **given):
        return plan_tasks(runnable((name,)), "out", dict(profile="paper", **given), {})[0].parameters

    assert plan("arise/table1")["n"] == 200 and plan("arise/table1", n=5)["n"] == 5
    assert plan("treerare/table1")["settings"]["retriever"] == "prebuilt:wikipedia-dpr-100w"
    assert "nli=google/t5_xxl_true_nli_mixture" in plan("rdr2/table1")["settings"]["judges"]


def one_cell(model="gpt-4o-mini", value=0.47, failures=0, **others):
    "The verdict and the reason of TreeRare's Table 1, few-shot on HotpotQA (printed 0.473), and the group in which it stands."
    rows = [
        dict(
            method="few-shot",
            dataset="hotpotqa",
            metric="COVER-EM",
            n=500,
            failures=failures,
            value=value,
            low=None,
            high=None,
        )
    ]
    table = compare(published("treerare", "table1"), rows, printed_run("treerare", "table1", rows, model, **others))
    [cell] = table.query("verdict != 'not run'").to_dict("records")
    return cell["verdict"], cell["reason"], cell["group"]


def test_the_servers_word_counts():
    "A model that its server calls something else is that something else, whatever name it was asked for by."
    assert one_cell(served=("gpt-4o-mini-2024-07-18",))[0] in JUDGED
    for other in ("gpt-4o-2024-08-06", "qwen2.5-0.5b", "/models/qwen"):
        verdict, reason, group = one_cell(served=(other,))
        assert verdict == "not comparable" and other.rsplit("/", 1)[-1] in reason and "asked for: gpt-4o-mini" in reason
        assert group != "GPT-4o-mini" and "/models" not in reason + group
    verdict, reason, _ = one_cell(served=("gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"))
    assert verdict == "not comparable" and "gpt-4o-2024-08-06" in reason


def test_a_cell_in_which_many_questions_failed_says_nothing():
    "500 failed questions would confirm a printed zero."
    assert one_cell(failures=15)[0] in JUDGED
    assert one_cell(failures=16)[:2] == ("not comparable", "16 of 500 questions failed")
