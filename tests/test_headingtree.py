"A document's tree drawn with the router's way: the steps in words, what is folded away, hostile titles, and the choice of the case."

import json
from types import SimpleNamespace

import pytest

from treekit.config import UsageError, load_profile
from treekit.corpora.documents import build_tree
from treekit.papers.rdr2.figures import (
    candidate_questions,
    choose_case,
    document_to_show,
)
from treekit.papers.rdr2.figures import router_reply, router_views, shown_nodes
from treekit.core.method import Trace
from treekit.core.types import QAPair, Question


def a_case(tree, *views, text="An answer.", question="What?"):
    "A trace with one document; a view is (the view that asked for it, the heading it unfolds, what is lit, answers, expands)."
    trace = Trace()
    root = trace.add(
        "question", question, hits=[dict(id="d#0", title=tree.title)], passages=[dict(title=tree.title, text="x")]
    )
    document, made = trace.add("document", tree.title, root, id=tree.id, chunks=[["d#0", [1], 0.0]], refused=False), []
    for parent, heading, lit, answers, expands in views:
        made.append(
            trace.add(
                "routing",
                "",
                made[parent] if parent is not None else document,
                heading=heading,
                lit=lit,
                answers=answers,
                expands=expands,
            )
        )
    document.data["answers"] = sorted({i for v in made for i in v.data["answers"]})
    trace.add("answer", text, root)
    return trace, document


TREE = build_tree(
    "A $\\frac{}$ <b>_page_",
    [
        (1, "content", "Lead with $ and \x1b[31m."),
        *((d, kind, f"{kind} {i}") for i in range(12) for d, kind in ((1, "structure"), (2, "content"))),
    ],
    "d",
)


def test_steps_in_the_order_of_the_outline():
    trace, document = a_case(
        TREE,
        (None, None, [1], [], [2, 4]),
        (None, None, [], [], []),
        (0, 2, [3], [3], []),
        (0, 4, [5], [], [6]),
        (3, 6, [7], [7], []),
    )
    assert [v.data["lit"] for v in router_views(trace, document)] == [[1], [3], [5], [7], []]
    assert document_to_show(trace) is document


def test_what_is_folded_away():
    trace, document = a_case(TREE, (None, None, [21], [21], []))
    lines = shown_nodes(TREE, trace, document, most=2)
    assert [i for i, *_ in lines] == [0, None, 2, None, 20, 21, None] and "9 more headings" not in lines[1][2]
    assert "[… 8 more headings]" in [text for *_, text in lines]
    assert len(shown_nodes(TREE, trace, document, most=99)) == 1 + 1 + 12 + 1


def test_the_case_that_is_chosen():
    def row(id, method, answer, *views, error=""):
        q = Question(id, "asqa", "When?", qa_pairs=(QAPair("a", ("1926",)), QAPair("b", ("1951",))))
        return SimpleNamespace(question=q, method=method, answer=answer, error=error, trace=a_case(TREE, *views)[0])

    plain, ours, unfolding = "Retrieve-and-Read", "RDR2 (Ours)", [(None, None, [1], [], [2]), (0, 2, [3], [3], [])]
    rows = [
        row("0", plain, "1926, 1951"),
        row("0", ours, "1926, 1951", *unfolding),
        row("1", plain, "1926"),
        row("1", ours, "1926, 1951"),
        row("2", plain, "1926"),
        row("2", ours, "1926 and 1951", *unfolding),
        row("3", plain, ""),
        row("3", ours, "1951 1926", *unfolding),
        row("4", plain, "", error="x"),
        row("4", ours, "1951 1926", *unfolding, (None, None, [], [], [])),
    ]
    assert choose_case(rows)[ours].question.id == "2" and choose_case(rows[:2])[plain].question.id == "0"
    with pytest.raises(UsageError):
        choose_case([row("5", plain, ""), row("5", ours, "", error="no way")])
    assert router_reply(router_views(*(lambda t: (t, document_to_show(t)))(rows[5].trace))[0]) == "[EXPAND] 2"


def test_the_papers_own_case_where_a_source_has_it(tmp_path):
    "Question and document must both be there."
    ask = dict(
        answers=["Titan"],
        type="",
        hops=0,
        paragraphs=[],
        decomposition=[],
        qa_pairs=[dict(question="q", answers=["Titan"], wikipage=None)],
        long_answers=[],
        claims=[],
        source="x",
        dataset="asqa",
    )
    (tmp_path / "asqa.dev.jsonl").write_text(
        "".join(
            json.dumps(dict(id=f"q{i}", question=q, **ask)) + "\n"
            for i, q in enumerate(["When?", "What is the tallest ride at six flags over texas?"])
        )
    )
    articles = tmp_path / "articles_own.jsonl"
    articles.write_text(json.dumps(dict(id="1", title="Elsewhere", text="x")) + "\n")
    P = load_profile("offline", data=str(tmp_path), search_scope="documents")
    assert len(candidate_questions(P, "asqa")) == 2
    articles.write_text(json.dumps(dict(id="1", title="Six Flags Over Texas", text="A park.")) + "\n")
    assert [q.id for q in candidate_questions(P, "asqa")] == ["q1"] and candidate_questions(P, "asqa", "q0")[
        0
    ].id == "q0"
