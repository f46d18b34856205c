"""The documentation in Debian's Chromium and Firefox, from a disk: a stranger's questions answered by clicking, the search, narrow and
wide, light and dark, axe's findings. `DOCS=DIR` takes a built one; `SHOTS=DIR` keeps the pictures."""

import csv, os, re
from pathlib import Path

import pytest

from browsers import BROWSERS, Unavailable

pytest.importorskip("myst_nb", reason="treekit-rag[docs] isn't installed")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
SHOWN = (
    "index.html",
    "tutorials/first_table.html",
    "howto/own_server.html",
    "reference/settings.html",
    "reference/commands/reproduce.html",
    "explanation/arise.html",
    "results/index.html",
    "results/treerare/table1.html",
    "results/treerare/claims.html",
    "results/treerare/inconsistencies.html",
    "results/arise/figure3.html",
    "results/arise/requirements.html",
    "notebooks/17_papers/3_arise/00_states.html",
    "api/index.html",
    "api/treekit.core.types.html",
)


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    if built := os.environ.get("DOCS"): return Path(built)
    from treekit.cli.main import main
    from treekit.docs.build import build
    build(folder := tmp_path_factory.mktemp("built") / "docs", main, ROOT / "figures")
    return folder


@pytest.fixture(scope="module", params=BROWSERS)
def browser(request):
    try: opened = BROWSERS[request.param]()
    except Unavailable as e: pytest.skip(str(e))
    yield opened
    opened.close()


def rows(name):
    with open(ROOT / "figures/offline" / name, encoding="utf-8", newline="") as f: return list(csv.DictReader(f))


class Stranger:
    "Somebody who begins at the landing page, reads, and clicks what can be seen; the clicks are counted."

    def __init__(self, page, docs):
        self.page, self.clicks = page, 0
        page.open((docs / "index.html").as_uri())

    def click(self, selector):
        "Click the first element of a selector that can be seen."
        find = f"""[...document.querySelectorAll({selector!r})].findIndex(e => e.getClientRects().length && e.checkVisibility())"""
        assert self.page.until(f"{find} >= 0", 20), f"no {selector} can be seen"
        self.page.click(selector, self.page.eval(find))
        self.clicks += 1

    def follow(self, to, words=""):
        "Click a link that leads to a page, and wait for the page."
        find = f"""[...document.querySelectorAll('a')].findIndex(a => a.pathname.endsWith({to!r}) && a.textContent.includes({words!r})
            && a.getClientRects().length && a.checkVisibility())"""
        assert self.page.until(f"{find} >= 0", 20), f"no link to {to} can be seen"
        self.page.click("a", self.page.eval(find))
        self.clicks += 1
        arrived = f"location.pathname.endsWith({to!r}) && document.readyState === 'complete'"
        assert self.page.until(arrived, 20), f"the link doesn't lead to {to}"

    def text(self, selector="main"):
        return re.sub(r"\s+", " ", self.page.eval(f"document.querySelector({selector!r}).innerText"))


def best_on_musique(s):
    s.follow("/results/index.html")
    s.follow("/results/across/table1.html")
    own = [r for r in rows("across/table1.csv") if r["dataset"] == "MuSiQue" and r["value"]]
    best = max(own, key=lambda r: float(r["value"]))
    assert best["method"] in s.text() and f"{float(best['value']):.2f} [" in s.text()


def cost_of_a_question(s):
    s.follow("/results/index.html")
    s.follow("/results/across/table2.html")
    own = next(r for r in rows("across/table2.csv") if r["method"] == "TreeRare (DT)" and r["datasets"] == "all")
    shown = own["cents"], f"{float(own['calls']):.1f}", f"{float(own['tokens_per_correct']):,.0f} ["
    assert all(number in s.text() for number in shown)


def make_a_table_again(s):
    s.follow("/results/index.html")
    s.follow("/results/arise/table1.html")
    assert "treekit reproduce arise/table1" in s.text()


def contradictions_of_arise(s):
    s.follow("/results/index.html")
    s.follow("/results/arise/inconsistencies.html")
    s.click("details summary")
    assert "65.98" in s.text() and "enter(" in s.text("details[open]")


def claims_of_arise(s):
    s.follow("/results/index.html")
    s.follow("/results/arise/claims.html")
    assert all(c["id"] in s.text() for c in rows("arise/claims.csv"))


def what_verdicts_take(s):
    s.follow("/results/index.html")
    s.follow("/results/rdr2/requirements.html")
    assert "treekit doctor rdr2 --profile paper" in s.text()


def what_a_word_means(s):
    s.follow("/explanation/index.html")
    s.follow("/explanation/verdicts_and_claims.html")
    assert "not comparable" in s.text()


def uct_in_code(s):
    s.follow("/notebooks/index.html")
    s.follow("/3_arise/01_mcts.html")
    assert "def uct" in s.text() and s.page.eval("document.querySelectorAll('math').length") > 5


def a_setting(s):
    s.follow("/reference/settings.html")
    assert "api_key_env" in s.text()


def the_first_table(s):
    s.follow("/tutorials/first_table.html")
    assert "treekit reproduce" in s.text()


QUESTIONS = (best_on_musique, cost_of_a_question, make_a_table_again, contradictions_of_arise, claims_of_arise, what_verdicts_take,
             what_a_word_means, uct_in_code, a_setting, the_first_table)


def quiet(page):
    "No error, and nothing was asked for elsewhere."
    assert page.trouble == [] and [a for a in page.asked if not a.startswith(("file:", "data:", "about:"))] == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.__name__)
def test_a_strangers_question_takes_two_clicks(browser, docs, question):
    page = browser.page(1280, 900)
    stranger = Stranger(page, docs)
    question(stranger)
    assert stranger.clicks <= 2 + (question is contradictions_of_arise)
    quiet(page)
    page.close()


@pytest.mark.parametrize("words, found", [("UCT", "arise"), ("routing", "rdr2"), ("budget", "howto/budget")])
def test_the_search_finds(browser, docs, words, found):
    page = browser.page(1280, 900)
    page.open(f"{(docs / 'search.html').as_uri()}?q={words}")
    links = "[...document.querySelectorAll('#search-results a')].map(a => a.getAttribute('href'))"
    assert page.until(f"{links}.length > 2", 30)
    assert page.until(f"{links}.slice(0, 10).some(h => h.includes({found!r}))", 30), page.eval(links)[:10]
    quiet(page)
    page.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_pages_fit_and_ask_for_nothing_elsewhere(browser, docs, width):
    for name in SHOWN:
        page = browser.page(width, 900)
        page.open((docs / name).as_uri())
        assert page.until("document.readyState === 'complete'")
        assert page.eval("document.documentElement.scrollWidth") <= width, f"{name} is wider than {width} pixels"
        quiet(page)
        if folder := os.environ.get("SHOTS"): page.screenshot(Path(folder) / f"{browser.name}-{width}-{name.replace('/', '_')}.png")
        page.close()


def chromium():
    try: return BROWSERS["chromium"]()
    except Unavailable as e: pytest.skip(str(e))


def test_axe_finds_nothing_serious(docs):
    folders = [Path(p) for p in (os.environ.get("AXE_CORE", ""), "node_modules/axe-core", "/usr/lib/node_modules/axe-core") if p]
    checker = next((f / "axe.min.js" for f in folders if (f / "axe.min.js").exists()), None)
    if checker is None: pytest.skip("no axe-core: npm install axe-core, or AXE_CORE=its folder")
    browser, found = chromium(), []
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 400)):
        for name in SHOWN:
            page = browser.page(width, 900, color_scheme=scheme)
            page.open((docs / name).as_uri())
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


def test_it_can_be_read_without_a_script(docs):
    browser = chromium()
    context = browser.browser.new_context(java_script_enabled=False, viewport=dict(width=1280, height=900))
    page = context.new_page()
    page.goto((docs / "results/treerare/table1.html").as_uri())
    row = page.locator("tr", has_text="TreeRare (DT)").first
    assert row.is_visible() and page.locator("main img").first.is_visible()
    context.close()
    browser.close()
