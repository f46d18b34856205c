"The rules of the house: what may import what, what loads when, and what must never stand in a committed file."
import ast, json, re, subprocess, sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = {p.stem: p for p in (ROOT / "treekit").glob("*.py") if not p.stem.startswith("_")}
CORE = {}  # module -> number of its notebook
PAPERS, TRAIN = {}, {}  # module -> its notebook
for notebook in sorted((ROOT / "nbs").rglob("*.ipynb")):
    for cell in json.loads(notebook.read_text())["cells"]:
        if exported := re.search(r"#\|\s*default_exp\s+(\w+)", "".join(cell["source"])):
            number = re.match(r"(\d\d)([a-z]?)_", notebook.name)
            if number: CORE[exported[1]] = number.groups()
            else: (TRAIN if notebook.parent.name == "train" else PAPERS)[exported[1]] = notebook
OWN = {"treerare": {"phrases"}, "tree_retrieval": {"phrases", "treerare"}, "arise": {"reasoning"}, "toq": {"planner", "planner_baselines"}, "planner_baselines": {"planner", "iterative"}, "rdr2": {"readers", "routing"}, "long_form": {"readers"}, "router_training": {"rdr2", "routing"}, "trained_router": {"rdr2", "routing"}, "search_r1_training": {"search_r1"}, "hipporag": {"extraction", "iterative"}, "graphrag": {"extraction"}, "chainrag": {"paths", "iterative"}, "searchr": {"paths"}, "navigator_data": {"paths", "searchr"}, "navigator": {"paths", "searchr"}}  # a paper in several modules
BASELINES = {"baselines", "react", "tree_of_thoughts", "iterative", "revising"}  # ReAct falls back on self-consistency, Tree of Thoughts acts as ReAct does, CoT-SC over passages is self-consistency
HEAVY = {"torch", "stanza", "pyserini", "jnius", "transformers", "sentence_transformers", "openai", "pandas", "matplotlib", "seaborn", "scipy", "bm25s", "numba", "datasets", "kiwipiepy", "networkx"}


def imported(path, top_level=True):
    "The treekit modules that a module imports, at its top level or anywhere."
    tree = ast.parse(path.read_text())
    for node in (tree.body if top_level else ast.walk(tree)):
        if isinstance(node, ast.ImportFrom) and node.level == 1: yield from [node.module] if node.module else [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("treekit."): yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "treekit": yield from (a.name for a in node.names)
        elif isinstance(node, ast.Import): yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("treekit."))


def test_every_module_comes_from_a_notebook():
    assert set(MODULES) == set(CORE) | set(PAPERS) | set(TRAIN)


@pytest.mark.parametrize("module", sorted(CORE))
def test_imports_go_downwards(module):
    "A numbered module imports only from notebooks numbered below it."
    for other in imported(MODULES[module]):
        assert other in CORE and CORE[other] < CORE[module], f"{module} imports {other} from above"


@pytest.mark.parametrize("module", sorted(PAPERS))
def test_papers_stand_side_by_side(module):
    "A paper's module imports services and `method`, never `run` and above, never another paper."
    for other in imported(MODULES[module], top_level=False):
        assert {module, other} <= BASELINES or other in OWN.get(module, ()) or other in CORE and CORE[other] < CORE["run"], f"{module} imports {other}"


@pytest.mark.parametrize("module", sorted(TRAIN))
def test_training_stands_on_the_services(module):
    "What trains a model imports services, other training modules, and the paper whose model it trains."
    for other in imported(MODULES[module], top_level=False):
        assert other in TRAIN or other in OWN.get(module, ()) or (other in CORE and CORE[other] < CORE["run"]), f"{module} imports {other}"


def test_light_modules_load_nothing_heavy():
    light = [m for m in ("config", "data", "world", "llm", "store", "offline", "retrieval", "syntax", "metrics", "method", "treerare", "baselines", "cli") if m in MODULES]
    code = "import sys, importlib\n" + "".join(f"importlib.import_module('treekit.{m}')\n" for m in light) + f"print(*sorted(set(sys.modules) & {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_can_be_read_in_one_sitting(module):
    assert len(MODULES[module].read_text().splitlines()) <= 450


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode: pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_path_and_no_key_in_a_committed_file():
    path = re.compile(rf"(?<![\w.~/-])/(?:root|home/\w+|tmp|Users/\w+)/\w|{re.escape(str(ROOT))}/|/site-packages/")
    key = re.compile(r"sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}")
    found = []
    for file in tracked():
        if file.suffix not in {".ipynb", ".py", ".md", ".csv", ".html", ".svg", ".toml", ".ini", ".json"} or file == Path(__file__): continue
        text = file.read_text(errors="replace")
        found += [f"{file.relative_to(ROOT)}: {m[0]}" for m in (path.search(text), key.search(text)) if m]
    assert found == []


def test_the_published_numbers_are_the_ones_we_were_given():
    given = ROOT.parent / "shared" / "published"
    if not given.is_dir(): pytest.skip("the published numbers lie only in data/published here")
    for file in given.glob("*.csv"):
        assert (ROOT / "data" / "published" / file.name).read_bytes() == file.read_bytes(), file.name


def test_no_bar_is_kept_in_a_notebook():
    "Widgets' state is timings, and other bytes at each run."
    for notebook in (ROOT / "nbs").rglob("*.ipynb"):
        nb = json.loads(notebook.read_text())
        assert "widgets" not in nb["metadata"] and "widget-view" not in json.dumps([c.get("outputs") for c in nb["cells"]]), notebook.name


def test_no_error_stream_is_kept_in_a_notebook():
    "What goes there is bars and warnings: timings, and the paths of libraries."
    kept = [p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "nbs").rglob("*.ipynb")) if any(o.get("name") == "stderr" for c in json.loads(p.read_text())["cells"] for o in c.get("outputs", ()))]
    assert kept == []


def test_no_percent_mark_is_left_in_a_cell():
    "A cell mark of the percent format inside a cell means that a conversion swallowed the cells after it."
    left = [f"{p.relative_to(ROOT)}: {m[0]}" for p in sorted((ROOT / "nbs").rglob("*.ipynb")) for c in json.loads(p.read_text())["cells"] if (m := re.search(r"^# ?%.*", "".join(c["source"]), re.M))]
    assert left == []


def test_artefacts_are_run_by_reproduce_alone():
    "nbdev-test leaves out a folder with a `.notest` in it, though not the folders below: without one it would run every table."
    folders = {p.parent for p in (ROOT / "nbs" / "reproduce").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts}
    assert folders and [f.name for f in sorted(folders) if not (f / ".notest").is_file()] == []
