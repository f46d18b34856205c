"TreeRare and its baselines against a scripted model: who is asked what, in which order, and how long that takes."

import asyncio, json, zlib

import pytest

from speed import enough
from fakes import FakeChat, FakeParser, FakeShelf
from treekit.baselines.prompting import RetrieveAndRead
from treekit.config import UsageError, kit_path
from treekit.core.types import Passage, Question
from treekit.core.method import Context, Prediction, Trace, configure
from treekit.retrieval.bm25 import Hit
from treekit.papers.treerare.phrases import phrase_tree
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
from treekit.syntax.parser import Parse, from_json
from treekit.papers.treerare.method import ABLATIONS, METHODS, PUBLIC_CODE, VARIANTS, TreeRare


BORN = "Who was born first, the director of Velmora or the author of Grey Harbour?"
PARSES = {BORN: from_json(kit_path("data", "papers", "treerare", "example.json").read_text(encoding="utf-8"))}
BOTH = Parse(BORN + " " + BORN, PARSES[BORN].sentences * 2)


class Scripted(FakeChat):
    "Answers after `latency` seconds; `replies`: others, by task."

    def __init__(self, latency=0.0, replies=()):
        super().__init__(latency=latency)
        self.replies = dict(replies)

    def reply(self, request, sample):
        phrase, final = request.inputs.get("phrase", ""), "Explanation: so it is.\nFINAL: Ada Vant"
        usual = dict(
            subquestions=f"response: What is {phrase}?; Who made {phrase}?",
            subquestions_ambiguous=f"response: Which {phrase}?",
            subanswers="Known.",
            answer=final,
            answer_ambiguous=f"{final} or Ida Roth",
            entity_answers="Both.",
            evidence_answer=f"{final} or Ida Roth",
            combined_answer="Ada Vant or Ida Roth, it seems.",
        )
        return (usual | self.replies)[request.prompt.task]


def Shelf():
    return FakeShelf(
        lambda q: [Hit(Passage(f"p{len(q) + i}", f"Page {i}", f"About {q}"), 9.0 - i, i) for i in range(2)]
    )


def Parser():
    return FakeParser(PARSES)


def ask(method, question=BORN, dataset="", **script):
    llm, shelf = Scripted(**script), Shelf()
    prediction = asyncio.run(method(Question("q", dataset, question), Context(llm, shelf, Parser())))
    return prediction, llm, shelf


def texts(tree):
    return [p.text for p in tree.walk()]


# --- phrases


def test_dependency_phrases():
    tree = phrase_tree(PARSES[BORN])
    assert texts(tree) == [
        BORN,
        "the director of Velmora or the author of Grey Harbour",
        "the author of Grey Harbour",
        "of Grey Harbour",
    ]
    assert [p.type for p in tree.walk()] == ["root", "dislocated", "conj", "nmod"]
    for p in tree.walk():
        assert BORN[p.start : p.end] == p.text


def test_constituency_phrases():
    tree = phrase_tree(PARSES[BORN], "constituency", unary=True)
    assert texts(tree) == [
        BORN,
        "was born first",
        "the director of Velmora or the author of Grey Harbour",
        "the director of Velmora",
        "the author of Grey Harbour",
        "of Grey Harbour",
    ]
    assert [p.type for p in tree.walk()] == ["SBARQ", "SQ", "NP", "NP", "NP", "PP"]
    repeated = phrase_tree(PARSES[BORN], "constituency")  # as the paper and its code have it
    assert [p.type for p in repeated.walk()][:2] == ["ROOT", "SBARQ"] and len(texts(repeated)) == len(texts(tree)) + 1


def test_the_public_codes_spans():
    code = dict(nodes="code", sentences="first")
    top = "Who was born first , the director of Velmora or the author of Grey Harbour"  # its words, one space apart, no question mark
    assert texts(phrase_tree(PARSES[BORN], **code)) == [
        top,
        "director of Velmora or the author of Grey Harbour",
        "author of Grey Harbour",
    ]
    found = list(phrase_tree(PARSES[BORN], "constituency", **code).walk())
    assert (
        [p.text for p in found[:2]] == [top + " ?"] * 2
        and [p.type for p in found[:2]] == ["ROOT", "SBARQ"]
        and found[0].words == 16
    )


def test_the_public_code_parses_the_first_sentence():
    assert texts(phrase_tree(BOTH, nodes="code", sentences="first")) == texts(phrase_tree(PARSES[BORN], nodes="code"))
    tree = phrase_tree(BOTH, sentences="first")
    assert tree.text == BOTH.text and len(tree.children) == 1


# --- queries and passages


# --- traversal


@pytest.mark.parametrize("formalism, calls, path", [("dependency", 9, 9), ("constituency", 15, 11)])
def test_calls_and_critical_path(formalism, calls, path):
    prediction, llm, _ = ask(TreeRare(tree=formalism))
    assert (
        prediction.usage.calls == len(llm.log) == calls
        and prediction.usage.critical_path == prediction.trace.critical_path == path
    )


def test_children_before_parents_and_siblings_at_once():
    prediction, llm, _ = ask(TreeRare(tree="constituency"), latency=0.05)
    start, end = {}, {}
    by_key = {n.text: n for n in prediction.trace.nodes if n.kind == "phrase"}
    for s, e, r in llm.log:
        if r.prompt.task == "subquestions":
            start[r.inputs["phrase"]] = s
        if r.prompt.task == "subanswers":
            phrase = next(p for p in sorted(by_key, key=len) if r.inputs["questions"][0] == f"What is {p}?")
            end[phrase] = e
    for node in by_key.values():
        if node.parent is not None:
            assert end[node.text] <= start[prediction.trace.nodes[node.parent].text]
    together = abs(start["was born first"] - start["of Grey Harbour"])  # three leaves of different depth start together
    waited = start["the author of Grey Harbour"] - end["of Grey Harbour"]  # no waiting for a level to be complete
    enough(0.04 / max(together, waited, 1e-9), 1)


def test_children_evidence_reaches_query_generation():
    def whole(llm):
        return [
            i["context"] for i in llm.inputs("subquestions") if i["phrase"].startswith(BORN[:-1])
        ]  # SBARQ's, then ROOT's

    _, llm, _ = ask(TreeRare(tree="constituency"))
    context = {i["phrase"]: i["context"] for i in llm.inputs("subquestions")}
    assert context["of Grey Harbour"] == []
    assert context["the author of Grey Harbour"] == ["Known."]
    assert whole(llm) == [["Known."] * 2, ["Known."]] and "others" not in llm.inputs("subquestions")[0]
    _, llm, _ = ask(configure(TreeRare(tree="constituency"), handed_up="descendants"))
    assert whole(llm) == [["Known."] * 5, ["Known."] * 6]


def test_the_final_call_sees_all_evidence_from_the_leaves_up():
    _, llm, _ = ask(TreeRare())
    [final] = llm.inputs("answer")
    assert final["documents"] == ["Known."] * 4 and final["question"] == BORN


# --- switches


@pytest.mark.parametrize(
    "switches, tasks, searches",
    [
        (dict(), dict(subquestions=4, subanswers=4, answer=1), 4),
        (dict(query_generation=False), dict(subanswers=4, answer=1), 4),
        (dict(subcomponent_answers=False), dict(subquestions=4, answer=1), 4),
        (dict(retrieval=False), dict(subquestions=4, subanswers=4, answer=1), 0),
        (dict(query_generation=False, subcomponent_answers=False), dict(answer=1), 4),  # IR Only
        (dict(retrieval=False, subcomponent_answers=False), dict(subquestions=4, answer=1), 0),  # QG Only
        (dict(query_generation=False, retrieval=False, subcomponent_answers=False), dict(answer=1), 0),  # COT Only
        (dict(leaves="phrase"), dict(subquestions=3, subanswers=4, answer=1), 4),
        (dict(leaves="evidence"), dict(subquestions=3, subanswers=3, answer=1), 3),
        (PUBLIC_CODE, dict(subquestions=3, subanswers=3, answer=1), 3),
    ],
)
def test_a_switch_changes_just_its_calls(switches, tasks, searches):
    prediction, llm, shelf = ask(configure(TreeRare(), **switches))
    assert llm.tasks() == tasks and len(shelf.searches) == searches and prediction.answer == "Ada Vant"


# --- the public code, billycrapediem/TreeRare@157c843

CODE = TreeRare(**PUBLIC_CODE)
LOW, MIDDLE = "author of Grey Harbour", "director of Velmora or the author of Grey Harbour"


def test_the_public_codes_multi_hop_requests():
    prediction, llm, shelf = ask(CODE, dataset="musique")
    asked = llm.inputs("subquestions")
    assert [i["phrase"] for i in asked] == [LOW, MIDDLE, "Who was born first , the director of Velmora or the " + LOW]
    assert [i["context"] for i in asked] == [[], ["Known."], ["Known."] * 2]
    assert [i["others"] for i in asked[:2]] == [
        [],
        [f"{LOW}: What is {LOW}?; Who made {LOW}?"],
    ]  # of the children alone
    assert all(k == 10 for _, k in shelf.searches)
    read = llm.inputs("subanswers")[0]
    assert [d.text for d in read["documents"]] == [
        f"About {q}" for q in read["questions"] for _ in "12"
    ]  # query by query
    [final] = llm.asked[-1:]
    assert (
        final.inputs["documents"] == ["Known."] * 3
        and "as many answers as possible" in final.text
        and prediction.answer == "Ada Vant"
    )
    assert (
        "at most three" in llm.asked[0].text
        and "the five questions" in llm.asked[0].text
        and "by yourself" in llm.asked[1].text
    )


def test_the_public_codes_asqa_requests():
    prediction, llm, shelf = ask(CODE, dataset="asqa")
    assert llm.tasks() == dict(subquestions_ambiguous=3, subanswers=3, evidence_answer=1, combined_answer=1)
    assert [i["others"] for i in llm.inputs("subquestions_ambiguous")[:2]] == [[], [f"{LOW}: (none)"]]
    final, combined = llm.asked[-2:]
    assert "born first" not in final.text and set(final.inputs) == {
        "documents"
    }  # its prompt has no place for the question
    assert combined.inputs["question"] == BORN and "FINAL: Ada Vant or Ida Roth" in combined.text
    assert prediction.answer == "Ada Vant or Ida Roth, it seems." and {k for _, k in shelf.searches} == {10}
    assert prediction.usage.critical_path == len(llm.asked)


def test_the_public_codes_ambigdocs_requests():
    prediction, llm, shelf = ask(CODE, dataset="ambigdocs")
    assert llm.tasks() == dict(
        subquestions_ambiguous=4, entity_answers=4, answer_ambiguous=1
    )  # two words are a phrase: "Grey Harbour"
    assert all(
        set(i) == {"question", "others"} for i in llm.inputs("subquestions_ambiguous")
    )  # neither the phrase nor evidence
    assert {k for _, k in shelf.searches} == {5} and "seven" in llm.asked[0].text
    assert all(i["question"] == BORN and "questions" not in i for i in llm.inputs("entity_answers"))
    assert llm.asked[-1].inputs["documents"] == ["Both."] * 4 and prediction.answer == "Ada Vant or Ida Roth"
    assert configure(TreeRare(), top_k_ambigdocs="5").reading.top_k_ambigdocs == 5
    assert configure(CODE, top_k_ambigdocs="none").reading.top_k_ambigdocs is None


def test_the_public_code_is_named():
    from treekit.papers.treerare import method, tree_retrieval

    assert method.PUBLIC_CODE_AT == tree_retrieval.PUBLIC_CODE_AT == "billycrapediem/TreeRare@157c843"


# --- Table 3, on the store's record


def recorded(method, question=BORN):
    "What the store's file says was asked, in the order of the calls: (prompt's task, its text); and the searches."
    with Store() as store:
        llm, shelf = Scripted(), Shelf()
        asyncio.run(
            method(
                Question("q", "", question),
                Context(CachedClient(llm, store).bind(method="m", dataset="d", question="q"), shelf, Parser()),
            )
        )
        texts = [
            json.loads(zlib.decompress(body))["messages"][-1]["content"]
            for (body,) in store.query("SELECT body FROM requests ORDER BY rowid")
        ]
        assert (
            len(texts) == store.usage(("method",))[0]["calls"] == len(llm.log)
        )  # nothing twice, nothing beside the store
        return [
            ("final" if "FINAL:" in t else "queries" if "response:" in t else "answers", t) for t in texts
        ], shelf.searches


PHRASES = [
    BORN,
    "the director of Velmora or the author of Grey Harbour",
    "the author of Grey Harbour",
    "of Grey Harbour",
]


@pytest.mark.parametrize(
    "name, calls, searched",
    [
        ("TreeRare (DT)", ["queries", "answers"] * 4 + ["final"], 4),
        ("TreeRare (DT) w/o QG", ["answers"] * 4 + ["final"], 4),
        ("TreeRare (DT) w/o SAG", ["queries"] * 4 + ["final"], 4),
        ("TreeRare (DT) w/o IR", ["queries", "answers"] * 4 + ["final"], 0),
        ("IR Only", ["final"], 1),
        ("QG Only", ["queries"] * 4 + ["final"], 0),
        ("COT Only", ["final"], 0),
        ("IR Only (every phrase)", ["final"], 4),
        ("QG Only (the question)", ["queries", "final"], 0),
    ],
)
def test_calls_of_each_row_of_table_3(name, calls, searched):
    record, searches = recorded((METHODS | ABLATIONS | VARIANTS)[name])
    assert [kind for kind, _ in record] == calls and len(searches) == searched
    if "w/o QG" in name:  # the phrase's surface form is the query; the question itself is answered from what that finds
        assert sorted(q for queries, _ in searches for q in queries) == sorted(PHRASES)
        assert all(BORN in text for kind, text in record if kind == "answers")
        assert sorted(text.count("About") for kind, text in record if kind == "answers") == [2] * 4
    if "w/o SAG" in name:  # passages are handed on, uninterpreted
        assert "Known." not in str(record)
        assert record[-1][1].count("About") == len({line for line in record[-1][1].splitlines() if "About" in line})
    # nothing was searched, so no prompt speaks of documents
    if "w/o IR" in name:
        assert not any("document" in text for kind, text in record if kind == "answers") and "About" not in str(record)
    if name == "IR Only":
        assert searches == [([BORN], 15)] and "About" in record[-1][1]
    if name == "QG Only":
        assert all(f"What is {p}?" in record[-1][1] for p in PHRASES) and "document" not in record[-1][1]
    if name == "COT Only":
        assert not {"(none)", "document"} & set(record[-1][1].split()) and "step by step" in record[-1][1]


def test_the_printed_rows_of_table_3_are_the_ablations():
    from treekit.figures.verdicts import published

    assert list(dict.fromkeys(r["method"] for r in published("treerare", "table3"))) == list(ABLATIONS)


def test_wrong_settings_are_named():
    with pytest.raises(UsageError, match="dependency"):
        TreeRare(tree="dependencies")
    with pytest.raises(UsageError, match="top_k"):
        TreeRare(top_k=0)
    assert configure(TreeRare(), tree="constituency", n_queries="2", retrieval="off") == TreeRare(
        tree="constituency", n_queries=2, retrieval=False
    )


# --- trace and failures


def test_the_trace_tells_the_whole_story():
    prediction, *_ = ask(TreeRare(tree="constituency"))
    trace = prediction.trace
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace
    assert Prediction.from_json(json.loads(json.dumps(prediction.to_json()))) == prediction
    assert [n.kind for n in trace.nodes] == ["phrase"] * 7 + ["answer"]
    for node in trace.nodes[:-1]:
        assert BORN[slice(*node.data["span"])] == node.text
        assert node.data["type"] and node.data["evidence"] == "Known." and len(node.data["queries"]) == 2
        assert set(node.data["hits"][0]) >= {"id", "title", "score"}
    assert trace.nodes[-1].text == "Ada Vant" and trace.nodes[-1].data["explanation"]


@pytest.mark.parametrize("question, reason", [("", "empty"), ("  ", "empty"), ("word " * 5000, "5000 words")])
def test_impossible_questions_fail_with_a_reason_and_cost_nothing(question, reason):
    with pytest.raises(UsageError, match=reason):
        ask(TreeRare(), question)


# --- baselines


def test_retrieve_and_read_is_one_search_and_one_call():
    prediction, llm, shelf = ask(RetrieveAndRead())
    assert llm.tasks() == {"answer": 1} and shelf.searches == [([BORN], 20)] and prediction.answer == "Ada Vant"
    assert "exemplars" not in llm.inputs("answer")[0]
    assert ask(RetrieveAndRead(), dataset="world/ambigdocs")[1].tasks() == {"answer_ambiguous": 1}
