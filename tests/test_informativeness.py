"Quantitative retrieval: the equations by hand and by brute force, each step on and off; a corpus is parsed once although killed midway."

import json, os, random, signal, sqlite3, subprocess, sys, time, types
from pathlib import Path

import pytest

from commands import here_and_there
from treekit.retrieval.entity_bridging import words_with_offsets
from treekit.retrieval.bm25 import BM25, Hit
from treekit.config import UsageError
from treekit.core.types import Passage
from treekit.experiments.resources import load_corpus
from treekit.utils import sqlite_cache
from treekit.syntax.entities import (
    AnnotatedText,
    Annotations,
    SentenceTree,
    StanzaAnnotator,
    annotated_text,
    annotator_for,
)
from treekit.retrieval.informativeness import DualPath, Informativeness, Extensions, interleave, importance, ranked
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


def test_ranks_and_their_ties():
    assert ranked({"a": 3, "b": 7, "c": 3, "d": 3, "e": 0}) == {"b": 1, "a": 2, "c": 2, "d": 2, "e": 5}
    assert ranked({"a": 3, "b": 7, "c": 3}, "first") == {"b": 1, "a": 2, "c": 3} and ranked({}) == {}
    with pytest.raises(UsageError, match="shared"):
        ranked({"a": 1}, "share")


@pytest.mark.parametrize("ties", ["shared", "first"])
def test_scores_equal_the_formulas_taken_literally(ties):
    rng = random.Random(0)
    words = "ORRIN SARK TAVO LIO BEXI the of saw film town".split()
    texts = [
        " . ".join(" ".join(rng.choices(words, k=rng.randint(1, 7))) for _ in range(rng.randint(1, 4)))
        for _ in range(60)
    ]
    r = qir(texts, ties=ties)
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
            first = sorted(imp, key=lambda e: -imp[e])
            rank = {e: order.index(imp[e]) + 1 if ties == "shared" else first.index(e) + 1 for e in imp}
            expected.append(round(sum(1 / rank[e] for e in asked if e in rank), 6))
        assert r.scores(r.entities([" ".join(asked)])[0]).tolist() == pytest.approx(expected, abs=1e-6)


def test_search_and_explain_agree():
    r = qir(["ORRIN saw SARK in TAVO", "TAVO is a town. SARK and ORRIN", "nobody is here"], Extensions())
    for question in ("did ORRIN meet SARK", "TAVO"):
        for h in r.search([question])[0]:
            [why] = r.explain(question, [h.passage])
            parts = sum(f.part for f in why.found)
            assert (
                why.score == pytest.approx(h.score, abs=2e-6)
                and why.score == pytest.approx(parts, abs=2e-6)
                and not why.note
            )
            assert all(f.part <= f.closeness / f.rank + 1e-6 for f in why.found)


# the steps, one by one


def test_a_questions_names_without_a_recogniser():
    texts = [("Brand", "BRAND is a play"), ("Peer", "PEER is another")]
    assert found(qir(texts), "Brand >> author") == []
    assert found(qir(texts, Extensions(True, False, False, 0, False)), "Brand >> author") == [("p0", 1.0)]


def test_a_passages_names_without_a_recogniser():
    texts = [("Grey Harbour", "a film"), ("Other", "it is like Grey Harbour in some ways, says LIO")]
    assert found(qir(texts, Extensions(True, False, False, 0, False)), "when was Grey Harbour made") == []
    assert {i for i, _ in found(qir(texts, Extensions(True, True, False, 0, False)), "when was Grey Harbour made")} == {
        "p0",
        "p1",
    }


def test_the_title_comes_first():
    texts = [("Lio", ". TAVO BEXI SARK and then Lio")]
    assert found(qir(texts, Extensions(True, True, False, 0, False)), "who is Lio") != [("p0", 1.0)]
    assert found(qir(texts, Extensions(True, True, True, 0, False)), "who is Lio") == [("p0", 1.0)]


def test_partial_names_are_linked_by_their_closeness():
    texts = [("Steve Hillage", "a guitarist"), ("Hillage Wood", "a wood"), ("Ann Orrin", "a painter")]
    texts += [(f"Steve Other{i}", "somebody") for i in range(9)]
    on, off = Extensions(True, True, True, 0.5, False), Extensions(True, True, True, 0, False)
    assert found(qir(texts, off), "Where was Hillage born?") == []
    linked = dict(found(qir(texts, on), "Where was Hillage born?"))
    # "Steve" is common here, "Wood" is rare: the less it says, the closer
    assert set(linked) == {"p0", "p1"} and 0.5 <= linked["p1"] < linked["p0"] < 1
    assert found(qir(texts, on), "Where was Steve Hillage born?")[0] == ("p0", 1.0)


def test_a_rare_entity_counts_more_than_a_common_one():
    texts = [("Tavo", "a town")] + [(f"Film {i}", "TAVO TAVO") for i in range(20)] + [("Lio", "a painter")]
    even, weighed = (
        dict(found(qir(texts, Extensions(True, True, True, 0, r)), "did Lio see TAVO", 30)) for r in (False, True)
    )
    assert even["p21"] == even["p0"] and weighed["p21"] > weighed["p0"]


def test_masking_hides_one_entity_and_always_the_same():
    texts = ["ORRIN saw SARK"]
    for seed in range(5):
        one, two = (qir(texts, masked=seed).entities(["did ORRIN meet SARK"])[0] for _ in range(2))
        assert one == two and len(one) == 1
    assert {qir(texts, masked=s).entities(["did ORRIN meet SARK"])[0][0] for s in range(9)} == {("orrin",), ("sark",)}
    assert found(qir(texts, masked=0), "ORRIN") == []


# two paths


def test_lists_are_dealt_in_proportion():
    a, b = [f"a{i}" for i in range(30)], [f"b{i}" for i in range(30)]
    assert sum(x[0] == "a" for x in interleave(a, b, (15, 10))) == 15
    assert len(interleave(a, a, (15, 10))) == 25 and interleave(a, a, (15, 10), refill=False) == a[:15]
    for n in range(5, 26, 5):
        assert sum(x[0] == "a" for x in interleave(a, b, (15, 10))[:n]) == 3 * n // 5
    assert interleave([], [], (3, 2)) == [] and interleave(a, [], (3, 2)) == a[:3]


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


def test_reciprocal_ranks_put_first_what_both_paths_find():
    r = qir([("x", "ORRIN"), ("y", "ORRIN wool"), ("z", "wool wool")])
    assert DualPath(r, BM25(r.passages)).search(["ORRIN wool"], 3)[0][0].passage.id == "p1"


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
    with pytest.raises(UsageError, match="not in the corpus"):
        r.explain("ORRIN", [Passage("?", "", "ORRIN")])
    with pytest.raises(TypeError):
        r.search("ORRIN")


# nothing there


@pytest.mark.parametrize("steps", [PAPER, Extensions()])
def test_empty_cases(steps):
    assert qir([], steps).search(["ORRIN", ""]) == [[], []]
    r = qir(["", "…", "no names", "ORRIN"], steps)
    assert [h.passage.id for h in r.search(["ORRIN"])[0]] == ["p3"] and r.search(["", "   ", "…", "what is it"]) == [
        []
    ] * 4
    notes = ["empty text", "the parser found no sentence", "the passage has no entity", ""]
    assert [w.note for w in r.explain("ORRIN", r.passages)] == notes
    assert r.explain("SARK", r.passages[3:])[0].note == "none of the question's entities is in the passage"
    assert r.explain("what", r.passages[3:])[0].note == "the question has no entity"
    assert all(w.score == 0 for w in r.explain("what", r.passages))
    assert len(DualPath(r, BM25(r.passages)).search(["what is ORRIN"], 3)[0]) == 1


def test_odd_text_goes_through():
    odd = ["\ud800 ORRIN", "ORRIN\u200b…", "O" * 3000, "ORRIN\n\n\n.", "İ ORRIN’S"]
    r = qir(odd, Extensions())
    assert len(r.search(["ORRIN"])[0]) >= 3 and qir(odd, Extensions()).search(["ORRIN"]) == r.search(["ORRIN"])


# parsed once


def test_a_hundred_more_passages_cost_a_hundred_parses():
    texts = [f"ORRIN saw film {i}" for i in range(300)]
    first, more = Chain(), Chain()
    passages = [Passage(str(i), "", t) for i, t in enumerate(texts)]
    Informativeness(passages[:200], Annotations(first), PAPER).scores([("orrin",)])
    r = Informativeness(passages, Annotations(more), PAPER)
    assert len(r.search(["ORRIN"], 300)[0]) == 300 and len(first.asked) == 200
    assert sorted(more.asked) == sorted([*texts[200:], "ORRIN"])
    again = Chain()
    assert (
        Informativeness(passages, Annotations(again), PAPER).search(["ORRIN"], 300) == r.search(["ORRIN"], 300)
        and again.asked == []
    )


def test_another_parser_is_another_annotation():
    one, other = Chain(), Chain()
    other.fingerprint = "other"
    Annotations(one)(["ORRIN"])
    Annotations(other)(["ORRIN"])
    assert other.asked == ["ORRIN"]


WORKER = """
import sys, time
sys.path.insert(0, "tests")
from test_informativeness import Chain, Informativeness, Annotations, Passage, PAPER
class Slow(Chain):
    def __call__(self, texts):
        time.sleep(0.02)
        with open(sys.argv[1], "a") as f: f.write("".join(t + "\\n" for t in texts))
        return super().__call__(texts)
r = Informativeness([Passage(str(i), "", f"ORRIN saw film {i}") for i in range(400)], Annotations(Slow(), batch=8), PAPER)
print(r.scores([("orrin",)]).sum())
"""


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_where_it_stopped(tmp_path, home):
    log, kept = tmp_path / "asked", home / "entities" / "entities.sqlite"

    def start():
        command, env = [sys.executable, "-c", WORKER, str(log)], {**os.environ, "TREEKIT_HOME": str(home)}
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=env)

    def count():
        if not kept.exists():
            return 0
        try:
            return sqlite3.connect(kept).execute("SELECT count(*) FROM texts").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    for target in (60, 200):
        process = start()
        deadline = time.time() + 60
        while count() < target and process.poll() is None and time.time() < deadline:
            time.sleep(0.005)
        assert process.poll() is None, "it was over before it was killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before, asked = count(), log.read_text().splitlines()
    assert 200 <= before < 400 and len(asked) <= before + 2 * 8  # at most one batch is lost with each kill
    out, _ = start().communicate(timeout=60)
    assert count() == 400 and len(log.read_text().splitlines()) == len(asked) + 400 - before and float(out) == 400
    out, _ = start().communicate(timeout=60)
    assert float(out) == 400 and len(log.read_text().splitlines()) == len(asked) + 400 - before


def test_a_broken_index_is_made_again_and_a_broken_file_is_named(home):
    texts = ["ORRIN saw SARK"]
    good = found(qir(texts), "SARK")
    [file] = (home / "informativeness").iterdir()
    file.write_bytes(b"nothing")
    assert found(qir(texts), "SARK") == good
    sqlite_cache.close_connections()  # as in a process that comes later
    (home / "entities" / "entities.sqlite").write_bytes(b"no database" * 999)
    with pytest.raises(UsageError, match="entities.sqlite"):
        qir(texts).search(["LIO"])


def test_a_passage_that_cannot_be_parsed_takes_no_other_along():
    class Fragile(Chain):
        def __call__(self, texts):
            if any("\a" in t for t in texts):
                raise RuntimeError("a bell")
            return super().__call__(texts)

    passages = [Passage("a", "", "ORRIN"), Passage("b", "", "ORRIN \a")]
    r = Informativeness(passages, Annotations(Fragile()), PAPER)
    assert [h.passage.id for h in r.search(["ORRIN"])[0]] == ["a"]
    assert r.explain("ORRIN", passages[1:])[0].note == "not parsed: RuntimeError: a bell"
    [book] = Annotations(Chain())(["ORRIN " * 20_000])
    assert book.note == "not parsed: 120,000 characters, 100,000 are the most"  # a parser would take minutes
    whole = Informativeness(
        passages, Annotations(Chain()), PAPER
    )  # the same name, a better day: what failed was not kept
    assert len(whole.search(["ORRIN"])[0]) == 2


@pytest.mark.slow
def test_the_same_in_every_process():
    code = (
        "import sys, json; sys.path.insert(0, 'tests')\nfrom test_informativeness import *\n"
        "r = qir([(f'Film {i} of Orrin', f'ORRIN made film {i} of TAVO{i % 7} and SARK') for i in range(40)], Extensions())\n"
        "hits = DualPath(r, BM25(r.passages)).search(['which film of SARK and Orrin has TAVO3'], 30)[0]\n"
        "print(json.dumps([[h.passage.id, h.score] for h in hits]))"
    )
    here, there = here_and_there(code, TREEKIT_HOME=f"{os.environ['TREEKIT_HOME']}-there")
    assert here == there and len(json.loads(here)) == 30


# parsers


def test_the_bundled_parser_reads_the_world():
    passages = load_corpus("musique", "synthetic:100")[:12]
    kept = Annotations()
    annotated = kept([annotated_text(p) for p in passages])
    for p, a in zip(passages, annotated):
        assert a.sentences and not a.note
        for s in a.sentences:
            assert (
                sum(h == 0 for h in s.heads) == 1 and max(s.below()) == len(s.heads) - 1 == s.below()[s.heads.index(0)]
            )
        assert all(annotated_text(p)[e.start : e.end] == e.text for e in a.entities)
    r = Informativeness(passages, kept)
    assert r.search([f"What is {passages[3].title}?"])[0][0].passage == passages[3]


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


def test_a_missing_extra_names_its_install_line(monkeypatch):
    for name in ("spacy", "flair"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match="pip install spacy && python -m spacy download en_core_web_trf"):
        annotator_for("spacy:en_core_web_trf")
    with pytest.raises(UsageError, match="pip install flair"):
        annotator_for("bundled", "flair/ner-english-large")
    with pytest.raises(UsageError, match="spacy"):
        annotator_for("spacey:en_core_web_trf")
    with pytest.raises(UsageError, match="flair"):
        annotator_for("bundled", "ner-english-large")
    assert StanzaAnnotator().fingerprint == annotator_for().fingerprint
