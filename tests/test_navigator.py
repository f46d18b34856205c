"SEARCH-R's navigator: its data, its measures, a chain of all stages at a size of seconds, and the model in the method's place."

import asyncio, json, random, re
from dataclasses import replace

import pytest

from treekit.papers.searchr import training as navigator
from treekit.retrieval.bm25 import BM25
from treekit.config import UsageError
from treekit.core.types import Passage, Question, Step
from treekit.experiments.resources import load
from treekit.training.sft import Recipe
from treekit.core.prompts import CallFailed, Completion
from treekit.core.method import Context
from treekit.papers.searchr.training import (
    PRESETS,
    STAGES,
    TrainedNavigator,
    example,
    examples,
    sound,
    stage,
    tiny_pairs,
    train_navigator,
)
from treekit.papers.searchr.training_data import (
    COUNTS,
    MEASURES,
    Pair,
    collected,
    gold,
    path_measures,
    parted,
    path_em,
    path_f1,
    slotted,
    well_formed,
    wordings,
)
from treekit.training.path_tagging import (
    FRAME,
    SHOWN_WORDS,
    disguise,
    known_words,
    path_marks,
    path_of_marks,
    question_words,
    quoted_share,
    reply_of,
    restored,
    shown_words,
)
from treekit.synthetic.wording import wording
from treekit.models.extractive.client import ExtractiveClient
from treekit.baselines.subquestions import NAVIGATE
from treekit.training.ppo import PPO
from treekit.papers.searchr.method import SearchR

SHELF = BM25(
    [
        Passage("1", "Tarn", "Tarn is a city. Its population is 41,200."),
        Passage("2", "Ada Roth", "Ada Roth was a painter. She died in Tarn."),
    ]
)
LOOP = SearchR(informative=0, similar=2, decide="rule")
ASKED = Question("q1", "musique", "What is the population of the city where Ada Roth died?", answers=("41,200",))
PATH = ("Where did Ada Roth die?", "What is the population of this place?")


class Scripted:
    "Replies to the generator's prompt as they are given; the offline reader for all else. It counts its calls."

    endpoint = "script"

    def __init__(self, *replies):
        self.replies, self.model, self.calls = list(replies), "script", 0

    async def complete(self, request):
        self.calls += 1
        if request.prompt.task != "generate_paths":
            return await ExtractiveClient().complete(request)
        if isinstance(said := self.replies.pop(0), Exception):
            raise said
        return [Completion(said)]


def made(replies, questions, **changes):
    chat = Scripted(*replies)
    return asyncio.run(collected(questions, lambda q: Context(chat, SHELF), LOOP, at_once=1, **changes))


def test_paths_are_followed_to_their_answers():
    pairs, counts = made([json.dumps([PATH, [ASKED.question]])], [ASKED])
    assert [p.id for p in pairs] == ["q1/1", "q1/2"] and [p.path for p in pairs] == [PATH, (ASKED.question,)]
    assert pairs[0].answer.rstrip(".") == "41,200" and pairs[0].right and pairs[0].f1 == 1.0 and pairs[0].asked == "q1"
    assert counts == dict(
        questions=1, failed=0, unread=0, single=0, odd=0, changed=0, paths=2, right=sum(p.right for p in pairs)
    )
    assert counts.keys() == COUNTS.keys()


@pytest.mark.parametrize(
    "reply, count",
    [
        ("I'd rather not.", dict(unread=1, odd=1)),
        (CallFailed("refused", "no", "ask another"), dict(failed=1)),
        (json.dumps([PATH]), dict(single=1, odd=1)),
        (json.dumps([PATH, PATH]), dict(single=1, odd=1)),
        (json.dumps([["Who?", ""], [f"Who is number {n}?" for n in range(20)]]), dict(changed=2)),
        ('[["Who?"', dict(single=1)),
        ("", dict(unread=1)),
    ],
)
def test_what_a_model_writes_is_counted(reply, count):
    pairs, counts = made([reply, json.dumps([PATH, [ASKED.question]])], [ASKED, replace(ASKED, id="q2")])
    assert {name: counts[name] for name in count} == count
    assert [p.id for p in pairs][-2:] == ["q2/1", "q2/2"]  # the next question is as it would have been


def test_an_empty_question_is_lost_and_nothing_else():
    pairs, counts = made([json.dumps([PATH])], [replace(ASKED, question=" "), ASKED])
    assert counts["unread"] == 1 and len(pairs) == 1


def pairs_of(n):
    "Pairs of two kinds of question: the whole path is right, the question as it is isn't."
    out, places = [], ("city", "town", "village")
    for k in range(n):
        asked, place, name = (
            ("Who is the mayor", "What is the population")[k % 2],
            places[k % 3],
            f"Name{'abcdefgh'[k % 8]}",
        )
        question = f"{asked} of the {place} where {name} Roth died?"
        whole = f"In which {place} did {name} Roth die?", f"{asked} of this {place}?"
        out += [
            Pair(f"q{k}/1", question, whole, "x", 1.0, True),
            Pair(f"q{k}/2", question, (question,), "y", 0.0, False),
        ]
    return out


def test_the_parts_keep_questions_apart():
    pairs = pairs_of(20)
    parts = parted(pairs, 5, seed=1)
    assert len(parts.sft) == 5 and all(p.right for p in parts.sft) and len(parts.reward) == len(parts.ppo) == 20
    assert not {p.asked for p in parts.reward} & {p.asked for p in parts.ppo}
    assert {p.id for p in parts.as_much} == {p.id for p in parts.sft} | {p.id for p in parts.ppo if p.right}
    assert len(parts.as_much) == len({p.id for p in parts.as_much})
    assert parted(pairs, 5, seed=1) == parts != parted(pairs, 5, seed=2)
    with pytest.raises(UsageError, match="0 of them right"):
        parted([p for p in pairs if not p.right])


def test_gold_measures_itself_as_gold():
    for q in load("musique", "synthetic", "train", 60):
        steps = [s.question for s in q.decomposition]
        assert (
            path_f1(slotted(gold(q)), steps) > 0.9
            and path_f1([], steps) == 0
            and all(w in wordings(s) for s in steps for w in [s])
        )
        assert path_em(slotted(gold(q)[:-1]), steps) == 0


def test_steps_match_one_to_one_and_in_order():
    one, two = Step("Where did Ada Roth die?").question, Step("Who was the mayor of #1?").question
    assert path_f1([one], [one, two]) == pytest.approx(2 / 3)
    assert path_f1([one, one, two], [one, two]) == pytest.approx(4 / 5)  # a step counts once
    assert path_f1([two, one], [one, two]) < 0.75


@pytest.mark.parametrize(
    "reply, fit",
    [
        (json.dumps(PATH), True),
        (json.dumps(PATH) + ".", False),
        (json.dumps([f"Is it {n}?" for n in range(9)]), False),
        ('["Who?", "who"]', False),
        ('["Who?", 3]', False),
        ("[]", False),
        ("{}", False),
        ("", False),
        ("[" * 3000, False),
    ],
)
def test_well_formed_replies(reply, fit):
    assert bool(well_formed(reply)) == fit
    assert sound(lambda prompts, said: [0.7] * len(said))([("q", "?")], [reply]) == [0.7 if fit else 0.0]
    assert path_measures(
        [replace(ASKED, decomposition=(Step("Where did Ada Roth die?"), Step("What is the population of #1?")))],
        [reply],
    )["JSON"] == [float(fit)]


@pytest.mark.parametrize(
    "question",
    [
        'Who wrote "The Idle Staircase" (1958) in Tarn?',
        "Is <1> a name, or Ada Roth?",
        "What did Ada Roth's sister Ada call A\\B?",
        "어디에서 죽었나요?",
        "no names at all",
    ],
)
def test_words_and_names_come_back(question):
    here = question_words(question)
    assert re.sub(r"\s", "", "".join(question[w.start : w.end] for w in here)) == re.sub(r"\s|\?$", "", question)
    assert len(shown_words(question).split()) == SHOWN_WORDS and not any(
        w.word in shown_words(question) for w in here if w.name
    )
    assert path_of_marks("<o>" * len(here), question) == [question[:1].upper() + question[1 : here[-1].end] + "?"]
    names = dict.fromkeys(w.word for w in here if w.name)
    said = reply_of(question, [f"Who is {name}, and when?" for name in names] + ["<99>"])
    assert not any(f" {name}," in said for name in names)
    assert json.loads(restored(said, question)) == [f"Who is {name}, and when?" for name in names] + ["<99>"]


def test_a_path_is_marked():
    question = 'Where is the label behind A "Goose" for Tarn based?'
    path = ['What is the label behind A "Goose" for Tarn?', "Where is this label based?"]
    said = path_marks(question, path)
    assert said.count("<") == len(question_words(question)) and said.count("what") == said.count("end1") == 1
    assert json.loads(restored(said, question)) == path
    assert quoted_share(question, path) == 1 > quoted_share(question, ("Which house made it?", "Where is it?")) > 0
    assert quoted_share(question, (question,)) == 0 and set(path_marks(question, (question,)).split(">")) == {"<o", ""}


@pytest.mark.parametrize(
    "marks, path",
    [
        (
            "<o><o><who><o><o><who><o><end2><o>",
            ["Who is the author Ada Roth?", "Who is the son of #1?", "Where did this son die?"],
        ),
        (
            "<o><o><who><o><o><who><o><end1><o>",
            ["Who is the author Ada Roth?", "Who is the son of #1?", "Where did this son die?"],
        ),
        ("<o><o><o><o><o><who><o><end3><o>", ["Who is the author Ada Roth?", "Where did the son of #1 die?"]),
        ("<o><end1><o><o><o><o><o><o><o>", ["Where did the son of the author Ada Roth die?"]),
        ("<o><o><o><o><o><o><o><o><who>", ["Who is die?", "Where did the son of the author Ada Roth #1?"]),
        ("<o><o><o><o><o><o><o><o>", None),
        ("<o><o><o><o><o><o><o><o><o><o>", None),
        ("<o><o><o><o> <o><o><o><o><o>", None),
    ],
)
def test_marks_that_dont_match(marks, path):
    "What is left open ends where something ends last; what is closed too often closes nothing; each word has one mark."
    question = "Where did the son of the author Ada Roth die?"
    assert path_of_marks(marks, question) == path


def test_disguises_say_the_same():
    def of(name):
        return f"Who led the city where {name} died?", (f"What is the city where {name} died?", "Who led this city?")

    pairs = [Pair(f"q{k}/1", *of(f"Name{'abcd'[k]} Roth"), "x", 1.0, True) for k in range(4)]
    tiny = replace(PRESETS["tiny"], disguised=5)
    made = examples(pairs, tiny)
    assert (
        len(made) == 24
        and made[0] == example(pairs[0], tiny)
        and made == examples(pairs, tiny) != examples(pairs, tiny, seed=1)
    )
    for e in made:
        words = e.prompt.split()
        assert len(words) == SHOWN_WORDS and e.target.count("<") == len(words) - words.count("<fill>")
        assert e.target.count("what") == e.target.count("end1") == 1
    assert any("<word>" in e.prompt for e in made[1:6]) and "<word>" not in made[0].prompt
    assert max(e.target.count("<") for e in made) > 6  # a word that is hidden may be shown as two
    long = " ".join(["the city"] * SHOWN_WORDS) + "?"
    assert len(disguise(long, "<o>" * 2 * SHOWN_WORDS, random.Random(0))[0].split()) == 2 * SHOWN_WORDS


@pytest.mark.slow
def test_nothing_is_learned_from_held_out_wordings():
    "Neither the words that are known nor a path that is learned from has a word that only held-out wordings have."
    pairs, _ = tiny_pairs()
    texts = {text for pair in pairs for text in (pair.question, *pair.path)}
    words = {p.word for text in texts for p in question_words(text) if not p.name and p.word.isalpha()}
    held = {
        w.lower()
        for forms in wording("en").ask.values()
        for key, ts in forms.items()
        if key != "label"
        for t in ts
        if t.held_out
        for w in re.findall(r"[A-Za-z]+", re.sub(r"\{[^}]*\}", "", t.text))
    }
    only = held - known_words() - FRAME
    assert len(only) > 60 and not words & only


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    "All stages of a model that is smaller still."
    folder, patch = tmp_path_factory.mktemp("navigator"), pytest.MonkeyPatch()
    patch.setattr(navigator, "TINY", dict(width=32, layers=1, heads=2, inner=64))
    full = dict(lr=1e-2, batch=8, seed=0)
    changes = dict(
        sft=16,
        tuning=Recipe("full", epochs=20, **full),
        reward=Recipe("full", epochs=3, **full),
        ppo=PPO("full", epochs=1, rollouts=12, passes=2, max_new=48, **full | dict(lr=1e-3)),
        max_new=48,
    )
    pairs = pairs_of(24)
    logs = {
        until: train_navigator(
            pairs,
            folder,
            "tiny",
            until=until,
            follow=lambda tried: [float(len(path) == 2) for _, path in tried],
            **changes,
        )
        for until in ("after PPO", "SFT on as much")
    }
    yield pairs, folder, replace(PRESETS["tiny"], **changes), logs
    patch.undo()


@pytest.mark.slow
def test_all_stages_train(chain):
    pairs, folder, preset, logs = chain
    ppo, more = logs["after PPO"], logs["SFT on as much"]
    assert list(ppo) == ["before SFT", "after SFT", "reward model", "after PPO"]
    assert list(more) == ["before SFT", "after SFT", "SFT on as much"]
    assert ppo["after SFT"]["log"][-1]["loss"] < ppo["after SFT"]["log"][0]["loss"] / 2
    assert ppo["after SFT"]["n"] == 16 * 6  # each pair as it is and in five disguises
    assert 24 <= ppo["reward model"]["n"] <= 48
    assert ppo["after PPO"]["n"] == 12
    assert more["SFT on as much"]["n"] > 16 * 6
    assert {"reward", "kl", "length", "clipped"} <= ppo["after PPO"]["log"][-1].keys()
    assert {"mse", "correlation"} <= ppo["reward model"]["log"][-1].keys()


@pytest.mark.slow
def test_all_stages_train_with_adapters(chain, tmp_path):
    "LoRA on a random Llama, as the large preset does it with a real one; prompts in words."
    pairs, folder, preset, logs = chain
    lora = dict(method="lora", rank=2, alpha=4, lr=1e-3, batch=8, epochs=1, micro=4)
    p = replace(
        PRESETS["8B"],
        base=logs["after PPO"]["before SFT"]["folder"],
        sft=8,
        tuning=Recipe(**lora),
        reward=Recipe(**lora),
        ppo=PPO(**lora, rollouts=6, passes=1, max_new=8),
        max_new=8,
    )
    for name in STAGES:
        assert stage(name, pairs[:24], tmp_path, p)["folder"]
    assert not (tmp_path / "base").exists()
    assert (tmp_path / "ppo" / "model" / "adapter_config.json").exists()
    assert (tmp_path / "as-much" / "model" / "adapter_config.json").exists()
    assert asyncio.run(TrainedNavigator(tmp_path / "ppo" / "model").complete(NAVIGATE(question="Who?", max_tokens=8)))


@pytest.mark.long
def test_a_stage_that_is_there_is_not_trained_again(chain, monkeypatch):
    pairs, folder, preset, logs = chain
    for trains in ("train", "train_reward", "ppo"):
        monkeypatch.setattr(navigator, trains, None)
    assert stage("after PPO", pairs, folder, preset) == logs["after PPO"]["after PPO"]


@pytest.mark.long
def test_stages_are_examined(chain, monkeypatch):
    "All but the training is as for the tiny preset: what is found is kept, and looking stages up inside waits for nobody."
    pairs, folder, preset, logs = chain
    monkeypatch.setitem(PRESETS, "tiny", preset)
    for name, value in dict(
        tiny_pairs=lambda: (pairs, {}),
        _folder=lambda seed: folder,
        held_out=lambda: [ASKED],
        navigators=lambda wanted: [],
        context_for=lambda: lambda q: Context(ExtractiveClient(), SHELF),
        pinned=lambda jobs, **_: [getattr(navigator, job.partition(":")[2])(**arguments) for job, arguments in jobs],
    ).items():
        monkeypatch.setattr(navigator, name, value)
    found = navigator.examined([("after SFT", 0), ("after PPO", 0)])
    assert found[0]["KL"] == 0
    assert found[0].keys() >= {*MEASURES, *navigator.REWARDS}
    assert navigator.examined([("after SFT", 0)]) == found[:1]


@pytest.mark.long
def test_it_takes_questions_apart(chain):
    pairs, folder, preset, logs = chain
    chat = TrainedNavigator(logs["after PPO"]["after PPO"]["folder"], "tiny")
    question = "Who is the mayor of the town where Zonk Zimbel died?"
    request = NAVIGATE(question=question)
    text = asyncio.run(chat.complete(request))[0].text
    assert text == asyncio.run(chat.complete(request))[0].text and "<name>" not in text
    trained = Context(ExtractiveClient(), SHELF, navigator=chat)
    said = asyncio.run(LOOP(replace(ASKED, question=question), trained))
    assert [n.kind for n in said.trace.nodes][:2] == [
        "question",
        "path",
    ]  # whatever it wrote, there is a path, and an answer
    assert said.answer


def test_examples_of_the_presets():
    p = Pair("q/1", ASKED.question, PATH, "", 1.0, True)
    assert example(p, PRESETS["tiny"]).target == '["Where did <1> die?", "What is the population of this place?"]'
    assert example(p, PRESETS["8B"]).prompt == NAVIGATE(question=ASKED.question).text
    assert json.loads(example(p, PRESETS["8B"]).target) == [*PATH]
    # the paper's (Sec. 3.1); its rate of 2e-5 is one for all weights, and adapters take ten times that
    assert PRESETS["8B"].tuning.lr == 2e-4 and PRESETS["8B"].tuning.method == "lora"
    assert PRESETS["8B"].sft == 300 and PRESETS["8B"].questions == dict(musique=2000)
    # a reward that comes with the last token reaches the first one, and the rate doesn't fall before anything is learned
    assert PRESETS["8B"].ppo.lam == 1.0 and not PRESETS["8B"].ppo.falls


@pytest.mark.long
def test_wrong_names_are_told(chain, tmp_path):
    with pytest.raises(UsageError, match="stage"):
        stage("after RLHF", [], ".", PRESETS["tiny"])
    with pytest.raises(UsageError, match="preset"):
        TrainedNavigator(".", "7B")
    with pytest.raises(UsageError):
        train_navigator([], ".", "9B")
    with pytest.raises(UsageError, match="give `follow`"):
        stage(
            "reward model",
            chain[0],
            tmp_path,
            replace(chain[2], ppo=replace(chain[2].ppo, max_new=8), tuning=replace(chain[2].tuning, epochs=1)),
        )
    assert set(STAGES) <= set(navigator._FOLDERS)
