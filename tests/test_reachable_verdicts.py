"""Every printed cell that a lab can reach earns a verdict with the paper's own material, and with no other.
The data sets are in their authors' formats (field names and ids as published, made-up content), the settings are the paper's in full, the
rows are made as the notebooks make them. Each fact that is otherwise takes the verdict away, with its name. No model is called here:
`test_scripted_verdicts` answers by a server."""

import dataclasses, functools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from treekit.baselines import chainrag, graphrag, prompting, revising, search_r1
from treekit.config import Profile, kit_path, load_profile
from treekit.core.method import configure, requirements_of
from treekit.core.types import Question
from treekit.corpora.load import Files
from treekit.experiments import provenance
from treekit.experiments.paper_settings import profile_settings, said_of
from treekit.experiments.provenance import JUDGED_BY, NOTED, RunFacts, differences, run_facts, switched
from treekit.experiments.tables import PRINTED
from treekit.artefacts.reachable_cells import FOLDER, printed_artefacts, printed_cells, printed_model, unreachable
from treekit.figures.verdicts import compare, group_for, model_obstacle
from treekit.papers.arise import method as arise
from treekit.papers.plugin import papers
from treekit.papers.arise.evaluation import by_sentence
from treekit.papers.rdr2 import baselines as long_form, method as rdr2
from treekit.papers.searchr import method as searchr
from treekit.papers.toq import method as toq
from treekit.papers.treerare import method as treerare, tree_retrieval
from treekit.papers.treerare.evaluation import table1_methods
from treekit.training.job import TrainingJob, ready

SETS = {printed: name for name, printed in PRINTED.items()}
_SOLVED = [Question("example", d, "Who?", ("Nobody",)) for d in ("hotpotqa", "musique", "2wiki", "ambigdocs", "asqa")]
FEW = prompting.methods(_SOLVED)["few-shot"]
ARISE = arise.METHODS["ARISE (ours)"]
TRAINED = {  # role -> folder of a training's model, and what `treekit train` writes beside it
    "router": ("ROUTER/tag-prompt-inst-lora-epoch-3.5", dict(format="tag", labels="deepseek-ai/DeepSeek-V3")),
    "sft": ("NAVIGATOR_SFT/sft/model", {}),
    "as-much": ("NAVIGATOR_SFT2/as-much/model", {}),
    "ppo": ("NAVIGATOR/ppo/model", {}),
}


@functools.cache
def trained(stage):
    "A served model of a training, whose record is in the work folder."
    place, about = TRAINED[stage]
    name, role = place.partition("/")[0], "router" if stage == "router" else "navigator"
    job = TrainingJob(name, role, "8B", load_profile("paper"))
    job.folder.joinpath(place.partition("/")[2]).mkdir(parents=True)
    ready(job, job.folder / place.partition("/")[2], **about)
    return SimpleNamespace(model=name, endpoint="http://localhost:8000/v1")


ROWS = {  # paper/table -> printed name -> method, as its notebook makes it
    "treerare/table1": table1_methods(_SOLVED)
    | {"Rel. Impr.": table1_methods(_SOLVED)["TreeRare (DT)"]},  # of all rows: each has its own cells
    "treerare/table2": dict.fromkeys(("BM25", "DPR", "BM25+DPR"), FEW)
    | {n: configure(m, reranker=tree_retrieval.MS_MARCO) for n, m in tree_retrieval.METHODS.items()},
    "treerare/table3": treerare.ABLATIONS | treerare.VARIANTS,
    "treerare/figure3": {"TreeRare minus ReAct": treerare.TreeRare()},
    "treerare/table4": dict.fromkeys(
        ("Tree-Retrieval (DT) w BM25", "Tree-Retrieval (DT) w DPR"),
        configure(tree_retrieval.METHODS["Tree-Retrieval (DT)"], reranker=tree_retrieval.MS_MARCO),
    ),
    "arise/table1": revising.methods() | arise.METHODS,
    "arise/table2": revising.methods() | arise.METHODS,
    "arise/table3": arise.VALUE_FUNCTIONS,
    "arise/table4": {"ARISE + BM25": ARISE, "ARISE + BGE": ARISE},
    "arise/table5": {f"ARISE, #Doc={k}": replace(ARISE, top_k=k) for k in (1, 2, 3)},
    "arise/figure4": {"Vanilla": revising.methods()["Vanilla"], "ARISE Pass@1": ARISE},
    "arise/figure5": {
        f"depth={d},width={w}" + " (vanilla)" * (d == w == 1): replace(ARISE, depth=d, width=w)
        for d, w in ((1, 1), (3, 4), (4, 5), (4, 6))
    },
    "searchr/table2": {n: chainrag.METHODS[n] for n in ("NativeRAG", "ChainRAG")}
    | searchr.METHODS
    | {"NaiveRAG": chainrag.METHODS["NativeRAG"], "Search-R1": search_r1.METHODS["Search-R1"]},
    "searchr/table3": searchr.TABLE3 | {"w/o PPO": searchr.TABLE3["Ours"]},
    "searchr/table4": dict.fromkeys(("Ours", "w/o PPO", "w/o PPO w/SFT"), searchr.TABLE3["Ours"]),
    "searchr/table5": {"GPT-4o": searchr.SearchR(decomposer="prompted"), "Llama-3.1-8B(Ours)": searchr.SearchR()},
    "searchr/table7": searchr.TABLE7,
    "searchr/table8": graphrag.METHODS | {"NativeRAG": chainrag.METHODS["NativeRAG"], "Ours": searchr.TABLE3["Ours"]},
    "searchr/table9": {"ChainRAG": chainrag.METHODS["ChainRAG"], "Ours": searchr.TABLE3["Ours"]},
    "searchr/figure3": {"SEARCH-R, top-k=15": searchr.METHODS["SEARCH-R*"]},
    "rdr2/table1": long_form.METHODS | rdr2.METHODS,
    "rdr2/table2": rdr2.ABLATIONS,
    "rdr2/table5": long_form.METHODS | rdr2.METHODS,
    "rdr2/table6": long_form.METHODS | rdr2.METHODS,
    "rdr2/table7": {
        n.replace("[EXPAND]", "[expand]").replace("[REFUSE]", "[refuse]"): m for n, m in rdr2.ABLATIONS.items()
    },
    "rdr2/table8": {(g, n): m for g, rows in rdr2.TOP_K.items() for n, m in rows.items()},
    "rdr2/table9": rdr2.ITERATIONS,
    "rdr2/figure3": long_form.METHODS | rdr2.METHODS,
    "rdr2/figure4": {(f"left: top-k scaling, {g}", n): m for g, rows in rdr2.TOP_K.items() for n, m in rows.items()}
    | rdr2.ITERATIONS,
    "toq/table2": toq.METHODS,
}
UNGROUPED = {
    "treerare/table4",
    "treerare/figure3",
    "rdr2/figure4",
    "rdr2/table8",
    "rdr2/table9",
}  # the printed groups are no models
COUNTED = {
    "searchr/table1",
    "rdr2/table3",
    "rdr2/table4",
}  # no method answers: sizes of data sets, trainings; checked below


def group_of(cell):
    "The printed group without what is written around the model's name."
    return cell["group"].removeprefix("Reader: ").removeprefix("Llama-3.1-8B+").removesuffix(" (answer generator)")


def parts(cell):
    "Data sets of a cell: an average's are all that it is over."
    if cell["dataset"] == "AVG":
        return ["hotpotqa", "musique", "2wiki"]
    return [SETS.get(cell["dataset"].partition(" ")[0], "komultihop")]  # "HotpotQA dev (50 questions, human labels)"


@functools.cache
def questions(paper, dataset):
    "Questions from the data set's own files, as the paper's setting has them."

    def file(place, name):
        return Files(kit_path("data", "fixtures", place)).questions(name)

    if paper == "toq":
        return tuple(replace(q, dataset="komultihop") for q in file("official", "hotpotqa"))
    found = file(dict(searchr="longbench", rdr2="alce").get(paper, "official"), dataset)
    return tuple(map(by_sentence, found) if paper == "arise" else found)


def facts_of(paper, table, cell, dataset):
    "The facts of the run behind a cell with all the paper's settings."
    model = printed_model(paper, table, cell["group"]).model
    rows = ROWS[f"{paper}/{table}"]
    method = rows.get(cell["method"], rows.get((cell["group"], cell["method"])))
    said = profile_settings(paper, table, model)
    own = {k: v for k, v in said.items() if k in Profile.__dataclass_fields__}
    profile = load_profile("paper", **own | dict(model=model, data=said.get("data", "folder"), budget=""))
    retrievers = {"DPR": "dense:dpr", "BM25+DPR": "weighted:dpr", "BGE": "dense:BAAI/bge-base-en-v1.5"}
    by_row = next((v for k, v in retrievers.items() if cell["method"].endswith(k) and cell["method"] != "BM25"), None)
    if by_row:
        profile = replace(profile, retriever="weighted:dpr" if cell["method"] == "BM25+DPR" else by_row)
    has = {f.name for f in dataclasses.fields(method)} - (
        {"length_control"} if isinstance(method, long_form.Served) else set()
    )
    method = switched({"row": method}, {k: v for k, v in said.items() if k not in own and k in has})["row"]
    stage = {"w/o PPO": "sft", "w/o PPO w/SFT": "as-much"}.get(cell["method"], "ppo")
    roles = dict(router=trained("router") if "router" in requirements_of(method) else None, navigator=trained(stage))
    models = SimpleNamespace(
        model=model, defaults=dict(temperature=float(profile.temperature), max_tokens=1024), **roles
    )
    library = SimpleNamespace(
        profile=profile,
        own={dataset: profile.search_scope == "own"},
        others={},
        coverage=lambda dataset, questions: "",
        documents=lambda d: range(5_820_123),
        label=lambda d: "own paragraphs" if profile.search_scope == "own" else "21,015,324 passages",
        index=lambda d: SimpleNamespace(fingerprint="index"),
    )
    name = cell["method"].replace("[expand]", "[EXPAND]").replace("[refuse]", "[REFUSE]")
    found = run_facts(name, method, dataset, list(questions(paper, dataset)), library, models)
    many = (
        50
        if table == "figure3" and paper == "treerare"
        else dict(treerare=500, arise=200, searchr=200, rdr2={"asqa": 948}.get(dataset, 1000), toq=200)[paper]
    )
    return replace(found, n=many, runs=5 if paper == "searchr" else 1)  # of three made-up questions


TABLES = [f"{p.name}/{r['artefact']}" for p in papers() for r in printed_artefacts(p.name)]
CELLS = [(table, cell) for table in TABLES if table not in COUNTED for cell in printed_cells(*table.split("/"))]


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEKIT_HOME", str(tmp_path_factory.mktemp("home")))
        trained.cache_clear()
        yield


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    "The texts of the fixtures are the published ones."

    def texts(dataset):
        known = [q for paper in ("treerare", "searchr", "rdr2") for q in _asked(paper, dataset)]
        return frozenset(provenance.question_key(q.question) for q in known)

    monkeypatch.setattr(provenance, "published_texts", texts)


def _asked(paper, dataset):
    try:
        return questions(paper, dataset)
    except Exception:
        return ()


def test_a_served_model_without_its_trainings_record_is_known_by_name_only():
    "Whatever name a server gives it."
    for model in (
        "llama-3.1-8b-instruct-lora",
        "router NAME/tag-prompt-inst-lora-epoch-3.5, preset 8b",
        "NO_SUCH_TRAINING",
    ):
        other = SimpleNamespace(model=model, endpoint="http://localhost:8000/v1")
        assert provenance._trained(other) == f"{model}, by name"
        for paper, dataset, row, role in (
            ("rdr2", "asqa", "RDR2 (Ours)", "router"),
            ("searchr", "musique", "SEARCH-R*", "navigator"),
        ):
            said = said_of(paper, "table2", dataset, row)
            assert differences(RunFacts(**{role: provenance._trained(other)}), {role: said[role]}) == [
                f"{role}={model}, by name, published: {said[role].value}"
            ]
    job = TrainingJob("OTHER", "router", "8B", load_profile("offline"))
    (job.folder / "tag-prompt-inst-lora-epoch-3.5").mkdir(parents=True)
    ready(job, job.folder / "tag-prompt-inst-lora-epoch-3.5", format="tag", labels="gold")
    assert provenance._trained(SimpleNamespace(model="OTHER", endpoint="http://localhost:8000/v1")) == (
        "router OTHER/tag-prompt-inst-lora-epoch-3.5, preset 8B, labels by gold, synthetic questions"
    )


OTHERWISE = dict(questions="synthetic wiki", n=7, runs=3, temperature=1.9, reading=("anything=1",))


@pytest.mark.parametrize("table", dict.fromkeys(t for t, _ in CELLS))
def test_the_printed_cells_of_a_table(table):
    paper, artefact = table.split("/")
    rows = ROWS.get(table, {})
    for cell in printed_cells(paper, artefact):
        refused = unreachable(paper, artefact, cell)
        if refused and not (refused.difference and cell["method"] in rows):
            continue
        known = printed_model(paper, artefact, cell["group"])
        if not refused:
            assert model_obstacle(known.model) == "", cell
        if not refused and table not in UNGROUPED:
            assert group_for(known.model, [group_of(cell)]) == group_of(cell), cell
        for dataset in parts(cell):
            facts, said = (
                facts_of(paper, artefact, cell, dataset),
                said_of(paper, artefact, dataset, cell["method"], known.model),
            )
            found = differences(facts, said, cell["metric"])
            if refused:
                assert any(d.startswith(refused.difference) for d in found), (cell, found)
            else:
                assert found == [], cell
                each_fact_counts(facts, said, cell)


def each_fact_counts(facts, said, cell):
    "Each fact alone, when it is otherwise, takes the cell's verdict away, with its name."
    for name in compared(facts, said, cell["metric"]):
        other = differences(replace(facts, **{name: OTHERWISE.get(name, "something else")}), said, cell["metric"])
        [lost] = other if name != "reading" else other[:1]
        assert lost.startswith("anything=1" if name == "reading" else f"{name}="), (cell, name, lost)


def compared(facts, said, metric):
    "Names of the facts that decide about a cell's verdict."
    judges = set(JUDGED_BY.values()) - {JUDGED_BY.get(metric)}
    names = [
        f.name
        for f in dataclasses.fields(RunFacts)
        if f.name not in {*NOTED, *judges} and getattr(facts, f.name) not in ("", None)
    ]
    return [name for name in names if name == "reading" or name in said and "*" not in said[name].accepts]


def test_no_number_is_left_out_and_no_line_is_idle():
    "Every refused number has a sentence for a reader, and every line of a paper's list refuses one."
    lost = {(t, *c.values()): unreachable(*t.split("/"), c) for t, c in CELLS}
    assert all(why.reason.endswith(".") and len(why.reason) > 20 for why in lost.values() if why)
    assert sum(why is None for why in lost.values()) > 750
    for p in papers():
        reasons = {(r["difference"], r["reason"]) for r in p.rows(f"{FOLDER}/unreachable.csv")}
        assert reasons == {
            (w.difference, w.reason) for (table, *_), w in lost.items() if w and table.startswith(f"{p.name}/")
        }, p.name


def test_what_is_counted_or_trained_is_judged():
    cells = printed_cells("searchr", "table1")
    table = compare(cells, [dict(c, n=c["value"], failures=0, low=None, high=None) for c in cells], differs=[])
    assert set(table.verdict) == {"reproduced"}
    for name in ("table3", "table4"):  # of a training that differs in nothing
        cells = printed_cells("rdr2", name)
        rows = [
            dict(c, n=500, failures=0, low=None, high=None, value=c["value"] / (100 if c["unit"] == "percent" else 1))
            for c in cells
        ]
        assert set(compare(cells, rows, model="Llama-3.1-8B" if name == "table4" else "", differs=[]).verdict) == {
            "reproduced"
        }, name
