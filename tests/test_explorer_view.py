"The explorer's page: state in the address, tables, text diff, full-text search, annotations, what a phone shows."

import csv, io, json

import pytest
from explorer_store import kept, save_page, small_runs
from test_explorer_browser import axe_file, browser, complaints, opened, press_named, until  # noqa: F401 (browser is a fixture)

from treekit.core.method import Trace
from treekit.core.prompts import Completion
from treekit.experiments.run_records import (
    saved_runs,
    notes_of,
)
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.server import ServedExplorer
from treekit.store.run_store import Store

WHO = dict(method="", dataset="", question="", node="")


def called(store, trace, node, prompt, reply, latency=0.5):
    "A node's call in the store."
    key = f"{prompt}|{reply}"
    request = json.dumps(dict(messages=[dict(role="user", content=prompt)], parameters={}))
    store.put_calls({key: Completion(reply, latency=latency)}, request, "m", "e", WHO, [0.0])
    node.calls.append(key)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    "Two runs with prompts and replies that differ on the third of four questions, served and as a file."
    store = Store()

    def trace(answer):
        made = Trace()
        hits = [dict(id="p", title="The Film", score=1.0)]
        top = made.add("question", "who filmed it", evidence=f"It was {answer} who filmed it.", hits=hits)
        called(store, made, top, f"Read the passage about {answer}.\nWho filmed it?", f"The answer is {answer}.")
        top.depth = 1
        leaf = made.add("answer", answer, parent=top)
        called(store, made, leaf, "Write the answer.", answer, 1.5)
        leaf.depth = 2
        return made

    first = kept(store, "one", [trace("Ada") for _ in range(4)])
    second = kept(store, "other", [trace(a) for a in ("Ada", "Ada", "Eve", "Ada")], ["Ada", "Ada", "Eve", "Ada"])
    file = save_page(store, [first, second], tmp_path_factory.mktemp("two") / "two.html")
    return store, first, second, file


@pytest.fixture(params=["served", "file"])
def page(request, browser, two):  # noqa: F811
    store, first, second, file = two
    if request.param == "file":
        page = opened(browser, file.as_uri())
        yield page
    else:
        with ServedExplorer(ExplorerAPI(store, (first, second), forks=True), 0, first, second) as served:
            page = opened(browser, served.address)
            yield page
            assert "token" not in page.url
    assert page.trouble == []
    page.close()


def state(page):
    return page.evaluate("(x => [x.run.name, x.at, x.other && x.other.name, x.tree.t.id[x.tree.selected]])(explorer)")


def settled(page, wanted):
    for _ in range(200):
        if state(page) == wanted:
            return
        page.wait_for_timeout(50)
    assert state(page) == wanted


def test_a_comparison_opens_at_its_first_flip_with_a_text_diff(page, two):
    "Third question; its evidence, prompt and reply differ in one word, the passage doesn't; the other run has its name."
    until(page, "explorer.other && explorer.aligned && document.querySelector('.tkx-against h4')")
    assert page.evaluate("explorer.at") == 2 and "other run, other" in page.locator(".tkx-second > p").inner_text()
    assert page.locator(".tkx-against h3").inner_text().startswith("Against other")
    parts = dict(zip(page.locator(".tkx-against h4").all_inner_texts(), page.locator(".tkx-diff").all()))
    assert {"evidence", "prompt", "reply"} <= parts.keys() and not any(name.startswith("passage") for name in parts)
    assert [parts["prompt"].locator(sign).all_inner_texts() for sign in ("del", "ins")] == [["Ada"], ["Eve"]]
    effect = page.locator(".tkx-left").inner_text()
    assert "gains 0, loses 1 of 4" in effect and "−0.25 (95 % −0.75 to +0.00)" in effect


def test_state_is_in_the_address_and_survives_reload_and_back(page, two):
    "Run, question, node, compared run, widths. A reload shows the same; Back shows the question before."
    _, first, second, _ = two
    until(page, "explorer.started && explorer.other && explorer.aligned && explorer.at === 2")
    page.evaluate("explorer.openRow(1).then(() => (explorer.tree.pick(1), explorer.setWidth('left', 333), 1))")
    settled(page, [first, 1, second, 1])
    until(page, "location.hash.includes('node=1') && location.hash.includes('panes=333')")
    page.reload()
    until(page, "window.explorer")
    page.evaluate("explorer.ready.then(() => 1)")
    settled(page, [first, 1, second, 1])
    assert page.evaluate("explorer.left.offsetWidth") == 333
    page.evaluate("explorer.openRow(3).then(() => 1)")
    until(page, "location.hash.includes('row=3')")
    page.go_back()
    settled(page, [first, 1, second, 1])
    page.evaluate("(explorer.splitters[0].dispatchEvent(new Event('dblclick')), 1)")
    until(page, "!location.hash.includes('panes')")


def test_full_text_search_finds_prompts_and_opens_their_node(page):
    page.get_by_label("Search all texts of the run").fill("passage ada")
    page.get_by_label("Search all texts of the run").press("Enter")
    until(page, "document.querySelectorAll('.tkx-finds li').length === 4")
    assert (
        page.locator(".tkx-finds .tkx-badge").all_inner_texts() == ["prompt"] * 4
        and page.locator(".tkx-finds mark").count() >= 4
    )
    page.locator(".tkx-find").nth(3).click()
    until(page, "explorer.at === 3 && explorer.el.dataset.pane === 'node' && explorer.tree.selected === 0")


def test_annotations_are_saved_with_the_run_and_exported(browser, tmp_path, monkeypatch):  # noqa: F811
    "In the store, in the list's filter, in a CSV that no spreadsheet executes, and by the command."
    from click.testing import CliRunner
    from treekit.cli.explore import explore_command

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    (tmp_path / "store").mkdir()
    with Store(tmp_path / "store" / "offline.sqlite") as store:
        first, _ = small_runs(store)
        with ServedExplorer(ExplorerAPI(store, forks=True), 0, first) as served:
            page = opened(browser, served.address)
            press_named(page, "✗ wrong")
            until(page, "explorer.row.note && explorer.row.note.verdict === 'wrong'")
            page.get_by_label("note on this answer").fill("=1+1")
            page.get_by_label("note on this answer").press("Enter")
            until(page, "explorer.row.note.text === '=1+1'")
            page.get_by_label("Verdict").select_option("annotated")
            assert page.evaluate("explorer.shown") == [0]
            with page.expect_download() as got:
                press_named(page, "Export notes")
            assert '"\'=1+1"' in open(got.value.path(), encoding="utf-8").read() and page.trouble == []
            page.close()
        assert [(i, n["verdict"], n["text"]) for i, n in notes_of(store, first).items()] == [(0, "wrong", "=1+1")]
        assert len(saved_runs(store)) == 2
        file = save_page(store, [first], tmp_path / "noted.html")
    page = opened(browser, file.as_uri())
    assert "note wrong =1+1" in page.locator(".tkx-head").inner_text()
    page.close()
    done = CliRunner().invoke(explore_command, [first, "--notes", str(tmp_path / "notes.csv")])
    [line] = csv.DictReader(io.StringIO((tmp_path / "notes.csv").read_text(encoding="utf-8")))
    assert done.exit_code == 0 and (line["verdict"], line["note"], line["answer"]) == ("wrong", "'=1+1", "Ada")
