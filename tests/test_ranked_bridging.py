"Bridging ranked anew: its weights fit its numbers, what it finds on the real sample, and what odd questions do to it."
import json
from pathlib import Path

import numpy as np
import pytest

from treekit.config import UsageError
from treekit.core.types import Passage
from treekit.corpora.bundled_questions import question_paragraphs
from treekit.experiments.resources import load, load_corpus
from treekit.retrieval.bm25 import BM25
from treekit.retrieval.entity_bridging import EntityBridging
from treekit.retrieval.ranked_bridging import Candidates, FittedWeights, RankedBridging
from treekit.scoring.passages import recall_at

WEIGHTS = Path(__file__).resolve().parents[1] / "data" / "retrieval" / "bridging_weights.json"
SHELF = [
    Passage("a", "Grey Harbour", "Grey Harbour is a 1961 film about a lighthouse. It was directed by Mavel Orrin and shot in Tholland."),
    Passage("b", "Mavel Orrin", "Mavel Orrin was born in Sel Varo, Tholland, and worked in the theatre."),
    Passage("c", "Sel Varo", "Sel Varo is a town in Tholland. Its mayor is Iven Sark."),
    Passage("d", "Born free", "To be born where the director of a lighthouse was born is a matter of luck."),
    *(Passage(f"x{i}", f"Place {i}", f"Place {i} is a village with {i} houses.") for i in range(30))]
ASKED = "Where was the director of Grey Harbour born?"


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch): monkeypatch.setenv("TREEKIT_HOME", str(tmp_path_factory.getbasetemp() / "ranked"))


def candidates(bridged, query):
    hits = bridged.retriever.search([query], bridged.depth)[0]
    scores = bridged._scored(query, hits, None)
    return Candidates(scores, query, hits, bridged.places(scores, hits))


def test_the_kit_s_weights_are_for_these_numbers():
    kept = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    numbers, names = candidates(RankedBridging(BM25(SHELF)), ASKED).numbers()
    assert names == kept["names"] and numbers.shape[1] == len(names) and np.isfinite(numbers).all()
    assert all(len(r["weights"]) == len(names) for r in kept["rounds"])


def test_numbers_counted_by_hand():
    "The film's passage mentions the director, whose passage points to the town's; the question names the film alone."
    bridged = RankedBridging(BM25(SHELF))
    hits = bridged.retriever.search([ASKED], 100)[0]
    found = Candidates(bridged._scored(ASKED, hits, None), ASKED, hits, [0, 1, 2, 3])
    numbers, names = found.numbers(np.array([1.0, 0.5, 0.0, 0.0]))
    by, weight = {n: numbers[:, i] for i, n in enumerate(names)}, bridged.index.weight
    director, town = (weight[bridged.index.matcher.number[tuple(n.split())]] for n in ("mavel orrin", "sel varo"))
    assert by["about"] == pytest.approx([0, director, town / 2, 0])
    assert by["onward"] == pytest.approx([director / 2, 0, 0, 0]) and by["relative"] == pytest.approx([1, 0.5, 0, 0])
    assert by["asked_about"][0] > 0 == by["asked_about"][1] and by["margin"] == pytest.approx([1, 0.5, 0, 0])
    terms = bridged._scored(ASKED, hits, None).links.terms
    own = {t for t in terms if t in bridged.index.words.analyze(SHELF[3].contents)}
    assert by["covered"][3] == pytest.approx(sum(s for t, s in zip(terms, found.ties.share) if t in own))


def test_order_follows_the_weights():
    names = candidates(RankedBridging(BM25(SHELF)), ASKED).numbers()[1]
    def only(name, sign=1.0): return FittedWeights(dict(names=names, rounds=[dict(weights=[sign * (n == name) for n in names], bias=0.0)]))
    first = {sign: RankedBridging(BM25(SHELF), fitted=only("about", sign)).search([ASKED], 40)[0] for sign in (1.0, -1.0)}
    assert first[1.0][0].passage.id == "b" and first[-1.0][0].passage.id != "b"
    assert {h.passage.id for h in first[1.0]} == {h.passage.id for h in first[-1.0]}
    assert all(a.score >= b.score and a.rank + 1 == b.rank for a, b in zip(first[1.0], first[1.0][1:]))


def test_odd_questions_and_corpora():
    ranked = RankedBridging(BM25(SHELF))
    for odd in ("", "?", "the of and", "zzz qqq", "GREY HARBOUR " * 200, "서울은 어디에 있나요?", "\x00\ud800"):
        assert len(ranked.search([odd], 3)[0]) <= 3
    assert RankedBridging(BM25([])).search([ASKED]) == [[]] and ranked.search([]) == []
    assert [h.passage.id for h in RankedBridging(BM25(SHELF[:1])).search([ASKED])[0]] == ["a"]
    with pytest.raises(UsageError, match="weights"): FittedWeights.read(Path(__file__))
    assert ranked.fingerprint != EntityBridging(BM25(SHELF)).fingerprint != RankedBridging(BM25(SHELF), first=9).fingerprint


def recalls(retriever, questions, k=5):
    return [recall_at([h.passage.id for h in hits], q.supporting, k)
            for hits, q in zip(retriever.search([q.question for q in questions], k), questions)]


@pytest.mark.slow
def test_it_finds_more_of_musique_s_own_paragraphs():
    "135 dev questions among their 2,199 paragraphs: R@5 grows by two points or more, and the same question gets the same again."
    words, questions = BM25(question_paragraphs("musique")), load("musique", "real")
    ranked = RankedBridging(words)
    before, after = (recalls(r, questions) for r in (EntityBridging(words), ranked))
    assert sum(after) / len(after) > sum(before) / len(before) + 0.02
    assert ranked.search([questions[0].question], 9) == RankedBridging(words).search([questions[0].question], 9)


@pytest.mark.slow
@pytest.mark.parametrize("dataset, least", [("hotpotqa", 0.0), ("musique", 0.02), ("2wiki", 0.0)])
def test_what_it_finds_in_whole_corpora(dataset, least):
    words, questions = BM25(load_corpus(dataset, "real")), load(dataset, "real")
    before, after = (recalls(r, questions) for r in (EntityBridging(words), RankedBridging(words)))
    assert sum(after) / len(after) >= sum(before) / len(before) + least - 0.005
