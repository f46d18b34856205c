"RDR²'s router: labelled views, and the scores of its output."

import pytest

from fakes import FakeShelf
from treekit.corpora.documents import build_tree
from treekit.corpora.lookup import Documents
from treekit.core.types import Passage, QAPair, Question
from treekit.papers.rdr2.router import FORMATS, RST, reveal_nodes
from treekit.papers.rdr2.training_data import (
    MAJORITIES,
    Sample,
    judged,
    labelled,
    scores,
    views,
)
from treekit.retrieval.bm25 import Hit

ROWS = [
    (1, "structure", "History"),
    (2, "content", "A dam of 1883."),
    (2, "content", "It was moved."),
    (1, "structure", "Names"),
    (2, "content", "Moles have many."),
    (1, "structure", "Empty parent"),
    (2, "structure", "Below"),
    (3, "content", "Deep text."),
]


MOLE = build_tree(
    "Mole",
    [
        (1, "structure", "History"),
        (2, "content", "A dam of 1883."),
        (1, "structure", "Names"),
        (2, "content", "Moles have many."),
    ],
    "m",
)


def view(*behaviours, visible=(2, 3), id="q/d"):
    return Sample(id, "When?", RST(build_tree("Mole", ROWS), visible), behaviours)


def percent(terms):
    return {m: 100 * sum(v) / len(v) if v else None for m, v in terms.items()}


def test_scores_by_hand():
    rows = [  # behaviours due, output, then the terms: ANS-F1, EXP-PRE, REF-ACC (paper, code), XPL, COL
        ([("ANSWER", 2)], "[ANSWER] 2: A dam", 1, None, None, 0, 0),
        ([("ANSWER", 2)], "[ANSWER] 3: It was", 0, None, None, 0, 0),
        ([("ANSWER", 2), ("ANSWER", 3)], "[ANSWER] 2: A dam\n[EXPAND] 4: ==Names==", 2 / 3, None, None, 0, 0),
        ([("ANSWER", 2)], "[ANSWER] 2: A dam\n[ANSWER] 2: A dam", 1, None, None, 0, 0),  # twice is once
        ([("ANSWER", 2)], "[ANSWER] 2: A dam\nCannot answer", 0, None, None, 0, 0),  # voided
        ([("ANSWER", 2), ("EXPAND", 4)], "[EXPAND] 4: ==Names==\n[EXPAND] 7: ===Below===", 0, 1 / 2, None, 0, 0),
        ([("EXPAND", 4)], "[ANSWER] 2: A dam", None, 0, None, 0, 0),
        ([("EXPAND", 4)], "[EXPAND] 1: ==History==\n[EXPAND] 4: ==Names==", None, 1, None, 1, 0),  # 1 is open: expelled
        ([("EXPAND", 4)], "[EXPAND] 2: A dam", None, 0, None, 1, 0),  # a paragraph can't be expanded
        ([], "Cannot answer", None, None, (1, 1), 0, 0),
        ([], "well, er", None, None, (0, 1), 0, 1),  # collapsed: a refusal for the code only
        ([], "[ANSWER] 5: Moles have", None, None, (0, 1), 0, 1),  # not visible: dropped, nothing is left
        ([], "[ANSWER] 4: Names", None, None, (0, 1), 1, 0),  # expelled, so not collapsed
        ([], "[EXPAND] 4: ==Names==", None, None, (0, 0), 0, 0),
    ]
    for due, output, answer, expand, refuse, expelled, collapsed in rows:
        terms, code = scores([view(*due)], [output]), scores([view(*due)], [output], "code")
        assert terms["ANS-F1"] == ([] if answer is None else [pytest.approx(answer)]), output
        assert terms["EXP-PRE"] == ([] if expand is None else [expand]), output
        assert (terms["REF-ACC"], code["REF-ACC"]) == (([], []) if refuse is None else ([refuse[0]], [refuse[1]])), (
            output
        )
        assert (terms["XPL-AVG"], terms["COL-RATE"]) == ([expelled], [collapsed]), output
    both = percent(scores([view(*r[0]) for r in rows], [r[1] for r in rows]))
    assert both["XPL-AVG"] == pytest.approx(100 * 3 / 14) and both["COL-RATE"] == pytest.approx(100 * 2 / 14)


@pytest.mark.parametrize("form", FORMATS)
def test_gold_scores_full(form):
    samples = [view(("ANSWER", 2), ("EXPAND", 4)), view(("EXPAND", 7)), view()]
    said = [FORMATS[form].render([(t, i, s.rst.tree[i].text) for t, i in s.behaviours]) for s in samples]
    assert percent(scores(samples, said)) == {
        "ANS-F1": 100,
        "EXP-PRE": 100,
        "REF-ACC": 100,
        "XPL-AVG": 0,
        "COL-RATE": 0,
        "FIT": 100,
    }
    assert set(MAJORITIES) and all(judged(s.rst, say(s, form)) for s in samples for say in MAJORITIES.values())


def test_a_view_is_made_for_each_passage():
    "As the public code curates (struct_curation.py without --group_passages), and as RDR2 routes."

    hits = [Hit(Passage(str(i), "Mole", MOLE[i].text), 1.0, i) for i in (2, 4, 2)]
    shelf, asked = FakeShelf(hits), [Question("q", "asqa", "When?")]

    content = [n.id for n in MOLE.nodes if n.type == "content"]
    assert [rst.visible for _, rst in views(asked, shelf, Documents([MOLE]))] == [(i,) for i in content]


def test_labels_follow_from_the_gold_answers():
    "A visible paragraph with an answer is answered with; a folded heading above one is expanded; other views are refused."
    (dam, other), heading = [n.id for n in MOLE.nodes if n.type == "content"], MOLE.headings[1]

    def label(node, *answers):
        asked = Question("q", "asqa", "When?", qa_pairs=(QAPair("When?", answers),))
        return labelled(asked, reveal_nodes(MOLE, [node])).behaviours

    assert label(dam, "1883") == (("ANSWER", dam),) and label(dam, "1884", "188") == ()
    assert label(other, "in 1883", "1883") == (("EXPAND", heading),) and label(dam, "of") == ()
