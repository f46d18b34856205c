"""Rounds of the baselines' public codes, replayed: given a question and a model's replies, our method asks for the same in the same order.

Each round was derived by reading the code that it names, at that commit: what kind of request comes when, and what it carries. The wording
of the prompts is ours. What differs stands in `DIFFERENCES`, and in the method's notebook.
"""

import asyncio, json
from types import SimpleNamespace

import pytest

from fakes import FakeChat
from treekit.baselines import chainrag, hipporag, revising, tree_of_thoughts
from treekit.config import root
from treekit.core.prompts import Completion
from treekit.core.method import Context
from treekit.core.types import Passage, Question
from treekit.corpora.wiki import CorpusWiki
from treekit.papers.rdr2 import baselines as rdr2
from treekit.retrieval.bm25 import Hit

ASKED = "In which county is the birthplace of the author of Grey Harbour?"

# method -> its notebook, what the code is called there, and what differs from it whatever the fields say
DIFFERENCES = {
    "ToT": (
        "12_baselines/02_tree_of_thoughts",
        tree_of_thoughts.LATS,
        [
            "one wiki for the whole tree: Lookup reads the page opened last anywhere",
            "no limit of actions in the prompt, other examples",
            "100 tokens a turn",
        ],
    ),
    "Verify-and-Edit": (
        "12_baselines/04_revising",
        revising.VERIFY_AND_EDIT,
        [
            "six solved examples",
            "sentences are cut at First, Second, …, three at most are verified",
            "Wikipedia's sentences, ranked by MiniLM, are shown",
            "whatever the verifying answer says takes the sentence's place",
        ],
    ),
    "RATT": (
        "12_baselines/04_revising",
        revising.RATT_CODE,
        [
            "one web page in at most three pieces for a query; ours: two passages (ARISE)",
            "no short answer at the end (ARISE asks for one)",
            "agents take turns",
            "equal answers are verified twice",
            "late calls are skipped",
            "a chain of thought to compare with",
        ],
    ),
    "HippoRAG": (
        "12_baselines/09_hipporag",
        hipporag.HIPPORAG,
        [
            "one solved example",
            "the whole reply is the thought",
            "without a name in the query all passages rank alike",
            "Contriever or ColBERTv2",
        ],
    ),
    "FLARE": (
        "17_papers/5_rdr2/07_baselines",
        rdr2.FLARE_CODE,
        [
            "a sure sentence is asked for again, by the same prompt",
            "a look ahead of 64 tokens",
            "few-shot, ends with an empty line",
        ],
    ),
}


class Round(FakeChat):
    "A model that says what the round has it say, and a shelf with a passage for each query: `events` has both, in order."

    def __init__(self, says, found=None):
        super().__init__(says)
        self.events, self.found = [], found or (lambda query: [f"About {query}"])

    async def complete(self, request):
        self.events.append((request.prompt.task, request.inputs, request.n, request.temperature))
        return await super().complete(request)

    def search(self, queries, k=15):
        self.events += [("search", dict(query=q), 1, None) for q in queries]
        return [[Hit(Passage(t, "", t), 1.0, i) for i, t in enumerate(self.found(q), 1)][:k] for q in queries]


def play(method, says, found=None, question=None, **provided):
    model = Round(says, found)
    prediction = asyncio.run(
        method(question or Question("q", "musique", ASKED, ("Voss County",)), Context(model, model, **provided))
    )
    return prediction, model.events


def said(inputs):
    "All that a request carries, as one text."

    def words(value):
        return " | ".join(map(words, value)) if isinstance(value, (list, tuple)) else getattr(value, "text", str(value))

    return " | ".join(map(words, inputs.values()))


def same(events, code):
    "`code`: (kind, what it carries, what it doesn't) for each event."
    assert [kind for kind, *_ in events] == [kind for kind, *_ in code]
    for (kind, inputs, *_), (_, there, absent) in zip(events, code):
        assert all(w in said(inputs) for w in there), (kind, there, said(inputs))
        assert not any(w in said(inputs) for w in absent), (kind, absent, said(inputs))


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_code_is_named_with_its_commit_and_what_differs(name):
    notebook, code, differences = DIFFERENCES[name]
    cells = json.loads((root() / "nbs" / f"{notebook}.ipynb").read_text())["cells"]
    prose = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    assert code in prose and "**The code differs**" in prose and differences and "@" in code


# --- lapisrocks/LanguageAgentTreeSearch@01e91e2, hotpot/tot.py: dfs_search


def test_lats_depth_first_search():
    # get_samples: one request of five at temperature 1.0; generate_new_states: thought and action make a child, no action makes none;
    # stack.extend(reversed(children)): the first child is expanded next; the search ends at a terminal child with reward 1
    turns = {
        0: [
            "I look.\nAction: Search[Ida Roth]",
            "I look.\nAction: Search[Ida Roth]",
            "Or so.\nAction: Search[Ida Roth]",
            "I don't know.",
            "A guess.\nAction: Finish[Tarn]",
        ],
        1: ["So.\nAction: Finish[Lund County]"] * 5,
        2: ["No, so.\nAction: Finish[Voss County]"] * 5,
    }
    asked = []

    def says(request, sample):
        if not sample:
            asked.append(request)
        return turns[len(asked) - 1][sample]

    wiki = CorpusWiki([Passage("1", "Ida Roth", "Ida Roth was born in Tarn, Voss County.")])
    prediction, events = play(tree_of_thoughts.TreeOfThoughts(**tree_of_thoughts.LATS_CODE), says, wiki=wiki)
    wrong = "Action 2: Finish[Lund County]\nObservation 2: Episode finished, reward = 0"
    same(
        events,
        [
            ("act", [ASKED], ["Observation 1"]),
            ("act", [ASKED, "Action 1: Search[Ida Roth]", "born in Tarn"], ["Or so.", "Action 2"]),
            # expand_node asks below a finished state, too, if its reward is 0
            ("act", [ASKED, "Action 1: Search[Ida Roth]", wrong], []),
        ],
    )
    assert [(n, t) for _, _, n, t in events] == [(5, 1.0)] * 3 and prediction.answer == "Voss County"
    children = [n.text for n in prediction.trace.nodes if n.parent == 0]
    assert children == ["Search[Ida Roth]", "Search[Ida Roth]", "Finish[Tarn]"]


# --- RuochenZhao/Verify-and-Edit@0ca0624, HotpotAdv: consistency, verifying_questions, relevant_context, verifying_answers, answer_again


def test_verify_and_edit():
    # five samples at 0.7 from memory; of those with the winning answer the one with the highest mean log-probability; for each of its
    # sentences a question (from the overall question and the sentence), a search, an answer (from what was found and the question alone);
    # and the answer again, from the question and the new rationale alone
    chains = [
        ("Roth was born in Orle.", "Lund County", -2.0),
        ("Roth wrote it.", "Lund County", -0.5),
        ("By Lund.", "Usk", -0.1),
        ("Unclear.", "", -0.1),
        ("Tarn.", "Tarn", -0.1),
    ]

    def says(request, sample):
        task, given = request.prompt.task, request.inputs
        if request.n > 1:
            text = f"Explanation: {chains[sample][0]}\nFINAL: {chains[sample][1]}"
            return Completion(text, logprobs=((text, chains[sample][2]),))
        if task == "verifying_question":
            return "Who wrote Grey Harbour?"
        return "Ida Roth wrote it, says the page." if task == "subanswers" else f"FINAL: from {len(said(given))}"

    prediction, events = play(revising.VerifyAndEdit(**revising.VERIFY_AND_EDIT_CODE), says, lambda q: [f"Page on {q}"])
    same(
        events[:-1],
        [
            ("answer", [ASKED], ["Page on"]),
            ("verifying_question", [ASKED, "Roth wrote it."], ["Orle"]),
            ("search", ["Who wrote Grey Harbour?"], [ASKED]),
            ("subanswers", ["Page on Who wrote", "Who wrote Grey Harbour?"], [ASKED]),
            ("answer", [ASKED, "Ida Roth wrote it, says the page."], ["Page on"]),
        ],
    )
    assert events[0][2:] == (5, 0.7) and events[-1][0] == "search"  # ARISE's closing search for the facts (App. B.2)


# --- jinghanzhang1998/RATT@a613894, example_creative_writing.py: ratt, get_draft_tot_inital, get_draft_tot, RAG


def test_ratt():
    # a draft; for each paragraph: the answer grows by it, a query from question and answer, one search, for each text a filter (query and
    # text) and a revision (question, answer, what was filtered); the agents' answers are merged without the question; the merged answer is
    # verified the same way; from the second step on a draft builds on the answer before, and the merged one is united with it
    def says(request, sample):
        task, given = request.prompt.task, request.inputs
        return {
            "draft_answer": "First.\n\nSecond.",
            "extend_answer": "Longer.",
            "search_query": f"Q{given.get('thought', '').count('.')}",
            "filter_text": f"filtered {given.get('passage')}",
            "revise": f"{given.get('thought')} Right.",
            "integrate": "Merged.",
            "unite_answers": "United.",
            "answer": "FINAL: Voss County",
        }[task]

    prediction, events = play(revising.RATT(agents=1, steps=2, short=False), says)

    def verified(answer, query, more=()):
        return [
            ("search_query", [ASKED, answer], list(more)),
            ("search", [query], []),
            ("filter_text", [query, f"About {query}"], [ASKED]),
            ("revise", [ASKED, answer, f"filtered About {query}"], []),
        ]

    same(
        events[:-1],
        [
            ("draft_answer", [ASKED], ["First."]),
            *verified("First.", "Q1", ["Second."]),
            *verified("First. Right.\n\nSecond.", "Q3"),
            ("integrate", ["First. Right.\n\nSecond. Right."], [ASKED]),
            *verified("Merged.", "Q1"),
            ("extend_answer", [ASKED, "Merged. Right."], []),
            *verified("Longer.", "Q1"),
            ("integrate", ["Longer. Right."], [ASKED]),
            ("unite_answers", ["Merged. Right.", "Merged."], [ASKED]),
            *verified("United.", "Q1"),
        ],
    )
    assert {t for kind, *_, t in events if kind == "filter_text"} == {0.5} and prediction.answer == "United. Right."
    assert {t for kind, *_, t in events if kind not in ("filter_text", "search")} == {1.0}
    three, events = play(revising.RATT(steps=1), says)
    assert [e[2] for e in events if e[0] == "draft_answer"] == [3]  # num_agents


# --- OSU-NLP-Group/HippoRAG@b144c46 (legacy), src/ircot_hipporag.py, src/qa/qa_reader.py


@pytest.mark.parametrize("dataset, thoughts", [("musique", 3), ("2wiki", 1)])
def test_hipporag_with_ircot(monkeypatch, dataset, thoughts):
    # rank_docs: named_entity_recognition of the query, then PageRank; reason_step with the ten best passages so far, the question and all
    # thoughts; passages merged by their highest score and sorted; max_steps 4 for MuSiQue, 2 else; qa_read with the five best
    shelf = [Passage(f"p{i}", "", f"Text {i}.") for i in range(14)]
    order = {0: range(10), 1: [12, 3, 13], 2: [13], 3: []}  # what each search reaches, the best first
    scores = {0: lambda r: 1.0 - 0.05 * r, 1: lambda r: (1.0, 0.99, 0.2)[r], 2: lambda r: 0.999, 3: None}
    searches = []

    def search(self, starts, k, damping):
        searches.append(k)
        n = len(searches) - 1
        return [Hit(shelf[i], scores[n](r), r + 1) for r, i in enumerate(order[n])]

    memory = type(
        "M",
        (),
        dict(
            search=search,
            linked=lambda self, names: [(n, 0, 1.0) for n in names],
            specificity=lambda self, i: 1.0,
            nodes=["node"],
        ),
    )()

    async def index(self, context):
        return memory, {}

    monkeypatch.setattr(hipporag.HippoRAG, "index", index)

    def says(request, sample):
        task = request.prompt.task
        return {
            "name_entities": '["Ida Roth"]',
            "thought": f"Thought {len(request.inputs.get('thoughts', ()))} goes on.",
            "answer_short": "FINAL: Voss County",
        }[task]

    prediction, events = play(
        hipporag.HippoRAG(), says, question=Question("q", dataset, ASKED), corpus=SimpleNamespace(passages=shelf)
    )
    code = [("name_entities", [ASKED], []), ("thought", [ASKED, *(f"Text {i}." for i in range(10))], ["Text 12."])]
    if thoughts == 3:
        code += [
            ("name_entities", ["Thought 0 goes on."], [ASKED]),
            ("thought", [ASKED, "Text 12.", "Thought 0"], ["Text 9.", "Text 13."]),
            ("name_entities", ["Thought 1 goes on."], [ASKED]),
            ("thought", [ASKED, "Text 13.", "Thought 0", "Thought 1"], ["Text 8."]),
            ("name_entities", ["Thought 2 goes on."], [ASKED]),
        ]
        read = ["Text 0.", "Text 12.", "Text 13.", "Text 3.", "Text 1."]
    else:
        code += [("name_entities", ["Thought 0 goes on."], [ASKED])]
        read = ["Text 0.", "Text 12.", "Text 3.", "Text 1.", "Text 2."]
    same(events[:-1], [*code, ("answer_short", [ASKED], ["Thought"])])
    assert [p.text for p in events[-2][1]["documents"]] == read and set(searches) == {10}


# --- jzbjyb/FLARE@ec4b06b, src/openai_api.py: QueryAgent.ret_prompt with configs/2wikihop_flare_config.json


def test_flare():
    # a search with the question; then, step by step: a look ahead with the passages that are there; where a token isn't more probable than
    # 0.8, a search with the tokens more probable than 0.4, whose passages replace the others; and the sentence, written with them
    drafts = ["It is by Ida Roth.", "She was born in Orle.", "DONE"]
    sure = (("It is by Ida Roth.", -0.01),)
    unsure = (("She was", -0.01), (" born", -0.5), (" in", -0.01), (" Orle", -3.0), (".", -0.01))

    def says(request, sample):
        done = request.inputs["answer"].count(".")
        if "About She was born in" in said(request.inputs) and done == 1:
            return Completion("She was born in Tarn.", logprobs=sure)
        return Completion(drafts[done], logprobs=unsure if done == 1 else sure)

    prediction, events = play(rdr2.FLARE(), says, question=Question("q", "asqa", ASKED))
    found, first = "About She was born in .", f"About {ASKED}"
    same(
        events,
        [
            ("search", [ASKED], []),
            ("next_sentence", [ASKED, first], ["It is by"]),
            ("next_sentence", [ASKED, first, "It is by Ida Roth."], []),
            ("search", ["She was born in ."], ["Orle", ASKED]),
            ("next_sentence", [ASKED, found, "It is by Ida Roth."], [first]),
            ("next_sentence", [ASKED, found, "She was born in Tarn."], [first]),
        ],
    )
    assert prediction.answer == "It is by Ida Roth. She was born in Tarn."


# --- nju-websoft/ChainRAG@b0a9337, retrieval.py: plan, sentence_graph.py: decompose_question


def test_chainrag(monkeypatch):
    # is it a question of several steps; its sub-questions; for each: with a word that may refer to something, each earlier pair by itself:
    # does it refer to that answer? if so it is rewritten; the seven best sentences; do they suffice; if not, five neighbours; its answer.
    # Then two final answers: from the sub-questions and their answers, and from all sentences that were read
    from dataclasses import replace

    texts = [f"Sentence {i} of the page." for i in range(9)]
    graph = SimpleNamespace(
        sentences=[Passage(f"p{i}", "", t) for i, t in enumerate(texts)],
        unparsed=0,
        made={},
        neighbours=lambda i, *window: {8: ["beside"]} if i == 0 else {},
    )

    async def corpus_graph(m, context):
        return graph

    ks = []

    async def similar(m, graph, query, k, among=None):
        ks.append(k)
        return sorted(among) if among is not None else list(range(7))[:k]

    monkeypatch.setattr(chainrag, "corpus_graph", corpus_graph)
    monkeypatch.setattr(chainrag, "similar_sentences", similar)
    monkeypatch.setattr(chainrag, "check_available", lambda m, context: None)

    def says(request, sample):
        task, given = request.prompt.task, request.inputs
        first = "Who wrote" in str(given.get("question"))
        return {
            "judge_steps": "true",
            "decompose_path": json.dumps(["Who wrote Grey Harbour?", "In which county was she born?"]),
            "judge_reformulation": "yes",
            "reformulate": "In which county was Ida Roth born?",
            "judge_context": "yes" if first else "no",
            "answer_short": "FINAL: Ida Roth" if first else "FINAL: Voss County",
            "integrate_answers": "FINAL: Voss County",
        }[task]

    m = replace(chainrag.CHAINRAG_PUBLIC, reranker="", embedder=chainrag.ChainRAG().embedder)
    prediction, events = play(m, says, corpus=SimpleNamespace(passages=[]))
    pair, own = ["Who wrote Grey Harbour?", "Ida Roth"], "In which county was Ida Roth born?"
    same(
        events,
        [
            ("judge_steps", [ASKED], []),
            ("decompose_path", [ASKED], []),
            ("judge_context", ["Who wrote Grey Harbour?", *texts[:7]], texts[7:]),
            ("answer_short", ["Who wrote Grey Harbour?", *texts[:7]], texts[7:]),
            ("judge_reformulation", [*pair, "In which county was she born?"], [ASKED]),
            ("reformulate", [*pair, "In which county was she born?"], [ASKED]),
            ("judge_context", [own, *texts[:7]], [texts[8]]),
            ("answer_short", [own, *texts[:7], texts[8]], []),
            ("integrate_answers", [ASKED, *pair, "Voss County"], [texts[0]]),
            ("answer_short", [ASKED, *texts[:7], texts[8]], []),
        ],
    )
    assert {t for *_, t in events} == {0.2} and prediction.answer == "Voss County" and ks[0] == 7
