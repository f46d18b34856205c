"Headers, labels and notes that say what ran; files and prose that are named and there; one answer to who scores a text."

import csv, json, re
from pathlib import Path

import pytest

from treekit.core.method import Trace, Usage
from treekit.core.types import Passage, Question
from treekit.experiments.results import Results, Row

ROOT = Path(__file__).resolve().parents[1]


def test_the_readme_of_the_printed_numbers_names_files_that_exist():
    folder = ROOT / "data/papers"
    names = re.findall(r"`([^`\s]+\.\w+)`", (folder / "README.md").read_text(encoding="utf-8"))
    assert len(names) >= 7
    there = [p.name for p in folder.rglob("*")]
    for name in names:
        if "/" in name:
            assert list(ROOT.glob(re.sub(r"<\w+>", "*", name))) or (folder / name).is_file(), name
        else:
            assert any(re.fullmatch(re.sub(r"<\w+>", r"\\w+", name), f) for f in there), name


def test_no_comment_points_at_prose_that_is_only_in_the_notebook():
    "An exported module has no table above it and no section below."
    prose = re.compile(r"\b(see|as|table|rules|list|section|text) (above|below)\b")
    found = []
    for path in sorted((ROOT / "treekit").rglob("*.py")):
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            comment = line.partition("  # ")[2] or (
                line if line.strip().startswith('"') and line.strip().endswith('"') else ""
            )
            if prose.search(comment):
                found.append(f"{path.name}:{n}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize(
    "endpoint, scores",
    [
        ("https://api.openai.com/v1", False),
        ("https://eu.api.openai.com/v1", False),
        ("https://api.deepseek.com", False),
        ("http://10.0.0.7:11434/v1", False),
        ("https://notopenai.com/v1", True),
        ("http://localhost:8000/v1", True),
    ],
)
def test_who_scores_a_text_is_answered_once(endpoint, scores):
    "The environment check, the dry run and the client of batches ask the same function."
    import treekit.artefacts.environment_check as doctor
    import treekit.experiments.cost_sampling as pilot
    import treekit.artefacts.mocks as standins
    from treekit.llm.openai_client import scores_texts

    assert scores_texts(endpoint) is scores
    assert doctor.scores_texts is pilot.scores_texts is standins.scores_texts is scores_texts


def test_rows_of_questions_that_an_estimate_did_not_ask_can_be_scored():
    "F1 of facts looks a hit up in the question's own pool: a row that was lent brings the pool of its hits."
    from treekit.config import Profile
    from treekit.papers.arise.evaluation import facts_f1
    from treekit.experiments.cost_sampling import _filled

    def question(i):
        return Question(
            f"q{i}",
            "d",
            f"Who made film {i}?",
            ("Ada",),
            supporting=(f"p{i}",),
            paragraphs=(Passage(f"p{i}", "t", "Ada made it."),),
        )

    questions = [question(i) for i in range(3)]
    trace = Trace()
    trace.add("answer", "Ada", hits=[dict(id="p0", title="t", score=1.0)])
    results = Results(
        [Row("M", "d", questions[0], "Ada", "", Usage(), "k", load=lambda: trace)], "m", {}, Profile("offline")
    )
    rows = _filled(results, {"d": questions}, {"d": [0]}, Profile("offline")).rows
    assert [r.question.id for r in rows] == ["q0", "q1", "q2"] and [facts_f1(r) for r in rows] == [1.0] * 3


def test_a_table_without_a_model_says_so():
    from treekit.figures.tables import to_markdown
    from treekit.figures.verdicts import compare

    printed = [
        dict(
            paper="p",
            artefact="table1",
            group="",
            method="M",
            dataset="D",
            metric="Train",
            value=9.0,
            unit="count",
            flag="ok",
            note="",
        )
    ]
    rows = [dict(method="M", dataset="D", metric="Train", n=7, failures=0, value=7, low=None, high=None)]
    table = compare(printed, rows, obstacle="other questions")
    assert "No model was called. Passages: none." in to_markdown(table) and "not stated" not in to_markdown(table)
    table.attrs["ran"] = "Counted, not asked."
    assert to_markdown(table).startswith("Counted, not asked.")


def notebook(name):
    return "\n".join(
        "".join(c["source"]) for c in json.loads((ROOT / f"nbs/reproduce/{name}.ipynb").read_text())["cells"]
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "name, words",
    [
        ("rdr2/table3", ["Questions of the synthetic wiki", "no model was called"]),
        ("searchr/table1", ["Questions of the synthetic wiki", "no model was called", "Questions per split: "]),
    ],
)
@pytest.mark.slow
def test_a_page_of_sizes_says_whose_questions_it_counts(name, words, tmp_path):
    page = made(name, tmp_path).read_text(encoding="utf-8")
    assert all(w in page for w in words) and "n per cell" not in page and "not stated" not in page


def made(name, out, **given):
    "Run an artefact's notebook as `reproduce` does; its Markdown."
    from treekit.artefacts.reproduce import reproduce_all

    [task], folder = reproduce_all((name,), out=str(out), jobs=1, **given)
    assert task.code == 0, task.error
    return folder / f"{name}.md"


@pytest.mark.slow
def test_figure_7_divides_by_what_a_metric_looks_at(tmp_path):
    "Each value is a share of the column's own n."
    made("rdr2/figure7", tmp_path)
    with open(tmp_path / "rdr2/figure7.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert {r["n"] for r in rows if r["metric"] == "COL-RATE"} == {"120"}
    for r in rows:
        count = float(r["value"]) * int(r["n"]) / 100
        if r["metric"] in ("COL-RATE", "REF-ACC"):
            assert abs(count - round(count)) < 0.07, r


@pytest.mark.slow
@pytest.mark.parametrize("name", ["treerare/table2", "rdr2/seeds"])
def test_real_questions_end_no_artefact_with_a_traceback(name, tmp_path):
    made(name, tmp_path, data="real", n=3)


def test_failed_questions_count_in_a_table_without_verdicts(tmp_path):
    from treekit.figures.verdicts import count_verdicts

    table = tmp_path / "english.csv"
    table.write_text("method,dataset,value,failures\nSelf-ask,multihop,40.0,1\nToQ,multihop,41.0,0\n", encoding="utf-8")
    assert count_verdicts(table) == {"failures": 1}
    table.write_text("method,dataset,value,failures\nSelf-ask,multihop,40.0,0\n", encoding="utf-8")
    assert count_verdicts(table) == {}
    head = "method,dataset,metric,failures,verdict\n"
    table.write_text(
        head + "a,d,EM,3,not comparable\na,d,F1,3,not comparable\na,e,EM,1,not comparable\nb,d,EM,2,not comparable\n"
    )
    assert count_verdicts(table)["failures"] == 6  # a question that failed counts once, over all metrics


def test_what_a_command_waits_for_is_named(process_options, tmp_path, monkeypatch):
    "Its bar names the artefacts that run, and a line above it says that many passages are embedded."
    import numpy as np
    from treekit.artefacts.reproduce import progress_line
    from treekit.retrieval import dense
    from treekit.utils.notices import new_notices

    assert progress_line(tmp_path, ["arise/table1"]) == "arise/table1"
    assert (
        progress_line(tmp_path, ["arise/table1", "toq/table2", "rdr2/table1"]) == "arise/table1, toq/table2 and 1 more"
    )
    told = dict(artefact="arise/table1", done=1, total=2, calls=3, tokens=40, money=0.5, failed=0)
    (tmp_path / "run.json").write_text(json.dumps(told))
    assert progress_line(tmp_path, ["arise/table1"]) == "arise/table1: 1/2 questions, 3 calls, 40 tokens, $0.50"
    assert "$" not in progress_line(tmp_path, ["arise/table1"], paid=False)  # a dry run's
    monkeypatch.setattr(dense, "_embedded", lambda model, texts, *_: np.ones((len(texts), 2), np.float32))
    by = dense.Embedder("a-model")
    by._loaded = "weights"
    process_options(command_dir=tmp_path)
    by([f"passage {i}" for i in range(500)])
    assert new_notices(tmp_path, set()) == []
    by([f"passage {i}" for i in range(1501)])
    assert new_notices(tmp_path, set()) == ["embedding 1,501 texts with a-model"]
