"Votes: agreement and correlation against statsmodels and scipy, and what can be wrong with a file."

import csv, random

import pytest
from hypothesis import given, settings, strategies as st

from treekit.config import UsageError
from treekit.core.types import Question
from treekit.core.method import Trace, Usage
from treekit.figures.tables import to_markdown
from treekit.figures.verdicts import compare, published
from treekit.experiments.results import Row
from treekit.scoring.statistics import fleiss_kappa
from treekit.analysis.human_eval import (
    VOTE_FIELDS,
    Panel,
    agreement_rows,
    correlation_rows,
    kappa_of,
)
from treekit.analysis.human_eval import read_votes


def row(id="q1", answer="부산입니다.", method="Tree-of-Question", error="", gold=("부산",)):
    trace = Trace()
    trace.add("question", "", hits=[dict(id="p1", title="<i>부산</i>")])
    return Row(
        method,
        "komultihop",
        Question(id, "komultihop", "본사는 어디에 있나요?", gold, lang="ko"),
        answer,
        error,
        Usage(),
        load=lambda: trace,
    )


def people(votes, method="Tree-of-Question"):
    "A panel with these votes, one row of them per response."
    return Panel(
        tuple(f"rater {i}" for i in range(len(votes[0]))),
        [row(f"q{i}", method=method) for i in range(len(votes))],
        [tuple(v) for v in votes],
        {method: 0},
    )


def drawn(seed, n, k, p=0.6):
    return [[random.Random(f"{seed} {i} {j}").random() < (p if i % 2 else 0.3) for j in range(k)] for i in range(n)]


# --- the numbers


@pytest.mark.long
@pytest.mark.parametrize("n, k", [(2, 2), (10, 2), (30, 3), (100, 5), (60, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_statsmodels(seed, n, k):
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa as theirs

    votes = drawn(seed, n, k) if n > 2 else [(True, False), (seed > 1, False)]
    table, _ = aggregate_raters([[int(v) for v in vs] for vs in votes])
    pa, pe, kappa = (r["value"] for r in agreement_rows(people(votes)))
    assert kappa == pytest.approx(theirs(table)) == pytest.approx(fleiss_kappa(votes).kappa)
    assert (pa, pe) == pytest.approx(
        (fleiss_kappa(votes).observed, fleiss_kappa(votes).expected)
    ) and kappa == pytest.approx(kappa_of(pa, pe))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), *[st.booleans()] * 5), min_size=2, max_size=40))
def test_correlations_are_scipys(items):
    import scipy.stats

    votes, scores = [i[1:] for i in items], {f"q{k}": round(i[0], 3) for k, i in enumerate(items)}
    x, y = list(scores.values()), [float(sum(v) > 2) for v in votes]
    for cell, theirs in zip(
        correlation_rows(people(votes), lambda r: {"Ans": scores[r.question.id]}),
        (scipy.stats.pearsonr, scipy.stats.spearmanr),
    ):
        if len({*x}) == 1 or len({*y}) == 1:
            assert cell["value"] is None and cell["reason"].startswith("not applicable: ")
        else:
            assert cell["value"] == pytest.approx(theirs(x, y).statistic, abs=1e-9) and cell["n"] == len(items)


def test_table_6_reproduces_its_kappa():
    cells = {(r["method"], r["metric"]): r["value"] for r in published("toq", "table6")}
    told = {r["method"]: r["value"] for r in published("toq", "textclaims") if r["metric"] == "PE"}
    assert sorted(told.values()) == [0.500288, 0.5882]
    for method, exact in (("Direct Generation", 0.500288), ("Tree-of-Question", 0.5882)):
        for pe in (cells[method, "PE"], exact):
            assert round(kappa_of(cells[method, "PA"], pe), 3) == cells[method, "Fleiss' Kappa"]
        assert round(exact, 3) == cells[method, "PE"]


def test_nothing_to_tell_apart_is_not_applicable():
    same = agreement_rows(people([(True,) * 5] * 4))
    assert [r["value"] for r in same] == [1.0, 1.0, None] and "chance would agree as often" in same[2]["reason"]
    assert all(
        r["value"] is None and "two annotators" in r["reason"] for r in agreement_rows(people([(True,), (False,)]))
    )
    one = correlation_rows(people([(True,) * 5] * 4), lambda r: {"Ans": float(r.question.id[1:])})
    assert {r["reason"] for r in one} == {"not applicable: the scores or the majority are the same for all responses"}
    df = compare(published("toq", "figure2"), one, model="simulated", obstacle="other questions")
    assert "not applicable: the scores" in set(df.reason.str[:26])
    assert "Not applicable: the scores or the majority" in to_markdown(df, "x")


# --- files


def write(path, *lines, header=VOTE_FIELDS):
    with open(path, "w", encoding="utf-8", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(header)
        w.writerows(lines)
    return path


GOOD = ("ada", "Tree-of-Question", "komultihop", "q1", "true", "부산입니다.", "")


@pytest.mark.parametrize(
    "lines, says",
    [
        ([(*GOOD[:4], "maybe", *GOOD[5:])], "votes.csv, line 2: the vote is 'maybe'; it should be true or false"),
        ([(*GOOD[:4], "", *GOOD[5:])], "line 2: the vote is ''"),
        ([GOOD, GOOD], "line 3: q1 (Tree-of-Question, komultihop) is already judged in votes.csv, line 2 by ada"),
        ([GOOD, ("", *GOOD[1:])], "line 3: no annotator"),
        ([GOOD, (*GOOD[:3], "q7", *GOOD[4:])], "line 3: q7 (Tree-of-Question, komultihop) is not in the sample"),
        ([GOOD, ("ada", "ToQ", *GOOD[2:])], "line 3: q1 (ToQ, komultihop) is not in the sample"),
        (
            [(*GOOD[:5], "대구입니다.", "")],
            "line 2: the response to q1 (Tree-of-Question) has changed since ada voted on it: vote again",
        ),
        ([GOOD, ("bo", "Tree-of-Question")], "line 3: the number of fields isn't the header's"),
        ([(*GOOD, "more", "and more")], "line 2: the number of fields isn't the header's"),
        ([GOOD], "ada has not judged 1 of 2: q2 (Tree-of-Question, komultihop)"),
        ([], "none of the 2 answers is judged in votes.csv"),
    ],
)
def test_what_is_wrong_in_a_raters_file_is_named(tmp_path, lines, says):
    with pytest.raises(UsageError) as e:
        read_votes(write(tmp_path / "votes.csv", *lines), [row("q1"), row("q2"), row("q3", error="timeout", answer="")])
    assert says in str(e.value)


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "the header lacks annotator"),
        (b"annotator,vote\n", "the header lacks method, dataset, question_id, response"),
        (b"\xff\xfe", "not UTF-8"),
        (",".join(VOTE_FIELDS).encode() + b'\nada,"Tree', "line 2: unexpected end of data"),
    ],
)
def test_a_file_that_is_none(tmp_path, content, says):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(UsageError, match=says):
        read_votes(tmp_path / "x.csv")
    with pytest.raises(UsageError, match="'none.csv' can't be read"):
        read_votes(tmp_path / "none.csv")


def test_a_spreadsheet_may_have_saved_it(tmp_path):
    "A byte-order mark, TRUE in capitals, line ends of another system, taken-apart Hangul, no column of notes."
    import unicodedata

    line = ",".join((*GOOD[:4], "TRUE", unicodedata.normalize("NFD", GOOD[5])))
    (tmp_path / "v.csv").write_bytes(b"\xef\xbb\xbf" + f"{','.join(VOTE_FIELDS[:-1])}\r\n{line}\r\n\r\n".encode())
    [vote] = read_votes(tmp_path / "v.csv", [row("q1")])
    assert vote["vote"] is True and vote["note"] == ""
