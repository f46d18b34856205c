"Papers are plug-ins: no module of the kit names one, and a paper from another package is served by all commands."

import ast, csv, importlib.util, io, json, os, re, shutil, subprocess, sys, tokenize, zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from tutorials import install

from treekit.artefacts.catalog import runnable
from treekit.artefacts.reproduce import plan_tasks
from treekit.cli.main import main
from treekit.papers import plugin
from treekit.papers.plugin import Paper, broken_papers, broken_references, check_descriptor, discover, papers

ROOT = Path(__file__).resolve().parents[1]


# --- no module names a paper
NAMES = re.compile(
    r"treerare|(?<![a-z])toq(?![a-z])|(?<![a-z])arise(?![a-z])|searchr(?!1)|rdr2|tree-of-question|search-r(?!1)\b", re.I
)
# module -> lines that may name a paper: the front door exports the five methods, and shows examples
EXPLAINED = {
    "__init__.py": {
        f'"papers.{module}.method": ("{name}",),'
        for module, name in dict(
            treerare="TreeRare", toq="TreeOfQuestion", arise="ARISE", searchr="SearchR", rdr2="RDR2"
        ).items()
    },
    "api/running.py": {'method: Any = "treerare",  # as for `run`'},
    "api/tables.py": {'raise UsageError(f"{name!r} names no table: write PAPER/TABLE, as in arise/table1")'},
}


def docstrings(source):
    "The lines of docstrings: strings that are a statement of their own."
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= set(range(node.lineno, node.end_lineno + 1))
    return found


def lines_with_names(source):
    'The lines of code that name a paper. Docstrings and comments may cite one ("TreeRare, Fig. 1"), and commands\' help shows examples.'
    if not NAMES.search(source):
        return []  # most modules: nothing has to be parsed
    cited, found = docstrings(source), {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or token.start[0] in cited or not NAMES.search(token.string):
            continue
        found[token.start[0]] = token.line.strip()
    return list(found.values())


def test_no_module_outside_the_papers_names_one():
    named = {}
    for path in sorted((ROOT / "treekit").rglob("*.py")):
        place = path.relative_to(ROOT / "treekit")
        if path.name == "_modidx.py" or place.parts[0] == "papers":
            continue
        lines = [
            line
            for line in lines_with_names(path.read_text(encoding="utf-8"))
            if line not in EXPLAINED.get(place.as_posix(), {})
        ]
        if lines:
            named[place.as_posix()] = lines
    assert named == {}


def test_a_name_in_code_is_seen_and_a_citation_is_not():
    assert lines_with_names('def f():\n    "ARISE, Sec. 2."\n    x = "arise"  # TreeRare\n') == [
        'x = "arise"  # TreeRare'
    ]
    assert lines_with_names("from .papers.toq import method\nsummarise = SearchR1()  # RDR2\n") == [
        "from .papers.toq import method"
    ]


def test_the_printed_numbers_are_the_ones_that_were_given():
    given = ROOT.parent / "shared" / "published"
    if not given.is_dir():
        pytest.skip("the given files are not here")
    for file in given.glob("*.csv"):
        paper, _, name = file.name.partition("_")
        assert (ROOT / "data" / "papers" / paper / name).read_bytes() == file.read_bytes(), file.name


# --- descriptors
def test_the_papers_of_the_kit_are_registered_as_anybody_s():
    assert (
        list(discover()) == ["treerare", "real", "toq", "arise", "searchr", "rdr2", "across"] and broken_papers() == []
    )
    assert [p.name for p in papers()] == ["treerare", "toq", "arise", "searchr", "rdr2"]


@pytest.mark.parametrize("paper", ["treerare", "toq", "arise", "searchr", "rdr2", "across", "real"])
def test_every_reference_can_be_imported_and_every_artefact_has_its_notebook(paper):
    p = discover()[paper]
    assert broken_references(p) == []
    for row in p.inventory():
        texts = [p.text(name) for name in row["text"].split("|") if name]
        assert p.notebook(row["artefact"]).is_file() or texts and all(t.is_file() for t in texts), row["artefact"]
        for table in filter(None, row["csv"].split("|")):
            own, _, name = table.rpartition("/")
            assert discover()[own or paper].path(name).is_file(), table


class Point:
    "An entry point as `importlib.metadata` has it."

    def __init__(self, name, made, value="other.paper:PAPER"):
        self.name, self.made, self.value = name, made, value

    def load(self):
        if isinstance(self.made, BaseException):
            raise self.made
        return self.made


@pytest.fixture
def registered(monkeypatch):
    "Registers further papers in this process."
    real = plugin.registered_papers

    def register(*points):
        monkeypatch.setattr(plugin, "registered_papers", lambda: [*points, *real()])
        plugin._discovered.cache_clear()

    yield register
    monkeypatch.undo()
    plugin._discovered.cache_clear()


def inventory(folder, text="artefact,kind,title\ntable1,table,A table\n"):
    folder.mkdir(exist_ok=True)
    (folder / "inventory.csv").write_text(text)
    return folder


def test_a_broken_plugin_is_one_line_and_harms_nobody(registered, tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    good = Paper("good", "Good", inventory(tmp_path / "good"))
    registered(
        Point("halted", SystemExit(3)),
        Point("lacks", ModuleNotFoundError("No module named 'nothing'")),
        Point("typed", 3),
        Point("nodata", Paper("nodata", "No data", tmp_path / "nowhere")),
        Point("other", Paper("mine", "Mine", tmp_path)),
        Point("arise", Paper("arise", "Impostor", inventory(tmp_path / "impostor"))),
        Point("good", good),
        Point("odd", Paper("odd", "Odd", inventory(tmp_path / "odd", "artefact,kind\n,table\n"))),
    )
    lines = dict(broken_papers())
    assert list(lines) == ["arise", "halted", "lacks", "nodata", "odd", "other", "typed"] and discover()["good"] is good
    assert discover()["arise"].label == "ARISE" and "taken by treekit.papers.arise" in lines["arise"]
    assert "No module named 'nothing'" in lines["lacks"] and "no inventory.csv" in lines["nodata"]
    assert "is no treekit.papers.Paper" in lines["typed"]
    found = CliRunner().invoke(main, ["doctor", "--json"])
    rows = {r["what"]: r for r in json.loads(found.stdout)}
    assert found.exit_code == 0 and all(rows[f"paper {name}"]["works"] is None for name in lines)
    assert all("\n" not in r["found"] for r in rows.values())
    assert CliRunner().invoke(main, ["list", "toq"]).exit_code == 0


def test_a_descriptor_is_checked():
    assert check_descriptor(Paper("A-B", "x", "data/papers/toq"), "A-B").startswith("a name has lower-case")
    assert "among none" in check_descriptor(Paper("x", "x", "data/papers/toq", short_names={"x": "X"}), "x")


# --- a package of one's own
def command(home, *words, where, code=0, **environment):
    "A treekit command in a process of its own."
    env = (
        {k: v for k, v in os.environ.items() if k != "TREEKIT_STORE"}
        | dict(TREEKIT_HOME=str(home), TQDM_DISABLE="1")
        | environment
    )
    done = subprocess.run(
        [sys.executable, "-m", "treekit", *map(str, words)], capture_output=True, text=True, cwd=where, env=env
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_package_of_ones_own_is_found_by_every_command_and_gone_when_uninstalled(tmp_path):
    home, work, site = tmp_path / "home", tmp_path / "work", tmp_path / "site"
    work.mkdir()
    made = tmp_path / "lookstwice"
    assert "pip install -e" in command(home, "init", made, "--paper", "Look Twice", where=work)
    install(site, made)
    shutil.rmtree(made / "lookstwice")  # only the installed copy is left
    path = os.pathsep.join([str(site), str(ROOT)])

    def treekit(*words, code=0):
        return command(home, *words, where=work, code=code, PYTHONPATH=path)

    assert "table1" in treekit("list", "lookstwice")
    asked = json.loads(
        treekit("ask", "Who directed the film that is based on the novel Taphora?", "--method", "lookstwice", "--json")
    )
    assert [n["kind"] for n in asked["trace"]["nodes"]] == ["question", "search", "search", "answer"]

    told = treekit("reproduce", "lookstwice", "--n", 4, "--out", "out")
    assert "✓ lookstwice/table1" in told and "✓ lookstwice/claims" in told
    with open(work / "out" / "lookstwice" / "table1.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    ran = [r for r in rows if r["reproduced"]]
    assert len(ran) == 4 and {r["method"] for r in ran} == {"Look Twice", "Look Twice w/o second search"}
    assert "unchanged" in treekit("reproduce", "lookstwice/table1", "--n", 4, "--out", "out")
    method = next(site.glob("lookstwice/method.py"))
    method.write_text(method.read_text().replace("top_k: int = 2", "top_k: int = 3"))
    assert "unchanged" not in treekit("reproduce", "lookstwice/table1", "--n", 4, "--out", "out")  # its code counts

    with open(work / "out" / "lookstwice" / "claims.csv", encoding="utf-8", newline="") as f:
        claims = list(csv.DictReader(f))
    assert [c["id"] for c in claims] == ["lookstwice-01.1", "lookstwice-01.2", "lookstwice-02", "lookstwice-03"]
    assert [c["outcome"] for c in claims] == [*["not run"] * 3, "not tested"]  # the simulated model is no evidence
    assert "lookstwice/table1" in treekit(
        "reproduce", "--estimate", "lookstwice/table1", "--profile", "openai", "--data", "synthetic", "--n", 4
    )

    runs = json.loads(treekit("explore", "--list", "--json"))
    run = next(r["name"] for r in runs if r["about"].get("artefact") == "lookstwice/table1")
    treekit("explore", run, "--html", "run.html")
    assert (work / "run.html").stat().st_size > 50_000
    treekit("export", "lookstwice/table1", "--tables", "out", "--to", "latex", "--out", "tex")
    treekit("report", "lookstwice", "--tables", "out")
    with zipfile.ZipFile(work / "lookstwice-report.zip") as z:
        assert "tables/lookstwice/table1.csv" in z.namelist() and "`lookstwice/table1`" in z.read("README.md").decode()
    assert "✗" not in treekit("doctor", "lookstwice")

    shutil.rmtree(site)
    assert "no paper named 'lookstwice'" in treekit("list", "lookstwice", code=2)
    assert "no method named 'lookstwice'" in treekit("ask", "Who?", "--method", "lookstwice", code=2)
    assert "lookstwice" not in treekit("list")


@pytest.mark.slow
def test_a_skeleton_passes_its_own_test(tmp_path):
    command(tmp_path / "home", "init", tmp_path / "lookstwice", "--paper", "Lookstwice", where=tmp_path)
    install(tmp_path / "site", tmp_path / "lookstwice")
    env = os.environ | dict(
        PYTHONPATH=os.pathsep.join([str(tmp_path / "site"), str(ROOT)]), TREEKIT_HOME=str(tmp_path / "home")
    )
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        str(tmp_path / "lookstwice" / "tests"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr


def test_a_notebook_of_all_papers_is_told_which_one(tmp_path):
    names = [p.name for p in papers()]
    rows = runnable(tuple(f"{name}/deviations" for name in names))
    tasks = plan_tasks(rows, str(tmp_path), dict(profile="offline"), {})
    assert {row["notebook"].parent for row in rows} == {ROOT / plugin.SHARED}
    assert [task.parameters["paper"] for task in tasks] == names


def test_what_templates_and_recipes_import_is_there():
    "No other test runs all of them."
    lost = []
    for folder in ("data", "examples", "nbs/train"):
        for path in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.ipynb")]:
            lines = re.findall(r'^[ "]*from (treekit[\w.]*) import ([\w, ]+)', path.read_text(encoding="utf-8"), re.M)
            for module, names in lines:
                made = importlib.import_module(module)
                for name in re.findall(r"(\w+)(?: as \w+)?(?:,|$)", names):
                    inside = hasattr(made, "__path__") and importlib.util.find_spec(f"{module}.{name}")
                    if not hasattr(made, name) and not inside:
                        lost.append((path.name, module, name))
    assert not lost
