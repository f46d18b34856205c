"The papers' printed prompts are the papers' words, have the inputs that the kit's prompts have, and are read by their parsers."

import re
from pathlib import Path

import pytest

from treekit.store.run_store import Store
from treekit.config import load_profile, root
from treekit.core.prompts import Prompt
from treekit.experiments.paper_settings import said_of
from treekit.experiments.prompts import all_printed, known_prompts, printed_prompts, templates_of

PAPERS = ("treerare", "toq", "arise", "searchr", "rdr2")
PRINTED = {name: (paper, p) for paper in PAPERS for name, p in printed_prompts(paper).items()}
TEXTS = next((p for p in (root() / "papers", root().parent / "shared" / "papers") if p.is_dir()), None)
GLYPHS = {"ouestion": "question"}  # what the conversion of a page has made of a word


def words(text):
    return " ".join(re.findall(r"\w+", text.lower().replace("\\_", "_").replace("*", "")))


@pytest.mark.skipif(TEXTS is None, reason="the papers' texts are not beside the kit")
@pytest.mark.parametrize("name", PRINTED)
def test_each_line_is_printed(name):
    paper, prompt = PRINTED[name]
    text = words(Path(TEXTS, f"{paper}.txt").read_text(encoding="utf-8"))
    for wrong, right in GLYPHS.items():
        text = text.replace(wrong, right)
    marks = (
        re.compile(r"^(?:\d\.|Query:) ") if name.endswith(".ko") else re.compile("(?!)")
    )  # the page has them before the English line
    for line in filter(None, (words(marks.sub("", line)) for line in prompt.printed.splitlines())):
        assert line in text, line


NOT_PROMPTS = {  # lines between the printed prompts, and the two behind them: headings and captions, by their first words
    "treerare": ("subcomponent question", "final answer generation prompt"),
    "toq": ("prompt b ", "query samsung stock", "c inter annotator", "in this section"),
    "arise": (
        "intermediate answer",
        "final answer generation",
        "risk assessment",
        "llm as verifier",
        "arise simple",
        "state 1 depth",
    ),
    "searchr": ("table 11 prompt", "ground truth", "step 1 sub", "the full version", "a 2 baselines"),
    "rdr2": ("prompt c 3", "d case study", "1017we show"),
}


@pytest.mark.skipif(TEXTS is None, reason="the papers' texts are not beside the kit")
@pytest.mark.parametrize("paper", PAPERS)
def test_each_printed_line_is_ours(paper):
    "No line of a printed prompt is left out: what lies between and right behind them is a heading or a caption."
    whole = {}  # prompt -> its words; the page has both languages of a prompt in one block
    for name, (whose, prompt) in PRINTED.items():
        if whose == paper:
            whole.setdefault(name.removesuffix(".ko").removesuffix(".en"), []).append(words(prompt.printed))
    own = list(map("\n".join, whole.values()))
    lines = [line for line in map(words, Path(TEXTS, f"{paper}.txt").read_text(encoding="utf-8").splitlines()) if line]
    for wrong, right in GLYPHS.items():
        lines = [line.replace(wrong, right) for line in lines]
    ours = [any(line in text for text in own) for line in lines]
    long = [i for i, line in enumerate(lines) if ours[i] and len(line.split()) > 3]
    near = {k for i, j in zip(long, [*long[1:], long[-1]]) for k in (range(i, j) if j - i < 15 else range(i, i + 3))}
    near |= {*range(long[-1], long[-1] + 3)}
    blocks = [[]]  # lines between two headings
    for k in sorted(k for k in near if k < len(lines)):
        if lines[k].startswith(NOT_PROMPTS[paper]) or blocks[-1] and k - blocks[-1][-1] > 10:
            blocks.append([])
        if not lines[k].startswith(NOT_PROMPTS[paper]):
            blocks[-1].append(k)
    for block in filter(None, blocks):
        most = max(own, key=lambda text: sum(lines[k] in text for k in block))
        assert [lines[k] for k in block if lines[k] not in most] == []


WORDS = dict(
    treerare=377, toq=650, arise=352, searchr=239, rdr2=299
)  # of the printed prompts, as compared with the papers


@pytest.mark.parametrize("paper", PAPERS)
def test_no_word_is_lost(paper):
    "Twin of the comparison for machines without the papers' texts."
    assert (
        sum(len(words(prompt.printed).split()) for whose, prompt in PRINTED.values() if whose == paper) == WORDS[paper]
    )


@pytest.mark.parametrize("name", PRINTED)
def test_it_stands_in_for_ours(name):
    own, printed = known_prompts()[name], all_printed()[name]
    assert printed.format is own.format and printed.task == own.task and printed.slots <= own.slots | own.optional
    assert PRINTED[name][1].where and printed.template != own.template
    inputs = {slot: f"<{slot}>" for slot in own.slots}
    text, ours = printed(**inputs).text, own(**inputs).text
    needed = {slot for slot in own.slots - own.optional if f"<{slot}>" in ours} - {
        "exemplars",
        "length",
    }  # exemplars are printed, too
    assert all(f"<{slot}>" in text for slot in needed if slot in printed.slots) and needed - printed.slots <= {
        "candidates",
        "pick",
    }
    assert not re.search(
        r"\{\{?(?:original question|questions?|context|documents|phrase|paragraph|Question|reasoning state)\}", text
    )


def test_a_reply_in_the_printed_form_is_read():
    "Where a printed prompt asks for another form than ours does, or for none, the same parser reads it."
    said = all_printed()
    assert said["treerare.answer"].read("Explanations :[a, then b]\n\nFINAL: Ida Corr").value["answer"] == "Ida Corr"
    assert (
        said["treerare.answer_ambiguous"].read("Explanations (Step 2): two.\nFINAL(Step 2): Both").value["answer"]
        == "Both"
    )
    assert said["treerare.subquestions_ambiguous"].read("response: Who?; When?").value == ["Who?", "When?"]
    assert said["treerare.subquestions"].read("1. Who founded Orle?\n2. When?").value == ["Who founded Orle?", "When?"]
    assert said["treerare.subquestions"].template.endswith("response: question1; question2;....")
    assert said["treerare.subquestions"].read("response: Who founded Orle?; When?;").value == [
        "Who founded Orle?",
        "When?",
    ]
    assert said["treerare.subquestions"].read("Response: Who founded Orle?").value == ["Who founded Orle?"]
    assert (
        said["arise.decompose"].read("Thought: first the rower.\nSub-question: Who was third?").value["question"]
        == "Who was third?"
    )
    assert said["arise.verify"].read("7").value == 7
    path = ["Who made it?", "Where was this maker born?"]
    assert said["paths.generate"].read(str(path).replace("'", '"')).value == [path]
    assert said["rdr2.route_tag"].read("[ANSWER] 19 [EXPAND] 40").value == [("ANSWER", 19, ""), ("EXPAND", 40, "")]
    assert said["rdr2.curate"].read('[{"id": 3, "tag": "answer", "explanation": "it says so"}]').value[0]["id"] == 3
    assert (
        said["toq.evaluate.ko"]
        .read('{"semantic_coherence": 9, "answerability": 95, "overall_assessment": 9.5, "response_validity": true}')
        .note
        == ""
    )
    assert said["toq.query.en"].read("Query: Samsung stock price").value == "Samsung stock price"


def test_a_profile_says_whose_words():
    assert (
        templates_of(load_profile("offline")) == {}
        and templates_of(load_profile("offline", prompts="printed")) == all_printed()
    )


ROWS = {
    "treerare": ("table1", "treekit.papers.treerare.method:METHODS"),
    "arise": ("table1", "treekit.papers.arise.method:METHODS"),
    "rdr2": ("table1", "treekit.papers.rdr2.method:METHODS"),
    "toq": ("table2", "treekit.papers.toq.method:METHODS"),
}


@pytest.mark.parametrize("paper", ROWS)
def test_the_method_asks_with_them(paper, monkeypatch, tmp_path):
    "With `prompts=printed` a paper's own rows ask in the paper's words, and only such rows are wanted to."
    from dataclasses import fields, replace
    from treekit.experiments.run import run
    from treekit.experiments.tables import sample_questions
    from treekit.papers.plugin import resolve

    asked, real = set(), Prompt.__call__

    def noted(self, **inputs):
        asked.add((self.name, self.template))
        return real(self, **inputs)

    monkeypatch.setattr(Prompt, "__call__", noted)
    table, methods = ROWS[paper][0], resolve(ROWS[paper][1])
    name, method = list(methods.items())[-1]
    if "iterations" in {f.name for f in fields(method)} and paper == "arise":
        method = replace(method, iterations=2)
    profile = load_profile("offline", n=1, prompts="printed", search_scope="documents" if paper == "rdr2" else "corpus")
    dataset = dict(toq="komultihop", rdr2="asqa").get(paper, "hotpotqa")
    store = Store(tmp_path / "store.sqlite")
    assert not run({name: method}, sample_questions(profile, (dataset,)), profile, store=store, progress=False).failures
    own, printed = {n for n, _ in asked}, all_printed()
    assert own & set(printed_prompts(paper))
    assert all(template == printed[n].template for n, template in asked if n in printed)
    assert said_of(paper, table, dataset, name)["prompts"].accepts == ("printed",)
