"ProbTree, a paper from outside: a package of its own, built with the public API, served by all commands like the kit's papers."

import ast, asyncio, csv, json, os, shutil, subprocess, sys, zipfile
from pathlib import Path

import pytest

from treekit.core.method import Context
from treekit.core.prompts import Completion
from treekit.core.types import Passage, Question
from treekit.retrieval.bm25 import BM25
from treekit.store.run_store import Store

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "examples" / "treekit-probtree"
sys.path.insert(0, str(PACKAGE))

from probtree.confidence import LOWEST, combined, mean_logprob  # noqa: E402
from probtree.method import METHODS, ProbTree  # noqa: E402
from probtree.tree import build_tree, fill, read_tree, slots  # noqa: E402

PAGES = [
    Passage("a", "Velmora", "Velmora is a film directed by Lio Vant."),
    Passage("b", "Lio Vant", "Lio Vant was born in Tarn."),
    Passage("c", "Orbit", "Orbit is a film directed by Ada Sorrel."),
]
QUESTION = Question("q", "demo", "Where was the director of Velmora born?", ("Tarn",), hops=2)
WHOLE = QUESTION.question


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


# --- confidence
def test_confidence_is_the_mean_over_the_tokens_of_a_part():
    tokens = (("It", -1.0), (" says", -3.0), (" so.", -2.0), (" So", 0.0), (" the answer is: Tarn.", 0.0))
    assert mean_logprob(tokens, "It says so.") == -2 and mean_logprob(tokens, "says so.") == -2.5
    assert mean_logprob(tokens, "") == mean_logprob(tokens, "not there") == LOWEST and mean_logprob(None, "It") is None
    assert combined(-0.2, [-0.2, -0.3], -0.1) == pytest.approx(-0.2) and combined(-0.2, [-0.4]) == pytest.approx(-0.3)
    assert combined(-0.2, [None, -0.3]) is None


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


# --- on the synthetic wiki
@pytest.fixture(scope="module")
def store():
    return Store()


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
    with open(work / "out" / "probtree" / "claims.csv", encoding="utf-8", newline="") as f:
        assert {c["id"].partition(".")[0] for c in csv.DictReader(f)} == {f"probtree-0{n}" for n in range(1, 8)}
    runs = json.loads(treekit("explore", "--list", "--json"))
    run = next(r["name"] for r in runs if r["about"].get("artefact") == "probtree/table1")
    treekit("explore", run, "--html", "run.html")
    assert (work / "run.html").stat().st_size > 50_000
    treekit("report", "probtree/sources", "--tables", "out", "--out", "report.zip")
    assert "OK: 2 tables came out the same" in treekit("verify", "report.zip")
    assert "✗" not in treekit("doctor", "probtree")
