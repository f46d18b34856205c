"""A lab on this machine: a working folder with what a paper's page of requirements asks for, made up and in the published formats.

Questions: ten different ones of each data set, again and again under further ids, until they are as many as the paper asked. The two stores
of Wikipedia, the index, the weights, the parsers and the judges are small ones under the names of the real. A server (`openai_server`)
answers by script under the name of any model; models of a role have the records that their trainings write."""

import csv, importlib.util, itertools, json, os, re, shlex, time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from commands import inside
from openai_server import Server
from treekit.artefacts.requirements import commands
from treekit.artefacts.reproduce import with_first_cell
from treekit.config import kit_path, load_profile
from treekit.corpora.passage_store import import_passages
from treekit.corpora.tree_store import build
from treekit.experiments.provenance import RunFacts, question_key
from treekit.experiments.results import Results
from treekit.experiments.run_records import find_run, saved_runs
from treekit.store.run_store import Store
from treekit.training.job import TrainingJob, ready
from treekit.training.profile_writer import profile_sections, write_sections
from treekit.utils import scaffold
from treekit.utils.atomic_write import file_lock, write_whole

TESTS = Path(__file__).resolve().parent
DIFFERENT = 10  # questions of a data set
SIZES = dict(hotpotqa=500, musique=500, ambigdocs=500, asqa=948, qampari=1000, eli5=1000) | {"2wiki": 500}
LONGBENCH = 200
TRAINED = dict(
    ROUTER=("router", "tag-prompt-inst-lora-epoch-3.5", dict(format="tag", labels="deepseek-ai/DeepSeek-V3")),
    NAVIGATOR=("navigator", "ppo/model", dict(stage="after PPO")),
    NAVIGATOR_SFT=("navigator", "sft/model", dict(stage="after SFT")),
    NAVIGATOR_SFT2=("navigator", "as-much/model", dict(stage="SFT on as much")),
)


def _fixtures():
    "The module that writes the kit's fixtures, record by record in each published format."
    spec = importlib.util.spec_from_file_location("fixtures_make", kit_path("data", "fixtures", "make.py"))
    spec.loader.exec_module(made := importlib.util.module_from_spec(spec))
    return made


def _again(records, n, **ids):
    "The records under n ids: field -> function of the number."
    for k, record in zip(range(n), itertools.cycle(records)):
        yield record | {field: form(k) for field, form in ids.items()}


def _files(make):
    "Path -> records, of every file of questions that a page names."

    def ten(make, *args):
        return list(make(*args, DIFFERENT))

    def asqa(at=0):
        return dict(sample_id=lambda k: str(-7 * 10**18 - at - k))

    for split, at in (("dev", 0), ("train", 20_000)):  # no id is of both sides
        n = {name: size if split == "dev" else DIFFERENT for name, size in SIZES.items()}
        hotpot = dict(dev="hotpot_dev_distractor_v1.json", train="hotpot_train_v1.1.json")[split]
        yield (
            f"official/{hotpot}",
            _again(ten(make.hotpot, "hotpotqa", split), n["hotpotqa"], _id=lambda k, at=at: f"5{at + k:023x}"),
        )
        yield (
            f"official/2wikimultihopqa_{split}.json",
            _again(ten(make.hotpot, "2wiki", split), n["2wiki"], _id=lambda k, at=at: f"{at + k:032x}"),
        )
        yield (
            f"official/musique_ans_v1.0_{split}.jsonl",
            _again(ten(make.musique, split), n["musique"], id=lambda k, at=at: f"2hop__{at + k}_{1 + at + k}"),
        )
        yield (
            f"official/ambigdocs_{split}.json",
            _again(ten(make.ambigdocs, split), n["ambigdocs"], qid=lambda k, at=at: at + k),
        )
    both = {
        s: _again(ten(make.asqa, s), n, **asqa(at))
        for s, n, at in (("dev", SIZES["asqa"], 0), ("train", DIFFERENT, 20_000))
    }
    yield (
        "official/ASQA.json",
        {
            s: {r["sample_id"]: {k: v for k, v in r.items() if k != "sample_id"} for r in rows}
            for s, rows in both.items()
        },
    )
    yield "alce/asqa_eval_gtr_top100.json", _again(ten(make.alce_asqa), SIZES["asqa"], **asqa())
    yield (
        "alce/qampari_eval_gtr_top100.json",
        _again(ten(make.alce_qampari), SIZES["qampari"], id=lambda k: f"{k}__wikidata_simple__dev"),
    )
    yield "alce/eli5_eval_bm25_top100.json", _again(ten(make.alce_eli5), SIZES["eli5"], id=lambda k: f"eli5_{k}")
    for name, file in (("hotpotqa", "hotpotqa"), ("2wiki", "2wikimqa"), ("musique", "musique")):
        yield (
            f"ChainRAG/data/{file}.jsonl",
            _again(ten(make.longbench, name, file), LONGBENCH, _id=lambda k: f"{k:048x}"),
        )


def _asked(record):
    return record.get("question") or record.get("ambiguous_question") or record.get("input")


def _write_questions(folder):
    "All files of questions, and the lists of published questions that know them, in place of the kit's."
    known = {}
    for path, records in _files(_fixtures()):
        rows = records if isinstance(records, dict) else list(records)
        text = "".join(json.dumps(r) + "\n" for r in rows) if path.endswith("l") else json.dumps(rows)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
        asked = [r for part in rows.values() for r in part.values()] if isinstance(rows, dict) else rows
        name = next(
            d for d in ("hotpot", "2wiki", "musique", "ambigdocs", "asqa", "qampari", "eli5") if d in path.lower()
        )
        known.setdefault(name.replace("hotpot", "hotpotqa"), set()).update(question_key(_asked(r)) for r in asked)
    (folder / "data" / "questions").mkdir(parents=True)
    for name, keys in known.items():
        if kit_path("data", "questions", f"{name}.txt").is_file():  # elsewhere the kit knows ids alone
            (folder / "data" / "questions" / f"{name}.txt").write_text("\n".join(sorted(keys)) + "\n", encoding="utf-8")


def _write_wikipedia(folder):
    import_passages(kit_path("data", "fixtures", "psgs_w100.tsv"), folder / "wiki.passages")
    build(
        next(kit_path("data", "fixtures").glob("*-pages-articles.xml.bz2")),
        folder / "wiki.trees",
        workers=1,
        progress=False,
    )


def _write_trained(folder, url):
    "The records of the trainings in the work folder, and the profiles of the models, which the server has."
    for name, (role, place, about) in TRAINED.items():
        job = TrainingJob(name, role, "8B", load_profile("paper", model="deepseek-ai/DeepSeek-V3"))
        (job.folder / place).mkdir(parents=True, exist_ok=True)
        ready(job, job.folder / place, **about)
        write_sections(profile_sections(name, role, job.profile, dict(model=name, endpoint=url, api_key_env="")))
    write_sections(dict(BY_NAME=dict(model="llama-3.1-8b-searchr-ppo", endpoint=url, api_key_env="")))


def _with_mocks(folder):
    for notebook in (folder / "nbs" / "reproduce").glob("*/*.ipynb"):
        with_first_cell(
            notebook,
            notebook,
            f"import sys; sys.path.insert(0, {str(TESTS)!r})",
            "import lab_mocks",
            "lab_mocks.install()",
        )


def create(folder):
    "Lay the folder."
    scaffold.create(folder)
    here = os.getcwd()
    try:
        os.chdir(folder)
        _write_questions(folder)
        _write_wikipedia(folder)
        _with_mocks(folder)
    finally:
        os.chdir(here)
    return folder


class Ran:
    "A table that was run: the lines that it wrote, and the facts of its stored records as `Results`."

    def __init__(self, said):
        def value(v):
            return tuple(v) if isinstance(v, list) else v

        self.rows = said["rows"]
        facts = {(m, d): RunFacts(**{k: value(v) for k, v in own.items()}) for m, d, own in said["facts"]}
        self.results = Results([], said["model"], facts=facts)


class Lab:
    "The folder, made once for all test processes, and its runs, each made once."

    data = dict(treerare="official", arise="official", rdr2="alce")  # where a page says that the hub has them

    def __init__(self, factory):
        own = factory.getbasetemp()
        self.top = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "lab"
        self.top.mkdir(exist_ok=True)
        self.folder = self.top / "folder"

    def _words(self, table, model, url, further):
        "The page's command line, with this machine's server and files, and without a budget, before which calls are counted."
        line = shlex.split(
            commands(*table.split("/")).get(model) or f"treekit reproduce {table} --profile paper --model {model}"
        )[3:]
        own = ["--endpoint", url, "--set", "api_key_env=", "--set", "budget=", *further]
        usual = {"--data": self.data[table.partition("/")[0]]} if table.partition("/")[0] in self.data else {}
        words = [*line, *own]
        options = {
            (flag, word.partition("=")[0] if flag == "--set" else ""): word
            for flag, word in zip(words[::2], words[1::2])
        }
        options = {(flag, ""): word for flag, word in usual.items()} | options
        return [
            "reproduce",
            table,
            *(word for (flag, _), value in options.items() if flag != "--budget" for word in (flag, value)),
        ]

    def ran(self, table, model, *further):
        "A table by a model; further words of the command come last and win."
        name = re.sub(r"[^\w.-]+", "-", " ".join((table, model, *further)))
        with file_lock(done := self.top / f"{name}.json"):  # one run at a time: the lock is the folder's
            if not done.exists():
                write_whole(done, json.dumps(self._run(table, model, further, name)))
        return Ran(json.loads(done.read_text(encoding="utf-8")))

    def _run(self, table, model, further, name):
        with Server() as server, pytest.MonkeyPatch.context() as patch:
            server.script(reply="replies:of_papers")
            if not self.folder.exists():
                create(self.folder)
            patch.setattr("treekit.artefacts.environment_check.preflight", lambda *_: None)  # it misses the weights
            patch.chdir(self.folder)
            _write_trained(self.folder, server.url)
            before = time.time()
            code, out, err = inside(
                *self._words(table, model, server.url, further), "--out", f"out/{name}", cwd=self.folder
            )
            assert code == 0, out + err
            with open(self.folder / "out" / name / f"{table}.csv", encoding="utf-8", newline="") as f:
                rows = list(csv.DictReader(f))
            return dict(
                rows=[r for r in rows if r["verdict"] != "not run"], model=model, facts=self._facts(table, before)
            )

    def _facts(self, table, before):
        "Facts in the records of the runs that a command has made; those of a cell that was run several times with their number."
        with Store(self.folder / ".treekit" / "store" / "paper.sqlite") as store:
            records = [
                find_run(store, r["name"])
                for r in saved_runs(store)
                if r["time"] >= before and r["about"]["artefact"] == table
            ]
        times = Counter(cell for record in records for cell in record.facts)
        facts = {cell: replace(own, runs=times[cell]) for record in records for cell, own in record.facts.items()}
        return [[*cell, {k: v for k, v in vars(own).items() if v not in ("", None, ())}] for cell, own in facts.items()]
