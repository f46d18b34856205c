"Errands with the explorer, from a cold start of the command, timed and with their clicks counted: done as a reader would."

import json, os, shutil, subprocess, sys, time
from pathlib import Path

import pytest
from browsers import BROWSERS, Chromium, Unavailable
from explorer_checks import Hands, js

from treekit.config import load_profile
from treekit.core.method import configure
from treekit.store.run_store import Store
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.explorer.first_wrong import first_wrong_nodes
from treekit.explorer.runs import open_run
from treekit.papers.registry import method

COMMAND = [sys.executable, "-c", "import sys; from treekit.cli.main import main; main(sys.argv[1:])"]
pytestmark = pytest.mark.slow


def ask(home, *words):
    subprocess.run(
        [*COMMAND, "ask", *words], env=os.environ | dict(TREEKIT_HOME=str(home)), check=True, capture_output=True
    )


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    "A folder in which one question was asked, and answered wrongly for want of a passage; without query generation it's right."
    profile = load_profile("offline", data="synthetic:100", retriever="bm25s")
    methods = dict(whole=method("treerare"), without=configure(method("treerare"), query_generation=False))
    with Store() as store:
        made = run(
            methods, dict(hotpotqa=load("hotpotqa", "synthetic:100", n=40)), profile, store=store, progress=False
        )
        opened = open_run(store, made.kept)
        first_wrong_nodes(opened, range(40))
        lines = opened.listing()
    row = next(a for a, b in zip(lines, lines[40:]) if a["wrong"]["kind"] == "retrieval" and a["value"] < b["value"])
    folder = tmp_path_factory.mktemp("asked")
    ask(folder, row["question"], "--data", "synthetic:100", "--set", "retriever=bm25s")
    return folder, row


class Reader(Hands):
    "Counts what it presses; a native list takes two presses."

    presses = 0

    def click(self, *where):
        self.presses += 1
        super().click(*where)

    def named(self, words):
        self.presses += 1
        super().named(words)

    def choose(self, label, value):
        self.presses += 2
        super().choose(label, value)

    def must(self, condition):
        assert self.see(condition, 60), f"never: {condition}; {self.page.trouble}; {self.said()}"

    def said(self):
        return self.page.eval(js("[X.status.innerText, text('.tkx-controls').slice(0, 400)]"))


class Served:
    "`treekit explore`, started now."

    def __init__(self, home, *words):
        self.env = os.environ | dict(TREEKIT_HOME=str(home))
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*COMMAND, "explore", "--json", *words], env=self.env, stdout=subprocess.PIPE, text=True
        )
        self.address = json.loads(self.process.stdout.readline())["address"]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(30)


def from_ask_on(home, row, page, shots=None):
    "See that the answer is wrong, and where; change a switch; see what flipped, and why; copy the link. Only what is visible is pressed."
    served = Served(home)
    page.open(served.address)
    reader, narrow = Reader(page), page.eval("innerWidth") < 860

    def to(pane):
        reader.click(f".tkx-tabs [data-pane={pane}]") if narrow else None

    def seen(what):
        assert reader.page.eval(js(f"({CUT})()")) == [], what
        if shots:
            page.screenshot(shots / f"{what}.png")

    with served:
        reader.must(
            f"X.tree.n && text('.tkx-head h2') === {json.dumps(row['question'])}"
            if not narrow
            else "X.tree.n && X.shown.length === 1"
        )
        seen("questions")
        if narrow:
            reader.click("[role=option]")
        gold = json.dumps(f"gold {row['golds'][0]}")
        reader.must(f"text('.tkx-head').includes({gold}) && text('.tkx-head .tkx-is-wrong') === '✗'")
        reader.must("text('.tkx-head').includes('first wrong node: retrieval') && X.tree.flags.has(X.tree.selected)")
        seen("wrong")
        to("node")
        reader.must("node().includes('Passages (15)')")
        seen("why")
        to("switches") if narrow else reader.named("Switches…")
        reader.must("one('[aria-label=query_generation]')")
        reader.choose("query_generation", "false")
        reader.must("!X.bench.runButton.disabled")
        reader.named("Run it")
        reader.must("text('.tkx-result').includes('effect +1.00')")
        seen("effect")
        reader.named("See what flipped")
        reader.must("X.flips.gained.has(X.at) && X.el.dataset.pane === 'tree'")
        reader.must("!X.secondBox.hidden && text('.tkx-second').includes('✓')")
        seen("flipped")
        to("node")
        reader.must("all('.tkx-against del, .tkx-against ins').some(e => e.offsetParent)")
        seen("difference")
        reader.named("Copy link")
        reader.must("X.status.innerText.length > 10")
        link = reader.page.eval(js("X.source.link(X.state())"))
        page.open("about:blank")
        page.open(link)  # as a colleague at this machine does
        reader.must("X.other && X.flips && X.flips.gained.has(X.at)")
        seen("shared")
        to("runs") if narrow else reader.named("All runs…")
        reader.must("text('.tkx-runs').includes('treerare: query_generation True → False on hotpotqa')")
        seen("runs")
        return served.began, reader.presses, link[:30]


# what is wider than its place: a list than its longest choice shows it, a button, a head, a field beyond its pane
CUT = """() => {
  const shown = e => e.offsetParent && getComputedStyle(e).visibility !== 'hidden', cut = [], room = document.createElement('div');
  room.style.cssText = 'position:absolute;visibility:hidden;width:2000px'; root.append(room);
  for (const s of all('select')) {
    if (!shown(s) || s === X.runBox || s === X.otherBox) continue;  // these two have the whole name in a line below
    const whole = s.cloneNode(true); whole.style.cssText = 'max-width:none;width:auto;flex:none'; room.append(whole);
    if (whole.offsetWidth > s.offsetWidth + 1) cut.push(['list', s.getAttribute('aria-label'), whole.offsetWidth, s.offsetWidth]);
  }
  room.remove();
  for (const e of all('button, .tkx-head, .tkx-head h2, .tkx-head p, .tkx-small, .tkx-runs td'))
    if (shown(e) && !e.closest('.tkx-row, .tkx-when') && e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
      cut.push(['text', e.className, e.innerText.slice(0, 40)]);
  const head = one('.tkx-head');
  if (shown(head) && head.scrollHeight > head.clientHeight + 1) cut.push(['head', head.scrollHeight, head.clientHeight]);
  for (const e of all('button, input, select')) {
    const pane = e.closest('.tkx-pane, .tkx-over, .tkx-bar-top'), b = e.getBoundingClientRect();
    if (shown(e) && pane && !e.closest('.tkx-arcs') && b.right > pane.getBoundingClientRect().right + 1)
      cut.push(['beyond', e.innerText || e.getAttribute('aria-label')]);
  }
  if (document.documentElement.scrollWidth > innerWidth) cut.push(['page', document.documentElement.scrollWidth]);
  return cut;
}"""


@pytest.mark.parametrize(
    "name, width, scheme",
    [("chromium", 400, "dark"), ("firefox", 1280, "light")],
)
def test_the_errand_from_ask_on(asked, tmp_path, name, width, scheme):
    "Within fourteen presses, and nothing that is needed is cut; `TREEKIT_SHOTS=DIR` saves a screenshot of each step."
    try:
        browser = BROWSERS[name]()
    except Unavailable as e:
        pytest.skip(str(e))
    try:
        page, shots = (
            browser.page(width, 800, **(dict(color_scheme="dark") if scheme == "dark" else {})),
            os.environ.get("TREEKIT_SHOTS"),
        )
        folder = shots and Path(shots) / f"{name}-{width}-{scheme}"
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        home = shutil.copytree(asked[0], tmp_path / "home")  # a changed run would be the newest of the next errand
        began, presses, _ = from_ask_on(home, asked[1], page, folder)
        print(f"{name}, {width} px, {scheme}: {presses} presses, {time.monotonic() - began:.1f} s")
        assert presses <= 14 and page.trouble == []
    finally:
        browser.close()


def test_an_expected_answer_is_typed_in(tmp_path):
    "A question of one's own has no gold answer; with one that is typed in, the answer is judged, and a changed run has an effect."
    try:
        chromium = Chromium()
    except Unavailable as e:
        pytest.skip(str(e))
    ask(tmp_path, "Which university is located in Nirafors?", "--data", "synthetic:100", "--set", "retriever=bm25s")
    with Served(tmp_path) as served:
        page = chromium.page(1280, 800)
        page.open(served.address)
        reader = Reader(page)
        reader.must("one('[aria-label=\"expected answer\"]') && text('.tkx-head').includes('–')")
        for typed, verdict in (("Nobody", "✗"), ("U. N. / University of Nirafors", "✓")):
            page.eval(
                js(
                    "(one('[aria-label=\"expected answer\"]').select(), one('[aria-label=\"expected answer\"]').focus(), 1)"
                )
            )
            page.type(typed)
            page.press("Enter")
            reader.must(f"X.row.golds[0] === {json.dumps(typed)} && text('.tkx-head .tkx-verdict') === '{verdict}'")
        page.open(served.address.replace("?", "?again&"))
        reader.must(
            "X.row && X.row.value === 1 && one('[aria-label=\"expected answer\"]').value === 'U. N. / University of Nirafors'"
        )
        reader.named("Switches…")
        reader.must("one('[aria-label=top_k]')")
        reader.choose("query_generation", "false")
        reader.must("!X.bench.runButton.disabled")
        reader.named("Run it")
        reader.must("text('.tkx-result').includes('effect')")
        assert page.trouble == []
    chromium.close()
