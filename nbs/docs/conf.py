"Configuration of Sphinx: `make docs`. The sources are the notebooks and the Markdown of `nbs/`; nothing is executed."

import json, posixpath, re
from importlib import import_module
from pathlib import Path

import click
from latex2mathml.converter import convert
from merm import render_diagram

from treekit import __version__
from treekit.classroom.formats import marks, stripped
from treekit.figures.titles import evidence_of, is_added

NBS = Path(__file__).resolve().parents[1]
PAPERS = dict(treerare="TreeRare", toq="Tree-of-Question", arise="ARISE", searchr="SEARCH-R", rdr2="RDR²")
FIGURES = NBS.parent / "figures" / "offline"
# what a notebook's title begins with: modules of one name are told apart
TITLES = {
    **{f"17_papers/{i}_{name}/": title for i, (name, title) in enumerate(PAPERS.items(), 1)},
    **{f"reproduce/{name}/": title for name, title in PAPERS.items()},
    "17_papers/6_comparison/": "Across the papers",
    "17_papers/0": "Papers",
    "10_scoring/": "Scoring",
    "12_baselines/": "Baselines",
    "explore/": "Exploration",
    "train/": "Training",
}

project, author, copyright = "treekit", "The treekit authors", "The treekit authors, Apache-2.0"
version = release = __version__
language = "en"

extensions = ["myst_nb", "sphinx_design"]
# the modules that a reader of the papers opens; each of the others is explained in its notebook in the clone
include_patterns = [
    "docs/**.md",
    "[0-9]*/index.ipynb",
    "10_scoring/*",
    "12_baselines/*",
    "17_papers/**",
    "assignments/*",
    "explore/*",
    "train/*",
]
exclude_patterns = [
    "**.ipynb_checkpoints",
    "assignments/class.ipynb",
    "assignments/teachers_guide.ipynb",
    "**/course.toml",
]
nb_execution_mode = "off"  # committed outputs
nb_render_markdown_format = "gfm"
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_dmath_allow_digits = False
myst_heading_anchors = 3
myst_update_mathjax = False
smartquotes = False
suppress_warnings = ["myst.header", "misc.highlighting_failure", "mystnb.mime_priority"]
highlight_language = "python"

root_doc = "docs/index"
html_theme = "pydata_sphinx_theme"
html_title = "treekit"
html_static_path = ["_static"]
html_css_files = ["treekit.css"]
html_js_files = ["accessible.js"]
html_logo = html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_search_scorer = str(NBS / "docs" / "_static" / "scorer.js")
html_show_sourcelink = html_copy_source = html_show_sphinx = False
html_show_search_summary = False  # a summary is fetched, which a page from a disk must not do
html_theme_options = dict(
    logo=dict(text="treekit"),
    navbar_align="left",
    navigation_with_keys=False,
    show_prev_next=False,
    show_toc_level=2,
    footer_start=["copyright"],
    footer_end=[],
    secondary_sidebar_items={"**": ["page-toc"], "docs/index": [], "search": []},
)
html_sidebars = {"docs/index": []}


def drawn(found):
    "Mermaid source as a drawing whose colours the style sheet sets."
    source = re.sub(r"</?[bi]>", "", found[1]).replace("<br>", "<br/>")
    svg = re.sub(
        r"<style>.*?</style>| (?:style|fill|stroke|font-family)=\"[^\"]*\"", "", render_diagram(source), flags=re.S
    )
    return f'```{{raw}} html\n<div class="diagram" tabindex="0">{svg}</div>\n```'


def linked(text, place, docs):
    "Markdown whose relative links lead to pages; a link to a file that only the clone has becomes its text."

    def link(found):
        target, mark, anchor = found[3].partition("#")
        if re.match(r"\w+:", target) or not target:
            return found[0]
        full = posixpath.normpath(posixpath.join("/", posixpath.dirname(place), target))[1:]
        if found[1] and (NBS / full).resolve().exists():
            return found[0]
        full = full.removesuffix(".ipynb").removesuffix(".md")
        if paper := re.match(r"reproduce/([\w-]+)", full):
            full = full if full in docs else f"docs/results/{paper[1]}"
        to = next((f"/{d}" for d in (full, f"{full}/index") if d in docs), "")
        return f"[{found[2]}]({to}.{'md' if to.startswith('/docs/') else 'ipynb'}{mark}{anchor})" if to else found[2]

    return re.sub(r"(!?)\[((?:`[^`]*`|[^\[\]`])*)\]\(([^()\s]+)\)", link, text)


def titled(source, place):
    "First cell of a notebook; its title says of which paper or package it is."
    line, mark, rest = source.partition("\n")
    title = line.removeprefix("# ").replace("_", " ")
    above = next((above for start, above in TITLES.items() if place.startswith(start)), "")
    if place.endswith("/index.ipynb") and place[0].isdigit():
        title = f"{above}: notebooks" if above in PAPERS.values() else f"Package {title}"
    elif above and above not in title:
        title = f"{above}: {title}"
    return f"# {title}{mark}{rest}"


def notebook(text, place, docs):
    "Notebook without nbdev's directives; of an assignment what students get; a title names its paper."
    book = json.loads(text)
    if any(map(marks, book["cells"])):
        book = stripped(book)
    cells, first = [], True
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            hidden = re.search(r"^#\|\s*(default_exp|hide)", source, re.M)
            cell["source"] = re.sub(r"^#\|.*\n?", "", source, flags=re.M).strip("\n")
            if hidden or not cell["source"]:
                continue
            cell["outputs"] = [o for o in cell["outputs"] if o["output_type"] != "error"]
            for output in cell["outputs"]:
                output.get("data", {}).pop("text/html", None)
        else:
            source = re.sub(r"```mermaid\n(.*?)```", drawn, linked(source, place, docs), flags=re.S)
            source = titled(source, place) if first else re.sub(r"\A# ", "## ", source)
            cell["source"] = source
            first = False
        cells.append(cell)
    return json.dumps(book | dict(cells=cells))


def results(paper):
    "A paper's page, then its tables and figures; of a simulated model only what the paper has, too."
    page = (FIGURES / paper / "README.md").read_text(encoding="utf-8").partition("\n")[2].partition("\n## Read on")[0]
    yield re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", page)
    shown = {
        p.stem
        for p in (FIGURES / paper).glob("*")
        if p.suffix in (".md", ".png") and p.stem not in ("README", "artefacts", "deviations")
    }
    parts = sorted(
        (p for p in shown if not (is_added(paper, p) and evidence_of(paper, p) == "model")),
        key=lambda stem: [int(w) if w.isdigit() else w for w in re.split(r"(\d+)", stem)],
    )
    for stem in parts:
        path = f"../../../figures/offline/{paper}/{stem}"
        if (FIGURES / paper / f"{stem}.md").exists():
            yield f"```{{include}} {path}.md\n:heading-offset: 1\n```"
        else:
            title = re.sub(r"([a-z])(\d)", r"\1 \2", stem).replace("_", ", ").capitalize()
            yield f"## {title}"
        if (FIGURES / paper / f"{stem}.png").exists():
            yield f"![{paper}, {stem}]({path}.png)"


def command_help(name):
    "Help of a command and of its subcommands, as a terminal prints it."

    def sections(command, words, above):
        context = click.Context(command, info_name=words[-1], parent=above, max_content_width=110, terminal_width=110)
        if above:
            yield f"{'#' * len(words)} `{' '.join(words)}`\n\n```text\n{command.get_help(context)}\n```"
        for word in command.list_commands(context) if isinstance(command, click.Group) else ():
            if not (below := command.get_command(context, word)).hidden:
                yield from sections(below, [*words, word], context)

    return "\n\n".join(sections(named(name), ["treekit"], None))


def named(name):
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def show_doc(name):
    "Signature and documentation of a name, as nbdev shows it in a notebook."
    from nbdev.showdoc import BasicMarkdownRenderer

    text = BasicMarkdownRenderer(named(name))._repr_markdown_()
    text = re.sub(r"^>>> (?:.+\n?)+", lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", text, flags=re.M)
    return f"({name.lower()})=\n##" + re.sub(r"\A.*?###", "", text, flags=re.S)


GENERATORS = dict(results=results, command_help=command_help, show_doc=show_doc)


def read(app, docname, content):
    "Sources as pages: see above."
    docs = app.env.found_docs
    if (NBS / f"{docname}.ipynb").exists():
        content[0] = notebook(content[0], f"{docname}.ipynb", docs)
        return

    def made(found):
        done = GENERATORS[found[1]](found[2])
        return done if isinstance(done, str) else "\n\n".join(done)

    text = re.sub(r"^\{(\w+)\} (\S+)$", made, linked(content[0], f"{docname}.md", docs), flags=re.M)
    content[0] = re.sub(r"```mermaid\n(.*?)```", drawn, text, flags=re.S)


def mathml(tag, display):
    "Writer of an equation as MathML, which needs no script from the network."

    def visit(writer, node):
        from docutils.nodes import SkipNode

        writer.body.append(f'<{tag} class="math {display}">{convert(node.astext(), display=display)}</{tag}>\n')
        raise SkipNode

    return visit, None


def setup(app):
    app.connect("source-read", read)
    app.add_html_math_renderer("mathml", mathml("span", "inline"), mathml("div", "block"))
    return dict(parallel_read_safe=True, parallel_write_safe=True)
