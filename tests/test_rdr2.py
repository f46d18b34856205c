"RDR²: the paper's own case step by step, Algorithm 1 and the loop against plain re-tellings of them, every bad output of a router, the readings, the baselines."

import asyncio, itertools, json, random, re
from dataclasses import replace

import pytest

from fakes import FakeChat, FakeShelf
from sample_questions import SOURCES, folder_of
from treekit.config import UsageError, load_profile
from treekit.core.types import Passage, Question
from treekit.experiments.resources import LazyRetriever, load, load_documents
from treekit.corpora.documents import build_tree, add_introduction
from treekit.core.prompts import CallFailed, Completion
from treekit.llm.openai_client import OpenAIClient
from treekit.papers.rdr2.baselines import ASC, FLARE, METHODS as BASELINES, SERVED, Served
from treekit.core.method import Context, configure
from treekit.corpora.lookup import Documents
from treekit.papers.rdr2.method import ABLATIONS, ITERATIONS, METHODS, PUBLIC_CODE, RDR2, TOP_K, grouped
from treekit.papers.rdr2.public_code import CODE, RULES
from treekit.papers.rdr2.readers import READ, Reader
from treekit.figures.verdicts import published
from treekit.retrieval.bm25 import Hit
from treekit.papers.rdr2.training import ROUTER, SETTINGS
from treekit.papers.rdr2.router import (
    COUNTED,
    CURATED,
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
from treekit.llm.cached_client import CachedClient
from treekit.corpora.tree_store import build


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
    parts = [
        (1, "Introduction", 2),
        (1, "History", 0),
        (2, "Initial planning and construction", 11),
        (2, "1990s", 1),
        (2, "2000s", 1),
        (2, "2010s", 8),
        (1, "Firsts, bests, and other records", 0),
        (2, "Firsts and ones of a kind", 9),
        (2, "Records", 4),
        (2, "Awards", 2),
        (1, "Events", 5),
        (1, "Areas and attractions", 1),
        (2, "Star Mall", 100),
        (2, "Tower", 10),
        (1, "Former Attractions", 3),
    ]
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
    for depth, heading, content in parts:
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
    printed = ask(RDR2(headings=False), Router(the_router), [park, TITAN], *chunks)
    assert routed(printed) == ["\n".join(park[i].text for i in (20, 42, 45)), TITAN[1].text]  # as Table 11 prints it
    assert (p.usage.calls, p.usage.critical_path) == (
        6,
        3,
    )  # three subtrees at once, two expansions at once, the reader
    for i in park.headings:
        assert all(f"{i}: " in seen for seen in router.seen if seen.startswith("0: Six"))  # all structure nodes stay
    assert router.read[0].inputs["documents"][0].title == "Six Flags Over Texas" and "19:" not in router.read[0].text
    together = ask(RDR2(views="document"), Router(lambda d: "Cannot answer"), [park, TITAN], *chunks)
    assert [n.data["lit"] for n in routings(together)] == [[18, 20], [2]]


def test_the_case_in_the_other_format_and_by_another_model():
    "The router is another model than the reader, and is asked for the routing alone."

    def enclosed(document):
        return re.sub(r"\[(\w+)\] (.*)", lambda m: f"<{m[1].lower()}>{m[2]}</{m[1].lower()}>", the_router(document))

    reader, router = Router(None), Router(enclosed)
    context = Context(
        reader,
        Shelf(Passage("2", "Six Flags Over Texas", "the Titan became the park's tallest coaster in 2001")),
        documents=Documents([the_park()]),
        router=router,
    )
    p = asyncio.run(RDR2(format="enclose")(Question("q", "asqa", "Tallest ride?"), context))
    assert p.trace.nodes[1].data["answers"] == [20, 42, 45]
    assert (len(router.seen), len(router.read), len(reader.seen), len(reader.read)) == (2, 0, 0, 1)
    assert (
        "<expand>15: ==A heading==</expand>" in ROUTE["enclose"].template
        and "[EXPAND] 15: ==A heading==" in ROUTE["tag"].template
    )
    assert RDR2().format == SETTINGS[ROUTER].format == "tag"  # App. A.2, as C.2, Table 12 and the public code write it


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


@pytest.mark.parametrize("seed", range(60))
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


def test_no_nodes_and_the_root_light_nothing():
    tree = the_park()
    assert reveal_nodes(tree, []).visible == reveal_nodes(tree, [0]).visible == ()
    assert [unfold(tree, h).visible for h in (4, 41)] == [(), (42, 43, 44, 45)]


def test_a_routers_thoughts_and_passages_of_unknown_documents_stand_in_the_trace():
    class Thinker(Router):
        def reply(self, request, sample):
            thought = "The second paragraph, perhaps." if request.prompt.task == "route" else ""
            return replace(super().reply(request, sample), tokens_in=1, tokens_out=1, thinking=thought)

    p = ask(
        RDR2(),
        Thinker(lambda d: "[ANSWER] 2"),
        [TITAN],
        Passage("1", TITAN.title, "Titan is a coaster of steel in Arlington"),
        Passage("2", "Elsewhere", "Nobody knows this page."),
    )
    assert [n.data["thinking"] for n in routings(p)] == [["The second paragraph, perhaps."]]
    assert p.trace.nodes[0].notes == ["in no known document, and so read as retrieved: 1 of 2 passages"] and counts(
        p
    ) == dict(plain=1)


# --- a subtree that is too long


@pytest.mark.parametrize("seed", range(40))
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


@pytest.mark.long
def test_a_page_of_twenty_thousand_headings_is_routed():
    parishes = build_tree(
        "Register",
        [
            r
            for i in range(20000)
            for r in (
                (1 + i % 3, "structure", f"Parish {i}"),
                (2 + i % 3, "content", f"Parish number {i} has a mill of {1000 + i}, built of stone."),
            )
        ],
        "r",
    )
    says = "[ANSWER] 20000: Parish number 9999 has a mill\n[EXPAND] 39999: ==Parish 19999=="
    chunk, router = (
        Passage("r#1", "Register", "Parish number 9999 has a mill of 10999, built of stone."),
        Router(lambda d: says),
    )
    p = ask(RDR2(), router, [parishes], chunk)
    [view], [seen] = routings(p), router.seen
    assert 59_000 < len(seen) <= 60_000 and "20000: Parish number 9999" in seen and "39999:" not in seen
    assert (view.data["answers"], counts(p)) == (
        [20000],
        dict(shortened=1, hidden=1),
    ) and "farther off were left out" in view.notes[0]
    whole = ask(RDR2(longest=None), router, [parishes], chunk)
    assert [v.data["heading"] for v in routings(whole)] == [None, 39999]
    assert not any(v.notes for v in routings(whole))
    assert "shortened" not in counts(whole)


def test_words_that_differ_in_a_letter_mean_the_node_that_has_them():
    tree = build_tree(
        "Park",
        [
            r
            for d in (1980, 1990, 2000)
            for r in ((1, "structure", f"{d}s"), (2, "content", f"In the {d}s it grew by {d % 97} rides."))
        ],
    )
    rst = reveal_nodes(tree, [2])
    for said, expands, found in (
        ("[EXPAND] 3: 1990s", (3,), {}),
        ("[EXPAND] 5: 1990s", (3,), dict(moved=1)),
        ("[EXPAND] 77: ==1990s==", (3,), dict(moved=1)),
        ("[EXPAND] 3: 1991s", (3,), {}),
        ("[EXPAND] 77: 1970s", (), dict(unknown=1)),
    ):
        d = decide(rst, read_behaviours(said))
        assert (d.expands, {k: n for k, n in d.counts.items() if k != "half_open"}) == (expands, found), said


def test_a_long_section_is_shown_around_its_passage():
    items = build_tree(
        "List",
        [
            (1, "structure", "Mills"),
            *((2, "content", f"* The mill of place number {i} was built in {1000 + i}.") for i in range(5000)),
        ],
        "l",
    )
    router = Router(lambda d: "Cannot answer")
    p = ask(
        RDR2(longest=5000),
        router,
        [items],
        Passage("l#1", "List", "* The mill of place number 4000 was built in 5000."),
    )
    visible = routings(p)[0].data["lit"]
    assert 4002 in visible and visible == list(range(visible[0], visible[-1] + 1))
    assert 50 < len(visible) < 120 and abs((visible[0] + visible[-1]) / 2 - 4002) <= 1


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


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(20, 80))])
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


def test_documents_and_headings_are_asked_at_once():
    trees = [
        build_tree(
            f"Page {i}",
            [
                (1, "content", f"The opening words of page number {i} about letters {'abc'[i] * 9}."),
                *(
                    (1 + j % 2, *r)
                    for j, r in enumerate(
                        [("structure", f"Part {k} of {i}"), ("content", f"Text {k} of {i}.")][m]
                        for k in range(4)
                        for m in (0, 1)
                    )
                ),
            ],
            f"{i}",
        )
        for i in range(3)
    ]
    router = Router(
        lambda d: (
            "\n".join(f"[EXPAND] {m}" for m in re.findall(r"(\d+): ==Part", d))
            if "The opening" in d
            else "Cannot answer"
        ),
        random.Random(0),
    )
    p = ask(RDR2(), router, trees, *(Passage(str(i), t.title, t[1].text) for i, t in enumerate(trees)))
    assert (
        (p.usage.calls, p.usage.critical_path) == (3 + 12 + 1, 3) and router.most >= 9 and counts(p)["all_refused"] == 1
    )


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


@pytest.mark.parametrize("seed", range(30))
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
@pytest.mark.parametrize("seed", range(20))
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
    curated = [dict(id=i, tag=tag.lower(), explanation=w) for tag, i, w in said]
    assert CURATED.parse(CURATED.render(curated)) == curated


# --- where the readings differ, and what is a fault


@pytest.mark.parametrize("reading", ["paper", "code"])
def test_a_refusal_beside_behaviours_voids_them(reading):
    p = ask(RDR2(reading=reading), Router(lambda d: "[ANSWER] 3: It was founded\nCannot answer"), [BARE], CHUNK)
    assert routings(p)[0].data["answers"] == [] and counts(p)["all_refused"] == 1 and routed(p) == []


def test_routed_passages_with_and_without_headings():
    says = lambda d: "[ANSWER] 5: It burned" if "It burned" in d else "[EXPAND] 4: ===War==="
    assert routed(ask(PUBLIC_CODE, Router(says), [BARE], CHUNK)) == ["==History==\n===War===\nIt burned down in 1658."]
    says = lambda d: "[ANSWER] 6: It burned" if "It burned" in d else "[EXPAND] 5"
    assert routed(ask(RDR2(), Router(says), [BARE], CHUNK)) == ["==History==\n===War===\nIt burned down in 1658."]
    assert routed(ask(RDR2(headings=False), Router(says), [BARE], CHUNK)) == ["It burned down in 1658."]
    lists = build_tree(
        "List",
        [
            (1, "content", "The owners were:"),
            (2, "content", "* Ada Roth of Ribe, a widow"),
            (2, "content", "* Otto Venn of Tarn, a smith"),
        ],
        "l",
    )
    says = lambda d: "[ANSWER] " + re.search(r"(\d+: \* Otto)", d)[1]
    for method, text in (
        (RDR2(headings=False), "* Otto Venn of Tarn, a smith"),
        (RDR2(), "==Introduction==\nThe owners were:\n* Otto Venn of Tarn, a smith"),
        (PUBLIC_CODE, "The owners were:\n* Otto Venn of Tarn, a smith"),
    ):
        p = ask(method, router := Router(says), [lists], Passage("1", "List", "Otto Venn of Tarn, a smith"))
        assert routed(p) == [text] and f"## Paragraph\nList\n{text}\n\n## Question" in router.read[0].text


def test_an_introduction_can_be_reached_in_the_papers_reading_alone():
    "The public code never gets there once anything is visible; how often that would have mattered is counted."
    for method, line in ((RDR2(), "[EXPAND] 1: Introduction"), (PUBLIC_CODE, "[EXPAND] 0: Tarn")):
        says = lambda d: "[ANSWER] " + re.search(r"(\d+: Tarn is)", d)[1] if "Tarn is a town" in d else line
        p = ask(method, Router(says), [BARE], CHUNK)
        if method == PUBLIC_CODE:
            assert (routed(p), counts(p)["open"]) == ([], 1)
        else:
            assert (routed(p), counts(p)["introduction"]) == (
                ["==Introduction==\nTarn is a town on a river with a harbour."],
                1,
            )


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


@pytest.mark.parametrize("seed", range(60))
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


def test_the_public_code_is_named_and_has_no_fallback():
    assert (
        CODE.startswith("XuLingnan/RDR2@")
        and PUBLIC_CODE == RDR2(reading="code", longest=None)
        and not PUBLIC_CODE.fallback
    )
    for method in (RDR2(), PUBLIC_CODE):
        p = ask(method, router := Router(lambda d: "Cannot answer"), [BARE], CHUNK)
        assert (
            routed(p) == [] and "## Paragraph\n\n\n## Question" in router.read[0].text
        )  # an empty section, as in the code


def test_the_code_matches_headings_too():
    "A passage that runs from one section into a top-level one: the heading between lights the introduction."
    across = Passage("a", "Tarn", "It burned down in 1658. The cathedral has two spires.")
    visible = {
        reading: routings(ask(RDR2(reading=reading), Router(lambda d: "Cannot answer"), [BARE], across))[0].data["lit"]
        for reading in ("paper", "code")
    }
    assert visible == dict(paper=[6, 8, 9], code=[1, 5, 7, 8])


def test_the_code_takes_the_end_of_a_chunk_that_runs_over_the_page():
    "DPR's last chunk of a page is filled up from its beginning."
    long = build_tree(
        "Long",
        [
            (1, "content", f"Paragraph number {i} tells of the {w} and of nothing else at all.")
            for i, w in enumerate("abbey bakery castle dairy embassy factory garden harbour".split())
        ],
        "long",
    )
    over = Passage("long#9", "Long", f"{long[8].text} {long[1].text}")
    for reading, at in (("paper", (2, 9)), ("code", (8,))):
        [group], _ = grouped(hits(over), Documents([long]), RULES[reading])
        assert group.places[0][0] == at and group.places[0][1] == 0


def test_empty_headings_cost_the_code_an_iteration():
    says = lambda d: "[EXPAND] 9: People\n[EXPAND] 6: Sights" if "It was founded" in d else "Cannot answer"
    p = ask(RDR2(reading="code", iterations=1), Router(says), [BARE], CHUNK)
    assert [n.data["heading"] for n in routings(p)] == [None] and counts(p)["limit"] == 1
    p = ask(
        RDR2(iterations=1),
        Router(lambda d: "[EXPAND] 10: People\n[EXPAND] 7: Sights" if "It was founded" in d else "Cannot answer"),
        [BARE],
        CHUNK,
    )
    assert [n.data["heading"] for n in routings(p)] == [None, 7] and counts(p)["empty"] == 1


def test_what_was_seen_and_what_was_retrieved():
    "The paper passes over a heading whose text was shown; the code over one with a retrieved passage anywhere below it."
    second = Passage("d", "Tarn", "It burned down in 1658.")
    p = ask(
        RDR2(reading="code"),
        Router(
            lambda d: (
                "[EXPAND] 2: History\n[EXPAND] 6: Sights"
                if "It burned" in d and "It was founded" not in d
                else "Cannot answer"
            )
        ),
        [BARE],
        second,
    )
    assert counts(p)["open"] == 1 and [n.data["heading"] for n in routings(p)] == [None, 6]
    two = lambda d: "[EXPAND] 4: War" if "It was founded" in d else "Cannot answer"
    p = ask(RDR2(reading="code"), Router(two), [BARE], CHUNK, second)  # what stands below War was retrieved
    assert counts(p)["seen"] == 1 and len(routings(p)) == 2
    p = ask(
        RDR2(),
        Router(lambda d: "[EXPAND] 3: History" if "It burned" in d and "It was founded" not in d else "Cannot answer"),
        [BARE],
        second,
    )
    assert [n.data["heading"] for n in routings(p)] == [None, 3] and counts(p)["half_open"] == 1


def test_titles_in_the_order_a_b_a():
    "The third passage lies in A's tree; it is counted, since the public code looks for it in B's."
    second = Passage("d", "Tarn", "The harbour has a lighthouse from 1841.")
    groups, interleaved = grouped(hits(CHUNK, IN_RIBE, second), Documents([TOWN, RIBE]))
    assert [(g.tree.title, [nodes for nodes, _ in g.places]) for g in groups] == [
        ("Tarn", [(4,), (9,)]),
        ("Ribe", [(2,)]),
    ]
    assert interleaved == 1
    assert grouped(hits(CHUNK, second, IN_RIBE), Documents([TOWN, RIBE]))[1] == 0


def test_passages_without_a_document_stay_as_they_are_and_where_they_are():
    lost, foreign = (
        Passage("x", "Nowhere", "Of this there is no page."),
        Passage(
            "y",
            "Tarn",
            "Quarterly figures were published on Friday by the shipping company in another country altogether.",
        ),
    )
    p = ask(RDR2(), Router(lambda d: "[ANSWER] 4"), [TOWN], lost, CHUNK, foreign)
    assert routed(p) == [lost.text, f"==History==\n{TOWN[4].text}", foreign.text] and counts(p)["plain"] == 2
    p = ask(RDR2(), Router(lambda d: "Cannot answer"), [], lost, foreign)
    assert (routed(p), counts(p), p.usage.calls) == ([lost.text, foreign.text], dict(plain=2), 1)


def test_refused_documents_and_the_fallback():
    both = CHUNK, IN_RIBE
    one = ask(RDR2(), Router(lambda d: "[ANSWER] 4" if "Tarn" in d else "Cannot answer"), [TOWN, RIBE], *both)
    founded = f"==History==\n{TOWN[4].text}"
    assert routed(one) == [founded] and "all_refused" not in counts(one)
    assert [n.data["refused"] for n in one.trace.nodes if n.kind == "document"] == [False, True]
    for fallback, read in ((True, [p.text for p in both]), (False, [])):
        none = ask(RDR2(fallback=fallback), router := Router(lambda d: "Cannot answer"), [TOWN, RIBE], *both)
        assert routed(none) == read and counts(none)["all_refused"] == 1
        assert (f"## Paragraph\n{both[0].title}\n{both[0].text}" in router.read[0].text) == fallback
        torn = ask(
            RDR2(fallback=fallback), Router(lambda d: "[ANSWER] 4" if "Tarn" in d else "Hm?"), [TOWN, RIBE], *both
        )
        assert routed(torn) == [founded, both[1].text][: 1 + fallback] and counts(torn)["unread"] == 1


def test_equal_subtrees_are_asked_once():
    p = ask(
        RDR2(),
        Router(lambda d: "Cannot answer"),
        [TOWN],
        Passage("a", "Tarn", "The cathedral has two spires."),
        Passage("b", "Tarn", "The harbour has a lighthouse from 1841."),
    )
    assert (p.usage.calls, counts(p)["twins"]) == (2, 1) and routings(p)[0].data["matched"] == [8, 9]


# --- the ablations


def test_ablations():
    chunk = Passage("c", "Tarn", "The cathedral has two spires.")

    def visible(method, says=lambda d: "Cannot answer", **k):
        return [n.data["lit"] for n in routings(ask(method, Router(says), [TOWN], chunk, **k))]

    assert visible(RDR2()) == [[8, 9]]
    assert visible(ABLATIONS["w/o content"]) == [[]]
    assert visible(ABLATIONS["w/o structure"]) == [[8]]
    assert visible(ABLATIONS["w/o router"]) == []
    found = {tuple(visible(ABLATIONS["w/o similarity"], id=f"q{i}")[0]) for i in range(40)}
    assert found == {(2,), (4,), (6,), (8, 9), (12,)}
    assert visible(RDR2(similarity=False), id="q7") == visible(RDR2(similarity=False), id="q7")
    assert len({tuple(visible(RDR2(similarity=False, seed=s))[0]) for s in range(20)}) > 2
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
    leaves = {tuple(visible(RDR2(similarity=False, reading="code"), id=f"q{i}")[0]) for i in range(40)}
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


def test_the_rows_are_the_printed_ones():
    printed = lambda artefact: {r["method"] for r in published("rdr2", artefact)}
    assert set(ABLATIONS) == printed("table2") and set(ITERATIONS) == printed("table9")
    assert set(TOP_K["RDR2 (Ours)"]) == set(TOP_K["Retrieve-and-Read"]) == printed("table8")
    assert printed("table1") | {r.removesuffix("(FT)") for r in printed("table5") | printed("table6")} == set(
        METHODS
    ) | set(BASELINES)
    rows = published("rdr2", "table7") + published("rdr2", "table9")
    value = {(r["artefact"], r["method"], r["metric"]): r["value"] for r in rows}
    # why w/o [EXPAND] is no field
    assert all(
        value["table7", "w/o [expand]", m] == v
        for (a, name, m), v in value.items()
        if (a, name) == ("table9", "iter-0") and ("table7", "w/o [expand]", m) in value
    )


def test_without_passages_it_is_the_reader_alone():
    p = ask(RDR2(top_k=0), router := Router(None), [TOWN], CHUNK)
    assert (routed(p), p.usage.calls) == ([], 1) and router.read[0].text == asyncio_read(Reader(top_k=0))
    assert (
        ask(RDR2(routing=False), other := Router(None), [TOWN], CHUNK).usage.calls == 1 and "1204" in other.read[0].text
    )
    assert (RDR2().requires, RDR2(routing=False).requires, RDR2(top_k=0).requires) == (("documents", "router"), (), ())


def asyncio_read(method):
    ask(method, router := Router(None), [TOWN], CHUNK)
    return router.read[0].text


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
        (lambda: configure(RDR2(), views="all"), "views"),
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


def test_a_failing_call_leaves_nothing_running():
    class Failing(Router):
        def reply(self, request, sample):
            return CallFailed("server", "it broke", "mend it")

    async def main():
        with pytest.raises(CallFailed):
            await RDR2()(
                Question("q", "asqa", "?"),
                Context(Failing(lambda d: "", random.Random(0)), Shelf(CHUNK), documents=Documents([TOWN])),
            )
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


# --- runs: documents, routers, keys

PROFILE = load_profile("offline", search_scope="documents")


def go(methods, asked, profile, **given):
    return run(methods, asked, profile, **dict(store=Store(), progress=False) | given)


@pytest.mark.long
def test_a_run_gives_documents_and_reads_predictions_again():
    asked = dict(asqa=load("asqa", n=3))
    store = Store()
    first = go(METHODS, asked, PROFILE, store=store)
    assert not first.failures and first.corpora["asqa"] == "400 documents in chunks of 100 words"
    assert all(n.data["chunks"] for r in first.rows for n in r.trace.nodes if n.kind == "document")
    again = go(METHODS, asked, PROFILE, store=store)
    assert all(r.stored for r in again.rows) and [r.answer for r in again.rows] == [r.answer for r in first.rows]


def test_documents_and_router_are_part_of_the_key():
    shelf, asked = (
        LazyRetriever(lambda: Shelf(CHUNK), "one shelf", "a shelf"),
        dict(asqa=[Question("q", "asqa", "When was Tarn founded?")]),
    )
    methods = {"RDR2 (Ours)": RDR2(), "Retrieve-and-Read": Reader()}

    def results(router=None, **fields):
        return go(
            methods, asked, load_profile("offline", **fields), corpora=dict(asqa=shelf), store=store, router=router
        )

    store, router = Store(), Router(lambda d: "Cannot answer")
    keys = [[r.key for r in found.rows] for found in (results(), results(router), results(data="synthetic:100"))]
    assert len({k[0] for k in keys}) == 3 and len({k[1] for k in keys}) == 1
    assert not router.seen and not results(router).failures  # Tarn is no page of the world


def test_a_router_of_its_own(tmp_path, server):
    "A profile's router is another model; its calls stand in the ledger under its name, and a budget doesn't silently hold for one of two."
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
            load_profile("local", documents=str(tmp_path), **fields),
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


def test_a_tree_store_and_documents_without_ids(tmp_path):
    "The same predictions from a store, from a file, and for pages that have no ids."
    pages = [
        dict(
            title=t,
            summary=f"{t} is a town on a river with a harbour.",
            sections=[dict(title="History", text=f"It was founded in {y} by fishermen of {t}.", sections=[])],
        )
        for t, y in (("Tarn", 1204), ("Ribe", 1302))
    ]
    (tmp_path / "articles_towns.jsonl").write_text("\n".join(map(json.dumps, pages)) + "\n")
    build([dict(p, id=p["title"]) for p in pages], tmp_path / "towns.trees", progress=False).close()
    shelf = LazyRetriever(
        lambda: Shelf(
            *(Passage(t, t, f"founded in {y} by fishermen of {t}.") for t, y in (("Tarn", 1204), ("Ribe", 1302)))
        ),
        "one shelf",
        "a shelf",
    )
    asked, found = dict(asqa=[Question("q", "asqa", "When was Tarn founded?")]), []
    for place in ("articles_towns.jsonl", "towns.trees"):
        profile = load_profile("offline", documents=str(tmp_path / place))
        results = go(METHODS, asked, profile, corpora=dict(asqa=shelf), router=Router(lambda d: "[ANSWER] 4"))
        assert not results.failures
        found.append(routed(results.rows[0].prediction))
        chunked = go(
            {"Retrieve-and-Read": Reader()}, asked, replace(profile, search_scope="documents", retriever="bm25s")
        )
        assert chunked.corpora == dict(asqa="2 documents in chunks of 100 words") and not chunked.failures
    assert (
        found
        == [[f"==History==\nIt was founded in {y} by fishermen of {t}." for t, y in (("Tarn", 1204), ("Ribe", 1302))]]
        * 2
    )


def test_where_there_are_no_documents(tmp_path):
    asked = dict(asqa=[Question("q", "asqa", "When?")])
    with pytest.raises(UsageError, match="set documents ="):
        go(METHODS, asked, load_profile("offline", data=str(tmp_path)), corpora=dict(asqa=[CHUNK]))
    profile = load_profile("offline", data=str(tmp_path), retriever="bm25s")
    assert not go({"Retrieve-and-Read": Reader()}, asked, profile, corpora=dict(asqa=[CHUNK])).failures


@pytest.mark.parametrize("source", SOURCES)
def test_chunks_of_pages_find_their_pages(source):
    "By id and by title."
    folder = folder_of(source, "articles_freshwiki.jsonl")
    documents = load_documents("asqa", documents=folder / "articles_freshwiki.jsonl")
    cut = list(itertools.islice(documents.passages(), 300))
    assert all(documents.of(p).title == p.title for p in cut)
    assert all(documents.of(Passage("1", p.title, p.text)).title == p.title for p in cut)
    groups, _ = grouped(hits(*cut[:5]), documents)
    assert sum(len(g.passages) for g in groups if g.tree) == 5


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
        (dict(first="none"), ["It was built by ."]),
        (dict(beta=1.0), ["Who?"]),
    ):
        queries.clear()  # nothing is unsure; the question isn't searched; nothing is left of the sentence
        asyncio.run(FLARE(**fields)(Question("q", "asqa", "Who?"), Context(Teller(told(False)), shelf)))
        assert queries == wanted


def test_flare_drafts_with_the_passages_that_are_there():
    def seen(**fields):
        class Shelves:
            def search(self, queries, k):
                return [[Hit(Passage(q, q, q), 1.0, 1)] for q in queries]

        chat = Teller(lambda inputs: told(bool(inputs["answer"]))(inputs))
        asyncio.run(FLARE(**fields)(Question("q", "asqa", "Who?"), Context(chat, Shelves())))
        return [[p.id for p in r.inputs["documents"]] for r in chat.asked]

    one, two = "Who?", "It was built by ."
    assert seen() == [[one], [two], [two]]
    assert seen(first="kept") == [[one], [one, two], [one, two]]
    assert seen(lookahead="bare") == [[], [two], []] and seen(first="none") == [[], [two], [two]]


def test_flare_where_a_server_gives_no_probabilities():
    with pytest.raises(UsageError, match="gives no probabilities.*use one that does"):
        ask(FLARE(), Teller(told(True), logprobs=False), [], CHUNK, question="Who?")
    scores = lambda text: [-0.01] * len(text.split())
    scored = ask(FLARE(), Teller(told(True), logprobs=False, scores=scores), [], CHUNK, question="Who?")
    assert scored.answer == "It was built by Ida." and scored.usage.calls == 4
    offline = go({"FLARE": FLARE()}, dict(asqa=load("asqa", n=3)), PROFILE)
    said = [n.data.get("sure") for r in offline.rows for n in r.trace.nodes if n.kind == "sentence"]
    assert not offline.failures and said and set(said) <= {True, False}  # the simulated model gives log-probabilities


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


def test_flare_over_a_server_and_the_store(server):
    "Log-probabilities come over the wire, are stored, and are there again."
    server.script(rules=[["so far\\n\\n\\n", "The mill is old."], ["## Next", "DONE"]])
    store = Store()

    def go():
        async def main():
            chat = CachedClient(OpenAIClient("m", server.url, pause=0.01), store)
            try:
                return await FLARE()(Question("q", "asqa", "How old?"), Context(chat, Shelf(CHUNK)))
            finally:
                await chat.close()

        return asyncio.run(main())

    first, count = go(), server.count
    again = go()
    assert first.answer == again.answer == "The mill is old."
    assert server.count == count
    assert again.usage.hits == again.usage.calls == first.usage.calls
    assert not first.trace.nodes[1].data["sure"]  # the server's tokens have a probability of .61


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


class Directions:
    "Vectors of length 1: sentences that name the mill lie close together."

    def __init__(self):
        self.asked = []

    def __call__(self, texts, questions=False):
        import numpy as np

        self.asked += texts
        angles = [
            0.05 * len(t) / 40 if "mill" in t else 1.0 if "Ada" in t else 2.0 + 0.8 * i for i, t in enumerate(texts)
        ]
        return np.array([[np.cos(a), np.sin(a)] for a in angles])


def test_asc_clusters_by_embeddings_and_counts_members():
    "50 samples; sentences by their vectors, items by edit distance; a cluster is as strong as it has members."
    assert (ASC().samples, ASC().requires, ASC(compare="words").requires) == (50, ("embedder",), ())

    class Twice(FakeChat):
        def reply(self, request, i):
            if request.prompt.task == "read_list":
                return Completion("Port Essel, Ribe" if i else "Port Esel")
            return Completion("The mill is from 1801. The old mill is of 1801." if i == 0 else "Ada Roth owned it.")

    embed, asked = Directions(), Question("q", "asqa", "What?")

    def clusters(method, question=asked):
        p = asyncio.run(method(question, Context(Twice(), Shelf(CHUNK), embedder=embed)))
        return [(c["text"], c["said"], c["kept"]) for c in p.trace.nodes[-1].data["clusters"]]

    settings = dict(samples=4, agree=0.5, summarise=False)
    assert (
        clusters(ASC(**settings)) == [("The old mill is of 1801.", 2, True), ("Ada Roth owned it.", 3, True)]
        and len(embed.asked) == 3
    )
    assert clusters(ASC(**settings, counted="samples"))[0] == ("The old mill is of 1801.", 1, False)
    assert clusters(ASC(**settings), Question("q", "qampari", "Which?")) == [("Port Essel", 4, True), ("Ribe", 3, True)]


def test_lists_are_scored_as_they_were_written():
    "ALCE's line, and the other reading."

    class Lister(FakeChat):
        def reply(self, request, i):
            return Completion("1. Ribe\n2. Tarn, Jutland")

    asked = Question("q", "qampari", "Which?", answer_groups=(("Ribe",), ("Tarn",)))
    line, cleaned = (
        asyncio.run(Reader(items=items)(asked, Context(Lister(), Shelf(CHUNK)))).answer for items in ("line", "cleaned")
    )
    assert (line, cleaned) == (
        "1. Ribe\n2. Tarn, Jutland",
        "Ribe, Tarn Jutland",
    ) and ASC().items == RDR2().items == "line"


def test_two_prompts_for_three_data_sets():
    "C.3 is ASQA's and ELI5's; the public code has a second one for lists."
    assert {kind for kind, _ in READ} == {"long", "list"}
    texts = {}
    for dataset in ("asqa", "eli5", "qampari"):
        ask(Reader(length_control=True), router := Router(None), [], CHUNK, dataset=dataset)
        texts[dataset] = router.read[0].text
    assert texts["asqa"].replace("65 words", "131 words") == texts["eli5"] and "131" in texts["eli5"]
    assert "## Paragraph\nTarn\nfounded in 1204 by fishermen.\n\n## Question" in texts["qampari"]


def test_asc_without_agreement_keeps_its_first_sample():
    class Alone(Sampler):
        async def complete(self, request):
            return [Completion(f"{w} {w} {w}.") for w in self.OWN[: request.n]]

    p = ask(ASC(samples=10, compare="words"), Alone(), [], CHUNK, question="What?")
    assert p.answer == "abacus abacus abacus." and "first sample" in p.trace.nodes[-1].notes[0]


@pytest.mark.parametrize(
    "system, said",
    [
        ("self-rag", "[Relevant]In 1204.[Fully supported][Utility:5]</s>"),
        ("open-rag", "In 1204.[No support / Contradictory]"),
        ("front", "[GROUNDING] by fishermen [1]\n[ANSWER] In 1204 [1]."),
        ("self-reasoning", "It is document [1].\nFinal answer: In 1204."),
    ],
)
def test_served_readers(system, said):
    class Fine(Teller):
        async def complete(self, request):
            self.asked.append(request)
            return [Completion(said)]

    p = ask(Served(system=system), fine := Fine(None), [], CHUNK, question="When?")
    assert (
        p.answer == "In 1204."
        and CHUNK.text in fine.asked[0].text
        and len(fine.asked) == 1
        and set(SERVED) == {"self-rag", "open-rag", "front", "self-reasoning"}
    )
