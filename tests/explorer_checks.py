"What is seen, clicked, pressed, slid, folded, searched and compared: sixty checks, written once for every browser and way in."

import json

PRELUDE = """(() => { const root = document.querySelector('.tkx'), X = root && root.explorer, one = s => root.querySelector(s);
  const all = s => [...root.querySelectorAll(s)], text = s => (one(s) || {innerText: ''}).innerText, main = '.tkx-one:not(.tkx-second) ';
  const tree = () => all(main + '[role=treeitem]').map(e => e.innerText), node = () => text('.tkx-right');
  const chosen = () => text(main + '[aria-selected=true] .tkx-line'); return (%s); })()"""


def js(expression):
    return PRELUDE % expression


class Hands:
    "A reader at a page."

    def __init__(self, page):
        self.page = page

    def see(self, condition, seconds=20):
        return self.page.until(js(f"X && ({condition})"), seconds)

    def click(self, selector, n=0):
        self.page.click(f".tkx {selector}", n)

    def named(self, words):
        self.page.click_at(*self._button(words))

    def press(self, *keys):
        [self.page.press(k) for k in keys]

    def type(self, text):
        self.page.type(text)

    def focus(self, selector):
        self.page.eval(js(f"(one({json.dumps(selector)}).focus(), 1)"))

    def _button(self, words):
        is_it = f"(b.getAttribute('aria-label') || b.innerText) === {json.dumps(words)}"
        self.page.eval(js(f"(all('button').forEach(b => b.toggleAttribute('data-wanted', {is_it})), 1)"))
        return self.page.spot(".tkx [data-wanted]")

    def choose(self, label, value):
        "A native list can't be clicked through the same way in both browsers: its value is set, and it is told."
        change = f"b => {{ b.value = {json.dumps(value)}; b.dispatchEvent(new Event('change', {{bubbles: true}})); return 1 }}"
        self.page.eval(js(f"({change})(one('[aria-label={json.dumps(label)}]'))"))

    def row(self, i):
        self.page.eval(js(f"X.openRow({i}).then(() => 1)"))


LIST, SLIDER, MAIN = "[role=listbox]", "[aria-label=Iteration]", ".tkx-one:not(.tkx-second)"
TREE, CANVAS = f"{MAIN} [role=tree]", f"{MAIN} canvas"
AT = """e => { const b = X.tree.canvas.getBoundingClientRect(), z = X.tree.zoom, p = X.tree.placed;
  return [b.left + z.x + (p.x[e] + 40) * z.k, b.top + z.y + (p.y[e] + 10) * z.k]; }"""


def on_canvas(h, i, more=0):
    x, y = h.page.eval(js(f"({AT})({i})"))
    h.page.click_at(x + more, y)


CHECKS = [  # (kind, what, what is done, what must come to be)
    ("see", "three questions", None, "all('[role=option]').length === 3"),
    ("see", "their verdicts", None, "all('.tkx-is-right').length >= 3"),
    ("see", "the question", None, "text('.tkx-head h2').includes('Question 0')"),
    ("see", "gold and answer", None, "text('.tkx-head').includes('gold Ada') && text('.tkx-head').includes('Ada')"),
    ("see", "the tree's three nodes", None, "tree().length === 3 && tree()[0].includes('who filmed it')"),
    ("see", "levels for a screen reader", None, "one(main + '[role=treeitem]').getAttribute('aria-level') === '1'"),
    ("see", "the count of answers", None, "text('.tkx-left').includes('3 answers, 3 of 3 right')"),
    ("see", "the comparison's line", None, "text('.tkx-left').includes(\"gains 0, loses 1 of 3; McNemar's p 1.000\")"),
    ("see", "the other tree", None, "text('.tkx-second').includes('other run')"),
    ("see", "the chosen node, at the right", None, "chosen() && node().includes(chosen())"),
    (
        "click",
        "a node",
        lambda h: h.click(".tkx-one:not(.tkx-second) [role=treeitem]", 1),
        "chosen() === 'it' && node().includes('Passages (1)')",
    ),
    ("click", "its phrase is marked", None, "text('.tkx-head mark') === 'it'"),
    (
        "click",
        "a passage opens",
        lambda h: h.click(".tkx-passage summary .tkx-small"),
        "one('.tkx-passage').open && node().includes('informativeness 0.5')",
    ),
    ("click", "its informativeness as a bar", None, "one('.tkx-bar i').style.width === '30px'"),
    (
        "click",
        "the node above",
        lambda h: h.named("↑ above"),
        "chosen() === 'who filmed it' && node().includes('who filmed it')",
    ),
    ("click", "the node below", lambda h: h.named("↓ 1"), "chosen() === 'it'"),
    (
        "click",
        "another question",
        lambda h: h.click("[role=option]", 2),
        "X.at === 2 && tree()[0].includes('two steps')",
    ),
    (
        "click",
        "the first again",
        lambda h: h.click("[role=option]", 0),
        "X.at === 0 && tree()[0].includes('who filmed it') && !one('.tkx-second').hidden && "
        "text('.tkx-second').includes('first difference')",
    ),
    (
        "click",
        "a node of the other tree",
        lambda h: h.click(".tkx-second [role=treeitem]", 0),
        "node().startsWith('other run')",
    ),
    (
        "click",
        "back to this one",
        lambda h: h.click(".tkx-one:not(.tkx-second) [role=treeitem]", 0),
        "!node().startsWith('other run')",
    ),
    ("key", "down the questions", lambda h: (h.focus(LIST), h.press("ArrowDown")), "X.at === 1 && X.tree.t.search"),
    ("key", "to the last", lambda h: h.press("End"), "X.at === 2 && X.tree.t.links.length === 1"),
    ("key", "to the first", lambda h: h.press("Home"), "X.at === 0 && X.tree.t.spans['0']"),
    ("key", "into the tree", lambda h: h.press("Enter"), "document.activeElement === one(main + '[role=tree]')"),
    ("key", "its first node", lambda h: h.press("Home"), "chosen() === 'who filmed it'"),
    ("key", "to a child", lambda h: h.press("ArrowRight"), "chosen() === 'it'"),
    ("key", "to the parent", lambda h: h.press("ArrowLeft"), "chosen() === 'who filmed it'"),
    ("key", "down", lambda h: h.press("ArrowDown"), "chosen() === 'it'"),
    ("key", "the last node", lambda h: h.press("End"), "chosen() === 'Ada'"),
    (
        "key",
        "the active one is named",
        None,
        "one(main + '[role=tree]').getAttribute('aria-activedescendant') === one(main + '[aria-selected=true]').id",
    ),
    ("fold", "by a key", lambda h: h.press("Home", "ArrowLeft"), "tree().length === 2"),
    ("fold", "open again by a key", lambda h: h.press("ArrowRight"), "tree().length === 3"),
    ("fold", "by the space bar", lambda h: h.press("Space"), "tree().length === 2"),
    (
        "fold",
        "said to a screen reader",
        None,
        "one(main + '[role=treeitem]').getAttribute('aria-expanded') === 'false'",
    ),
    ("fold", "by the sign", lambda h: h.click(".tkx-one:not(.tkx-second) [data-fold]"), "tree().length === 3"),
    (
        "fold",
        "what is chosen inside goes up",
        lambda h: (h.press("End", "ArrowUp"), h.click(".tkx-one:not(.tkx-second) [data-fold]")),
        "tree().length === 2 && chosen() === 'who filmed it'",
    ),
    ("fold", "all open", lambda h: h.named("Unfold"), "tree().length === 3"),
    (
        "search",
        "by a key",
        lambda h: (h.focus(TREE), h.press("/")),
        "document.activeElement === one('[aria-label=\"Search the tree\"]')",
    ),
    (
        "search",
        "what was typed is found",
        lambda h: h.type("ada"),
        "all(main + '.tkx-match').length === 1 && all('.tkx-middle .tkx-tools').some(e => e.innerText.includes('1 node'))",
    ),
    ("search", "Enter goes there", lambda h: h.press("Enter"), "chosen() === 'Ada'"),
    (
        "search",
        "Escape goes to the tree",
        lambda h: h.press("Escape"),
        "document.activeElement === one(main + '[role=tree]')",
    ),
    (
        "search",
        "questions by their words",
        lambda h: (h.click('[aria-label="Filter questions"]'), h.type("question 2")),
        "all('[role=option]').length === 1",
    ),
    (
        "search",
        "none",
        lambda h: h.type("x"),
        "all('[role=option]').length === 0 && text('.tkx-left').includes('0 answers')",
    ),
    ("search", "all again", lambda h: h.press(*["Backspace"] * 11), "all('[role=option]').length === 3"),
    ("search", "the largest trees first", lambda h: h.choose("Sorted by", "nodes"), "X.shown.length === 3"),
    (
        "slide",
        "a search has iterations",
        lambda h: h.row(1),
        "X.at === 1 && X.tree.t.search && !one('.tkx-slider').hidden",
    ),
    (
        "slide",
        "to the beginning",
        lambda h: (h.focus(SLIDER), h.press("Home")),
        "tree()[1].includes('not yet there') && tree()[0].includes('N 0')",
    ),
    ("slide", "one further", lambda h: h.press("ArrowRight"), "tree()[1].includes('N 0 · Q 0.10 · risk 0.30')"),
    (
        "slide",
        "said to a screen reader",
        None,
        "one('[aria-label=Iteration]').getAttribute('aria-valuetext') === '1 of 3'",
    ),
    (
        "slide",
        "to the end",
        lambda h: h.press("End"),
        "text('.tkx-best').length > 0 && all('.tkx-best').some(e => e.innerText.includes('N 1 · Q 0.20'))",
    ),
    ("slide", "none for another method", lambda h: h.row(2), "X.at === 2 && one('.tkx-slider').hidden"),
    (
        "see",
        "the drawing",
        lambda h: h.named("Drawing"),
        "one(main + 'canvas').offsetHeight > 100 && X.tree.placed && X.tree.fitted",
    ),
    ("click", "a node of the drawing", lambda h: on_canvas(h, 2), "X.tree.selected === 2"),
    (
        "click",
        "zoom",
        lambda h: (h.page.eval(js("root.before = X.tree.zoom.k, 1")), h.named("Zoom in")),
        "X.tree.zoom.k > root.before",
    ),
    (
        "key",
        "fold in the drawing",
        lambda h: (h.focus(CANVAS), h.press("ArrowLeft", "ArrowLeft")),
        "X.tree.visible.length === 1",
    ),
    (
        "key",
        "d: the outline",
        lambda h: h.press("ArrowRight", "d"),
        "one(main + 'canvas').hidden && tree().length === 3",
    ),
    ("diff", "what was lost", lambda h: h.choose("Verdict", "lost"), "all('[role=option]').length === 1"),
    (
        "diff",
        "where the trees part",
        lambda h: h.row(0),
        "X.at === 0 && all('.tkx-second .tkx-badge').some(e => e.innerText === 'first difference')",
    ),
    (
        "diff",
        "the switches say what can be done here",
        lambda h: h.named("Switches…"),
        "text('.tkx-bench').includes('Switches')",
    ),
    ("diff", "and close", lambda h: h.named("Close the switches"), "root.dataset.pane === 'questions'"),
]


def failed_checks(page):
    "Which checks don't hold; each is told with what was done."
    hands, bad = Hands(page), []
    for kind, what, act, condition in CHECKS:
        try:
            if act:
                act(hands)
            if not hands.see(condition):
                bad.append(f"{kind}: {what}")
        except Exception as e:
            bad.append(f"{kind}: {what}: {type(e).__name__}: {e}")
    return bad
