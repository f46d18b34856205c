"Quantitative retrieval: the equations by hand and by brute force, each step on and off; a corpus is parsed once although killed midway."

import random, sys, types
from pathlib import Path

import pytest

from treekit.retrieval.entity_bridging import words_with_offsets
from treekit.retrieval.bm25 import BM25, Hit
from treekit.config import UsageError
from treekit.core.types import Passage
from treekit.syntax.entities import (
    AnnotatedText,
    Annotations,
    SentenceTree,
    annotator_for,
)
from treekit.retrieval.informativeness import DualPath, Informativeness, Extensions, importance
from treekit.syntax.parser import Entity

ROOT, PAPER = Path(__file__).resolve().parents[1], Extensions.paper()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Chain:
    "Each word hangs on the one before it; capitalised words in upper case are entities, one word each."

    fingerprint = "chain"

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked += texts
        return [self.one(t) for t in texts]

    def one(self, text):
        sentences, entities, at = [], [], 0
        for part in text.split("."):
            words = [(w, at + s, at + e) for w, s, e in words_with_offsets(part)]
            at += len(part) + 1
            starts, ends = tuple(s for _, s, _ in words), tuple(e for *_, e in words)
            if words:
                sentences.append(SentenceTree(starts, ends, tuple(range(len(words))), ("X",) * len(words)))
            entities += [Entity(w, "MISC", s, e) for w, s, e in words if w.isupper()]
        return AnnotatedText(tuple(sentences), tuple(entities), "" if sentences else "the parser found no sentence")


def qir(texts, steps=PAPER, **how):
    passages = [Passage(f"p{i}", *t) if isinstance(t, tuple) else Passage(f"p{i}", "", t) for i, t in enumerate(texts)]
    return Informativeness(passages, Annotations(Chain()), steps, **how)


def found(retriever, question, k=10):
    return [(h.passage.id, h.score) for h in retriever.search([question], k)[0]]


# the equations


def test_importance_is_the_best_word_of_each_sentence_summed():
    shape = SentenceTree((0, 3, 6, 9, 12), (2, 5, 8, 11, 14), (2, 3, 0, 3, 4), ("X",) * 5)
    assert shape.below() == [0, 1, 4, 1, 0]
    later = SentenceTree((15, 18), (17, 20), (2, 0), ("X",) * 2)
    a = AnnotatedText((shape, later))
    assert importance(a, [("e", 0, 5)]) == {"e": 1}  # the better of two words
    assert importance(a, [("e", 0, 2), ("e", 9, 11)]) == {"e": 1}  # the best mention of a sentence, not their sum
    assert importance(a, [("e", 6, 8), ("e", 18, 20)]) == {"e": 5}  # sentences are summed
    assert importance(a, [("e", 0, 2), ("f", 20, 30)]) == {"e": 0}  # no word: missing; no child: 0
    assert importance(AnnotatedText(), [("e", 0, 2)]) == {}


def test_scores_equal_the_formulas_taken_literally():
    rng = random.Random(0)
    words = "ORRIN SARK TAVO LIO BEXI the of saw film town".split()
    texts = [
        " . ".join(" ".join(rng.choices(words, k=rng.randint(1, 7))) for _ in range(rng.randint(1, 4)))
        for _ in range(60)
    ]
    r = qir(texts)
    for _ in range(30):
        asked = list(dict.fromkeys(rng.choices(words[:5], k=rng.randint(1, 3))))
        expected = []
        for text in texts:
            imp = {}
            for part in text.split("."):
                sentence = part.split()
                for e in dict.fromkeys(w for w in sentence if w.isupper()):
                    below = [
                        len(sentence) - 1 - i for i, w in enumerate(sentence) if w == e
                    ]  # below a word of a chain: all after it
                    imp[e] = imp.get(e, 0) + max(below)
            order = sorted(imp.values(), reverse=True)
            rank = {e: order.index(imp[e]) + 1 for e in imp}
            expected.append(round(sum(1 / rank[e] for e in asked if e in rank), 6))
        assert r.scores(r.entities([" ".join(asked)])[0]).tolist() == pytest.approx(expected, abs=1e-6)


# the steps, one by one


def test_partial_names_are_linked_by_their_closeness():
    texts = [("Steve Hillage", "a guitarist"), ("Hillage Wood", "a wood"), ("Ann Orrin", "a painter")]
    texts += [(f"Steve Other{i}", "somebody") for i in range(9)]
    on, off = Extensions(True, True, True, 0.5, False), Extensions(True, True, True, 0, False)
    assert found(qir(texts, off), "Where was Hillage born?") == []
    linked = dict(found(qir(texts, on), "Where was Hillage born?"))
    # "Steve" is common here, "Wood" is rare: the less it says, the closer
    assert set(linked) == {"p0", "p1"} and 0.5 <= linked["p1"] < linked["p0"] < 1
    assert found(qir(texts, on), "Where was Steve Hillage born?")[0] == ("p0", 1.0)


# two paths


@pytest.mark.parametrize("fusion", ["lists", "reciprocal"])
def test_two_paths_give_so_many_different_passages(fusion):
    texts = [(f"Film {i}", f"ORRIN made film {i} in the town of TAVO{i % 7}") for i in range(60)]
    r = qir(texts, Extensions())
    both = DualPath(r, BM25(r.passages), fusion=fusion)
    for k in (None, 5, 12, 25, 60):
        hits = both.search(["which film did ORRIN make in TAVO3", "which film is it"], k)
        for some in hits:
            assert len({h.passage.id for h in some}) == len(some) == (k or 25)
            assert [h.rank for h in some] == list(range(1, len(some) + 1))
    assert both.search(["ORRIN"], 0) == [[]] and both.search([], 5) == []
    settings = [(f, s) for f in ("lists", "reciprocal") for s in ((15, 10), (10, 15))]
    assert len({DualPath(r, BM25(r.passages), fusion=f, shares=s).fingerprint for f, s in settings}) == 4


def test_fused_scores_by_hand():
    class Fixed:
        def __init__(self, passages, order):
            self.passages, self.order, self.fingerprint = passages, order, order

        def search(self, queries, k):
            ranking = [Hit(self.passages[int(i)], 1.0, r) for r, i in enumerate(self.order, 1)]
            return [ranking[:k] for _ in queries]

    passages = [Passage(str(i), "", str(i)) for i in range(4)]
    informative, literal, similar = (Fixed(passages, o) for o in ("012", "21", "30"))
    two = DualPath(informative, similar, constant=2).search(["?"], 9)[0]

    def scored(hits):
        return [(h.passage.id, round(h.score, 9)) for h in hits]

    assert scored(two) == [("0", round(1 / 3 + 1 / 4, 9)), ("3", round(1 / 3, 9)), ("1", 0.25), ("2", 0.2)]
    three = DualPath(informative, similar, constant=2, literal=literal).search(["?"], 3)[0]
    assert scored(three) == [
        ("0", round(0.5 / 3 + 1 / 4, 9)),
        ("3", round(1 / 3, 9)),
        ("2", round(0.5 / 3 + 0.5 / 5, 9)),
    ]


def test_wrong_settings_say_what_to_do():
    r = qir(["ORRIN"])
    with pytest.raises(UsageError, match="lists"):
        DualPath(r, r, fusion="list")
    with pytest.raises(UsageError, match="15, 10"):
        DualPath(r, r, shares=(0, 0))
    with pytest.raises(TypeError):
        r.search("ORRIN")


# nothing there


# parsed once


# parsers


def test_spacy_and_flair_behind_the_same_function(monkeypatch):
    class Word(types.SimpleNamespace):
        pass

    def doc(text):
        words, at = [], 0
        for i, w in enumerate(text.split(" ")):
            words.append(Word(i=i, idx=at, text=w, pos_="X", is_space=not w.strip()))
            at += len(w) + 1
        for w in words:
            w.head = words[0]
        last = words[-1]
        name = types.SimpleNamespace(
            text=last.text, label_="PERSON", start_char=last.idx, end_char=last.idx + len(last.text)
        )
        return types.SimpleNamespace(sents=[words] * bool(text.strip()), ents=[name])

    model = types.SimpleNamespace(pipe=lambda texts: map(doc, texts), meta={"version": "9"})

    def load(name):
        if name != "en_core_web_trf":
            raise OSError("E050")
        return model

    monkeypatch.setitem(sys.modules, "spacy", types.SimpleNamespace(load=load, __version__="9.9"))
    spacy = annotator_for("spacy:en_core_web_trf")
    [a] = spacy(["saw \n Orrin"])
    assert a.sentences[0].heads == (0, 1) and a.sentences[0].starts == (0, 6)
    assert a.entities == (Entity("Orrin", "PERSON", 6, 11),) and "9.9" in spacy.fingerprint
    with pytest.raises(UsageError, match="python -m spacy download en_core_web_sm"):
        annotator_for("spacy:en_core_web_sm")

    class Sentence:
        def __init__(self, text):
            self.text = text

        def get_spans(self, kind):
            return [types.SimpleNamespace(text=self.text[:3], tag="PER", start_position=0, end_position=3)]

    class Tagger:
        @staticmethod
        def load(name):
            return Tagger()

        def predict(self, sentences):
            assert all(isinstance(s, Sentence) for s in sentences)

    fakes = {
        "flair": dict(__version__="0.15"),
        "flair.models": dict(SequenceTagger=Tagger),
        "flair.data": dict(Sentence=Sentence),
    }
    for name, module in {k: types.SimpleNamespace(**v) for k, v in fakes.items()}.items():
        monkeypatch.setitem(sys.modules, name, module)
    both = annotator_for("spacy:en_core_web_trf", "flair/ner-english-large")
    [a, empty] = both(["saw Orrin", " "])
    assert a.entities == (Entity("saw", "PER", 0, 3),) and empty.entities == () and "flair-0.15" in both.fingerprint
