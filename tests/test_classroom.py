"A course from the release to the grade book; grading side by side, killed in the middle."

import json

import pytest

from classes import RIGHT, SOLUTION, WALL, cell, copy_of, course, hand_in, needs_wall, notebook, points
from treekit.classroom.collect import collect_from
from treekit.classroom.feedback import write_feedback
from treekit.classroom.course import sources_folder
from treekit.classroom.formats import cell_source, check_source, read_notebook
from treekit.classroom.grading import grade_assignment
from treekit.classroom.gradebook import export_rows, mistakes, standings
from treekit.classroom.sandbox import Limits
from treekit.classroom.release import release_assignment
from treekit.config import UsageError
from treekit.utils.sanitize import csv_text

A = "9_counting"
QUICK = Limits(cell=2, call=1, cpu=20, memory=512)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    "Two students' worlds, written once: each test has a copy of the folder."
    c = course(tmp_path_factory.mktemp("released") / "course")
    release_assignment(c, A, progress=False)
    return c.folder


@pytest.fixture
def class_of_two(released, tmp_path):
    return copy_of(released, tmp_path)


def graded(c, **more):
    return {g["student"]: g for g in grade_assignment(c, A, limits=QUICK, progress=False, sandbox=WALL, **more)}


@needs_wall
@pytest.mark.long
def test_the_solution_has_full_marks_and_the_release_none(class_of_two):
    c = class_of_two
    hand_in(c, "ada", **RIGHT)
    hand_in(c, "bob")
    found = graded(c)
    assert points(found["ada"]) == {"tally-tests": 3, "twice-tests": 2, "text": None}
    assert points(found["bob"]) == {"tally-tests": 0, "twice-tests": 0, "text": None}
    whys = {x["why"] for e in found["bob"]["exercises"] for x in e["criteria"]}
    assert whys == {"NotImplementedError"}


@pytest.mark.slow
def test_everybody_has_another_world_and_another_key(tmp_path):
    c = course(tmp_path, ("ada", "bob", "eve"))
    release_assignment(c, A, progress=False)
    worlds = {c.release(A, s, "world.json").read_text() for s in c.students()}
    keys = {json.dumps([e["calls"] for e in c.record("keys", A, s)["exercises"]]) for s in c.students()}
    assert len(worlds) == len(keys) == 3
    for s in c.students():  # nothing of the key is in the release: no closed question
        handed = "".join(p.read_text() for p in c.release(A, s).iterdir())
        asked = [k["args"][0] for k in c.record("keys", A, s)["exercises"][0]["calls"] if len(k["args"][0]) > 20]
        assert asked and not any(q in handed for q in asked)


@needs_wall
@pytest.mark.parametrize(
    "body, earned, why",
    [
        ("def tally(letters):\n    while True: pass", 0, "too slow"),
        ("def tally(letters):\n    return [0] * 10**10", 0, "MemoryError"),
        ("def tally(letters):\n    import os\n    while True: os.fork()", 0, "PermissionError"),
        ("def tally(letters:\n    return 1", 0, "missing"),
        ("def tally(letters):\n    import os; os._exit(0)", 0, "ended"),
        ("def tally(letters):\n    return {c: 1 for c in letters}", 1, "another value"),
        ("def tally(letters):\n    return list(letters)", 0, "a list instead of a set or a dict"),
        ("def tally(letters):\n    return tally", 0, "TypeError"),
    ],
)
@pytest.mark.long
def test_what_goes_wrong_has_a_grade_and_a_reason(class_of_two, body, earned, why):
    hand_in(class_of_two, "ada", **RIGHT | dict(tally=body))
    [grade] = grade_assignment(class_of_two, A, limits=QUICK, progress=False, sandbox=WALL)
    assert points(grade)["tally-tests"] == earned and points(grade)["twice-tests"] == 2
    assert why in {x["why"] for x in grade["exercises"][0]["criteria"]}


@needs_wall
def test_a_notebook_that_is_none_gets_nothing_and_a_reason(class_of_two):
    from treekit.classroom.collect import take_in

    for when, junk in enumerate(
        (b"", b"[]", b'{"nbformat": 4, "cells": 3}', b"\xff\xfe", b"[" * 10**6, b'{"nbformat": 4, "cells": [7]}')
    ):
        take_in(class_of_two, A, "ada", junk, 1e9 + when)
        [grade] = grade_assignment(class_of_two, A, limits=QUICK, progress=False, sandbox=WALL)
        assert sum(points(grade).values()) == 0 and "notebook" in grade["errors"]


@needs_wall
def test_nothing_is_graded_twice_and_what_changes_is(class_of_two):
    c = class_of_two
    hand_in(c, "ada", **RIGHT)
    assert len(graded(c)) == 1 and graded(c) == {}
    hand_in(c, "ada", extra=["# another attempt"], **RIGHT)
    assert len(graded(c)) == 1 and len(c.attempts(A, "ada")) == 2
    assert len(graded(c, force=True)) == 1


@needs_wall
def test_feedback_shows_what_was_wrong_and_nothing_hidden(class_of_two, capsys):
    c = class_of_two
    noisy = "def tally(letters):\n    print(letters)\n    raise ValueError(letters)"
    hand_in(
        c,
        "ada",
        extra=["raise RuntimeError('<img src=x onerror=alert(1)>')"],
        **RIGHT | dict(tally=noisy, text="<script>alert(1)</script>"),
    )
    graded(c)
    [page] = write_feedback(c, A, "Counting")
    shown = page.read_text()
    assert "ValueError" in shown and "2 of 2" in shown and "RuntimeError (line 1)" in shown
    assert "img" not in shown and "<script" not in shown  # an error's message is never shown
    for e in c.record("keys", A, "ada")["exercises"]:
        for k in e["calls"]:
            assert not k["args"][0] or str(k["args"][0]) not in shown
    assert "zebra" not in shown and "31.4159" not in shown
    cells = [
        cell_source(k) for k in read_notebook(sources_folder() / "class.ipynb")["cells"] if k["cell_type"] == "code"
    ]
    space = {}
    exec(cells[0] + f"\nCOURSE, ASSIGNMENT = {str(c.folder)!r}, {A!r}\n" + "\n".join(cells[1:]), space)
    assert "1 of 2 handed in" in capsys.readouterr().out and space["table"].index.tolist() == ["ada"]
    assert mistakes(c, A)[0]["students"] == 1 and "ValueError" in mistakes(c, A)[0]["what"]


@needs_wall
@pytest.mark.slow
def test_the_grade_book_runs_nothing(tmp_path):
    c = course(tmp_path, ("ada", "bob"))
    release_assignment(c, A, progress=False)
    hand_in(c, "ada", **RIGHT)
    graded(c)
    (c.private("by_hand")).mkdir()
    c.private("by_hand", f"{A}.csv").write_text("student,exercise,points,remark\nada,text,0.5,=HYPERLINK(1)\n")
    rows = export_rows(c, A)
    assert rows[1][:5] == ["ada", A, 5.5, 6, 0] and rows[2][2] == ""
    assert all(not cell.startswith(("=", "+", "@")) for row in csv_text(rows).splitlines() for cell in row.split(","))
    assert mistakes(c, A) == [] and [r["state"] for r in standings(c, A)] == ["graded", "not handed in"]


def test_an_inbox_gives_notebooks_and_nothing_else(class_of_two, tmp_path):
    import zipfile

    c, box = class_of_two, tmp_path / "inbox"
    (box / "ada").mkdir(parents=True)
    (box / "ada" / "mine.ipynb").write_text("{}")
    (box / "mallory.ipynb").write_text("{}")
    (box / "bob.ipynb").symlink_to(c.private("secret"))
    with zipfile.ZipFile(box / "bob.zip", "w") as z:
        z.writestr("../../../private/keys/9_counting/bob.ipynb", "{}")
    new, refused = collect_from(c, A, box)
    assert new == ["ada"] and len(refused) == 3 and c.attempts(A, "bob") == []


@pytest.mark.parametrize(
    "broken, complaint",
    [
        (notebook(cell(SOLUTION)), "isn't marked"),
        (notebook(cell("def f(): return 1", grade_id="f", solution=True)), "without ### BEGIN SOLUTION"),
        (notebook(cell("assert 1", grade_id="f", grade=True, points=1)), "without hidden tests"),
        (notebook(cell("### BEGIN HIDDEN TESTS\n1\n### END HIDDEN TESTS")), "without points"),
        (notebook(cell("### BEGIN SOLUTION\n1", grade_id="f", solution=True)), "without its end"),
        (notebook(cell("## BEGIN SOLUTION\n1\n### END SOLUTION", grade_id="f", solution=True)), "isn't one"),
        (
            notebook(cell(SOLUTION, grade_id="f", solution=True), cell(SOLUTION, grade_id="f", solution=True)),
            "there twice",
        ),
    ],
)
def test_a_source_that_would_hand_out_too_much_is_refused(broken, complaint):
    with pytest.raises(UsageError, match=complaint):
        check_source(broken, "x")


def test_nbformat_and_nbgraders_metadata_hold(class_of_two):
    import nbformat

    nb = nbformat.read(class_of_two.release(A, "ada", f"{A}.ipynb"), as_version=4)
    nbformat.validate(nb)
    required = {"grade_id", "grade", "solution", "locked", "schema_version"}
    assert all(required <= set(c.metadata.nbgrader) for c in nb.cells if "nbgrader" in c.metadata)
