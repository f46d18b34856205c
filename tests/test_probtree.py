"ProbTree, a paper from outside: a package of its own, built with the public API, served by all commands like the kit's papers."

import ast, asyncio, csv, json, math, os, shutil, subprocess, sys, zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from treekit.config import UsageError, load_profile
from treekit.core.method import Context, configure
from treekit.core.prompts import Completion
from treekit.core.types import Passage, Question
from treekit.papers import plugin
from treekit.retrieval.bm25 import BM25
from treekit.store.run_store import Store

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "examples" / "treekit-probtree"
sys.path.insert(0, str(PACKAGE))

from probtree.confidence import LOWEST, Candidate, choose, combined, mean_logprob  # noqa: E402
from probtree.evaluation import by_hops, chosen_modules, module_shares  # noqa: E402
from probtree.method import ABLATIONS, METHODS, ProbTree  # noqa: E402
from probtree.paper import PAPER  # noqa: E402
from probtree.prompts import ANSWER, PROMPTS, read_answer  # noqa: E402
from probtree.recorded import (  # noqa: E402
    RecordedDecompositions,
    is_read_as_judged,
    recorded_answers,
    recorded_trees,
    released_choices,
    tree_of,
)
from probtree.tree import TREE, Decomposition, build_tree, fill, read_tree, slots  # noqa: E402

PAGES = [
    Passage("a", "Velmora", "Velmora is a film directed by Lio Vant."),
    Passage("b", "Lio Vant", "Lio Vant was born in Tarn."),
    Passage("c", "Orbit", "Orbit is a film directed by Ada Sorrel."),
]
QUESTION = Question("q", "demo", "Where was the director of Velmora born?", ("Tarn",), hops=2)
WHOLE = QUESTION.question


@pytest.fixture
def registered(monkeypatch):
    "ProbTree among the papers of this process."
    real = plugin.registered_papers
    point = EntryPoint("probtree", "probtree.paper:PAPER", plugin.GROUP)
    monkeypatch.setattr(plugin, "registered_papers", lambda: [*real(), point])
    plugin._discovered.cache_clear()
    yield
    monkeypatch.undo()
    plugin._discovered.cache_clear()


class Scripted:
    "LLM client with a reply and a log-probability per token for each (prompt, question); it records what it was asked."

    model, endpoint, defaults = "scripted", "nowhere", {}

    def __init__(self, script, logprobs=True):
        self.script, self.logprobs, self.asked = script, logprobs, []

    async def complete(self, request):
        name, question = request.prompt.name.removeprefix("probtree."), request.inputs["question"]
        self.asked.append((name, question, request.inputs))
        text, p = self.script.get((name, question), ("The answer is not known to me. So the answer is: Unknown.", -9))
        tokens = tuple((word + " ", p) for word in text.split(" ")) if self.logprobs else None
        return [Completion(text, logprobs=tokens)] * request.n


PARTS = ["Who directed Velmora?", "Where was #1 born?"]
SCRIPT = {
    ("decompose", WHOLE): (json.dumps({WHOLE: PARTS}), -0.1),
    ("closed_book", WHOLE): ("I think of Ribe. So the answer is: Ribe.", -0.5),
    ("closed_book", PARTS[0]): ("I recall Ada Sorrel. So the answer is: Ada Sorrel.", -0.4),
    ("open_book", PARTS[0]): ("Velmora is a film directed by Lio Vant. So the answer is: Lio Vant.", -0.2),
    ("open_book", "Where was Lio Vant born?"): ("Lio Vant was born in Tarn. So the answer is: Tarn.", -0.3),
    ("open_book", WHOLE): ("Lio Vant comes from Velmora. So the answer is: Velmora.", -0.6),
    ("child_aggregating", WHOLE): ("Lio Vant was born in Tarn. So the answer is: Tarn.", -0.2),
    ("open_book", "Where was Ada Sorrel born?"): ("Ada Sorrel was born in Velm. So the answer is: Velm.", -0.3),
}


def answered(method=None, script=SCRIPT, question=QUESTION, **options):
    client = Scripted(script, **options)
    prediction = asyncio.run((method or ProbTree())(question, Context(client, BM25(PAGES))))
    return prediction, client


def nodes(prediction, kind):
    return [n for n in prediction.trace.nodes if n.kind == kind]


# --- the package
def test_it_uses_the_public_api_and_nothing_in_treekit_names_it():
    for file in (PACKAGE / "probtree").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.startswith("_")], file.name
            module = getattr(node, "module", None) or ""
            assert not module.startswith("treekit.papers.") or module == "treekit.papers.plugin", (
                f"{file.name} imports another paper"
            )
    named = [p for p in (ROOT / "treekit").rglob("*.py") if "probtree" in p.read_text(encoding="utf-8").lower()]
    assert named == []


def test_the_descriptor(registered):
    from treekit.experiments.prompts import known_prompts
    from treekit.papers.registry import find

    assert plugin.discover()["probtree"] is PAPER and plugin.broken_references(PAPER) == []
    assert all(PAPER.notebook(row["artefact"]).is_file() for row in PAPER.inventory())
    names = [name for printed in PAPER.methods.values() for name in printed]
    assert set(names) == METHODS.keys() | ABLATIONS.keys() and find("probtree").printed == "ProbTree"
    known_prompts.cache_clear()
    assert {p.name for p in PROMPTS} <= known_prompts().keys()
    known_prompts.cache_clear()


def test_printed_numbers_are_quoted_or_empty_and_claims_refer_to_rows_and_columns():
    from treekit.figures.claims import load_claims

    rows = [r for table in ("table1", "ablation") for r in PAPER.rows(f"{table}.csv")]
    assert all((r["method"] == "ProbTree") if r["value"] else "not at hand" in r["note"] for r in rows)
    claims, cells = load_claims("probtree", PAPER.path("claims.csv")), {(r["artefact"], r["method"]) for r in rows}
    assert len(claims) == 21 and all((c.artefact, side) in cells for c in claims for side in (c.left, c.right))


# --- trees
def test_a_tree_is_read_with_its_lists_and_slots():
    text = 'Tree: {"A or B?": ["When did [A] die?", "When did B die?"], "When did [A] die?": ["Who is [A]?", "When did #1 die?"]}'
    decompositions, notes = read_tree(f"```json\n{text}\n```")
    assert notes == []
    assert [d.written for d in decompositions] == [
        '["When did [A] die?", "When did B die?"]',
        '["Who is [A]?", "When did #1 die?"]',
    ]
    root, left_out = build_tree("A or B?", decompositions)
    assert [n.text for n in root] == [
        "A or B?",
        "When did [A] die?",
        "Who is [A]?",
        "When did #1 die?",
        "When did B die?",
    ] and not left_out
    assert [n.text for n in root.below] == ["Who is [A]?", "When did #1 die?", "When did [A] die?", "When did B die?"]
    assert slots("<2> and #1 of [ANS_3], #1") == [2, 1, 3] and fill("<1> or #2?", {1: "Tarn"}) == "Tarn or #2?"


@pytest.mark.parametrize(
    "tree, texts",
    [
        ({"Q?": ["Q?"]}, ["Q?"]),  # a question that is its own part is a leaf
        ({"Q?": ["A?", "B?"], "A?": ["B?", "Q?"]}, ["Q?", "A?", "B?"]),  # a part that repeats a question above it
        ({"Other words?": ["A?"]}, ["Q?", "A?"]),  # the first one is the question, whatever it is called
        ({"Q?": [f"{n}?" for n in range(12)]}, ["Q?", *(f"{n}?" for n in range(8))]),
        ({f"{n}?": [f"{2 * n}?", f"{2 * n + 1}?"] for n in range(1, 60)}, ["Q?"] + [None] * 29),
    ],
)
def test_trees_end(tree, texts):
    root, _ = build_tree("Q?", read_tree(json.dumps(tree))[0])
    assert len(list(root)) == len(texts) and all(want in (None, n.text) for want, n in zip(texts, root))


def test_replies_that_are_no_tree():
    assert read_tree("I can't.")[0] == [] and read_tree('{"a": 1}')[0] == []
    [one], notes = read_tree("Here you are:\n1. Who directed Velmora?\n2. Where was #1 born?")
    assert one.subquestions == tuple(PARTS) and one.written == "" and notes
    made = [Decomposition("Q?", ("A?", "B?"), '["A?", "B?"]')]
    assert TREE.parse(TREE.render(made)) == made and "#1" in TREE.render(["A?", "Is [ANS_1] old?"])


def test_answers_are_read():
    assert read_answer("Velmora was made by Lio Vant. So the answer is: Lio Vant.")[0] == dict(
        answer="Lio Vant", explanation="Velmora was made by Lio Vant."
    )
    assert read_answer("```\nIt says so. so the answer is **Tarn**\n```")[0]["answer"] == "Tarn"
    assert read_answer("No passage says so. So the answer is: Unknown.")[0]["answer"] == ""
    value, notes = read_answer("FINAL: Tarn")
    assert value == dict(answer="Tarn", explanation="") and notes
    assert ANSWER.parse(ANSWER.render(dict(answer="Tarn", explanation="It says so."))) == dict(
        answer="Tarn", explanation="It says so."
    )


# --- confidence
def test_confidence_is_the_mean_over_the_tokens_of_a_part():
    tokens = (("It", -1.0), (" says", -3.0), (" so.", -2.0), (" So", 0.0), (" the answer is: Tarn.", 0.0))
    assert mean_logprob(tokens, "It says so.") == -2 and mean_logprob(tokens, "says so.") == -2.5
    assert mean_logprob(tokens, "") == mean_logprob(tokens, "not there") == LOWEST and mean_logprob(None, "It") is None
    assert combined(-0.2, [-0.2, -0.3], -0.1) == pytest.approx(-0.2) and combined(-0.2, [-0.4]) == pytest.approx(-0.3)
    assert combined(-0.2, [None, -0.3]) is None


def test_the_most_confident_answer_is_chosen():
    closed, opened, child = (
        Candidate("closed-book", "A", -0.3),
        Candidate("open-book", "B", -0.2),
        Candidate("child-aggregating", "", 0.0),
    )
    assert choose([closed, opened, child]).answer == "B" and choose([]).answer == choose([child]).answer == ""
    assert {choose([closed, opened], "random", str(k)).answer for k in range(20)} == {"A", "B"}
    assert choose([closed, opened], "random", "1") == choose([closed, opened], "random", "1")
    assert choose([closed, Candidate("open-book", "B", None)]).answer == "B"


def test_released_choices_come_out_as_released():
    "In the form of results/released.json; the numbers of the root are made up by hand: (-0.4 - 0.1 - 0.2 - 0.3) / 4."
    leaf = dict(sons=[], qd_logprob=None, cb_answer=["A", -0.5], ob_answer=["B", -0.2], answer=["B", -0.2])
    lost = dict(sons=[], qd_logprob=None, cb_answer=["C", -0.3], ob_answer=["Unknown", -0.1], answer=["C", -0.3])
    root = dict(
        sons=[0, 1],
        qd_logprob=-0.1,
        cb_answer=["D", -0.9],
        ob_answer=["E", -0.8],
        child_answer=["F", -0.4],
        answer=["F", -0.25],
    )
    choices = list(released_choices([leaf, lost, root]))
    assert [c.source for c in choices] == ["open-book", "closed-book", "child-aggregating"] and all(
        c.same for c in choices
    )
    assert not list(released_choices([leaf | dict(answer=["A", -0.5])]))[0].same


# --- the method
def test_a_question_is_solved_from_the_leaves_to_the_root():
    prediction, client = answered()
    assert prediction.answer == "Tarn" and prediction.error == ""
    questions = nodes(prediction, "question")
    assert [n.text for n in questions] == [WHOLE, PARTS[0], "Where was Lio Vant born?"]
    root = questions[0].data
    # the child-aggregating answer wins with the mean of explanation, decomposition and sub-questions; closed-book has -0.5
    assert root["source"] == "child-aggregating" and root["decomposition"] == -0.1
    assert root["confidence"] == pytest.approx((-0.2 - 0.1 - 0.2 - 0.3) / 4, abs=1e-4)
    assert [n.data["source"] for n in questions[1:]] == ["open-book", "open-book"]
    history = next(inputs["history"] for name, _, inputs in client.asked if name == "child_aggregating")
    assert history == "#1 Who directed Velmora? → Lio Vant\n#2 Where was Lio Vant born? → Tarn"
    assert prediction.usage.calls == 8 and prediction.usage.critical_path == prediction.trace.critical_path == 4
    assert prediction.trace.answer.text == "Tarn" and questions[2].data["depends_on"] == [1]


def test_the_explorer_draws_questions_answers_links_and_confidences():
    from treekit.explorer.trees import outline

    drawn = outline(answered()[0].trace)
    rows = list(zip(drawn["depth"], drawn["kind"], drawn["text"], drawn["mark"]))
    assert rows[0] == (0, "question", WHOLE, "child-aggregating p 0.82") and (2, "open-book", "Lio Vant") == rows[6][:3]
    assert [r[1] for r in rows] == [
        "question",
        "closed-book",
        "open-book",
        "child-aggregating",
        "question 1",
        "closed-book",
        "open-book",
        "question 2",
        "closed-book",
        "open-book",
        "answer",
    ]
    assert drawn["links"] == [[4, 7]]  # the second question waits for the first one's answer


def test_the_open_book_reader_sees_the_passages_of_the_questions_below():
    def queries(prediction):
        return {n.parent: n.data["queries"] for n in nodes(prediction, "open-book")}

    prediction, _ = answered()
    by_parent = queries(prediction)
    assert (
        by_parent[0] == [WHOLE, PARTS[0], "Where was Lio Vant born?"]
        and len(prediction.trace.nodes[2].data["hits"]) >= 2
    )
    assert queries(answered(ProbTree(sub_k=0))[0])[0] == [WHOLE]
    entities = queries(answered(ProbTree(sub_k=0, entity_k=5))[0])
    assert ["Where was Lio Vant born?", "Lio Vant"] in entities.values() and entities[0] == [WHOLE]


@pytest.mark.parametrize(
    "name, kinds, answer",
    [
        ("ProbTree w/o closed-book", {"open-book", "child-aggregating"}, "Tarn"),
        ("ProbTree w/o open-book", {"closed-book", "child-aggregating"}, "Ribe"),
        ("ProbTree w/o child-aggregating", {"closed-book", "open-book"}, "Ribe"),
    ],
)
def test_an_ablation_asks_nothing_of_the_module_that_it_lacks(name, kinds, answer):
    lost = (
        {("child_aggregating", WHOLE): ("Nothing is known. So the answer is: Unknown.", -9)}
        if "open-book" in name
        else {}
    )
    prediction, client = answered(ABLATIONS[name], SCRIPT | lost)
    assert {n.kind for n in prediction.trace.nodes} == {"question", "answer"} | kinds and prediction.answer == answer
    assert {asked.replace("_", "-") for asked, *_ in client.asked} - {"decompose"} == kinds


def test_the_decomposition_counts_only_where_it_should():
    script = SCRIPT | {("decompose", WHOLE): (json.dumps({WHOLE: PARTS}), -5.0)}  # an unsure decomposition
    assert (
        answered(ProbTree(), script)[0].answer == "Ribe"
        and answered(ProbTree(decomposition=False), script)[0].answer == "Tarn"
    )


def test_without_log_probabilities_it_answers_and_says_so():
    prediction, _ = answered(logprobs=False)
    assert prediction.answer == "Tarn" and prediction.trace.nodes[0].data["confidence"] is None
    assert "no log-probabilities" in prediction.trace.nodes[0].notes[0]


def test_what_goes_wrong_is_noted_and_answered():
    prediction, _ = answered(
        script={("closed_book", WHOLE): SCRIPT["closed_book", WHOLE]}
    )  # no tree: the question is a leaf
    assert prediction.answer == "Ribe" and len(nodes(prediction, "question")) == 1
    lacking, client = answered(script={("decompose", WHOLE): SCRIPT["decompose", WHOLE]})  # nothing is known
    assert lacking.answer == "" and ("open_book", "Where was #1 born?") in {asked[:2] for asked in client.asked}
    assert "no answer for #1" in nodes(lacking, "question")[2].notes[0]
    with pytest.raises(UsageError, match="the question is empty"):
        answered(question=Question("q", "demo", " "))
    with pytest.raises(UsageError, match="leave one of them on"):
        ProbTree(closed_book=False, open_book=False)
    assert configure(ProbTree(), select="random", sub_k="0") == ProbTree(select="random", sub_k=0)


def test_the_order_of_the_trace_does_not_depend_on_the_speed_of_the_model():
    class Slow(Scripted):
        async def complete(self, request):
            await asyncio.sleep(0.002 * (len(request.inputs["question"]) % 3))
            return await super().complete(request)

    made = asyncio.run(ProbTree()(QUESTION, Context(Slow(SCRIPT), BM25(PAGES))))
    assert str(made.trace) == str(answered()[0].trace)


# --- recorded trees
def test_recorded_trees_and_answers_are_read_as_judged():
    trees = [(tree_of(r), r) for r in recorded_trees()]
    assert len(trees) == 31 and sum(any(child.children for child in tree.children) for tree, _ in trees) >= 7
    assert all([child.text for child in tree.children] == list(r.expect) for tree, r in trees)
    assert len(recorded_answers()) == 7 and all(map(is_read_as_judged, recorded_answers()))


def test_a_recorded_tree_is_followed():
    reply = next(r for r in recorded_trees() if r.question.startswith("Which film has the director died earlier"))
    script = {
        ("open_book", "Who is the director of film Miss Liselott?"): (
            "It says so. So the answer is: Johannes Guter.",
            -0.1,
        )
    }
    client = Scripted(script)
    context = Context(RecordedDecompositions(client), BM25(PAGES))
    prediction = asyncio.run(ProbTree()(Question("q", "2wiki", reply.question), context))
    asked = [n.text for n in nodes(prediction, "question")]
    assert (
        len(asked) == 7
        and "When did Johannes Guter die?" in asked
        and "decompose" not in {name for name, *_ in client.asked}
    )


# --- on the synthetic wiki
@pytest.fixture(scope="module")
def store():
    return Store()


@pytest.fixture(scope="module")
def run_offline(store):
    "Four questions of each data set by the method and two ablations, with the embedded model."
    from treekit.experiments.run import run
    from treekit.experiments.tables import sample_questions

    profile = load_profile("offline", n=4)
    some = {name: ABLATIONS[name] for name in ("ProbTree", "ProbTree w/o open-book", "ProbTree, random choice")}
    return run(some, sample_questions(profile, ("hotpotqa", "musique")), profile, store=store, progress=False)


@pytest.mark.long
def test_the_simulated_model_answers_its_prompts(run_offline):
    "Trees with several questions, answers of all modules, confidences of all answers; no reply in a wrong format."
    assert run_offline.failures == []
    traces = [r.trace for r in run_offline.rows if r.method == "ProbTree"]
    modules = sum((chosen_modules(t) for t in traces), start=type(chosen_modules(traces[0]))())
    assert modules["leaf", "open-book"] and modules["leaf", "closed-book"] and modules["node", "child-aggregating"]
    chosen = [n for t in traces for n in t.nodes if n.kind == "question" and n.data["answer"]]
    assert (
        all(LOWEST <= n.data["confidence"] < 0 for n in chosen)
        and sum(n.data["confidence"] > -1 for n in chosen) > len(chosen) / 2
    )
    scores = run_offline.values("F1")
    assert math.fsum(scores["ProbTree", "hotpotqa"] + scores["ProbTree", "musique"]) > 2


@pytest.mark.long
def test_hops_and_shares(run_offline):
    parts = by_hops(run_offline)
    assert {r.dataset for r in parts.rows} <= {f"MuSiQue {h}-hop" for h in (2, 3, 4)} and len(parts.rows) == 12
    by = {}
    for r in module_shares(run_offline, "ProbTree"):
        by.setdefault((r["dataset"], r["method"].partition(":")[0]), []).append(r["value"])
    assert len(by) == 4 and all(sum(values) == pytest.approx(1) for values in by.values())


@pytest.mark.long
def test_the_explorer_replays_an_answer_and_follows_another_decomposition(registered, run_offline, store):
    from treekit.explorer.forks import Edits, fork, same_bytes
    from treekit.explorer.runs import open_run

    opened = open_run(store, run_offline.kept)
    row = next(i for i, r in enumerate(opened.rows) if r.method == "ProbTree" and len(nodes(r, "question")) > 1)
    again = fork(opened, row)
    assert same_bytes(opened, row, again) and again.asked == 0
    [decomposition] = opened.rows[row].trace.nodes[0].calls
    other = fork(opened, row, Edits(replies=((decomposition, "It is simple enough."),)))
    assert len(nodes(other.row, "question")) == 1 and other.asked <= 2 < opened.rows[row].usage.calls


# --- installed beside a wheel of the kit
def environment(site, home):
    return os.environ | dict(PYTHONPATH=str(site), TREEKIT_HOME=str(home), TQDM_DISABLE="1", TREEKIT_STORE="")


@pytest.mark.slow
def test_it_is_installed_beside_a_wheel_of_the_kit_and_served_by_all_commands(tmp_path):
    from tutorials import install

    dist, site, home, work = (tmp_path / name for name in ("dist", "site", "home", "work"))
    work.mkdir()
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(dist),
        str(ROOT),
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-200:]}")
    [wheel] = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as z:
        z.extractall(site)
    copy = shutil.copytree(PACKAGE, tmp_path / "package")
    install(site, copy)
    shutil.rmtree(copy)

    def treekit(*words, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "treekit", *map(str, words)],
            capture_output=True,
            text=True,
            cwd=work,
            env=environment(site, home),
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    where = subprocess.run(
        [sys.executable, "-c", "import treekit, probtree; print(treekit.__file__, probtree.__file__)"],
        capture_output=True,
        text=True,
        cwd=work,
        env=environment(site, home),
    ).stdout
    assert where.count(str(site)) == 2, where

    told = treekit(
        "reproduce",
        "probtree/table1",
        "probtree/ablation",
        "probtree/sources",
        "probtree/claims",
        "--n",
        4,
        "--out",
        "out",
    )
    assert all(f"✓ probtree/{name}" in told for name in ("table1", "ablation", "sources", "claims")), told
    with open(work / "out" / "probtree" / "table1.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    ran = [r for r in rows if r["reproduced"]]
    assert {r["method"] for r in ran} == METHODS.keys() and {"HotpotQA", "MuSiQue", "2WikiMQA"} <= {
        r["dataset"] for r in ran
    }
    claims = json.loads(treekit("claims", "probtree", "--out", "out", "--json"))
    assert [c["claim"] for c in claims] == [f"probtree-0{n}" for n in range(1, 8)]
    runs = json.loads(treekit("explore", "--list", "--json"))
    run = next(r["name"] for r in runs if r["about"].get("artefact") == "probtree/table1")
    treekit("explore", run, "--html", "run.html")
    assert (work / "run.html").stat().st_size > 50_000
    treekit("report", "probtree/sources", "--tables", "out", "--out", "report.zip")
    assert "OK: 2 tables came out the same" in treekit("verify", "report.zip")
    assert "✗" not in treekit("doctor", "probtree")
