"The same sixty checks as a file, through a server, in JupyterLab and in a converted notebook: in Chromium, and as a file in Firefox, too."

import os
from pathlib import Path

import pytest
from browsers import BROWSERS, Unavailable
from explorer_checks import CHECKS, failed_checks
from explorer_store import save_page, small_runs

from treekit.store.run_store import Store
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.server import ServedExplorer

READY = "document.querySelector('.tkx') && document.querySelector('.tkx').explorer.flips && document.querySelector('.tkx-right h2')"


@pytest.fixture(scope="module")
def browsers():
    "Each started once, when it is first wanted."
    started = {}

    def get(name):
        if name not in started:
            try:
                started[name] = BROWSERS[name]()
            except Unavailable as e:
                started[name] = e
        if isinstance(started[name], Unavailable):
            pytest.skip(str(started[name]))
        return started[name]

    yield get
    for one in started.values():
        if not isinstance(one, Unavailable):
            one.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    with Store(folder / "small.sqlite") as store:
        first, second = small_runs(store)
    return folder, first, second


def as_file(runs):
    "The saved page."
    folder, first, second = runs
    with Store(folder / "small.sqlite") as store:
        return save_page(store, [first, second], folder / "small.html").as_uri()


@pytest.fixture(scope="module")
def lab(runs):
    "JupyterLab on this machine, with a notebook that shows the widget."
    pytest.importorskip("anywidget", reason='no anywidget: pip install "treekit-rag[explorer]"')
    nbformat = pytest.importorskip("nbformat")
    folder, first, second = runs
    source = (
        f"from treekit.store.run_store import Store\nfrom treekit.explorer.widget import live_widget\n"
        f"live_widget(Store({str(folder / 'small.sqlite')!r}), [{first!r}, {second!r}])"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebook.metadata["kernelspec"] = dict(name="python3", display_name="python3", language="python")
    nbformat.write(notebook, folder / "shown.ipynb")
    from labs import lab

    with lab(folder) as address:
        yield address("shown.ipynb")


def shown_in_lab(page, url):
    "Open the notebook, run its cell, and give it room."
    from labs import opened

    opened(page, url)
    page.eval("(jupyterapp.commands.execute('notebook:run-all-cells'), 1)")


@pytest.mark.slow
@pytest.mark.parametrize("name, way", [("firefox", "file"), ("chromium", "lab")])
def test_sixty_checks(browsers, runs, request, name, way):
    assert len(CHECKS) == 60
    page = browsers(name).page(1500, 1000)
    if way == "lab":
        shown_in_lab(page, request.getfixturevalue("lab"))
    else:
        page.open(as_file(runs))
    assert page.until(READY, 180), (page.trouble, page.asked[-3:])
    page.eval("document.querySelector('.tkx').explorer.ready.then(() => 1)")
    bad = failed_checks(page)
    if bad and (shots := os.environ.get("TREEKIT_SHOTS")):
        page.screenshot(Path(shots) / f"{name}-{way}.png")
    assert not bad, "\n".join(bad)
    assert [t for t in page.trouble if "explorer" in t.lower() or way == "file"] == []
    page.close()


def test_one_browser_through_a_file(browsers, runs):
    "The quick share of it; a saved page asks the network for nothing."
    page = browsers("chromium").page(1500, 1000)
    page.open(as_file(runs))
    assert page.until(READY)
    assert failed_checks(page) == [] and page.trouble == [] and page.asked == [(runs[0] / "small.html").as_uri()]
    page.close()


def test_one_browser_through_a_server(browsers, runs):
    "The runs are opened in the page; it asks this machine alone, and the token doesn't stay in the address."
    folder, first, second = runs
    page = browsers("chromium").page(1500, 1000)
    with Store(folder / "small.sqlite") as store, ServedExplorer(ExplorerAPI(store, (second, first))) as served:
        page.open(served.address)
        assert page.until("window.explorer")
        page.eval("explorer.ready.then(() => 1)")
        page.eval(f"explorer.openRun('{first}').then(() => explorer.compareWith('{second}')).then(() => 1)")
        assert page.until(READY)
        assert failed_checks(page) == [] and page.trouble == []
        assert all(u.startswith(f"http://127.0.0.1:{served.port}/") for u in page.asked)
        assert "token" not in page.eval("location.href")
    page.close()
