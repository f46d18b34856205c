"Five errands with the explorer, from a cold start of the command, timed and with their clicks counted: done as a reader would."
import json, os, subprocess, sys, time

import pytest
from browsers import Chromium, Unavailable
from explorer_checks import Hands, js

from treekit.config import load_profile
from treekit.core.method import configure
from treekit.store.run_store import Store
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.explorer.runs import open_run
from treekit.papers.registry import method

COMMAND = [sys.executable, "-c", "import sys; from treekit.cli.main import main; main(sys.argv[1:])"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    "A store with TreeRare, whole and without query generation, on twenty questions, of a small model."
    folder = tmp_path_factory.mktemp("home")
    profile = load_profile("offline", data="synthetic:100", retriever="bm25s", ability="small")
    methods = {"TreeRare": method("treerare"), "w/o QG": configure(method("treerare"), query_generation=False)}
    (folder / "store").mkdir()
    with Store(folder / "store" / "offline.sqlite") as store:
        made = run(methods, dict(hotpotqa=load("hotpotqa", "synthetic:100", n=20)), profile, store=store, progress=False)
    passages = folder / "passages.jsonl"
    passages.write_text('{"title": "Velmora", "text": "Velmora is a film directed by Lio Vant."}\n', encoding="utf-8")
    subprocess.run([*COMMAND, "ask", "Who directed Velmora?", "--passages", str(passages), "--set", "retriever=bm25s"],
                   env=os.environ | dict(TREEKIT_HOME=str(folder)), check=True, capture_output=True)
    with Store(folder / "store" / "offline.sqlite") as store:
        lines = open_run(store, made.kept).listing()[:20]
        wrong = [line["i"] for line in lines if line["value"] == 0 and line["wrong"]["node"] is not None]
    return folder, made.kept, min(wrong, key=lambda i: abs(i - 16))


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

    def must(self, condition): assert self.see(condition, 60), f"never: {condition}; {self.page.trouble}; {self.said()}"
    def said(self): return self.page.eval(js("[X.status.innerText, text('.tkx-controls').slice(0, 400)]"))


class Served:
    "`treekit explore`, started now."

    def __init__(self, home, *words):
        self.env = os.environ | dict(TREEKIT_HOME=str(home))
        self.began = time.monotonic()
        self.process = subprocess.Popen([*COMMAND, "explore", "--json", *words], env=self.env, stdout=subprocess.PIPE, text=True)
        self.address = json.loads(self.process.stdout.readline())["address"]

    def __enter__(self): return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(30)


def opened(home, chromium, *words):
    served = Served(home[0], *words)
    page = chromium.page(1280, 800)
    page.open(served.address)
    reader = Reader(page)
    reader.must("X.tree.n && node()")
    return served, reader


def to_the_wrong_node(reader, number):
    "The question of that number, by its place in the list; the page goes to its first wrong node."
    reader.page.eval(js(f"(X.questions.reveal({number}), 1)"))  # as scrolling does
    place = reader.page.eval(js(f"all('[role=option]').findIndex(e => e.dataset.at === '{number}')"))
    reader.click("[role=option]", place)
    reader.must(f"X.at === {number} && text('.tkx-head').includes('first wrong node') && chosen() && node().length > 20")


def why_it_failed(home, chromium, tmp_path):
    served, reader = opened(home, chromium, home[1][:6])
    with served:
        to_the_wrong_node(reader, home[2])
        return served.began, reader.presses, reader.page.eval(js("text('.tkx-head .tkx-small')"))


def a_prompt(home, chromium, tmp_path):
    served, reader = opened(home, chromium, home[1][:6])
    with served:
        with_call = reader.page.eval(js("all(main + '[role=treeitem]').findIndex(e => e.innerText.includes('call'))"))
        reader.click(".tkx-one:not(.tkx-second) [role=treeitem]", with_call)
        reader.must("one('.tkx-call details summary')")
        reader.page.eval(js("(all('.tkx-call details summary')[0].setAttribute('data-prompt', ''), 1)"))
        reader.click("[data-prompt]")
        reader.must("one('.tkx-call details').open && text('.tkx-call details pre').length > 100")
        return served.began, reader.presses, reader.page.eval(js("text('.tkx-call details pre').slice(0, 60)"))


def flips(home, chromium, tmp_path):
    served, reader = opened(home, chromium, home[1][:6])
    with served:
        reader.choose("Compare with", f"{home[1]}/w/o QG")
        reader.must("X.flips && X.other && !one('.tkx-second').hidden")
        reader.choose("Verdict", "lost")
        reader.must("text('.tkx-left').includes('McNemar') && X.comparison.second === 'w/o QG'")
        reader.must("X.shown.length === X.comparison.lost.length")
        return served.began, reader.presses, reader.page.eval(js("X.flipsLine.innerText"))


def a_fork(home, chromium, tmp_path):
    served, reader = opened(home, chromium, home[1][:6])
    with served:
        to_the_wrong_node(reader, home[2])
        gold = reader.page.eval(js("X.row.golds[0]"))
        with_call = reader.page.eval(js("all(main + '[role=treeitem]').findIndex(e => e.innerText.includes('call'))"))
        reader.click(".tkx-one:not(.tkx-second) [role=treeitem]", with_call)  # where the wrong node asked nothing itself
        reader.must("one('.tkx-call .tkx-fork summary')")
        reader.page.eval(js("(one('.tkx-call .tkx-fork summary').setAttribute('data-fork', ''), 1)"))
        reader.click("[data-fork]")
        reader.page.eval(js(f"(one('.tkx-fork[open] textarea').value = {json.dumps('The answer is ' + gold)}, 1)"))
        reader.page.eval(js("(one('.tkx-fork[open] button').setAttribute('data-run', ''), 1)"))
        reader.click("[data-run]")
        reader.must("X.status.innerText.startsWith('Fork: ')")
        return served.began, reader.presses, reader.page.eval(js("X.status.innerText"))


def shared(home, chromium, tmp_path):
    "The file, in a browser with an empty profile and no network."
    began, file = time.monotonic(), tmp_path / "shared.html"
    env = os.environ | dict(TREEKIT_HOME=str(home[0]))
    subprocess.run([*COMMAND, "explore", home[1][:6], "--html", str(file)], env=env, check=True, capture_output=True)
    page = chromium.page(1280, 800, offline=True)  # each page has a profile of its own, empty
    page.open(file.as_uri())
    reader = Reader(page)
    reader.must("X.tree.n && node()")
    to_the_wrong_node(reader, home[2])
    reader.choose("Compare with", f"{home[1]}/w/o QG")
    reader.must("X.flips && !one('.tkx-second').hidden")
    assert page.asked == [file.as_uri()] and page.trouble == []
    page.close()
    return began, reader.presses, f"{file.stat().st_size / 1e6:.2f} MB"


def from_ask_on(home, chromium, tmp_path):
    "Find a wrong answer, see why, change a switch, see what flipped and why, copy the link: from the newest run, which is that of `ask`."
    served, reader = opened(home, chromium)
    with served:
        reader.must("text('.tkx-head h2') === 'Who directed Velmora?'")
        reader.named("All runs…")
        mark = "tr => { if (tr.innerText.includes('w/o QG')) tr.querySelector('.tkx-link').setAttribute('data-run', '') }"
        reader.page.eval(js(f"(all('.tkx-runs tbody tr').forEach({mark}), 1)"))
        reader.click("[data-run]")
        reader.must("X.run.head.methods.length === 2 && X.tree.n")
        reader.choose("Verdict", "wrong")
        reader.click("[role=option]")
        reader.must("X.row.value < 1 && text('.tkx-head').includes('first wrong node') && X.tree.flags.has(X.tree.selected)")
        reader.named("Switches…")
        reader.must("one('[aria-label=query_generation]')")
        reader.choose("query_generation", "false")
        reader.named("What would it take?")
        reader.must("!X.bench.runButton.disabled")
        reader.named("Run it")
        reader.must("text('.tkx-result').includes('effect')")
        reader.named("See what flipped")
        reader.must("X.flips.flipped.has(X.at) && one('.tkx-second') && X.el.dataset.pane === 'tree'")
        reader.must("all('.tkx-against del, .tkx-against ins').length > 0")
        reader.named("Copy link")
        reader.must("X.status.innerText.length > 10")
        return served.began, reader.presses, reader.page.eval(js("X.bench.result.textContent"))


ERRANDS = {"from ask on: a wrong answer, why, a switch, its flips, a link": from_ask_on,
           "why question 17 failed": why_it_failed, "a call's prompt": a_prompt, "w/o QG against the whole": flips,
           "a fork at the wrong node": a_fork, "shared with who has nothing": shared}


def test_six_errands(home, tmp_path):
    "Each within fourteen presses; the times are printed."
    try: chromium = Chromium()
    except Unavailable as e: pytest.skip(str(e))
    try:
        for name, errand in ERRANDS.items():
            began, presses, what = errand(home, chromium, tmp_path)
            print(f"{name}: {presses} presses, {time.monotonic() - began:.1f} s; {what}")
            assert presses <= 14
    finally: chromium.close()
