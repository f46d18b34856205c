"Configuration of Sphinx. `make docs` copies this folder, the notebooks and the generated pages into one folder, and builds that."
from pathlib import Path

from treekit import __version__

project, author, copyright = "treekit", "The treekit authors", "The treekit authors, Apache-2.0"
version = release = __version__
language = "en"

extensions = ["myst_nb", "sphinx_design", "treekit.docs.math_renderer"]
nb_execution_mode = "off"  # committed outputs
nb_render_markdown_format = "gfm"
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_dmath_allow_digits = False
myst_heading_anchors = 4
myst_update_mathjax = False
smartquotes = False
suppress_warnings = ["myst.header", "misc.highlighting_failure", "mystnb.mime_priority"]
exclude_patterns = ["_static", "_extra"]
html_extra_path = [path for path in ("_extra",) if Path(__file__).with_name(path).exists()]  # trees of saved runs
highlight_language = "python"
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = "treekit"
html_static_path = ["_static"]
html_css_files = ["treekit.css"]
html_js_files = ["accessible.js"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a summary is fetched, which a page from a disk must not do
html_theme_options = dict(
    logo=dict(text="treekit"),
    header_links_before_dropdown=7,
    navbar_align="left",
    navigation_with_keys=False,
    show_prev_next=False,
    show_toc_level=2,
    use_edit_page_button=False,
    back_to_top_button=False,
    secondary_sidebar_items=dict({"**": ["page-toc"]}, index=[], search=[]),
    footer_start=["copyright"],
    footer_end=[],
)
# hundreds of pages: they are listed in their index, not beside each page
html_sidebars = {"index": [], "api/**": [], "notebooks/**": [], "results/**": []}
