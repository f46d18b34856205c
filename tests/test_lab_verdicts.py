"""What a paper's page of requirements promises, run: each of its command lines in a lab's folder (`paper_lab`), in which a scripted server
answers under the name of any model, and the questions are as many as the paper asked. A row is a printed cell: it gets a verdict, the
facts in the run's stored record differ in nothing from the paper's, and each fact alone takes the verdict away. Then runs that are
otherwise in one fact."""

from dataclasses import replace

import pytest

import paper_lab
from test_reachable_verdicts import OTHERWISE, compared, group_of
from treekit.artefacts.reachable_cells import classified, printed_artefacts
from treekit.artefacts.requirements import commands
from treekit.experiments.provenance import differences
from treekit.figures.verdicts import Provenance, published
from treekit.papers.plugin import papers

NO_RUN = {  # what no scripted server can answer
    "treerare/figure3": "a person reads 50 answers of each method",
    "searchr/table1": "the sizes of the whole data sets, which a fixture hasn't",
    "rdr2/table3": "the sizes of a training's samples",
    "rdr2/table4": "a training of 8 billion weights",
}
TABLES = [f"{p.name}/{r['artefact']}" for p in papers() for r in printed_artefacts(p.name)]
ROWS = [
    (table, known.model, cell)
    for table in TABLES
    if table not in NO_RUN
    for cell, known, why in classified(*table.split("/"))
    if not why
]
QUICK = ("searchr/table5", "gpt-4o-2024-08-06")


def as_run(cell):
    return cell["method"].replace("NaiveRAG", "NativeRAG")  # one method, two printed names


def written(ran, cell):
    "The line of the written table that a printed cell stands in."
    method, group = as_run(cell), (cell["group"], group_of(cell))
    found = [
        r
        for r in ran.rows
        if (r["method"] == method or r["method"].startswith(f"{method} ["))
        and r["published"]
        and r["dataset"] == cell["dataset"]
        and r["metric"].partition(" (")[0] == cell["metric"].partition(" (")[0]
    ]
    if len(found) > 1:
        found = [r for r in found if float(r["published"]) == cell["value"]]
    if len(found) > 1:
        found = [r for r in found if r["group"] in group]
    assert len(found) == 1, (cell, found)
    return found[0]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return paper_lab.Lab(tmp_path_factory)


def check(lab, row):
    table, model, cell = row
    ran = lab.ran(table, model)
    line = written(ran, cell)
    assert line["verdict"] in ("reproduced", "outside"), (line["verdict"], line["reason"])
    behind, method = Provenance(ran.results, published(*table.split("/"))), as_run(cell)
    assert behind.differences(method, cell["dataset"], cell["metric"]) == []
    for dataset, facts in behind.behind(method, cell["dataset"]):
        said = behind.said(dataset, method)
        for name in compared(facts, said, cell["metric"]):
            other = differences(replace(facts, **{name: OTHERWISE.get(name, "something else")}), said, cell["metric"])
            assert other and other[0].startswith("anything=1" if name == "reading" else f"{name}="), (name, other)


@pytest.mark.long
def test_the_cells_of_a_small_table(lab):
    for row in ROWS:
        if row[:2] == QUICK:
            check(lab, row)


def test_toqs_cells_are_named_with_what_no_lab_has():
    "Its questions are not public: no command is promised."
    assert not [row for row in ROWS if row[0].startswith("toq/")]
    assert all(
        why.difference == "questions=" for r in printed_artefacts("toq") for *_, why in classified("toq", r["artefact"])
    )
    assert not any(commands("toq", r["artefact"]) for r in printed_artefacts("toq"))


SEARCHR, RDR2 = ("searchr/table5", "gpt-4o-2024-08-06"), ("rdr2/table2", "meta-llama/Llama-3.1-8B-Instruct")
ARISE, TREERARE = ("arise/table5", "Qwen/Qwen2.5-14B-Instruct"), ("treerare/table4", "gpt-4o-mini-2024-07-18")
OTHER_RUNS = [  # a table by a model, what is otherwise on the command line, what then stands beside its cells
    (SEARCHR, "--n 199", "n="),
    (SEARCHR, "--set runs=4", "runs="),
    (SEARCHR, "--set navigator=NAVIGATOR_SFT-model", "navigator="),
    (SEARCHR, "--set navigator=BY_NAME", "navigator=llama-3.1-8b-searchr-ppo, by name"),
    (SEARCHR, "--set parser=bundled", "parser="),
    (SEARCHR, "--set entities=flair/ner-english", "entities="),
    (SEARCHR, "--set retriever=bm25", "retriever="),
    (SEARCHR, "--set prompts=", "prompts=paraphrase"),
    (SEARCHR, "--set refill=true", "refill=True, not the paper's interpretation"),
    (SEARCHR, "--model gpt-4o-mini-2024-07-18", "the model is gpt-4o-mini"),
    (
        SEARCHR,
        "--data official",
        "questions=published|unit=paragraphs",
    ),  # the authors' own files: other questions, and no pages
    (RDR2, "--set router=BY_NAME", "router=llama-3.1-8b-searchr-ppo, by name"),
    (RDR2, "--set temperature=0.2", "temperature="),
    (RDR2, "--set length_control=false", "length_control="),
    (RDR2, "--set retriever=dense:dpr", "retriever="),
    (RDR2, "--n 947", "n="),
    (ARISE, "--set temperature=0", "temperature="),
    (ARISE, "--set prompts=", "prompts="),
    (ARISE, "--set scorer=guess", "scorer=guess|the values are the token F1"),
    (ARISE, "--set early_stop=true", "early_stop=True"),
    (ARISE, "--set search_scope=corpus", "search_scope="),
    (ARISE, "--set retriever=dense", "retriever="),
    (("arise/figure4", "Qwen/Qwen2.5-7B-Instruct"), "--set unit=paragraphs", "unit="),
    (TREERARE, "--set parser=bundled", "parser="),
    (TREERARE, "--set qa_judge=offline", "qa_judge=|judged by the offline span reader"),
    (TREERARE, "--set wiki=corpus", ""),  # Tree-Retrieval opens no page
    (("toq/table2", "gpt-4o-2024-08-06"), "", "questions=synthetic wiki|corpus=|the model is"),  # what no lab has
]


@pytest.mark.slow
@pytest.mark.parametrize("at, words, named", OTHER_RUNS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_a_run_that_is_otherwise_in_one_fact_names_it(lab, at, words, named):
    ran = lab.ran(*at, *words.split())
    lines = [written(ran, cell) for table, model, cell in ROWS if (table, model) == at] or [
        r for r in ran.rows if r["published"]
    ]
    lost = [r for r in lines if r["verdict"] == "not comparable"]
    assert bool(lost) == bool(named)
    for r in lost:
        parts, expected = r["reason"].split("; "), tuple(named.split("|"))
        assert all(part.startswith(expected) for part in parts) and any(
            part.startswith(expected[0]) for part in parts
        ), r["reason"]
