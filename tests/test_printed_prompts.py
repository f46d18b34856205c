"The papers' printed prompts are the papers' words, have the inputs that the kit's prompts have, and are read by their parsers."

import re
from collections import Counter
from itertools import dropwhile, takewhile
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
GLYPHS = {
    "ouestion": "question",
    "ε ": "",
    "٦ ": "",
}  # what the conversion of a page has made of a word, and of brackets


def words(text):
    text = " ".join(re.findall(r"\w+", text.lower().replace("\\_", "_").replace("*", "")))
    for wrong, right in GLYPHS.items():
        text = text.replace(wrong, right)
    return text


@pytest.mark.skipif(TEXTS is None, reason="the papers' texts are not beside the kit")
@pytest.mark.parametrize("name", PRINTED)
def test_each_line_is_printed(name):
    paper, prompt = PRINTED[name]
    text = words(Path(TEXTS, f"{paper}.txt").read_text(encoding="utf-8"))
    marks = (
        re.compile(r"^(?:\d\.|Query:) ") if name.endswith(".ko") else re.compile("(?!)")
    )  # the page has them before the English line
    for line in filter(None, (words(marks.sub("", line)) for line in prompt.printed.splitlines())):
        assert line in text, line


PAGES = {  # paper -> the lines between which its prompts are printed, and what a prompt's heading looks like
    "treerare": ("G Prompt for TreeRare", "\0", r"(Subcomponent|Final answer).*prompt"),
    "toq": ("### Prompt B.1", "## C ", r"### Prompt"),
    "arise": (
        "Problem Decomposition",
        "ARISE Simple Case",
        r"(Problem Decomposition|\w+ Answer Generation|Risk Assessment|LLM-as-Verifier)$",
    ),
    "searchr": ("vantage of our method", "Table 11", "\0"),
    "rdr2": ("## **Prompt C.1", "# D Case", r"#+ .*Prompt C"),
}


BOTH = "Why cosmetics review ratings are important"  # its Korean is in the next line's


def in_language(lines, language):
    "Lines of a page in one language: with two, a line in brackets is the Korean of the line before, and a line without Korean is of both."
    lines = [part for line in lines for part in re.split(r" \((?=[가-힣])", line) if words(part)]
    is_korean = [bool(re.search("[가-힣]", line)) for line in lines] + [False]
    kept = {
        "": lambda i: True,
        ".en": lambda i: not is_korean[i],
        ".ko": lambda i: is_korean[i] or not is_korean[i + 1],
    }
    return [
        words(line) for i, line in enumerate(lines) if kept[language](i) and not (language == ".ko" and BOTH in line)
    ]


@pytest.mark.skipif(TEXTS is None, reason="the papers' texts are not beside the kit")
@pytest.mark.parametrize("paper, language", [(p, s) for p in PAGES for s in ((".en", ".ko") if p == "toq" else ("",))])
def test_each_printed_line_is_ours(paper, language):
    "Every line on the pages of prompts is a heading or in the prompt below its heading, as often as the page has it, in each language."
    whole = {
        name: words(prompt.printed)
        for name, (whose, prompt) in PRINTED.items()
        if whose == paper and name.endswith(language)
    }
    first, last, heading = PAGES[paper]
    blocks = [[]]
    lines = Path(TEXTS, f"{paper}.txt").read_text(encoding="utf-8").splitlines()
    for line in takewhile(lambda x: not x.startswith(last), dropwhile(lambda x: not x.startswith(first), lines)):
        if re.match(heading, line):
            blocks.append([])
        elif not line.startswith(first):
            blocks[-1].append(line)
    for block in filter(any, (in_language(block, language) for block in blocks)):
        lost = {name: Counter(" ".join(block).split()) - Counter(text.split()) for name, text in whole.items()}
        name = min(lost, key=lambda name: lost[name].total())
        text = whole.pop(name)
        assert not lost[name] and [line for line in block if line not in text] == []
    assert not whole


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
    assert said["rdr2.curate"].read('[{"id": 3, "tag": "answer", "explanation": "it says so"}]').value == [
        ("ANSWER", 3)
    ]
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
