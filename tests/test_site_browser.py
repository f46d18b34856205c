"""The site in Debian's Chromium and Firefox, from a disk: ten questions of a stranger answered by clicking, narrow and wide,
light and dark, on paper, axe's findings. `SITE_SHOTS=DIR` keeps the pictures."""

import csv, os, re
from pathlib import Path

import pytest

from browsers import BROWSERS, Unavailable

pytest.importorskip("mdit_py_plugins", reason="treekit[site] isn't installed")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
SHOWN = (
    "index.html",
    "results/index.html",
    "results/offline/index.html",
    "results/offline/treerare/table1.html",
    "results/offline/arise/figure3.html",
    "claims.html",
    "ledger.html",
    "costs.html",
    "reading.html",
    "papers/index.html",
    "notebooks/17_papers/3_arise/00_states.html",
    "api/index.html",
    "api/treekit.core.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if built := os.environ.get("SITE"): return Path(built)
    from treekit.site.build import build_site
    return build_site(tmp_path_factory.mktemp("built") / "site", ROOT / "figures").folder


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request):
    try: opened = BROWSERS[request.param]()
    except Unavailable as e: pytest.skip(str(e))
    yield opened
    opened.close()


def rows(name):
    with open(ROOT / "figures/offline" / name, encoding="utf-8", newline="") as f: return list(csv.DictReader(f))


class Stranger:
    "Somebody who begins at the start page, reads, and clicks what can be seen; the clicks are counted."

    def __init__(self, page, site):
        self.page, self.clicks = page, 0
        page.open((site / "index.html").as_uri())

    def click(self, words, selector="a, button, summary"):
        "Click the first thing that says just that, or begins so."
        find = f"""(() => {{ const all = [...document.querySelectorAll({selector!r})],
                seen = e => e.getClientRects().length && e.checkVisibility();
            const said = e => e.textContent.replace(/\\s+/g, ' ').trim();
            const at = [e => said(e) === {words!r}, e => said(e).startsWith({words!r})]
                .map(fits => all.findIndex(e => seen(e) && fits(e))).find(n => n >= 0);
            return at === undefined ? -1 : at }})()"""
        assert self.page.until(f"{find} >= 0", 20), f"nothing says {words!r}"
        number, before = self.page.eval(find), self.page.eval("location.href")
        self.page.click(selector, number)
        self.clicks += 1
        return before

    def follow(self, words, to, selector="a"):
        "Click a link, and wait for the page."
        self.click(words, selector)
        assert self.page.until(
            f"location.pathname.endsWith({to!r}) && document.readyState === 'complete'", 20
        ), f"{words!r} doesn't lead to {to}"

    def cell(self, row, column):
        "Open a number: the row's method and the column's place from 0."
        find = f"""[...document.querySelectorAll('table.compared tbody tr')]
            .filter(r => r.querySelector('th[scope=row]')?.textContent === {row!r})[0]
            .querySelectorAll('td')[{column}].querySelector('button')"""
        spot = self.page.eval(
            f"(() => {{ const b = {find}; b.scrollIntoView({{block: 'center', inline: 'center'}}); const r = b.getBoundingClientRect();"
            " return [r.left + r.width / 2, r.top + r.height / 2] })()"
        )
        self.page.click_at(*spot)
        self.clicks += 1
        assert self.page.until("document.querySelector('.panel dl')", 20), "no panel opens"
        return self.text(".panel")

    def text(self, selector="main"):
        return re.sub(r"\s+", " ", self.page.eval(f"document.querySelector({selector!r}).innerText"))


def best_on_musique(s):
    s.follow("Who is best?", "results/index.html")
    own = [r for r in rows("across/table1.csv") if r["dataset"] == "MuSiQue" and r["value"]]
    best, second = sorted(own, key=lambda r: -float(r["value"]))[:2]
    line = next(t for t in s.page.eval("[...document.querySelectorAll('.leaders tr')].map(r => r.innerText)") if t.startswith("MuSiQue"))
    assert best["method"] in line and best["value"] in line and second["difference"].lstrip("-") in line and "not sure" in line


def cost_of_a_question(s):
    s.follow("What does an answer cost?", "costs.html")
    own = next(r for r in rows("across/table2.csv") if r["method"] == "TreeRare (DT)" and r["datasets"] == "all")
    assert own["cents"] in s.text() and own["calls"] in s.text() and own["tokens_per_correct"] in s.text()


def make_a_cell_again(s):
    s.follow("Results", "results/index.html")
    s.follow("Table 1", "across/table1.html", 'a[href="offline/across/table1.html"]')
    assert "treekit reproduce across/table1" in s.cell("ARISE", 1)


def contradictions(s):
    s.follow("Where do the papers contradict", "ledger.html")
    s.click("ARISE", ".jumps a")
    s.click("The computation", "#arise summary")
    assert "65.98" in s.text("#arise") and "enter(" in s.text("#arise details[open]")


def claims_of_arise(s):
    s.click("", 'a[href="claims.html#arise"]')
    assert s.page.until("location.pathname.endsWith('claims.html') && document.readyState === 'complete'")
    told = rows("arise/claims.csv")
    assert all(s.page.eval(f"document.getElementById({c['id']!r})?.dataset.verdict") == c["outcome"] for c in told)


def away_from_print(s):
    s.follow("Results", "results/index.html")
    s.follow("Table 1", "treerare/table1.html", 'a[href="offline/treerare/table1.html"]')
    panel = s.cell("TreeRare (DT)", 0)
    own = next(
        r for r in rows("treerare/table1.csv") if r["reproduced"] and r["method"] == "TreeRare (DT)" and r["dataset"] == "HotpotQA"
    )
    assert (
        f"{float(own['reproduced']) - float(own['published']):+.3f}".replace("-", "−") in panel
        and "not comparable" in panel
        and "questions=generated world" in panel
    )


def how_many_questions(s):
    s.follow("Results", "results/index.html")
    s.follow("Table 2", "toq/table2.html", 'a[href="offline/toq/table2.html"]')
    panel, own = s.cell("ToQ (ours)", 0), next(
        r for r in rows("toq/table2.csv") if r["reproduced"] and r["method"].startswith("ToQ (ours)")
    )
    assert f"n = {own['n']}" in panel and f"{own['low']} to {own['high']}" in panel and "0 failed" in panel


def what_a_word_means(s):
    s.follow("How to read", "reading.html")
    assert "Something differs from the paper’s experiment" in s.text()


def uct_in_code(s):
    s.follow("Papers", "papers/index.html")
    s.follow("mcts", "01_mcts.html")
    assert "def uct" in s.text() and s.page.eval("document.querySelectorAll('math').length") > 5


def failures_and_gaps(s):
    s.follow("Every table and figure", "results/offline/index.html")
    assert re.search(r"\d+ of \d+ artefacts are here\. 0 failed questions", s.text())


def a_function_found(s):
    s.page.eval("document.getElementById('find').focus()")
    s.page.type("light_nodes")
    assert s.page.until("[...document.querySelectorAll('#found a')].some(a => a.textContent.startsWith('light_nodes'))", 20)
    s.follow("light_nodes", "api/treekit.papers.rdr2.html", "#found a")
    assert "light_nodes" in s.text()


QUESTIONS = (
    best_on_musique,
    cost_of_a_question,
    make_a_cell_again,
    contradictions,
    claims_of_arise,
    away_from_print,
    how_many_questions,
    what_a_word_means,
    uct_in_code,
    failures_and_gaps,
    a_function_found,
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.__name__)
def test_a_strangers_question(browser, site, question, record_property):
    page = browser.page(1280, 900)
    stranger = Stranger(page, site)
    question(stranger)
    record_property("clicks", stranger.clicks)
    print(f"\n{browser.name}: {question.__name__}: {stranger.clicks} clicks")
    assert stranger.clicks <= 3
    assert page.trouble == [] and [a for a in page.asked if not a.startswith(("file:", "data:", "about:"))] == []
    page.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_and_ask_for_nothing_elsewhere(browser, site, width):
    for name in SHOWN:
        page = browser.page(width, 900)
        page.open((site / name).as_uri())
        assert page.until("document.readyState === 'complete'")
        assert page.eval("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width} pixels"
        assert page.trouble == [] and [a for a in page.asked if not a.startswith(("file:", "data:", "about:"))] == []
        if folder := os.environ.get("SITE_SHOTS"): page.screenshot(Path(folder) / f"{browser.name}-{width}-{name.replace('/', '_')}.png")
        page.close()


def test_a_first_table_is_there_within_a_second(browser, site):
    page = browser.page(1280, 900)
    page.open((site / "results/offline/treerare/table1.html").as_uri())
    assert page.until("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
    took = page.eval("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"\n{browser.name}: the first table after {took:.0f} ms")
    assert took < 1000
    page.close()


def chromium():
    try: return BROWSERS["chromium"]()
    except Unavailable as e: pytest.skip(str(e))


def test_axe_finds_nothing_serious(site):
    folders = [Path(p) for p in (os.environ.get("AXE_CORE", ""), "node_modules/axe-core", "/usr/lib/node_modules/axe-core") if p]
    checker = next((f / "axe.min.js" for f in folders if (f / "axe.min.js").exists()), None)
    if checker is None:
        pytest.skip("no axe-core: npm install axe-core, or AXE_CORE=its folder")
    browser, found = chromium(), []
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 400)):
        for name in SHOWN:
            page = browser.page(width, 900, color_scheme=scheme)
            page.open((site / name).as_uri())
            if name.endswith("treerare/table1.html"):
                page.click("button.cell", 3)
                assert page.until("document.querySelector('.panel dl')")
            page.page.add_script_tag(path=str(checker))
            result = page.eval("axe.run(document, {resultTypes: ['violations']})")
            found += [
                f"{scheme} {width} {name}: {v['id']} ({v['impact']}): {v['nodes'][0]['html'][:120]}"
                for v in result["violations"]
                if v["impact"] in ("serious", "critical")
            ]
            page.close()
    browser.close()
    assert found == []


def test_on_paper_all_cells_stand(site, tmp_path):
    "Printed from a dark screen: light, every number, no buttons."
    browser = chromium()
    page = browser.page(1280, 900, color_scheme="dark")
    page.open((site / "results/offline/treerare/table1.html").as_uri())
    page.page.pdf(path=str(Path(os.environ.get("SITE_SHOTS", tmp_path)) / "table1.pdf"), format="A4", landscape=True)
    page.page.emulate_media(media="print")
    assert page.eval("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.eval("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert page.eval("[...document.querySelectorAll('.compared')][0].getBoundingClientRect().width") <= 1280
    page.close()
    browser.close()


def test_it_can_be_read_without_a_script(site):
    browser = chromium()
    context = browser.browser.new_context(java_script_enabled=False, viewport=dict(width=1280, height=900))
    page = context.new_page()
    page.goto((site / "results/offline/treerare/table1.html").as_uri())
    own = [r for r in rows("treerare/table1.csv") if r["reproduced"]]
    assert page.locator("button.cell").count() == len(own) and page.locator("button.cell").first.is_visible()
    assert not page.locator("[data-copy]").first.is_visible()
    context.close()
    browser.close()
