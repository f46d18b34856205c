"TreeRare and its baselines against a scripted model: who is asked what, in which order, and how long that takes."

import asyncio, json, time, zlib

import pytest

from speed import enough
from fakes import FakeChat, FakeParser, FakeShelf
from treekit.baselines.prompting import RetrieveAndRead, examples_from
from treekit.config import UsageError
from treekit.core.types import Passage, Question
from treekit.core.method import Context, Prediction, Trace, configure
from treekit.retrieval.bm25 import Hit
from treekit.papers.treerare.phrases import Phrase, by_hand, content_words, phrase_tree
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
from treekit.syntax.parser import Parse
from treekit.papers.treerare.method import ABLATIONS, METHODS, PUBLIC_CODE, VARIANTS, TreeRare
from treekit.papers.treerare.queries import select_queries


BORN = "Who was born first, the director of Velmora or the author of Grey Harbour?"
PARSES = {
    BORN: by_hand(
        BORN,
        "Who/PRON/3/nsubj:pass was/AUX/3/aux:pass born/VERB/0/root first/ADV/3/advmod ,/PUNCT/7/punct the/DET/7/det "
        "director/NOUN/3/dislocated of/ADP/9/case Velmora/PROPN/7/nmod "
        "or/CCONJ/12/cc the/DET/12/det author/NOUN/7/conj of/ADP/14/case Grey/PROPN/12/nmod Harbour/PROPN/14/flat ?/PUNCT/3/punct",
        "(SBARQ (WHNP (WP Who)) (SQ (VBD was) (VP (VBN born) (ADVP (RB first)))) (, ,) (NP (NP (NP (DT the) (NN director)) (PP (IN of) "
        "(NP (NNP Velmora)))) (CC or)"
        " (NP (NP (DT the) (NN author)) (PP (IN of) (NP (NNP Grey) (NNP Harbour))))) (. ?))",
    )
}
BOTH = Parse(BORN + " " + BORN, PARSES[BORN].sentences * 2)
MILL = by_hand(
    "because the old mill of Tarn burned, who paid?",
    "because/SCONJ/7/mark the/DET/4/det old/ADJ/4/amod mill/NOUN/7/nsubj of/ADP/6/case Tarn/PROPN/4/nmod burned/VERB/10/aux "
    ",/PUNCT/7/punct who/PRON/10/nsubj paid/VERB/0/root ?/PUNCT/10/punct",
)


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


@pytest.mark.parametrize("formalism", ["dependency", "constituency"])
@pytest.mark.parametrize("least", [1, 2, 3, 4, 6])
def test_nothing_short_and_nothing_empty_is_kept(formalism, least):
    tree = phrase_tree(PARSES[BORN], formalism, least)
    for p in list(tree.walk())[1:]:
        assert p.words >= least and content_words(p.text)
    assert tree.text == BORN  # the root stays whatever its length
    assert phrase_tree(PARSES[BORN], formalism, 99).children == ()


def test_descendants_of_a_pruned_node_go_to_the_nearest_kept_ancestor():
    assert texts(phrase_tree(MILL)) == [
        MILL.text,
        "the old mill of Tarn",
    ]  # "burned" was (wrongly) an auxiliary: skipped, its subject kept


def test_names_are_one_node():
    text = "Where is the Kansas City metropolitan area?"
    p = by_hand(
        text,
        "Where/ADV/0/root is/AUX/1/cop the/DET/7/det Kansas/PROPN/5/compound City/PROPN/7/compound metropolitan/ADJ/7/amod "
        "area/NOUN/1/nsubj ?/PUNCT/1/punct",
    )
    names = [text, "the Kansas City metropolitan area", "metropolitan"]
    assert texts(phrase_tree(p, min_tokens=1, merged_relations="names")) == names
    # a compound is a node of its own, as in the public code, which joins `flat` alone
    assert texts(phrase_tree(p, min_tokens=2)) == [text, "the Kansas City metropolitan area", "Kansas City"]
    flat = by_hand(
        "Who was Ada Vant Roth?",
        "Who/PRON/0/root was/AUX/1/cop Ada/PROPN/1/nsubj Vant/PROPN/3/flat Roth/PROPN/3/flat ?/PUNCT/1/punct",
    )
    for merged, found in (("flat", ["Ada Vant Roth"]), ("none", ["Ada Vant Roth", "Vant", "Roth"])):
        assert texts(phrase_tree(flat, min_tokens=1, merged_relations=merged))[1:] == found


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


def test_the_public_code_leaves_out_what_hangs_below_a_skipped_node():
    assert texts(phrase_tree(MILL, nodes="code")) == ["who paid"]
    low = by_hand(
        "Who lives in the mill that he built in Tarn?",
        "Who/PRON/2/nsubj lives/VERB/0/root in/ADP/5/case the/DET/5/det "
        "mill/NOUN/2/obl that/PRON/8/obj he/PRON/8/nsubj built/VERB/5/acl:relcl in/ADP/10/case Tarn/PROPN/8/obl ?/PUNCT/2/punct",
    )
    # a preposition of the head itself is left out, one further down is not
    assert texts(phrase_tree(low, nodes="code")) == [
        "Who lives in the mill that he built in Tarn",
        "mill that he built in Tarn",
        "that he built in Tarn",
    ]


def test_the_public_code_parses_the_first_sentence():
    assert texts(phrase_tree(BOTH, nodes="code", sentences="first")) == texts(phrase_tree(PARSES[BORN], nodes="code"))
    tree = phrase_tree(BOTH, sentences="first")
    assert tree.text == BOTH.text and len(tree.children) == 1


def test_several_sentences_have_one_root():
    for formalism, type in (("dependency", "root"), ("constituency", "ROOT")):
        tree = phrase_tree(BOTH, formalism)
        assert tree.text == BOTH.text and tree.type == type and len(tree.children) == 2


def test_a_question_without_a_parse_is_one_phrase():
    assert phrase_tree(Parse("?", ())) == Phrase("?", "root", 0, 1, 0)
    prediction, llm, _ = ask(TreeRare(), "Who?")
    assert llm.tasks() == {"subquestions": 1, "subanswers": 1, "answer": 1} and prediction.answer == "Ada Vant"


def test_phrases_that_only_add_function_words_are_merged():
    text = "Who is the author of Grey Harbour?"
    p = by_hand(
        text,
        "Who/PRON/0/root is/AUX/1/cop the/DET/4/det author/NOUN/1/nsubj of/ADP/6/case Grey/PROPN/4/nmod Harbour/PROPN/6/flat "
        "?/PUNCT/1/punct",
        "(ROOT (SBARQ (WHNP (WP Who)) (SQ (VBZ is) (NP (NP (DT the) (NN author)) (PP (IN of) (NP (NNP Grey) (NNP Harbour))))) (. ?)))",
    )
    assert texts(phrase_tree(p)) == [text, "the author of Grey Harbour", "of Grey Harbour"]
    assert texts(phrase_tree(p, contentless=True)) == [text, "of Grey Harbour"]
    assert texts(phrase_tree(p, "constituency", contentless=True)) == [text, "of Grey Harbour"]
    for formalism in ("dependency", "constituency"):
        for unary in (True, False):
            for phrase in phrase_tree(PARSES[BORN], formalism, unary=unary, contentless=True).walk():
                assert all(len(content_words(c.text)) < len(content_words(phrase.text)) for c in phrase.children)


def test_no_tree_is_one_phrase():
    assert phrase_tree(PARSES[BORN], "none") == Phrase(BORN, "root", 0, len(BORN), 0)
    assert not TreeRare(tree="none").requires and TreeRare().requires == ("parser",)


# --- queries and passages


def test_query_selection_is_deterministic_and_bounded():
    found = [
        "What is a director?",
        "Who directed Velmora?",
        "When was the director of Velmora born?",
        "When was the author of Grey Harbour born?",
        "who directed velmora",
    ]
    kept = select_queries(found, "the director of Velmora or the author of Grey Harbour", 2)
    assert kept == ["When was the director of Velmora born?", "When was the author of Grey Harbour born?"]
    assert select_queries(found, "x", 9) == found[:4]  # the same words twice count once; the model's order stays
    assert select_queries([], "x") == []


@pytest.mark.parametrize("selection, pick, used", [("rule", "3", 3), ("model", "3", 3), ("all", "3", 6)])
def test_who_keeps_the_queries(selection, pick, used):
    six = "response: " + "; ".join(f"Who is the {i} of Tarn?" for i in "abcdef")
    _, llm, shelf = ask(TreeRare(selection=selection), "Who?", replies=dict(subquestions=six))
    assert llm.inputs("subquestions")[0]["pick"] == pick and len(shelf.searches[0][0]) == used
    _, llm, _ = ask(TreeRare(selection="model"), "Who?", "asqa")
    assert llm.inputs("subquestions_ambiguous")[0]["pick"] == "5"  # as App. G prints it


@pytest.mark.parametrize("n", [1, 2, 3])
def test_number_of_queries(n):
    three = "response: Who wrote Tarn?; Who sold Orle?; Who bought Usk?"
    _, _, shelf = ask(TreeRare(n_queries=n, top_k=7), "Who?", replies=dict(subquestions=three))
    [(queries, k)] = shelf.searches
    assert len(queries) == n and k == 7


def test_no_queries_leave_the_phrase_and_a_note():
    prediction, _, shelf = ask(TreeRare(), "Who?", replies=dict(subquestions="response:"))
    assert shelf.searches == [(["Who?"], 15)] and "no query" in prediction.trace.nodes[0].notes[-1]
    prediction, *_ = ask(TreeRare(), "Who?", replies=dict(subquestions="I can't."))
    assert any("response:" in n for n in prediction.trace.nodes[0].notes)


@pytest.mark.parametrize(
    "reply",
    [
        "response: Who wrote it?; When?\n```",
        "```text\nresponse: Who wrote it?; When?\n```\nThese help to answer the main one.",
        "#response: question1: Who wrote it?; **Question 2:** When?",
        "response: Who wrote it?; When? These cover both parts.",
        "response:\n\n1. Who wrote it?\n\n2. When?\n\nThese cover both parts.",
    ],
)
def test_fences_prose_and_prefixes_are_no_queries(reply):
    prediction, _, shelf = ask(TreeRare(selection="all"), "Who?", replies=dict(subquestions=reply))
    assert shelf.searches == [(["Who wrote it?", "When?"], 15)]


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


def test_wall_clock_is_the_critical_path():
    start = time.perf_counter()
    prediction, *_ = ask(TreeRare(tree="constituency"), latency=0.1)
    taken = time.perf_counter() - start
    assert taken >= prediction.usage.critical_path * 0.1 * 0.99
    enough((prediction.usage.critical_path * 0.1 * 1.10 + 0.1) / taken, 1)  # 13 calls one by one would take 1.3 s


@pytest.mark.parametrize(
    "switches", [{}, dict(query_generation=False), dict(subcomponent_answers=False), dict(tree="constituency")]
)
def test_priority_is_the_number_of_calls_ahead(switches):
    prediction, llm, _ = ask(TreeRare(**switches))
    most = max(r.priority for *_, r in llm.log)
    assert most + 1 == prediction.usage.critical_path
    assert [r.priority for *_, r in llm.log][-1] == 0


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
    _, llm, _ = ask(TreeRare(tree="constituency", handed_up="descendants"))
    assert whole(llm) == [["Known."] * 5, ["Known."] * 6]


def test_the_final_call_sees_all_evidence_from_the_leaves_up():
    _, llm, _ = ask(TreeRare())
    [final] = llm.inputs("answer")
    assert final["documents"] == ["Known."] * 4 and final["question"] == BORN
    [final] = ask(TreeRare(labelled=True))[1].inputs("answer")
    assert final["documents"] == [f"{p}: Known." for p in reversed(texts(phrase_tree(PARSES[BORN])))]


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
    prediction, llm, shelf = ask(TreeRare(**switches))
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
    assert prediction.usage.critical_path == len(llm.asked) == max(r.priority for r in llm.asked) + 1


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
    assert configure(TreeRare(), top_k_ambigdocs="5").top_k_ambigdocs == 5
    assert configure(TreeRare(top_k_ambigdocs=5), top_k_ambigdocs="none").top_k_ambigdocs is None


def test_the_public_code_is_named():
    from treekit.papers.treerare import method, tree_retrieval

    assert method.PUBLIC_CODE_AT == tree_retrieval.PUBLIC_CODE_AT == "billycrapediem/TreeRare@157c843"


def test_a_wording_may_leave_out_how_many_are_asked_for(tmp_path):
    from treekit.core.prompts import load_prompts
    from treekit.experiments.prompts import known_prompts

    file = tmp_path / "printed.toml"
    file.write_text(
        '["treerare.subquestions"]\ntemplate = "$phrase in $question: at most 5, pick top 3. $context response: q1; ..."\n'
        '["treerare.subquestions_ambiguous"]\ntemplate = "$phrase $question $context $others pick top 5"\n'
    )
    prompts = load_prompts(file, known_prompts())
    llm = Scripted()
    asyncio.run(TreeRare()(Question("q", "", BORN), Context(llm, Shelf(), Parser(), prompts=prompts)))
    assert "pick top 3" in llm.asked[0].text and set(llm.asked[0].inputs) == {"phrase", "question", "context"}
    file.write_text('["treerare.subquestions"]\ntemplate = "$phrase pick top 3 $context"\n')
    with pytest.raises(
        UsageError, match="must have the slots context, phrase, question; it may have candidates, others, pick"
    ):
        load_prompts(file, known_prompts())


def test_what_is_handed_up_without_a_module():
    _, llm, shelf = ask(TreeRare(query_generation=False))
    assert sorted(shelf.searches) == sorted(([p], 15) for p in texts(phrase_tree(PARSES[BORN])))
    assert all(i["questions"] == [BORN] for i in llm.inputs("subanswers"))
    _, llm, _ = ask(TreeRare(subcomponent_answers=False))
    [final] = llm.inputs("answer")
    assert all(isinstance(d, Passage) for d in final["documents"]) and len({d.id for d in final["documents"]}) == len(
        final["documents"]
    )
    piles = [[d.id for d in i["context"]] for i in llm.inputs("subquestions")]
    # each hands on all that was found below it
    assert piles[0] == [] and all(a == b[: len(a)] and len(a) < len(b) for a, b in zip(piles, piles[1:]))
    _, llm, _ = ask(TreeRare(retrieval=False, subcomponent_answers=False))
    assert len(llm.inputs("answer")[0]["documents"]) == 8  # the queries themselves
    _, llm, _ = ask(TreeRare(leaves="evidence"))
    assert llm.inputs("answer")[0]["documents"][0] == "of Grey Harbour"


def test_without_query_generation_no_node_waits():
    prediction, llm, _ = ask(TreeRare(tree="constituency", query_generation=False), latency=0.05)
    assert prediction.usage.calls == 8 and prediction.usage.critical_path == 2
    starts = [s for s, _, r in llm.log if r.prompt.task == "subanswers"]
    assert max(starts) - min(starts) < 0.04


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


def test_prompt_families():
    for dataset, task in (
        ("ambigdocs", "answer_ambiguous"),
        ("world/asqa", "answer_ambiguous"),
        ("musique", "answer"),
        ("", "answer"),
    ):
        assert task in ask(TreeRare(), dataset=dataset)[1].tasks()
    assert "subquestions_ambiguous" in ask(TreeRare(family="ambiguous"), dataset="musique")[1].tasks()


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


def test_the_trace_is_the_same_whatever_finishes_first():
    class Uneven(Scripted):
        async def complete(self, request):
            self.latency = 0.02 if "Velmora" in str(request.inputs) else 0.0
            return await super().complete(request)

    method, question = TreeRare(tree="constituency"), Question("q", "", BORN)
    one, other = (
        asyncio.run(method(question, Context(llm, Shelf(), Parser()))).trace.to_json() for llm in (Scripted(), Uneven())
    )
    assert one == other


@pytest.mark.parametrize("question, reason", [("", "empty"), ("  ", "empty"), ("word " * 5000, "5000 words")])
def test_impossible_questions_fail_with_a_reason_and_cost_nothing(question, reason):
    with pytest.raises(UsageError, match=reason):
        ask(TreeRare(), question)


def test_another_language_gets_an_answer():
    assert ask(TreeRare(), "벨모라의 감독은 누구입니까?")[0].answer == "Ada Vant"


def test_a_failed_call_stops_the_others():
    class Failing(Scripted):
        async def complete(self, request):
            if request.inputs.get("phrase") == "was born first":
                raise ConnectionError("gone")
            return await super().complete(request)

    llm = Failing(latency=0.05)
    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(TreeRare(tree="constituency")(Question("q", "", BORN), Context(llm, Shelf(), Parser())))
    assert llm.log == []  # the siblings' calls were cancelled under way


# --- baselines


def test_retrieve_and_read_is_one_search_and_one_call():
    prediction, llm, shelf = ask(RetrieveAndRead())
    assert llm.tasks() == {"answer": 1} and shelf.searches == [([BORN], 20)] and prediction.answer == "Ada Vant"
    assert "exemplars" not in llm.inputs("answer")[0]
    assert ask(RetrieveAndRead(), dataset="world/ambigdocs")[1].tasks() == {"answer_ambiguous": 1}


def test_examples_are_the_datasets_own_and_never_the_question():
    training = [Question(f"t{i}", "musique", f"Question {i}?", (f"answer {i}",)) for i in range(3)] + [
        Question("q", "musique", BORN, ("leaked",)),
        Question("o", "hotpotqa", "Other?", ("other",)),
    ]
    few = RetrieveAndRead(shots=3, examples=examples_from(training))
    _, llm, _ = ask(few, dataset="musique")
    shown = llm.inputs("answer")[0]["exemplars"]
    assert all(f"answer {i}" in shown for i in range(3)) and "leaked" not in shown and "other" not in shown
    with pytest.raises(UsageError, match="hotpotqa"):
        ask(few, dataset="hotpotqa")


def test_an_ambiguous_example_shows_all_its_answers():
    from treekit.core.types import QAPair

    pairs = (QAPair("Which one?", ("one", "1")), QAPair("Which other?", ("two",)))
    assert examples_from([Question("a", "asqa", "Which?", ("one",), qa_pairs=pairs)])[0].answer == "one; two"
    assert (
        examples_from([Question("a", "asqa", "Which?", ("one",), qa_pairs=pairs, long_answers=("One or two.",))])[
            0
        ].answer
        == "One or two."
    )
