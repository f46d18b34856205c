"""The documentation: every setting, command and method is in it, tutorials work as written, and built pages have no dead link, need no
network, and are found by their terms."""

import fnmatch, json, os, posixpath, re, runpy, shutil, subprocess, sys
from collections import Counter
from dataclasses import fields
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
from fastcore.docments import docments

import tutorials
from treekit.cli.main import main
from treekit.config import Profile, UsageError
from treekit.papers.registry import method, method_names

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "nbs" / "docs"
PROSE = sorted(DOCS.rglob("*.md"))


def commands(group=main, words=()):
    "Words of each command -> command."
    context = click.Context(group)
    for name in group.list_commands(context):
        yield (*words, name), (command := group.get_command(context, name))
        yield from commands(command, (*words, name)) if isinstance(command, click.Group) else ()


def classes():
    "Dataclasses of all methods that need no solved examples."
    found = set()
    for name in method_names():
        try:
            found.add(type(method(name, ())))
        except UsageError:
            continue
    return found


def test_every_setting_has_a_meaning():
    "In settings.ini, a comment above it; else in `Profile`, the field's comment."
    ini, said, meant = (ROOT / "settings.ini").read_text(encoding="utf-8"), docments(Profile), ""
    blocks = re.findall(r"((?:^#.*\n)+)((?:^\w+ *=.*\n)+)", ini, re.M)
    named = {key for _, lines in blocks for key in re.findall(r"^(\w+) *=", lines, re.M)}
    plain = {"seed", "max_tokens", "temperature"}  # the name says it
    assert [
        f.name for f in fields(Profile) if f.name not in {"name", *named, *plain} and not (said.get(f.name) or meant)
    ] == []


def test_every_method_has_its_parameters():
    listed = set(
        re.findall(r"^\{show_doc\} (\S+)$", (DOCS / "reference/method_parameters.md").read_text(encoding="utf-8"), re.M)
    )
    assert {f"{c.__module__}.{c.__name__}" for c in classes() if hasattr(c, "__dataclass_fields__")} - listed == set()


def test_commands_in_the_prose_exist():
    "Every `treekit WORD` of a code block is a command, and every option that follows it is one of its options."
    known = {words: {o for p in command.params for o in p.opts} | {"--help"} for words, command in commands()}
    wrong = []
    for page in PROSE:
        for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for line in re.findall(r"treekit ((?:[a-z][\w-]*)[^#\n|&;]*)", block):
                words = line.split()
                name = next((tuple(words[:k]) for k in (2, 1) if tuple(words[:k]) in known), None)
                if name is None:
                    wrong.append((page.name, line))
                else:
                    wrong += [
                        (page.name, line, o) for o in re.findall(r"(?<=\s)--[a-z][\w-]*", line) if o not in known[name]
                    ]
    assert wrong == []


def test_settings_in_the_prose_exist():
    "Every `--set NAME=` of the prose is a setting, a field of a method or a parameter of an artefact's notebook."
    from treekit.artefacts.reproduce import _parameters

    of_methods = {f.name for c in classes() if hasattr(c, "__dataclass_fields__") for f in fields(c)}
    notebooks = sorted((ROOT / "nbs" / "reproduce").glob("*/*.ipynb"))
    known = {f.name for f in fields(Profile)}.union(of_methods, ["NAME", "FIELD"], *map(_parameters, notebooks))
    used = {name for page in PROSE for name in re.findall(r"--set \"?(\w+)=", page.read_text(encoding="utf-8"))}
    assert used - known == set()


# --- tutorials
def test_expected_outputs_are_compared():
    page = "```console\n$ a\none … three\n…\nlast 3.5 s\n$ b\n```\n<!-- run\nhidden\n-->\n"
    assert [(c, e) for c, e, _ in tutorials.steps(page)] == [
        ("a", "one … three\n…\nlast 3.5 s\n"),
        ("b", ""),
        ("hidden", None),
    ]
    shown = tutorials.pattern("one … three\n…\nlast 3.5 s\n")
    assert shown.fullmatch("one two three\nx\ny\nlast 12.25 s\n") and not shown.fullmatch("one two three\nlast\n")
    assert not tutorials.pattern("5 calls\n").fullmatch("6 calls\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", tutorials.NAMES)
def test_a_tutorial_works_as_written(name, tmp_path):
    from openai_server import Server

    (folder := tmp_path / "work").mkdir()
    with Server() as server:
        made = tutorials.run(name, folder, MOCK_ENDPOINT=server.url)
    assert tutorials.differences(made) == []


# --- built pages: `DOCS=DIR` takes built ones
@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if given := os.environ.get("DOCS"):
        return Path(given)
    pytest.importorskip("myst_nb", reason="treekit-rag[docs] isn't installed")
    out = tmp_path_factory.mktemp("docs") / "html"
    words = [
        "-W",
        "--keep-going",
        "-q",
        "-c",
        str(DOCS),
        "-d",
        str(out.parent / "doctrees"),
        str(ROOT / "nbs"),
        str(out),
    ]
    env = os.environ | {"https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return out


def read(path):
    "Links, loaded files and anchors of a page."
    from lxml import html

    tree = html.parse(str(path))
    loaded = [
        *tree.xpath("//img/@src"),
        *tree.xpath("//script/@src"),
        *tree.xpath("//link[@rel='stylesheet' or @rel='icon']/@href"),
    ]
    return tree.xpath("//a/@href"), loaded, {*tree.xpath("//@id"), *tree.xpath("//a/@name")}


@pytest.mark.slow
def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(built):
    paths = {p.relative_to(built).as_posix() for p in built.rglob("*") if p.is_file()}
    pages = {p: read(built / p) for p in paths if p.endswith(".html") and not p.startswith("_static/")}
    wrong = []
    for page, (links, loaded, _) in pages.items():
        wrong += [f"{page}: loads {src}" for src in loaded if urlsplit(src).netloc]
        for link in dict.fromkeys([*links, *loaded]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (
                posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path))) if parts.path else page
            )
            anchor = unquote(parts.fragment)
            if path not in paths or anchor and path in pages and anchor not in pages[path][2]:
                wrong.append(f"{page}: {link}")
    assert wrong == [] and 100 < len(pages) <= 250


SEARCH = """
const fs = require("fs"), vm = require("vm"), dir = process.argv[1] + "/";
const document = { addEventListener() {}, querySelector: () => null, getElementById: () => null, readyState: "loading" };
const context = vm.createContext({ document, console, DOCUMENTATION_OPTIONS: {}, URLSearchParams, SPHINX_HIGHLIGHT_ENABLED: false });
context.window = context;
for (const file of ["_static/doctools.js", "_static/language_data.js", "_static/searchtools.js", "searchindex.js"])
  if (fs.existsSync(dir + file)) vm.runInContext(fs.readFileSync(dir + file, "utf8"), context);
const found = {};
for (const term of JSON.parse(process.argv[2]))
  found[term] = vm.runInContext(`Search._performSearch(...Search._parseQuery(${JSON.stringify(term)}))`, context)
    .reverse().map(r => r[0]);  // shown from the end
console.log(JSON.stringify(found));
"""
TERMS = {
    "UCT": "docs/explanation/arise",
    "risk": "docs/explanation/arise",
    "routing": "docs/explanation/rdr2",
    "heading tree": "docs/explanation/rdr2",
    "phrase": "docs/explanation/treerare",
    "syntax tree": "docs/explanation/treerare",
    "sub-question": "docs/explanation/toq",
    "evaluator": "docs/explanation/toq",
    "budget": "docs/howto/budget",
    "assignment": "docs/howto/teach",
    "pipeline": "docs/howto/own_pipeline",
    "errata": "docs/results/across",
    "profile": "docs/reference/settings",
    "P-SCORE": "docs/reference/metrics",
    "cassette": "docs/explanation/storage",
    "verdict": "docs/explanation/verdicts_and_claims",
    "simulated model": "docs/explanation/simulated_model",
    "settings": "docs/reference/settings",
    "navigator": "docs/explanation/searchr",
    "batch": "docs/howto/batch",
}


@pytest.mark.slow
def test_the_search_puts_a_terms_own_page_first(built):
    "Sphinx's own script, in Node."
    if not (node := shutil.which("node")):
        pytest.skip("no node")
    done = subprocess.run(
        [node, "-e", SEARCH, str(built), json.dumps(list(TERMS))], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert {term: found[term][:1] for term in TERMS} == {term: [page] for term, page in TERMS.items()}


def test_one_page_is_indexed_for_a_term():
    pages = {p.relative_to(ROOT / "nbs").with_suffix("").as_posix(): p.read_text(encoding="utf-8") for p in PROSE}
    assert {t: [p for p, text in pages.items() if f"```{{index}} ! {t}\n" in text] for t in TERMS} == {
        t: [page] for t, page in TERMS.items()
    }


def test_titles_name_their_paper_and_differ():
    pytest.importorskip("merm", reason="treekit-rag[docs] isn't installed")
    conf, nbs = runpy.run_path(str(DOCS / "conf.py")), ROOT / "nbs"
    kept = re.compile("|".join(fnmatch.translate(p) for p in conf["include_patterns"]))
    books = {place: p for p in nbs.rglob("*.ipynb") if kept.match(place := p.relative_to(nbs).as_posix())}
    titles = {str(p): p.read_text(encoding="utf-8").partition("\n")[0][2:] for p in PROSE}
    for place, book in books.items():
        first = "".join(json.loads(book.read_text(encoding="utf-8"))["cells"][0]["source"])
        titles[place] = conf["titled"](first, place).partition("\n")[0][2:]
    papers = [(p, t, paper) for p, t in titles.items() for name, paper in conf["PAPERS"].items() if f"_{name}/" in p]
    assert len(papers) > 40 and [(p, t) for p, t, paper in papers if paper not in t] == []
    assert [t for t, n in Counter(titles.values()).items() if n > 1] == []
