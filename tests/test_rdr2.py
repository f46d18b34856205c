"RDR²: the paper's own case step by step, Algorithm 1 and the loop against plain re-tellings of them, every bad output of a router, the readings, the baselines."

import asyncio, itertools, json, random, re
from dataclasses import replace

import pytest

from fakes import FakeChat, FakeShelf
from treekit.config import UsageError, load_profile
from treekit.core.types import Passage, Question
from treekit.experiments.resources import LazyRetriever
from treekit.corpora.documents import build_tree, add_introduction
from treekit.core.prompts import CallFailed, Completion
from treekit.llm.openai_client import OpenAIClient
from treekit.papers.rdr2.baselines import ASC, FLARE, Served
from treekit.papers.rdr2.figures import HEADINGS
from treekit.core.method import Context, configure
from treekit.corpora.lookup import Documents
from treekit.papers.rdr2.method import ABLATIONS, METHODS, PUBLIC_CODE, RDR2, grouped
from treekit.papers.rdr2.public_code import RULES
from treekit.papers.rdr2.readers import Reader
from treekit.papers.rdr2.training_data import curated
from treekit.retrieval.bm25 import Hit
from treekit.papers.rdr2.router import (
    COUNTED,
    EXPELLED,
    FORMATS,
    PREFIX,
    ROUTE,
    decide,
    reveal_nodes,
    nearest_part,
    prefix,
    read_behaviours,
    unfold,
)
from treekit.experiments.run import run
from treekit.store.run_store import Store


def hits(*passages):
    return [Hit(p, 1.0, i) for i, p in enumerate(passages, 1)]


def Shelf(*passages):
    return FakeShelf(passages)


class Router(FakeChat):
    "Replies to the routing prompt by a function of the document's text; reads with an answer of its own."

    def __init__(self, says, pauses=None, one_by_one=False):
        super().__init__(latency=0.003 if pauses else 0, pauses=pauses, at_once=1 if one_by_one else None)
        self.says, self.seen, self.read = says, [], []

    def reply(self, request, sample):
        if request.prompt.task != "route":
            if sample == request.sample:
                self.read.append(request)
            return Completion("an answer, another", tokens_in=5, tokens_out=2)
        self.seen.append(request.inputs["document"])
        return Completion(self.says(request.inputs["document"]), tokens_in=9, tokens_out=3)


def ask(method, router, trees, *passages, question="What is asked?", dataset="asqa", id="q"):
    "A prediction with a scripted router."
    return asyncio.run(
        method(Question(id, dataset, question), Context(router, Shelf(*passages), documents=Documents(trees)))
    )


def routings(prediction):
    return [n for n in prediction.trace.nodes if n.kind == "routing"]


def counts(prediction):
    return prediction.trace.nodes[0].data["counts"]


def routed(prediction):
    return [p["text"] for p in prediction.trace.nodes[0].data["passages"]]


def outline(prediction):
    "The router's steps in the order of the outline: a view, then what it had unfolded."
    by_parent, steps = {}, []
    for n in prediction.trace.nodes:
        by_parent.setdefault(n.parent, []).append(n)

    def walk(node):
        if node.kind == "routing":
            steps.append(node)
        for child in by_parent.get(node.id, []):
            walk(child)

    for n in by_parent[0]:
        walk(n)
    return steps


# --- the paper's own case (Tables 10 to 12); its root is -1, ours 0, so an id here is the printed one and 1


def the_park():
    "Table 12's tree: its headings and ids, with words of our own where it leaves out what stands there."
    own = {
        "1990s": [
            "The nineties began well for the park with the Texas Giant, but they were harder than the decades before, and the gates "
            "changed owners twice."
        ],
        "2000s": [
            "In the new century a cartoon land was rebuilt; the Titan became the park's tallest coaster in 2001, and a tower of 325 feet "
            "followed two years later."
        ],
        "Records": [
            "* Tallest coaster: Titan",
            "* Fastest coaster: Titan",
            "* Largest derrick: Oil Derrick",
            "* Tallest swing ride: Texas SkyScreamer",
        ],
    }
    rows = []
    for depth, heading, content in HEADINGS:
        rows.append((depth, "structure", heading))
        rows += [
            (depth + 1, "content", text)
            for text in own.get(
                heading,
                [
                    f"Paragraph {i} of {heading}, with some words that stand nowhere else: {heading[::-1]} {i}."
                    for i in range(content)
                ],
            )
        ]
    return build_tree("Six Flags Over Texas", rows, "park")


TITAN = build_tree(
    "Titan (roller coaster)",
    [
        (1, "content", "Titan is a coaster of steel in Arlington, 245 feet high."),
        (1, "structure", "Ride"),
        (2, "content", "It drops 255 feet at 85 miles per hour."),
    ],
    "titan",
)


def the_router(document):
    "What Table 12's router says to each subtree."
    shown = {int(m) for m in re.findall(r"^\t*(\d+): (?!=)", document, re.M)}
    if "Titan (roller" in document.split("\n")[0]:
        return "[ANSWER] 2: Titan is a coaster of steel"
    if 18 in shown:
        return "[EXPAND] 1: ==Introduction=="
    if {2, 3} <= shown:
        return "Cannot answer"
    if 20 in shown:
        return "[ANSWER] 20: In the new century\n[EXPAND] 41: ===Records==="
    assert {42, 43, 44, 45} <= shown
    return "[ANSWER] 42: * Tallest coaster: Titan\n[ANSWER] 45: * Tallest swing ride"


def test_the_case_study_in_its_order():
    park = the_park()
    printed = {
        0: "Introduction",
        3: "History",
        4: "Initial planning and construction",
        16: "1990s",
        18: "2000s",
        20: "2010s",
        29: "Firsts, bests, and other records",
        30: "Firsts and ones of a kind",
        40: "Records",
        45: "Awards",
        48: "Events",
        54: "Areas and attractions",
        56: "Star Mall",
        157: "Tower",
        168: "Former Attractions",
    }
    assert {i: park[i + 1].text for i in printed} == printed and {i for i in park.headings if i} == {
        i + 1 for i in printed
    }
    router = Router(the_router)
    chunks = [
        Passage("1", park.title, "harder than the decades before, and the gates changed owners twice."),
        Passage("2", park.title, "the Titan became the park's tallest coaster in 2001, and a tower of 325"),
        Passage("3", TITAN.title, "Titan is a coaster of steel in Arlington"),
    ]
    p = ask(RDR2(), router, [park, TITAN], *chunks, question="What is the tallest ride at six flags over texas?")
    steps = [(n.data["lit"], n.data["answers"], n.data["expands"]) for n in outline(p)]
    case = [
        ([17], [], [0]),
        ([1, 2], [], []),
        ([19], [19], [40]),
        ([41, 42, 43, 44], [41, 44], []),
    ]  # as Table 12 prints it
    assert [tuple([i - 1 for i in ids] for ids in step) for step in steps[:4]] == case
    assert [n.text for n in outline(p)][:4] == [
        "[EXPAND] 1: Introduction",
        "Introduction ▸ [REFUSE]",
        "[ANSWER] 20 [EXPAND] 41: Records",
        "Records ▸ [ANSWER] 42 [ANSWER] 45",
    ]
    assert p.trace.children(p.trace.nodes[0])[0].data["answers"] == [20, 42, 45]  # Routing passages: 19, 41, 44
    above = ["==History==", "===2000s===", park[20].text]
    above += ["==Firsts, bests, and other records==", "===Records===", park[42].text, park[45].text]
    assert routed(p) == ["\n".join(above), f"==Introduction==\n{TITAN[1].text}"]
    assert (
        f"## Paragraph\n{park.title}\n" + "\n".join(above) + f"\n\n{TITAN.title}\n==Intro" in router.read[0].text
    )  # line by line
    assert (p.usage.calls, p.usage.critical_path) == (
        6,
        3,
    )  # three subtrees at once, two expansions at once, the reader
    for i in park.headings:
        assert all(f"{i}: " in seen for seen in router.seen if seen.startswith("0: Six"))  # all structure nodes stay
    assert router.read[0].inputs["documents"][0].title == "Six Flags Over Texas" and "19:" not in router.read[0].text


# --- Algorithm 1, against another way to say it


def some_tree(draw, title="Page", id="page", prefix=""):
    "A tree of any shape: headings over headings, lists below paragraphs, text before and after subsections."
    rows, depth = [], 1
    for i in range(draw.randint(1, 40)):
        depth = max(1, min(6, depth + draw.choice((-2, -1, 0, 0, 1))))
        heading = draw.random() < 0.4
        rows.append(
            (
                depth,
                "structure" if heading else "content",
                f"{prefix}{'Heading' if heading else 'Paragraph'} {i} "
                f"{' '.join(draw.choices('alpha beta gamma delta rho sigma tau'.split(), k=2 if heading else 9))} {i}",
            )
        )
    return build_tree(title, rows, id)


@pytest.mark.parametrize("seed", range(12))
def test_algorithm_1_lights_what_it_says(seed):
    draw = random.Random(seed)
    tree = some_tree(draw)
    content = [n.id for n in tree.nodes if n.type == "content"]
    nodes = draw.sample(range(len(tree)), min(len(tree), draw.randint(0, 4)))
    wanted = set()
    for node in content:  # a node is lit if …
        family = [node, *itertools.takewhile(lambda a: tree[a].type == "content", tree.ancestors(node))]
        for seen in nodes:
            # … it, or content it hangs below, is a sibling of a node;
            if any(tree[f].parent == tree[seen].parent and tree[seen].parent is not None for f in family):
                wanted.add(node)
            # … or it is content above one
            if node in itertools.takewhile(lambda a: tree[a].type == "content", tree.ancestors(seen)):
                wanted.add(node)
    rst = reveal_nodes(tree, nodes)
    assert set(rst.visible) == wanted and list(rst.visible) == sorted(rst.visible)
    shown = [int(line.strip().split(":")[0]) for line in rst.text.split("\n")]
    assert shown == sorted({*tree.headings, *rst.visible})


# --- a subtree that is too long


@pytest.mark.parametrize("seed", range(12))
def test_a_subtree_that_is_too_long_keeps_what_is_near(seed):
    draw = random.Random(seed)
    tree = some_tree(draw)
    whole = reveal_nodes(tree, near := draw.sample(range(len(tree)), min(len(tree), 2)))
    for longest in (1, draw.randint(50, 400), len(whole.text), None):
        rst = nearest_part(whole, near, longest)
        shown, must = (
            [int(line.strip().split(":")[0]) for line in rst.text.split("\n")],
            {0, *near, *(a for n in near for a in tree.ancestors(n))},
        )
        assert longest is None or len(rst.text) <= max(
            longest, sum(len(line) + 1 for line in whole.text.split("\n") if int(line.split(":")[0]) in must)
        )
        assert set(rst.visible) == set(whole.visible) & set(shown)
        assert rst.left_out.isdisjoint(shown)
        assert rst.left_out | set(shown) == {*tree.headings, *whole.visible}
        assert all(tree[i].parent in shown for i in shown if i)  # nothing hangs in the air
        assert must & {*tree.headings, *whole.visible} <= set(shown)
        if longest is None or longest >= len(whole.text):
            assert rst is whole


# --- the loop, against one that does one thing after the other


def wild(draw_by, tree):
    "A router whose output is any mixture of sound and unsound behaviours, and depends on the document's text alone."

    def says(document):
        draw = random.Random(f"{draw_by} {document}")
        if draw.random() < 0.15:
            return draw.choice(["Cannot answer", "I'm not sure.", ""]) or "hm"
        lines = []
        for _ in range(draw.randint(1, 4)):
            node = tree[draw.randrange(len(tree))]
            tag = (
                draw.choice(["ANSWER", "EXPAND"])
                if draw.random() < 0.4
                else "ANSWER"
                if node.type == "content"
                else "EXPAND"
            )
            words = draw.choice(
                [prefix(node.text)] * 6 + ["", prefix(tree[draw.randrange(len(tree))].text), "words of its own"]
            )
            lines.append(f"[{tag}] {node.id if draw.random() < 0.9 else draw.randint(0, 60)}: {words}")
        return "\n".join(lines + ["Cannot answer"] * (draw.random() < 0.1))

    return says


def one_after_another(tree, places, says, limit):
    "The paper's reading in a dozen lines: a queue, one subtree at a time."
    queue, shown, opened, answers, asked = [], set(), [], set(), 0
    for nodes in places:
        if (rst := reveal_nodes(tree, nodes)).visible not in [q.visible for q in queue]:
            queue.append(rst)
    for rst in queue:
        shown |= set(rst.visible)
    while queue:
        rst = queue.pop(0)
        asked += 1
        try:
            said = read_behaviours(says(rst.text))
        except ValueError:
            said = None
        d = decide(rst, said)
        answers |= set(d.answers)
        for h in d.expands:
            if h in opened or set(tree.content(h)) <= shown or len(opened) == limit:
                continue
            opened.append(h)
            shown |= set(tree.content(h))
            queue.append(unfold(tree, h))
    return sorted(answers), opened, asked


@pytest.mark.parametrize("seed", range(12))
def test_at_once_is_as_one_after_another(seed):
    "Same answers, same expansions, same number of calls as the queue, whatever comes first; and the same trace in each run."
    draw = random.Random(seed)
    trees = [add_introduction(some_tree(draw, f"Page {i}", f"p{i}", f"Book {i} ")) for i in range(3)]
    passages = []
    for i, tree in enumerate(trees):
        for node in draw.sample(
            [n for n in tree.nodes if n.type == "content"], min(2, sum(n.type == "content" for n in tree.nodes))
        ):
            passages.append(Passage(f"{i}-{node.id}", tree.title, node.text))
    draw.shuffle(passages)
    if not passages:
        pytest.skip("no text in these trees")
    by_title = {t.title: t for t in trees}
    says = lambda document: wild(seed, by_title[document.split("\n")[0][3:]])(document)
    limit = draw.randint(0, 5)
    fast, again, slow = (
        ask(RDR2(iterations=limit, top_k=9), router, trees, *passages)
        for router in (
            Router(says, random.Random(f"a{seed}")),
            Router(says, random.Random(f"b{seed}")),
            Router(says, one_by_one=True),
        )
    )
    assert json.dumps(fast.to_json()) == json.dumps(again.to_json()) == json.dumps(slow.to_json())
    groups, _ = grouped(hits(*passages), Documents(trees))
    documents, calls = [n for n in fast.trace.nodes if n.kind == "document"], 1
    for g, node in zip((g for g in groups if g.tree), documents, strict=True):
        answers, opened, asked = one_after_another(g.tree, [nodes for nodes, _ in g.places], says, limit)
        calls += asked
        below = [
            n for n in outline(fast) if n.data["heading"] is not None and g.tree.id == documents_of(fast, n).data["id"]
        ]
        assert node.data["answers"] == answers and sorted(opened) == sorted(n.data["heading"] for n in below)
        assert [n.data["iteration"] for n in sorted(below, key=lambda n: n.data["iteration"])] == list(
            range(1, len(opened) + 1)
        )
    assert fast.usage.calls == calls and fast.usage.critical_path <= limit + 2


def documents_of(prediction, node):
    while node.kind != "document":
        node = prediction.trace.nodes[node.parent]
    return node


# --- what a router may write

TOWN = add_introduction(
    build_tree(
        "Tarn",
        [
            (1, "content", "Tarn is a town on a river with a harbour."),
            (1, "structure", "History"),
            (2, "content", "It was founded in 1204 by fishermen."),
            (2, "structure", "War"),
            (3, "content", "It burned down in 1658."),
            (1, "structure", "Sights"),
            (2, "content", "The cathedral has two spires."),
            (2, "content", "The harbour has a lighthouse from 1841."),
            (1, "structure", "People"),
            (2, "structure", "Painters"),
            (3, "content", "Ilsa Brandt was born here."),
        ],
        "t",
    )
)
# 0 Tarn: 1 Introduction (2), 3 History (4; 5 War (6)), 7 Sights (8, 9), 10 People (11 Painters (12))
BARE = build_tree(
    TOWN.title, [(TOWN.depth(n.id) - (n.id == 2), n.type, n.text) for n in TOWN.nodes[1:] if n.id != 1], TOWN.id
)
# as its builder leaves it, without a heading over the introduction: 0 Tarn (1), 2 History (3; 4 War (5)), 6 Sights (7, 8), 9 People (10
# Painters (11))
CHUNK = Passage("c", "Tarn", "founded in 1204 by fishermen.")
RIBE = build_tree("Ribe", [(1, "content", "Ribe is another town, far from the sea.")], "r")
IN_RIBE = Passage("r", "Ribe", "another town, far from the sea")


@pytest.mark.parametrize(
    "output, answers, opened, expected",
    [
        ("<answer>4: It was founded in 1204</answer>", [4], [], {}),
        ("[ANSWER] 4: It was founded", [4], [], {}),  # the other format
        ("**[Answer]** 4 - It was founded", [4], [], {}),
        ("[ANSWER] 4", [4], [], {}),  # no words: the id decides
        ("[ANSWER] 4: it was fuonded in 1204", [4], [], {}),  # letters swapped
        ("[ANSWER] 6: It was founded in 1204", [4], [], dict(moved=1)),  # the words win
        ("[ANSWER] 99: It was founded in 1204", [4], [], dict(moved=1)),
        ("[ANSWER] 4: A dragon lives there.", [], [], dict(text=1)),
        ("[ANSWER] 99", [], [], dict(unknown=1)),
        ("[ANSWER] 8: The cathedral has two spires.", [], [], dict(hidden=1)),
        ("[ANSWER] 3: History", [], [], dict(kind=1)),
        ("[EXPAND] 4: It was founded", [], [], dict(kind=1)),
        ("[EXPAND] 3: History", [], [], dict(open=1)),
        ("[EXPAND] 10: People", [], [], dict(empty=1)),
        ("[EXPAND] 9: ==Sights==", [], [7], dict(moved=1)),
        ("[EXPAND] 1: Introduction", [], [1], dict(introduction=1)),
        ("[EXPAND] 0: Tarn", [], [1], dict(introduction=1)),
        ("[ANSWER] 4: It was founded\n[ANSWER] 4", [4], [], dict(repeated=1)),
        ("[EXPAND] 7 [EXPAND] 7: Sights", [], [7], dict(repeated=1)),
        ("[ANSWER] 4\nCannot answer", [], [], dict(contradicted=1)),
        ("Cannot answer. [EXPAND] 7", [], [], dict(contradicted=1)),
        ("[REFUSE]\n[ANSWER] 4", [], [], dict(contradicted=1)),
        ("Cannot answer", [], [], {}),
        ("The document CANNOT ANSWER the question.", [], [], {}),
        ("It was founded in 1204.", [], [], dict(collapsed=1, unread=1)),
        ("4", [], [], dict(collapsed=1, unread=1)),
        ("[ANSWER]", [], [], dict(collapsed=1, unread=1)),
        ("[ANSWER] none of them\n[EXPAND] all", [], [], dict(collapsed=1, unread=1)),
        ("[ANSWER] -1: Tarn", [], [], dict(unknown=1)),  # the root's number in the paper's print
        ("[ANSWER] 4, 6 and 99", [4], [], dict(hidden=1, unknown=1)),
        ('[ANSWER] 4: "cannot answer" is no part of it', [], [], dict(text=1)),
        (f"[ANSWER] {'9' * 400}", [], [], dict(unknown=1)),
    ],
)
def test_bad_output(output, answers, opened, expected):
    "Each gets its rule, and is counted under its name; the first subtree is the town's history."
    p = ask(
        RDR2(),
        Router(
            lambda d: output if "\t\t4: It was" in d and "\t8:" not in d and "2: Tarn is" not in d else "Cannot answer"
        ),
        [TOWN],
        CHUNK,
    )
    first = routings(p)[0]
    assert first.data["answers"] == answers and [n.data["heading"] for n in routings(p)[1:]] == opened
    found = {k: n for k, n in counts(p).items() if k in COUNTED or k == "unread"}
    assert found == expected
    assert first.data["collapsed"] == ("collapsed" in expected) and all(
        why in EXPELLED for *_, why in first.data["expelled"]
    )
    assert bool(first.notes) == ("collapsed" in expected), "what wasn't in the format is said in the trace"


@pytest.mark.parametrize(
    "output", ["[EXPAND] 7", "[EXPAND] 1 [EXPAND] 7 [EXPAND] 5 [EXPAND] 11", "[EXPAND] 5: War\n[EXPAND] 3: History"]
)
@pytest.mark.parametrize("limit", [0, 1, 3, 5])
@pytest.mark.parametrize("reading", ["paper", "code"])
def test_endless_expansion_ends(output, limit, reading):
    "A router that always says the same: no heading is unfolded twice, and no more of them than the limit."
    if reading == "code":
        output = re.sub(r"\[EXPAND\] (\d+)(?!\d|:)", r"\n[EXPAND] \1: x", output)  # the one form that it reads
    p = ask(RDR2(iterations=limit, reading=reading), Router(lambda d: output), [TOWN], CHUNK)
    headings = [n.data["heading"] for n in routings(p)[1:]]
    assert len(headings) == len(set(headings)) <= limit and p.usage.calls == 2 + len(headings)
    if limit == 5 and reading == "paper":
        assert counts(p).get("seen", 0) + counts(p).get("open", 0) >= 1
    if limit == 0:
        assert counts(p).get("limit", 0) + counts(p).get("open", 0) + counts(p).get("seen", 0) >= 1


@pytest.mark.parametrize("seed", range(12))
def test_any_text_is_read_or_refused(seed):
    "Whatever a model writes: behaviours, a refusal or a collapse, never another error."
    draw = random.Random(seed)
    text = "".join(
        draw.choices(
            [
                "[ANSWER]",
                "[EXPAND]",
                "<answer>",
                "</answer>",
                "<expand>",
                "[",
                "]",
                "<",
                ">",
                " ",
                "\n",
                ":",
                "4",
                "7: Sights",
                "99",
                "Cannot answer",
                "[REFUSE]",
                "é",
                "\u2028",
                "\x00",
                "答",
                "-",
                ",",
            ],
            k=draw.randint(0, 30),
        )
    )
    value = ROUTE["tag"].read(text).value
    d = decide(reveal_nodes(TOWN, [4]), value)
    assert set(d.answers) <= {4} and set(d.expands) <= set(TOWN.headings) and set(d.counts) <= set(COUNTED)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_rendered_is_parsed(name, seed):
    draw = random.Random(seed)
    tree = some_tree(draw)
    said = [
        ("EXPAND" if n.type == "structure" else "ANSWER", n.id, prefix(n.text))
        for n in draw.sample(tree.nodes, min(len(tree), draw.randint(0, 5)))
    ]
    form = FORMATS[name]
    assert form.parse(form.render(said)) == said and all(len(w.split()) <= PREFIX for *_, w in said)
    assert (form.render([]), form.parse("Cannot answer")) == ("Cannot answer", [])


# --- where the readings differ, and what is a fault


def the_public_code(tree, places, says, limit):
    "The public code's loop, told again from its pipeline_inference.py: views, one set, one heading at a time. Answers; headings in order."

    def read(rst):
        text = says(rst.text)
        if "cannot answer" in text.lower():
            return [], []
        answers, expands = [], []
        for line in text.splitlines():
            if not (m := re.match(r"^\[([A-Za-z]+)\]\s*(\d+)\s*:\s*(.*)$", line.strip())):
                continue
            tag, id = m[1].lower(), int(m[2])
            if id not in {*tree.headings, *rst.visible}:
                continue
            if tag == "expand" and tree[id].type == "structure" and not {*tree.descendants(id)} & {*rst.visible}:
                expands.append(id)
            if tag == "answer" and tree[id].type == "content":
                answers.append(id)
        return answers, sorted(expands)

    views = list({reveal_nodes(tree, nodes).visible: reveal_nodes(tree, nodes) for nodes in places}.values())
    seen, waiting, answers, opened = (
        {i for nodes in places for i in nodes if tree[i].type == "content"},
        set(),
        set(),
        [],
    )

    def take(rst):
        found, expands = read(rst)
        answers.update(found)
        for h in expands:
            if not {*tree.descendants(h)} & seen:
                waiting.add(h)

    for view in views:
        take(view)
    for _ in range(limit):
        if not waiting:
            break
        heading = waiting.pop()
        own = [i for i in tree[heading].children if tree[i].type == "content"]
        if not own:
            continue
        opened.append(heading)
        seen.update(own)
        take(reveal_nodes(tree, own))
    return sorted(answers), opened


@pytest.mark.parametrize("seed", range(12))
def test_the_public_code_as_it_is_told_again(seed):
    draw = random.Random(f"code {seed}")
    tree = some_tree(draw, "Page", "p")
    content = [n for n in tree.nodes if n.type == "content"]
    if not content:
        pytest.skip("no text in this tree")
    passages = [Passage(f"{n.id}", tree.title, n.text) for n in draw.sample(content, min(3, len(content)))]

    def says(document):
        lines = []
        for i in range(draw_of(document).randint(0, 8)):
            own = random.Random(f"{seed} {document} {i}")
            tag, id = own.choice(["ANSWER", "EXPAND", "EXPAND", "Expand", "SKIP"]), own.randrange(len(tree) + 2)
            lines.append(
                own.choice(
                    [f"[{tag}] {id}: words of any node", f"[{tag}]{id}:", f"[{tag}] {id}", f"<expand>{id}: x</expand>"]
                )
            )
        return "\n".join(lines + ["Cannot answer"] * (draw_of(document).random() < 0.1)) or "nothing"

    def draw_of(document):
        return random.Random(f"{seed} {document}")

    limit = draw.randint(0, 6)
    p = ask(replace(PUBLIC_CODE, iterations=limit), Router(says), [tree], *passages)
    [group], _ = grouped(hits(*passages), Documents([tree]), RULES["code"])
    answers, opened = the_public_code(tree, [nodes for nodes, _ in group.places], says, limit)
    [document] = [n for n in p.trace.nodes if n.kind == "document"]
    assert (document.data["answers"], [n.data["heading"] for n in routings(p) if n.data["heading"] is not None]) == (
        answers,
        opened,
    )


def test_refused_documents_give_no_passage():
    both = CHUNK, IN_RIBE
    one = ask(RDR2(), Router(lambda d: "[ANSWER] 4" if "Tarn" in d else "Cannot answer"), [TOWN, RIBE], *both)
    founded = f"==History==\n{TOWN[4].text}"
    assert routed(one) == [founded] and "all_refused" not in counts(one)
    assert [n.data["refused"] for n in one.trace.nodes if n.kind == "document"] == [False, True]
    none = ask(RDR2(), router := Router(lambda d: "Cannot answer"), [TOWN, RIBE], *both)
    assert routed(none) == [] and counts(none)["all_refused"] == 1 and both[0].text not in router.read[0].text
    torn = ask(RDR2(), Router(lambda d: "[ANSWER] 4" if "Tarn" in d else "Hm?"), [TOWN, RIBE], *both)
    assert routed(torn) == [founded] and counts(torn)["unread"] == 1


# --- the ablations


def test_ablations():
    chunk = Passage("c", "Tarn", "The cathedral has two spires.")

    def visible(method, says=lambda d: "Cannot answer", **k):
        return [n.data["lit"] for n in routings(ask(method, Router(says), [TOWN], chunk, **k))]

    assert visible(RDR2()) == [[8, 9]]
    assert visible(ABLATIONS["w/o content"]) == [[]]
    assert visible(ABLATIONS["w/o structure"]) == [[8]]
    assert visible(ABLATIONS["w/o router"]) == []
    found = {tuple(visible(ABLATIONS["w/o similarity"], id=f"q{i}")[0]) for i in range(12)}
    assert found == {(2,), (4,), (6,), (8, 9), (12,)}
    assert visible(RDR2(similarity=False), id="q7") == visible(RDR2(similarity=False), id="q7")
    flat = Router(lambda d: "[ANSWER] 9: The harbour")
    p = ask(
        ABLATIONS["w/o structure"],
        flat,
        [TOWN],
        Passage("c", "Tarn", "The cathedral has two spires. The harbour has a lighthouse from 1841."),
    )
    # a passage is accepted as a whole
    assert flat.seen == ["0: Tarn\n8: The cathedral has two spires.\n9: The harbour has a lighthouse from 1841."]
    assert routed(p) == [f"{TOWN[8].text}\n{TOWN[9].text}"]
    code = Router(lambda d: "[ANSWER] 8: The harbour")
    leaves = {tuple(visible(RDR2(similarity=False, reading="code"), id=f"q{i}")[0]) for i in range(12)}
    assert leaves == {(2,), (4,), (6,), (8, 9), (12,)}  # a leaf's section, drawn for each passage
    p = ask(
        RDR2(structure=False, reading="code"),
        code,
        [BARE],
        Passage("c", "Tarn", "The cathedral has two spires. The harbour has a lighthouse from 1841."),
    )
    assert code.seen == [
        "0: Tarn\n6: ==Sights==\n7: The cathedral has two spires.\n8: The harbour has a lighthouse from 1841."
    ]
    assert routed(p) == [f"==Sights==\n{TOWN[9].text}"]
    expands = lambda d: "[EXPAND] 1" if "two spires" in d else "Cannot answer"
    assert visible(ABLATIONS["w/o [EXPAND]"], expands) == [[8, 9]] and visible(RDR2(), expands) == [[8, 9], [2]]
    p = ask(ABLATIONS["w/o [REFUSE]"], Router(expands), [TOWN], chunk)
    assert [n.data["answers"] for n in routings(p)] == [
        [],
        [2],
    ]  # who only expands has chosen; who refuses the introduction has it
    assert [
        n.data["answers"]
        for n in routings(ask(ABLATIONS["w/o [REFUSE]"], Router(lambda d: "Cannot answer"), [TOWN], chunk))
    ] == [[8]]


@pytest.mark.parametrize(
    "dataset, answer, words",
    [
        ("asqa", "an answer, another", "about 65 words"),
        ("eli5", "an answer, another", "about 131 words"),
        ("ambigdocs", "an answer, another", "about 65 words"),
        ("qampari", "an answer, another", ""),
        ("world/qampari", "an answer, another", ""),
    ],
)
def test_readers_by_data_set_and_their_length(dataset, answer, words):
    for method in (
        RDR2(length_control=True),
        Reader(length_control=True),
        ASC(length_control=True, samples=1, summarise=False),
    ):
        p = ask(method, router := Router(lambda d: "[ANSWER] 4"), [TOWN], CHUNK, dataset=dataset)
        assert p.answer == answer and words in router.read[0].text and bool(words) == ("about" in router.read[0].text)


def test_settings_out_of_range_and_what_is_missing():
    for wrong, message in (
        (lambda: RDR2(iterations=-1), "iterations should be at least 0"),
        (lambda: RDR2(top_k=-1), "top_k should be at least 0"),
        (lambda: RDR2(format="xml"), "format"),
        (lambda: RDR2(reading="papr"), "did you mean 'paper'"),
        (lambda: configure(RDR2(), views="document"), "views"),
        (lambda: ASC(agree=2.0), "share"),
        (lambda: ASC(temperature=0.0), "above 0"),
        (lambda: FLARE(beta=-0.1), "probability"),
    ):
        with pytest.raises(UsageError, match=message):
            wrong()
    for method in (RDR2(), Reader(), FLARE(), ASC(), Served()):
        with pytest.raises(UsageError, match="empty"):
            ask(method, Router(None), [TOWN], CHUNK, question=" ")
    with pytest.raises(UsageError, match="has none"):
        asyncio.run(RDR2()(Question("q", "asqa", "?"), Context(Router(None), Shelf(CHUNK))))
    assert configure(RDR2(), iterations="3", structure="no", format="enclose") == RDR2(
        iterations=3, structure=False, format="enclose"
    )


# --- runs: documents, routers, keys


def go(methods, asked, profile, **given):
    return run(methods, asked, profile, **dict(store=Store(), progress=False) | given)


def test_a_router_of_its_own(tmp_path, server):
    "A profile's router is another model; its calls are in the call log under its name, and a budget doesn't silently hold for one of two."
    page = dict(
        id="t",
        title="Tarn",
        summary="Tarn is a town.",
        sections=[dict(title="History", text="It was founded in 1204 by fishermen.", sections=[])],
    )
    (tmp_path / "articles_towns.jsonl").write_text(json.dumps(page) + "\n")
    server.script(rules=[["Find the nodes", "[ANSWER] 4: It was founded"], ["Instruction", "In 1204."]])
    store, asked = Store(), dict(asqa=[Question("q", "asqa", "When was Tarn founded?")])
    shelf = LazyRetriever(lambda: Shelf(CHUNK), "one shelf", "a shelf")

    def both(store, reader, router, **fields):
        models = dict(chat=OpenAIClient(reader, server.url), router=OpenAIClient(router, server.url))
        return go(
            METHODS,
            asked,
            load_profile("local", corpus=f"trees={tmp_path}", **fields),
            corpora=dict(asqa=shelf),
            store=store,
            **models,
        )

    results = both(store, "reader", "router", endpoint=server.url)
    assert not results.failures
    assert results.rows[0].answer == "In 1204."
    assert routed(results.rows[0].prediction) == ["==History==\nIt was founded in 1204 by fishermen."]
    assert {r["model"]: r["calls"] for r in store.usage(by=("model",))} == dict(reader=1, router=1)
    with pytest.raises(UsageError, match="one paid model"):
        both(Store(), "gpt-4o-mini", "gpt-4o", budget=1.0)


# --- FLARE, ASC, Served


class Teller(FakeChat):
    "Sentences by what is written so far, with each word's log-probability."

    def __init__(self, says, logprobs=True, scores=None):
        super().__init__(scores=scores and (lambda request, continuation: scores(continuation)))
        self.says, self.logprobs = says, logprobs

    def reply(self, request, sample):
        text, words = self.says(request.inputs)
        return Completion(text, logprobs=tuple(words) if self.logprobs and request.logprobs else None)


def told(sure):
    return lambda inputs: (
        ("DONE", [("DONE", -0.01)])
        if inputs["answer"]
        else (
            "It was built by Ida." if inputs["documents"] else "It was built by Ada.",
            [("It was", -0.01), (" built by", -0.02), (" Ada", -0.01 if sure else -3.0), (".", 0.0)],
        )
    )


def test_flare_searches_first_and_then_only_where_it_is_unsure():
    shelf = Shelf(CHUNK)
    queries = []
    shelf.search = lambda qs, k: [queries.append(q) or shelf.hits(q, k) for q in qs]
    for sure, wanted, calls in ((True, ["Who?"], 2), (False, ["Who?", "It was built by ."], 3)):
        queries.clear()
        p = asyncio.run(FLARE()(Question("q", "asqa", "Who?"), Context(Teller(told(sure)), shelf)))
        assert (p.answer, queries, p.usage.calls, p.usage.critical_path) == (
            "It was built by Ida.",
            wanted,
            calls,
            calls,
        )
        assert [n.data.get("sure") for n in p.trace.nodes if n.kind == "sentence"] == [sure, True]
    for fields, wanted in (
        (dict(theta=0.0), ["Who?"]),
        (dict(beta=1.0), ["Who?"]),
    ):
        queries.clear()  # nothing is unsure; nothing is left of the sentence
        asyncio.run(FLARE(**fields)(Question("q", "asqa", "Who?"), Context(Teller(told(False)), shelf)))
        assert queries == wanted


def test_flare_ends():
    endless = Teller(lambda inputs: (f"Sentence {len(inputs['answer'].split())}.", [("x", -0.01)]))
    assert ask(FLARE(sentences=4), endless, [], CHUNK, question="Who?").usage.calls == 4
    again = Teller(lambda inputs: ("The same.", [("x", -0.01)]))
    assert ask(FLARE(), again, [], CHUNK, question="Who?").answer == "The same."

    class Mute(Teller):
        async def complete(self, request):
            return (
                [Completion("DONE", logprobs=(("DONE", -0.01),))]
                if request.prompt.task == "next_sentence"
                else [Completion("At once.")]
            )

    p = ask(FLARE(), Mute(None), [], CHUNK, question="Who?")
    assert p.answer == "At once." and "written at once" in p.trace.nodes[-1].notes[0]


class Sampler(Teller):
    "Samples: the first sentence in all, a second in every other, one of its own in each."

    OWN = "abacus basalt copper dahlia ember fennel gravel hazel ivory jasper".split()

    def __init__(self):
        super().__init__(None)

    def reply(self, request, i):
        if request.prompt.task.startswith("combine"):
            return Completion((" " if "text" in request.prompt.name else ", ").join(request.inputs["sentences"]))
        if request.prompt.task == "read_list":
            return Completion(f"Ribe, {'Tarn' if i % 2 else 'Usk'}, Place{i}")
        return Completion(
            f"The mill was built in 1801. {'Ada Roth owned it.' if i % 2 else ''} Nobody expects {self.OWN[i % 10]} {self.OWN[-i % 10]}."
        )


@pytest.mark.parametrize("summarise, calls, path", [(True, 2, 2), (False, 1, 1)])
def test_asc_keeps_what_many_samples_say(summarise, calls, path):
    words = dict(summarise=summarise, samples=10, compare="words")
    p = ask(ASC(**words), sampler := Sampler(), [], CHUNK, question="What?")
    assert p.answer == "The mill was built in 1801. Ada Roth owned it." and (
        len(sampler.asked),
        p.usage.critical_path,
    ) == (calls, path)
    assert sampler.asked[0].n == 10 and sampler.asked[0].temperature == 0.7
    said = {c["text"]: (c["said"], c["kept"]) for c in p.trace.nodes[-1].data["clusters"]}
    assert said["The mill was built in 1801."] == (10, True) and said["Ada Roth owned it."] == (5, True)
    listed = ask(ASC(**words), Sampler(), [], CHUNK, dataset="qampari")
    assert listed.answer == "Ribe, Usk, Tarn"
    alone = ask(ASC(**words, agree=1.0, top_k=0), sampler := Sampler(), [], CHUNK)
    assert alone.answer == "The mill was built in 1801." and "## Paragraph" not in sampler.asked[0].text


def test_a_view_whose_labelling_call_fails_is_left_out_and_said(capsys):
    class Strong:
        endpoint = model = "strong"

        async def complete(self, request):
            if "Ribe" in request.text:
                raise CallFailed("content filter", "refused", "take another model")
            return [Completion("[]" if "no list" in request.text else '[{"id": 2, "tag": "answer"}]')]

    asked, town, ribe = (Question("q", "asqa", "Where?"), *(reveal_nodes(TOWN, [2]), reveal_nodes(RIBE, [1])))
    empty = replace(asked, question="Where, no list?")
    found = asyncio.run(curated([(asked, town), (empty, town), (asked, ribe)], Strong()))
    assert [s.kind for s in found] == ["ANSWER", "REFUSE"] and "1 of 3 views have no label" in capsys.readouterr().err
    with pytest.raises(CallFailed, match="refused"):
        asyncio.run(curated([(asked, ribe)], Strong()))
