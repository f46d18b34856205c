"A run in the formats of other tools, each read by its own reader: inspect_ai's logs, `.eval_results` of the hub, LaTeX."
import re, shutil, subprocess
from pathlib import Path

import pytest
from jsonschema import validate
from test_exports import NASTY, a_run

from treekit.config import UsageError, load_profile
from treekit.core.method import Prediction, Usage
from treekit.store.run_store import Store
from treekit.core.types import Question
from treekit.experiments.run_records import save_run
from treekit.experiments.results import Row
from treekit.explorer.runs import open_run, worth
from treekit.exports.eval_results import write_eval_results
from treekit.exports.inspect_logs import SCORER, write_inspect
from treekit.exports.latex import tex, write_latex
from treekit.exports.rows import cell_rows, table_rows

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = {  # after the hub's eval_results.yaml: what must and what may stand in an entry
    "type": "array", "minItems": 1,
    "items": {
        "type": "object", "required": ["dataset", "value"], "additionalProperties": False,
        "properties": {
            "dataset": {"type": "object", "required": ["id", "task_id"], "additionalProperties": False,
                        "properties": {"id": {"type": "string", "pattern": r"^[\w.-]+/[\w.-]+$"}, "task_id": {"type": "string"},
                                       "revision": {"type": "string"}}},
            "value": {"type": "number"}, "date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}, "notes": {"type": "string"},
            "verifyToken": {"type": "string"}, "source": {"type": "object", "required": ["url"]}}}}


@pytest.fixture
def any_text(monkeypatch):
    "Questions of a published set are known by their ids alone: the tests' texts are made up."
    from treekit.experiments import provenance
    monkeypatch.setattr(provenance, "published_texts", lambda dataset: None)


def published(store, ids=("5a8b57f25542995d1e6f1371", "5a8c7595554299585d9e36b6")):
    "A run over questions with a published set's ids."
    asked, rows = [Question(i, "hotpotqa", NASTY, ("Ada",)) for i in ids], []
    for k, q in enumerate(asked):
        store.put_prediction(q.id, Prediction("Ada" if k else "Eve").to_json())
        rows.append(Row("A \"b\": c", "hotpotqa", q, "", "", Usage(), q.id))
    return open_run(store, save_run(store, {"M": asked[0]}, {"hotpotqa": asked}, load_profile("openai"), rows))


def test_a_log_is_read_by_inspect_ai(tmp_path):
    log = pytest.importorskip("inspect_ai.log")
    run = a_run(Store())
    [name] = write_inspect(tmp_path, [run])
    found = log.read_eval_log(str(tmp_path / name))
    assert (found.version, found.status, found.eval.model, found.eval.solver) == (2, "success", "gpt-4o-mini", "M")
    good, bad = found.samples
    assert good.input == NASTY and good.scores[SCORER].value == worth(run.rows[0]) == 1.0 and bad.error.message
    kinds = [e.event for e in good.events]
    assert kinds == ["span_begin", "model", "span_begin", "model", "model", "info", "span_end", "span_end"]
    begun = [e for e in good.events if e.event == "span_begin"]
    assert begun[1].parent_id == begun[0].id and NASTY[:20] in begun[0].name
    call = good.events[4]
    assert call.output.completion == NASTY and call.output.usage.total_tokens == 5 and call.input[0].text == "of nobody's, again"
    means = {m.name: m.value for m in found.results.scores[0].metrics.values()}
    assert means == {c["metric"]: c["value"] for c in cell_rows(run) if c["value"] is not None}
    assert found.results.total_samples == 2 and found.results.completed_samples == 1
    assert log.read_eval_log(str(tmp_path / name), header_only=True).samples is None
    for summary in log.read_eval_log_sample_summaries(str(tmp_path / name)): assert summary.id in ("q0", "q1")


def test_eval_results_fit_the_schema_and_the_hubs_own_reader(tmp_path, any_text):
    yaml, hub = pytest.importorskip("yaml"), pytest.importorskip("huggingface_hub")
    run = published(Store())
    [name], left = write_eval_results(tmp_path, [run])
    entries = yaml.safe_load((tmp_path / name).read_text(encoding="utf-8"))
    validate(entries, SCHEMA)
    [entry] = hub.parse_eval_result_entries(entries)
    assert (entry.dataset_id, entry.task_id, entry.value) == ("hotpotqa/hotpot_qa", "distractor", 0.5) and left == []
    assert hub.eval_result_entries_to_yaml([entry]) == entries
    assert "n=2" in entry.notes and 'A "b": c' in entry.notes and re.fullmatch(r"20\d\d-\d\d-\d\d", entry.date)


def test_made_up_questions_never_go_out_under_a_published_name(tmp_path, any_text):
    for run in (a_run(Store()), published(Store(), ("w1", "w2"))):
        with pytest.raises(UsageError, match="nothing can go out under a published name"): write_eval_results(tmp_path, [run])
    assert not list(tmp_path.rglob("*.yaml"))
    store = Store()
    files, left = write_eval_results(tmp_path, [published(store), a_run(store)])
    assert len(files) == 1 and len(left) == 1 and "films" in left[0]


def latex_tables():
    shown = list(table_rows("treerare/table1", ROOT / "figures/offline")) + list(table_rows("searchr/table1", ROOT / "figures/offline"))
    nasty = [dict(method=NASTY + "\\input{/etc/passwd} RDR² τ — 50 %", dataset="d_1", metric="F1 & $", value=0.5, low=0.25, high=1.0)]
    return {"treerare/table1": ("Table 1 & more", shown), "x": (NASTY, nasty)}


def test_tables_hold_every_number_and_nothing_that_is_run(tmp_path):
    names = write_latex(tmp_path, latex_tables())
    assert names == ["treerare-table1.tex", "x.tex", "tables.tex", "treekit.bib"]
    text = (tmp_path / names[0]).read_text()
    for cell in table_rows("treerare/table1", ROOT / "figures/offline"):
        if cell["published"] is not None: assert f"({cell['published']:.3f})" in text
        if cell["value"] is not None: assert f"{cell['value']:.3f}" in text
    columns = text.split("{tabular}{l")[1].split("}")[0].count("r")
    for line in text.splitlines():  # as many cells in each line
        if line.endswith(r"\\") and "multicolumn" not in line: assert line.count(" & ") == columns
    own = (tmp_path / "x.tex").read_text(encoding="utf-8")
    assert r"\input" not in own and "한국" in own and own.startswith("% There is Korean in it") and "U+202E" in own
    assert r"\codepoint{AD6D}" in (tmp_path / "tables.tex").read_text(encoding="utf-8")
    assert tex("{}\\$&#%_^~") and not re.search(r"(?<!\\)[$&#%_]", tex("$&#%_"))


@pytest.mark.parametrize("engine, kotex", [("pdflatex", True), ("pdflatex", False), ("lualatex", True), ("lualatex", False),
                                           ("xelatex", True), ("xelatex", False)])
def test_latex_and_bibtex_run(tmp_path, engine, kotex):
    "With Korean in a table: as Korean where kotex is there, as code points where it isn't."
    if not (shutil.which(engine) and shutil.which("bibtex")): pytest.skip(f"no {engine} here")
    needed = [*(["kotex.sty"] if kotex else []), *(["luaotfload.sty"] if engine == "lualatex" else [])]
    lacks = [n for n in needed if subprocess.run(["kpsewhich", n], capture_output=True).returncode]
    if lacks: pytest.skip(f"no {lacks[0]} here")
    write_latex(tmp_path, latex_tables())
    if not kotex:  # as on a machine that hasn't it
        text = (tmp_path / "tables.tex").read_text(encoding="utf-8")
        (tmp_path / "tables.tex").write_text(text.replace("kotex.sty", "not-there.sty"), encoding="utf-8")
    def ran(*words): return subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=300)
    latex = engine, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "tables.tex"
    for words in (latex, ("bibtex", "tables"), latex, latex):
        done = ran(*words)
        assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "tables.log").read_text(errors="replace")
    assert (tmp_path / "tables.pdf").read_bytes()[:5] == b"%PDF-" and "undefined" not in log.lower() and "Missing character" not in log
    assert (tmp_path / "tables.bbl").read_text().count(r"\bibitem") == 6
    if shutil.which("pdftotext"):
        said = subprocess.run(["pdftotext", "tables.pdf", "-"], cwd=tmp_path, capture_output=True, text=True).stdout
        assert "한국" in said if kotex else "U+D55C" in said
