"The rules of the house: what may import what, what loads when, and what must never stand in a committed file."

import ast, functools, importlib.util, json, re, subprocess, sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REPRODUCE = ROOT / "nbs" / "reproduce"
MODULES = {
    ".".join(p.relative_to(ROOT).with_suffix("").parts): p
    for p in sorted((ROOT / "treekit").rglob("*.py"))
    if p.name not in ("__init__.py", "_modidx.py")
}
PACKAGES = {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in (ROOT / "treekit").rglob("__init__.py")}
FLOORS = [  # lowest first; a package imports from lower floors and from itself, and on its own floor only what BESIDE names
    {"config", "language"},
    {"utils"},
    {"core"},
    {"store", "corpora"},
    {"llm", "synthetic", "syntax", "retrieval", "scoring"},
    {"models", "baselines"},
    {"papers"},
    {"training"},
    {"experiments"},
    {"analysis", "figures"},
    {"adapters"},
    {"papers.treerare", "papers.toq", "papers.arise", "papers.searchr", "papers.rdr2"},
    {"papers.comparison"},
    {"artefacts"},
    {"explorer", "classroom"},
    {"exports"},
    {"reports"},
    {"cli"},
    {"api"},
]
FLOOR = {package: number for number, packages in enumerate(FLOORS) for package in packages}
FLOOR["__main__"] = FLOOR["cli"]  # `python -m treekit`
BESIDE = {"__main__": {"cli"}, "language": {"config"}, "retrieval": {"syntax"}}
# the only modules below the papers that name the models without an API key
OFFLINE = {"treekit.experiments.resources"}
# who imports by a name that is worked out: a task's function, stanza's and optional modules, prompts, what a
# record names
BY_NAME = {
    "treekit.artefacts.reproduce",
    "treekit.experiments.run_records",
    "treekit.papers.plugin",
}
HEAVY = {
    "torch",
    "stanza",
    "pyserini",
    "jnius",
    "transformers",
    "sentence_transformers",
    "openai",
    "pandas",
    "matplotlib",
    "seaborn",
    "scipy",
    "bm25s",
    "numba",
    "datasets",
    "kiwipiepy",
    "networkx",
    "pyarrow",
    "duckdb",
    "ray",
    "faiss",
}


def package_of(module):
    "treekit.papers.toq.method -> papers.toq; treekit.papers.plugin -> papers; treekit.core.prompts -> core."
    parts = module.split(".")[1:]
    own = f"treekit.papers.{parts[1]}" if parts[0] == "papers" and len(parts) > 1 else ""
    return ".".join(parts[:2]) if own and (len(parts) > 2 or f"{own}.__init__" in PACKAGES) else parts[0]


@functools.cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path, module):
    "[(line, kit module)] for each import of a file, inside functions too, and for each name of a kit module that stands in a string."
    package, known, found = module if path.name == "__init__.py" else module.rpartition(".")[0], every_file(), []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{base}.{a.name}" if f"{base}.{a.name}" in known else base for a in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = re.findall(r"^treekit(?:\.\w+)+(?=:|$)", node.value)
        else:
            continue
        names = [
            name if name in known else name.rpartition(".")[0] for name in names
        ]  # a function's name stands behind its module's
        found += [(node.lineno, name) for name in names if name in known]
    return found


def complaint(module, other):
    "Which rule an import breaks; empty: none."
    mine, its = package_of(module), package_of(other)
    if mine == its:
        return ""
    if other == "treekit.models.simulated.ability" and FLOOR[mine] > FLOOR["papers"] and not mine.startswith("papers."):
        return ""
    if its == "models" and module not in OFFLINE:
        return f"only {', '.join(sorted(OFFLINE))} name the models without an API key"
    if mine == "models" and its not in ("config", "language", "utils", "core", "corpora", "synthetic"):
        return f"{mine} may import language, utils, core, corpora and synthetic"
    if FLOOR[its] > FLOOR[mine]:
        return f"{its} is above {mine}"
    if FLOOR[its] == FLOOR[mine] and its not in BESIDE.get(mine, ()):
        return f"{its} and {mine} are on one floor"
    return ""


def broken_rules():
    return [
        f"{path.relative_to(ROOT)}:{line}: imports {other}: {why}"
        for module, path in every_file().items()
        for line, other in imports(path, module)
        if (why := complaint(module, other))
    ]


@functools.cache
def every_file():
    "Module -> file, packages' own `__init__`s included."
    fronts = {
        ".".join(p.parent.relative_to(ROOT).parts): p
        for p in (ROOT / "treekit").rglob("__init__.py")
        if p.parent.name not in ("treekit", "papers")
    }
    return MODULES | fronts


def test_imports_go_downwards():
    "Packages import from lower floors, wherever in a file the import stands."
    assert broken_rules() == []


def test_nothing_else_is_imported_by_a_name_that_is_worked_out():
    "Such an import is not seen by the rules."

    def worked_out(node):
        called = isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "import_module",
            "__import__",
        )
        return called and not (isinstance(node.args[0], ast.Constant) and not node.args[0].value.startswith("."))

    assert {m for m, path in MODULES.items() if any(map(worked_out, ast.walk(tree(path))))} == BY_NAME


def test_no_circles():
    "No module imports itself, through however many others."
    graph = {m: sorted({o for _, o in imports(p, m) if o in MODULES and o != m}) for m, p in MODULES.items()}
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module in done:
            return
        path.append(module)
        for other in graph[module]:
            visit(other)
        path.pop()
        done.add(module)

    for module in graph:
        visit(module)


def test_no_class_has_a_single_subclass_in_its_own_module():
    "Such a pair is one class, or a class with a part."
    found = []
    for module, path in MODULES.items():
        classes = {n.name: n for n in tree(path).body if isinstance(n, ast.ClassDef)}
        bases = [b.id for c in classes.values() for b in c.bases if isinstance(b, ast.Name) and b.id in classes]
        found += [f"{module}.{b}" for b in sorted(set(bases)) if bases.count(b) == 1]
    assert found == []


def test_no_underscore_name_is_imported_from_another_module():
    found = []
    for module, path in MODULES.items():
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.ImportFrom) or not (node.level or (node.module or "").startswith("treekit")):
                continue
            found += [
                f"{module}:{node.lineno}: {a.name}"
                for a in node.names
                if a.name.startswith("_") and a.name != "__version__"
            ]
    assert found == []


def test_environment_variables_are_read_in_config_and_cli_only():
    found = []
    for module, path in MODULES.items():
        if package_of(module) in ("config", "cli"):
            continue
        for node in ast.walk(tree(path)):
            name = f"{getattr(node.value, 'id', '')}.{node.attr}" if isinstance(node, ast.Attribute) else ""
            if name in ("os.environ", "os.getenv", "os.putenv"):
                found.append(f"{module}:{node.lineno}: {name}")
    assert found == []


def test_every_module_comes_from_a_notebook_of_its_package():
    "nbs/<n>_<package>/<m>_<module>.ipynb, numbered in reading order: a module imports within its package only from notebooks before its own."
    place = {}
    for notebook in sorted((ROOT / "nbs").rglob("*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if exported := re.search(r"^#\|\s*default_exp\s+(\S+)", "".join(cell["source"]), re.M):
                place[f"treekit.{exported[1]}"] = notebook.relative_to(ROOT / "nbs")
    place = {m: p for m, p in place.items() if not m.endswith("__init__")}
    assert set(place) == set(MODULES)
    for module, notebook in place.items():
        folders = [re.sub(r"^\d+_", "", part) for part in (*notebook.parent.parts, notebook.stem)]
        assert "treekit." + ".".join(folders) == module, notebook
        for _, other in imports(MODULES[module], module):
            if other in place and package_of(other) == package_of(module):
                assert place[other] <= notebook, f"{module} imports {other}, whose notebook comes later"
                assert (
                    other == module or re.match(r"\d+", notebook.name)[0] != re.match(r"\d+", place[other].name)[0]
                ), f"{module} imports {other}, and their notebooks share a number: such are read in any order"


def test_a_broken_rule_is_told_with_its_line(monkeypatch, tmp_path):
    "The test above can fail: inside a function, and through a string that names a module or a function of one."
    bad = tmp_path / "llm.py"
    bad.write_text(
        "def f():\n    from ..papers.toq.method import TreeOfQuestion\n\nwhere = 'treekit.models.simulated.client:main'\n"
        "what = 'treekit.papers.toq.method.TreeOfQuestion'\nfrom treekit.models.simulated.ability import PERFECT\n"
    )
    found = [(line, complaint("treekit.core.prompts", other)) for line, other in imports(bad, "treekit.core.prompts")]
    offline = f"only {', '.join(sorted(OFFLINE))} name the models without an API key"
    assert sorted(found) == [
        (2, "papers.toq is above core"),
        (4, offline),
        (5, "papers.toq is above core"),
        (6, offline),
    ]
    assert complaint("treekit.papers.arise.method", "treekit.models.simulated.ability") == offline
    assert not complaint("treekit.figures.titles", "treekit.models.simulated.ability")


def test_light_modules_load_nothing_heavy():
    light = [m for m in MODULES if package_of(m) not in ("training", "analysis", "figures")]
    light.remove("treekit.experiments.preloaded")  # which is there to load them
    code = (
        "import sys, importlib\n"
        + "".join(f"importlib.import_module('{m}')\n" for m in light)
        + f"print(*sorted(set(sys.modules) & {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_every_module_says_what_it_is():
    assert [m for m, path in MODULES.items() if not ast.get_docstring(tree(path))] == []


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_map_of_the_packages():
    "The floors, from the top down, with the names that the rules have."
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    boxes = re.findall(r'^ +(\w+)\["<b>(.*?)</b>', guide, re.M)
    chain = re.search(r"^ +(\w+(?: --> \w+)+)$", guide, re.M)[1].split(" --> ")
    drawn = [set(text.split(" · ")) for text in dict(boxes).values()]
    assert [box for box, _ in boxes] == chain
    assert drawn == FLOORS[::-1]


def test_each_package_opens_with_a_notebook():
    "It says what lives there, every module of its package; and every package that these import: by name, or as the floors below."
    for package in sorted(FLOOR):
        folders = [
            f
            for f in (ROOT / "nbs").rglob("*")
            if f.is_dir() and ".".join(re.sub(r"^\d+_", "", p) for p in f.relative_to(ROOT / "nbs").parts) == package
        ]
        if not (ROOT / "treekit" / Path(*package.split("."))).is_dir():
            continue  # a module of its own, at the top
        index = folders[0] / "index.ipynb"
        parts = [index, *(p for p in folders[0].glob("*/index.ipynb") if package != "papers")]  # of subpackages, too
        text = "".join(p.read_text(encoding="utf-8") for p in parts)
        missing = [m for m in MODULES if package_of(m) == package and m.rpartition(".")[2] not in text]
        assert missing == [] and "```mermaid" in text, index
        used = {
            package_of(o) for m, path in every_file().items() if package_of(m) == package for _, o in imports(path, m)
        }
        named = set(re.findall(r"\w+", text))
        if re.search(r"[Ee]verything below|[Ll]ower (floors|packages)", text):
            used = {p for p in used if FLOOR[p] >= FLOOR[package]}
        assert {p.rpartition(".")[2] for p in used} - {package.rpartition(".")[2], "config"} - named == set(), index


def test_no_path_and_no_key_in_a_committed_file():
    path = re.compile(rf"(?<![\w.~/-])/(?:root|home/\w+|tmp|Users/\w+)/\w|{re.escape(str(ROOT))}/|/site-packages/")
    key = re.compile(r"sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}")
    found = []
    for file in tracked():
        if file.suffix not in {
            ".ipynb",
            ".py",
            ".md",
            ".csv",
            ".html",
            ".svg",
            ".toml",
            ".ini",
            ".json",
        } or file == Path(__file__):
            continue
        text = file.read_text(errors="replace")
        found += [f"{file.relative_to(ROOT)}: {m[0]}" for m in (path.search(text), key.search(text)) if m]
    assert found == []


def test_no_bar_is_kept_in_a_notebook():
    "Widgets' state is timings, and other bytes at each run."
    for notebook in (ROOT / "nbs").rglob("*.ipynb"):
        nb = json.loads(notebook.read_text())
        assert "widgets" not in nb["metadata"] and "widget-view" not in json.dumps(
            [c.get("outputs") for c in nb["cells"]]
        ), notebook.name


def test_no_error_stream_is_kept_in_a_notebook():
    "What goes there is bars and warnings: timings, and the paths of libraries."
    kept = [
        p.relative_to(ROOT).as_posix()
        for p in sorted((ROOT / "nbs").rglob("*.ipynb"))
        if any(o.get("name") == "stderr" for c in json.loads(p.read_text())["cells"] for o in c.get("outputs", ()))
    ]
    assert kept == []


def test_no_percent_mark_is_left_in_a_cell():
    "A cell mark of the percent format inside a cell means that a conversion swallowed the cells after it."
    left = [
        f"{p.relative_to(ROOT)}: {m[0]}"
        for p in sorted((ROOT / "nbs").rglob("*.ipynb"))
        for c in json.loads(p.read_text())["cells"]
        if (m := re.search(r"^# ?%.*", "".join(c["source"]), re.M))
    ]
    assert left == []


def test_artefacts_are_run_by_reproduce_alone():
    "nbdev-test leaves out a folder with a `.notest` in it, though not the folders below: without one it would run every table."
    folders = {p.parent for p in (ROOT / "nbs" / "reproduce").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts}
    assert folders and [f.name for f in sorted(folders) if not (f / ".notest").is_file()] == []


def test_settings_commands_and_options_may_only_become_fewer():
    "Aims: 20 settings, 25 commands, 100 options, 15 fields of `Paper`, 12 of a method. A number rises only here, in the commit that needs it."
    import click
    from dataclasses import fields
    from treekit import ARISE, RDR2, SearchR, TreeOfQuestion, TreeRare
    from treekit.baselines.chainrag import ChainRAG
    from treekit.cli.main import main
    from treekit.config import SETTINGS
    from treekit.papers.plugin import Paper

    def commands(command):
        inner = getattr(command, "commands", {}).values()
        return [found for one in inner for found in commands(one)] or [command]

    every = commands(main)
    options = [p for command in every for p in command.params if isinstance(p, click.Option)]
    assert max(len(fields(method)) for method in (ARISE, ChainRAG, RDR2, SearchR, TreeOfQuestion, TreeRare)) <= 12
    assert (len(SETTINGS) <= 20, len(every) <= 24, len(options) <= 71, len(fields(Paper)) <= 12) == (True,) * 4


@pytest.mark.parametrize("folders, most", [("treekit nbs/reproduce", 32_646), ("tests", 17_234)])
def test_statements_may_only_become_fewer(folders, most):
    "Aims: 33,000 in treekit, and 19,000. What a table notebook no longer has counts where it went. A number rises only here, in the commit that needs it."
    from statements import statements

    assert (counts := sum(map(statements, folders.split()), Counter())).total() <= most, counts


def test_a_table_notebook_has_at_most_ten_lines_of_code():
    "Besides its parameters. The steps that all share are in `treekit.figures.artefact`, a paper's in its package."
    from statements import code_of

    def lines(path):
        return [line for line in code_of(path).splitlines() if line.strip() and not line.strip().startswith("#")]

    assert not [p.name for p in REPRODUCE.glob("*/*.ipynb") if len(lines(p)) > 10]


def test_notebook_numbers_occur_once_in_their_folder():
    found = {}
    for p in (ROOT / "nbs").rglob("[0-9]*.ipynb"):
        found.setdefault((p.parent, re.match(r"\d+", p.name)[0]), []).append(p.name)
    assert {k: v for k, v in found.items() if len(v) > 1} == {}


PRIVATE_WORDS = """anew; behind the point; calls in a row; competence; crew; errand; fleet; jail; knob; lease; ledger; purse; rehearse;
stand-in; standin; tokens a question""".split(";")


def test_names_and_messages_use_the_glossary():
    "The terms of the field instead of private ones, in modules, settings and tables' headers. Prompts are none of the kit's words."
    words = re.compile(
        "|".join(rf"(?<![^\W_]){w.strip().replace(' ', '[ _]')}s?(?![^\W_])" for w in PRIVATE_WORDS), re.I
    )
    texts = {p: p.read_text(encoding="utf-8") for p in (ROOT / "treekit").rglob("*.py") if p.name != "_modidx.py"}
    texts[ROOT / "settings.ini"] = (ROOT / "settings.ini").read_text(encoding="utf-8")
    texts |= {p: p.open(encoding="utf-8").readline() for p in (ROOT / "figures").rglob("*.csv")}
    assert words.search("its errands") and words.search("calls_in_a_row") and not words.search("release; understand in")
    assert not [f"{p.name}: {m[0]}" for p, text in texts.items() for m in words.finditer(text)]
