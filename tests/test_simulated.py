"The simulated model: it reads what the world wrote, and its upper bound is reached. 16_parameters.ipynb tests each parameter."

import asyncio
import itertools
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from treekit.baselines.hipporag import TRIPLES
from treekit.baselines.iterative import CONCLUDE
from treekit.baselines.subquestions import INTEGRATE
from treekit.config import UsageError, load_profile
from treekit.corpora.documents import add_introduction, tree_of
from treekit.core.prompts import Prompt
from treekit.core.output_parsers import FINAL, TEXT
from treekit.papers.comparison.evaluation import entrants, qualities
from treekit.experiments.resources import chat_for
from treekit.experiments.run import run
from treekit.experiments.tables import MULTIHOP, sample_questions
from treekit.figures.verdicts import model_obstacle
from treekit.models.extractive.client import ExtractiveClient
from treekit.language.particles import resolve_particles
from treekit.language.coreference import render_history
from treekit.papers.searchr.paths import GENERATE
from treekit.papers.toq.planner import PROMPTS as TOQ
from treekit.models.simulated.knowledge import canonical, read_text
from treekit.models.simulated.client import HANDLERS, SimulatedClient
from treekit.models.simulated.ability import PERFECT, Ability, SeededRandom, reading_probability, uniform
from treekit.models.simulated.output_noise import BREAKS, break_format, logprobs
from treekit.models.simulated.grammar import grammar
from treekit.models.simulated.corpus_index import corpus_index, lookup_key, stated_facts, triples_of
from treekit.models.simulated.wording import Verbalizer
from treekit.models.simulated.quoting import number_references, quoted_path, quoted_steps
from treekit.store.run_store import Store
from treekit.synthetic.generate import KINDS, SyntheticWiki

WEAK = Ability(
    memory=0.08,
    reading=0.86,
    crowding=0.05,
    middle=0.25,
    chaining=0.45,
    thinking=0.3,
    examples=0.3,
    asking=0.68,
    judging=0.65,
    routing=0.72,
    inventing=0.7,
    ambiguity=0.45,
    confidence=0.45,
    form=0.06,
    shared=0.6,
)
ANSWER = Prompt("test.answer", "answer", "$documents\n$question", FINAL)
THINK = Prompt("test.think", "answer", "Think step by step.\n$documents\n$question", FINAL)
LONG = Prompt("test.long", "read_long", "$documents\n$question", TEXT)
ONE_ANSWER = (
    "bridge",
    "comparison",
    "intersection",
    "hybrid",
    "compositional",
    "inference",
    "bridge_comparison",
    "yes_no",
    "single",
    "deep",
    "deep_hybrid",
)


def said(chat, prompt, **inputs):
    "What a prompt's reply says."
    [reply] = asyncio.run(chat.complete(prompt(**inputs)))
    return prompt.read(reply.text).value


def share(level, kind, n=30, lang="en", prompt=ANSWER, documents=True):
    "The share of a kind's questions that are answered rightly from their own pools."
    chat, right = SimulatedClient(level), 0
    questions = SyntheticWiki(0, 400, lang).questions(kind, n)
    for q in questions:
        got = said(chat, prompt, question=q.question, documents=q.paragraphs if documents else ())["answer"]
        right += got in q.answers or kind == "list" and all(a in got for a in q.answers)
    return right / len(questions)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_question_and_step_of_the_world_is_understood(lang):
    g, world = grammar(0, 400, lang), SyntheticWiki(0, 400, lang)
    for kind in KINDS:
        for q in world.questions(kind, 25):
            texts = [q.question, *(s.question for s in q.decomposition), *(p.question for p in q.qa_pairs)]
            assert [t for t in texts if g.question(t) is None] == []


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("kind", ONE_ANSWER)
def test_perfect_reads_everything_and_knows_nothing(kind, lang):
    assert share(PERFECT, kind, lang=lang) >= 0.98
    assert share(PERFECT, kind, lang=lang, documents=False) <= 0.02


def test_a_noun_phrase_can_be_asked_for():
    g = grammar()
    for q in SyntheticWiki().questions("compositional", 25, "dev"):
        path = quoted_path(g, q.question)
        assert path and g.question(path[0]) is not None and path[-1].split()[0] == q.question.split()[0]
    assert g.question("What is Orle?") is None and g.question("What is the?") is None


def test_what_is_quoted_leads_to_the_same_answer():
    "The quoted path of a question asks for what the question asks for, step by step."
    g, same = grammar(), 0
    for q in SyntheticWiki().questions("compositional", 40, "dev"):
        steps = quoted_steps(g, q.question)
        whole = steps[-1]
        for n in range(len(steps) - 1, 0, -1):
            whole = whole.replace(f"#{n}", steps[n - 1].partition(" is ")[2].rstrip("?"))
        same += whole == q.question
    assert same == 40


def test_it_can_be_kept_from_writing_held_out_wordings():
    texts = [t for forms in grammar().index.w.ask.values() for key, ts in forms.items() if key != "label" for t in ts]
    usual = " ".join(t.text for t in texts if not t.held_out)
    held = {start for t in texts if t.held_out and len(start := t.text.partition("{")[0]) > 12 and start not in usual}
    assert len(held) > 50

    def written(chat):
        questions = SyntheticWiki().questions("compositional", 60, "train")
        return " ".join(step for q in questions for path in said(chat, GENERATE, question=q.question) for step in path)

    free, kept = written(SimulatedClient(PERFECT)), written(SimulatedClient(PERFECT, held_out=False))
    assert any(start in free for start in held) and not any(start in kept for start in held)
    assert SimulatedClient(PERFECT, held_out=False).endpoint != SimulatedClient(PERFECT).endpoint


def test_several_references_are_told_apart():
    history = render_history(
        [(0, "What is the university attended by Ada?", "Orle Institute"), (1, "Where did Ida die?", "Tarn")]
    )
    assert (
        number_references("Who studied at this university and died in this place?", history)
        == "Who studied at #1 and died in #2?"
    )
    assert number_references("Who died in this place?", history) == "Who died in this place?"


def test_perfect_names_all_readings_all_reasons_and_all_items():
    chat = SimulatedClient(PERFECT)
    for kind, wanted in (
        ("ambiguous", lambda q: q.answers),
        ("underspecified", lambda q: q.answers),
        ("explanation", lambda q: q.claims),
        ("list", lambda q: q.answers),
    ):
        for q in SyntheticWiki().questions(kind, 15):
            text = said(chat, ANSWER if kind == "list" else LONG, question=q.question, documents=q.paragraphs)
            text = text["answer"] if kind == "list" else text
            assert all(w in text for w in wanted(q)), (kind, q.question)


@pytest.mark.long
def test_every_sentence_of_a_document_is_read():
    "Also where a pronoun stands, and what it says of others than the page's subject; from a chunk all whole sentences."
    known, world = corpus_index(), SyntheticWiki()
    for document in world.documents():
        for p in document.paragraphs():
            told = {piece for _, piece in stated_facts(known, p.passage.text, document.title)}
            for start, end, states in zip((0, *p.ends), p.ends, p.states):
                assert not states or p.passage.text[start:end].strip() in told
        under, tree = known.document(known.of_title(document.title)).sections, add_introduction(tree_of(document))
        for heading in tree.headings:  # what a router may expect of it
            own = {
                tuple(f) for i in tree.content(heading) for f, _ in stated_facts(known, tree[i].text, document.title)
            }
            assert own <= under.get(lookup_key(tree[heading].text), own)
    assert len(known.documents) == 400


@pytest.mark.slow
def test_perfect_answers_from_documents():
    "Whatever pages a question is about, read whole: all its answers are found there, and none from other pages' namesakes."
    pages, chat = {d.title: d for d in SyntheticWiki().documents()}, SimulatedClient(PERFECT)
    for kind in ("underspecified", "ambiguous", "explanation"):
        for q in SyntheticWiki().questions(kind, 25):
            titles = {p.wikipage for p in q.qa_pairs} or {p.title for p in q.paragraphs if p.id in q.supporting}
            text = said(
                chat,
                LONG,
                question=q.question,
                documents=[p.passage for t in sorted(titles) for p in pages[t].paragraphs()],
            )
            assert all(answer in text for answer in q.claims or q.answers), (q.question, text)


def noted(lang, kind="compositional", n=25):
    "Questions with what is said to their steps: (question, [(step, a sentence, a few words)])."
    chat, right = SimulatedClient(PERFECT), []
    for q in SyntheticWiki(0, 400, lang).questions(kind, n):
        steps, answers = [], {}
        for i, s in enumerate(q.decomposition, 1):
            asked = resolve_particles(re.sub(r"#(\d+)", lambda m: answers[int(m[1])], s.question))
            answers[i] = said(chat, TOQ["integrate", lang], question=asked, documents=q.paragraphs)["answer_span"]
            steps.append((asked, said(chat, LONG, question=asked, documents=q.paragraphs), answers[i]))
        right.append((q, steps))
    return right


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_note_under_its_question_is_read(lang):
    "*question: sentence* and *question: a few words*, as Self-ask's and Tree-of-Question's notes are."
    chat = SimulatedClient(PERFECT)
    for q, steps in noted(lang):
        if "종이" in q.answers:
            continue  # 종이다 may be said of paper and of a bell
        for part in (1, 2):
            notes = [f"{s[0]}: {s[part]}" for s in steps]
            response = said(chat, TOQ["respond", lang], question=q.question, queries="-", documents=notes)
            assert any(a in response for a in q.answers), (notes, response)
            assert not re.search(r"입니[와과입]|[요까]\?:", response)
        silent = {"en": "unknown", "ko": "알 수 없음"}[lang]
        response = said(
            chat, TOQ["respond", lang], question=q.question, queries="-", documents=[f"{q.question}: {silent}"]
        )
        assert not any(a in response for a in q.answers) and silent not in response


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_statement_is_read_as_it_was_written(lang):
    g, luck = grammar(0, 400, lang), SeededRandom(PERFECT)
    for e in list(g.index.entities.values())[:150]:
        for t in (t for r in ("filmed_in", "director", "genre", "died_in") for t in triples_of(e, r) if r in e.facts):
            got = read_text(g, Verbalizer(g, luck).statement(t))
            assert t in [f for f, _ in got.facts], (Verbalizer(g, luck).statement(t), got)


def test_a_step_without_an_answer_is_no_answer():
    "A history may have the question itself as its last step, not found."
    chat = SimulatedClient(PERFECT)
    for q in SyntheticWiki().questions("comparison", 10):
        lines = [(i, s.question, s.answer) for i, s in enumerate(q.decomposition[:-1])]
        history = render_history([*lines, (len(lines), q.question, "")])
        assert said(chat, INTEGRATE, question=q.question, history=history)["answer"] in q.answers


def test_a_step_s_answer_tells_namesakes_apart_and_a_last_answer_is_the_name_alone():
    chat, known, seen = SimulatedClient(PERFECT), corpus_index(), 0
    for q, steps in noted("en", "bridge", 40):
        first = known.named.get(lookup_key(q.decomposition[0].answer), ())
        if len(first) > 1:
            seen += lookup_key(steps[0][2]) in known.titled and steps[0][2] != q.decomposition[0].answer
        assert said(chat, ANSWER, question=q.question, documents=q.paragraphs)["answer"] in q.answers
    assert seen > 3


def test_nothing_that_misses_a_condition_is_an_answer():
    "Perfect says that it doesn't know, where only one of two conditions, or another year, is in the documents."
    chat, world = SimulatedClient(PERFECT), SyntheticWiki()
    for kind in ("intersection", "bridge", "inference"):
        for q in world.questions(kind, 40):
            for left in q.supporting:
                got = said(chat, ANSWER, question=q.question, documents=[p for p in q.paragraphs if p.id != left])[
                    "answer"
                ]
                assert got in (*q.answers, "unknown"), (q.question, got)


def test_who_is_asked_about_is_no_answer_by_a_note_about_them():
    q = "Who is the sister-in-law of the film director Sarreleth Triludow?"
    state = "The spouse of Sarreleth Triludow is Drulan Drullor (football manager)."
    assert said(SimulatedClient(PERFECT), CONCLUDE, question=q, steps=[state]) == "unknown"


@pytest.mark.long
def test_a_perfect_model_answers_what_a_method_finds():
    """Where all passages were found, what is lost is the method's (a step that didn't see its passage); and nothing is made up: another
    answer than the right one is a namesake's, which a note of an earlier step no longer tells apart."""
    P = load_profile("offline", n=30)
    rows = {
        name: e.method
        for name, e in entrants(P).items()
        if name in ("Self-ask (ToQ)", "Tree-of-Question", "SEARCH-R, prompted")
    }
    results = run(
        rows,
        sample_questions(P, MULTIHOP),
        P,
        store=Store(":memory:"),
        progress=False,
        chat=SimulatedClient(PERFECT, P.seed, otherwise=ExtractiveClient()),
    )
    passages = list(SyntheticWiki().passages())
    scores, right, others = qualities(results), {m: [] for m in rows}, []
    for (method, dataset), cell in results.cells().items():
        for r in cell:
            value = scores[method, dataset][r.question.id]
            if value < 1 and not re.search("unknown|not found|documents don't say", r.answer):
                others.append((method, r))
            if set(r.question.supporting) <= set(r.trace.retrieved):
                right[method].append(value)
    assert all(len(v) > 20 and sum(v) / len(v) >= 0.94 for v in right.values()), right
    assert sum(right["SEARCH-R, prompted"]) / len(right["SEARCH-R, prompted"]) >= 0.98
    assert len(others) <= 0.01 * len(results.rows), [(method, r.question.question, r.answer) for method, r in others]
    for _, r in others:
        names = [
            t
            for n in r.trace.nodes
            for t in re.findall(r"(?:[A-Z][a-z]+ )+[A-Z][a-z]+", f"{n.text} {n.data.get('answer', '')}")
        ]
        assert any(sum(p.title.partition(" (")[0] == name for p in passages) > 1 for name in names), (
            r.question.question,
            r.answer,
        )


def test_better_models_answer_more():
    small, strong, perfect = (share(level, "bridge", 60, prompt=THINK) for level in (WEAK, Ability(), PERFECT))
    assert small < strong < perfect


def test_more_passages_and_a_place_in_the_middle_make_reading_harder():
    c = Ability()
    assert (
        reading_probability(c, 0, 1) > reading_probability(c, 0, 8) > reading_probability(c, 4, 9)
        and reading_probability(PERFECT, 5, 20) == 1
    )


def test_a_thought_makes_up_for_hops():
    plain, thinks = (share(Ability(), "bridge", 80, prompt=p) for p in (ANSWER, THINK))
    assert thinks > plain


def test_samples_share_most_errors():
    luck = [SeededRandom(Ability(shared=0.7), "p", sample) for sample in range(20)]
    outcomes = [[l.happens(0.5, "e", k) for l in luck] for k in range(300)]
    same = sum(len(set(o)) == 1 for o in outcomes) / 300
    assert 0.6 < same < 0.8
    assert all(
        len({l.happens(0.5, "e", k) for l in (SeededRandom(Ability(shared=1), "p", s) for s in range(9))}) == 1
        for k in range(50)
    )


def test_a_sample_differs_only_where_it_is_sampled():
    chat, q = SimulatedClient(WEAK), SyntheticWiki().questions("bridge", 12)

    def texts(temperature):
        requests = [THINK(question=x.question, documents=x.paragraphs, n=8, temperature=temperature) for x in q]
        return [len({c.text for c in asyncio.run(chat.complete(r))}) for r in requests]

    assert set(texts(0)) == {1} and max(texts(0.7)) > 1


@pytest.mark.long
def test_the_same_words_in_another_process():
    code = (
        "import asyncio; from treekit.synthetic.generate import SyntheticWiki; "
        "from treekit.models.simulated.client import SimulatedClient; "
        "import tests.test_simulated as t\n"
        "for q in SyntheticWiki().questions('compositional', 5):\n"
        "    [c] = asyncio.run(SimulatedClient(t.WEAK).complete(t.THINK(question=q.question, documents=q.paragraphs))); print(c.text)\n"
        "from treekit.models.simulated.corpus_index import corpus_index; print([*corpus_index(articles=40).sentences.items()])"
    )
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

    def run(seed):
        env = os.environ | dict(PYTHONHASHSEED=seed, PYTHONPATH=os.pathsep.join([root, os.path.join(root, "tests")]))
        return subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=root, capture_output=True, text=True, check=True
        ).stdout

    assert run("1") == run("2") != ""


def test_replies_break_their_format_in_known_ways():
    small = SeededRandom(replace(WEAK, form=1.0), "p")
    texts = {break_format(SeededRandom(small.ability, "p", k), "FINAL: Tapono", k) for k in range(40)}
    assert len(texts) == len(BREAKS) or len(texts) == len(BREAKS) - 1  # a bold label needs one
    assert break_format(SeededRandom(PERFECT, "p"), "FINAL: Tapono", 1) == "FINAL: Tapono"


def test_log_probabilities_tell_right_from_wrong_as_far_as_confidence_goes():
    def gap(confidence):
        luck = SeededRandom(replace(Ability(), confidence=confidence))
        right, wrong = (
            [p for k in range(30) for _, p in logprobs(luck, f"The mayor of it is number {k}.", sure)]
            for sure in (True, False)
        )
        return sum(right) / len(right) - sum(wrong) / len(wrong)

    assert gap(1) > gap(0.5) > gap(0) == pytest.approx(0, abs=0.02)


def test_what_is_not_of_the_world_goes_to_the_extractive_reader_and_says_so():
    chat = SimulatedClient(otherwise=ExtractiveClient())
    [reply] = asyncio.run(
        chat.complete(
            ANSWER(question="Who directed The Lamp?", documents=("The Lamp is a film directed by Mira Voss.",))
        )
    )
    assert reply.model == "extractive" and "Mira Voss" in reply.text
    with pytest.raises(UsageError):
        asyncio.run(SimulatedClient().complete(ANSWER(question="Who directed The Lamp?", documents=())))


def test_the_profile_names_the_model():
    assert load_profile("offline").model == chat_for(load_profile("offline")).model == "simulated"
    assert chat_for(load_profile("offline", model="extractive")).model == "extractive"
    with pytest.raises(UsageError, match="'ability'"):
        load_profile("offline", ability="small")
    for wrong in (1.5, -1, "half"):
        with pytest.raises(UsageError, match="from 0 to 1"):
            Ability(reading=wrong)


def test_two_abilities_never_share_a_stored_reply():
    assert (
        len(
            {
                c.endpoint
                for c in (SimulatedClient(), SimulatedClient(PERFECT), SimulatedClient(WEAK), SimulatedClient(seed=1))
            }
        )
        == 4
    )


def test_its_numbers_are_never_compared_with_print():
    assert model_obstacle("simulated", "GPT-4o-mini")


def test_draws_are_even():
    values = [uniform("x", k) for k in range(4000)]
    assert abs(sum(values) / 4000 - 0.5) < 0.02 and min(values) < 0.01 and max(values) > 0.99


def test_the_tables_of_tasks_are_functions_of_a_call():
    assert len(HANDLERS) > 40 and all(callable(f) for f in HANDLERS.values())


def test_a_name_among_dates_is_left_out_of_an_order():
    "Who was born last, where a note states a person as a date of birth: the others are compared, and nothing is raised."
    question = "Among the people born in the city of Vidnivitsa, who was born last?"
    notes = [
        "The city where Krumila Votacci was born is Vidnivitsa.",
        "The city where Gesinzo Ronelli was born is Vidnivitsa.",
        "The city where Zlomila Buslechuk was born is Vidnivitsa.",
        "The date of birth of Krumila Votacci is 28 March 1918.",
        "The date of birth of Gesinzo Ronelli is 11 February 1928.",
        "The date of birth of Zlomila Buslechuk is Pilea Hefikahe.",
    ]
    assert said(SimulatedClient(PERFECT), CONCLUDE, question=question, steps="\n".join(notes)) == "Gesinzo Ronelli"


def _subquestions(question, phrase, chat=None, context=()):
    from treekit.papers.treerare.prompts import SUBQUESTIONS

    inputs = dict(question=question, phrase=phrase, context=list(context), candidates="5", pick="3")
    return said(chat or SimulatedClient(PERFECT), SUBQUESTIONS, **inputs)


def test_subquestions_are_about_the_phrase():
    "The same question with other phrases: what a phrase does not say is not asked."
    g = grammar(0, 400)
    film = next(e for e in g.index.entities.values() if e.kind == "film" and not e.namesakes)
    title = g.index.w.title(film)
    question = f"Where was the director of {title} born?"

    def asked(phrase):
        return [g.question(text) for text in _subquestions(question, phrase)]

    director, birthplace = g.question(f"Who directed {title}?"), g.question(question)
    assert (
        asked(question) == [director]
        and asked(f"the director of {title}") == [director]
        and asked(f"of {title}") == [director]
    )
    assert birthplace not in asked(f"the director of {title}")
    fragments = (
        f"director of {title} born",
        f"behind {title}",
        f"was the director of {title} born",
        f"{title} born was the",
    )
    found = [
        text for words in fragments for text in _subquestions(question, words)
    ]  # no phrase: about any fact of the name in it
    assert (
        all(title in text for text in found) and len({g.question(text) for text in found} - {director, birthplace}) > 1
    )
    [unclear] = _subquestions(question, "Where was the")
    assert "Where was the" in unclear and title not in unclear and g.question(unclear) is None


def test_words_that_are_unclear_have_no_answer():
    from treekit.papers.treerare.prompts import SUBANSWERS

    q = SyntheticWiki(0, 400).questions("bridge", 1)[0]
    reply = said(
        SimulatedClient(PERFECT), SUBANSWERS, questions=['What does "Where was the" refer to?'], documents=q.paragraphs
    )
    assert reply == "The documents don't say."


def test_proposals_at_a_temperature_differ_in_what_they_ask():
    from treekit.papers.arise.states import DECOMPOSE

    g, kinds, greedy = grammar(0, 400), [], []
    for q in SyntheticWiki(0, 400).dataset("musique", 12):
        inputs = dict(question=q.question, state="", documents=list(q.paragraphs[:4]))
        sampled = asyncio.run(SimulatedClient().complete(DECOMPOSE(**inputs, n=4, temperature=0.7)))
        asked = {canonical(query) for r in sampled if (query := g.question(DECOMPOSE.read(r.text).value["question"]))}
        kinds.append(len(asked))
        greedy.append(
            len({r.text for r in asyncio.run(SimulatedClient().complete(DECOMPOSE(**inputs, n=2, temperature=0)))})
        )
    assert sum(k > 1 for k in kinds) > len(kinds) / 2 and set(greedy) == {1}


def test_a_graph_lacks_facts_of_sentences_that_do_not_name_their_subject():
    from treekit.models.simulated.graphs import read_facts

    world = SyntheticWiki(0, 200)  # its first passages

    def drawn(level):
        found = {True: [0, 0], False: [0, 0]}  # whether the sentence names the subject -> facts drawn, facts stated
        for p in itertools.islice(world.passages(), 300):
            call = SimulatedClient(level, 0, 200).call(TRIPLES(passage=f"{p.title}\n{p.text}", entities=""))
            got = set(read_facts(call, f"{p.title}\n{p.text}"))
            for t, sentence in stated_facts(call.index, p.text, p.title):
                if len(t) < 3 or t.relation not in call.index.w.ask:
                    continue
                own = found[call.index.w.name(call.index.entities[t.subject]) in sentence]
                own[0], own[1] = own[0] + (t in got), own[1] + 1
        return {named: a / b for named, (a, b) in found.items()}

    strong, perfect = drawn(Ability()), drawn(PERFECT)
    assert strong[True] > 0.9 and 0.6 < strong[False] < 0.8 and set(perfect.values()) == {1}


def test_each_of_several_things_is_a_reading():
    asked = SyntheticWiki(0, 400).questions("several", 12)
    from treekit.papers.treerare.prompts import ANSWER_AMBIGUOUS

    passages = {p.id: p for p in SyntheticWiki(0, 400).passages()}
    for q in asked:
        documents = [passages[i] for i in q.supporting]
        reply = said(SimulatedClient(PERFECT), ANSWER_AMBIGUOUS, question=q.question, documents=documents)["answer"]
        assert all(any(a in reply for a in group) for group in q.answer_groups), (q.question, reply)
