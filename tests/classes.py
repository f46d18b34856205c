"A small assignment, and a course with it, for the tests of the classroom."

import json, shutil
from pathlib import Path

import pytest

from treekit.classroom.course import CourseFolder
from treekit.classroom.formats import read_notebook
from treekit.classroom.sandbox import SANDBOXES, is_available

# where the tests grade: the best sandbox; without one "plain", which the tests ask for by name; empty: root, and no sandbox
WALL = next((w for w in SANDBOXES if is_available(w)), "")
needs_wall = pytest.mark.skipif(
    not WALL, reason="no sandbox works here, and without one nothing is graded as root: install bubblewrap"
)


def cell(source, kind="code", tags=(), **mark):
    "A cell; with a grade_id it is marked for grading."
    metadata = (
        {"nbgrader": dict(grade=False, solution=False, locked=False, schema_version=3, task=False) | mark}
        if mark
        else {}
    )
    if tags:
        metadata["tags"] = list(tags)
    made = dict(cell_type=kind, id=f"c{abs(hash(source)) % 10**8}", metadata=metadata, source=source.splitlines(True))
    return made | (dict(execution_count=None, outputs=[]) if kind == "code" else {})


def notebook(*cells):
    return dict(cells=list(cells), metadata={}, nbformat=4, nbformat_minor=5)


SOLUTION = """def tally(letters):
    "How often each letter stands in a text: dict."
    ### BEGIN SOLUTION
    harvest_table = {}
    for glyph in letters: harvest_table[glyph] = harvest_table.get(glyph, 0) + 1
    return harvest_table
    ### END SOLUTION"""
TESTS = """assert tally("aab") == {"a": 2, "b": 1}, f"a occurs twice in aab, not {tally('aab')}"
### BEGIN HIDDEN TESTS
from treekit.classroom.answer_keys import call, test_draws

rng, closed = test_draws()
for probe in closed: call(tally, probe["question"], criterion="questions that nobody has seen")
call(tally, "zebra-crossing-8471", criterion="signs and digits")
call(tally, "", criterion="an empty text")
### END HIDDEN TESTS"""
SECOND = """def twice(number):
    "Twice a number: float."
    ### BEGIN SOLUTION
    return number + number
    ### END SOLUTION"""
SECOND_TESTS = """assert twice(2) == 4
### BEGIN HIDDEN TESTS
call(twice, 31.4159, criterion="a float")
call(twice, rng.random(), criterion="a float")
### END HIDDEN TESTS"""


def source():
    "The source: two exercises, and a text."
    return notebook(
        cell("# Counting\nA first exercise.", "markdown"),
        cell(
            'from treekit.classroom.student_corpora import open_corpus\n\nworld = open_corpus("9_counting")',
            grade_id="setup",
            locked=True,
        ),
        cell(SOLUTION, grade_id="tally", solution=True),
        cell(TESTS, grade_id="tally-tests", grade=True, locked=True, points=3),
        cell("## Doubling", "markdown"),
        cell(SECOND, grade_id="twice", solution=True),
        cell(SECOND_TESTS, grade_id="twice-tests", grade=True, locked=True, points=2),
        cell(
            "The counts follow a law that is named after Zipf.",
            "markdown",
            grade_id="text",
            grade=True,
            solution=True,
            points=1,
        ),
    )


SETTINGS = """[9_counting]
title = "Counting"
hidden = ["treekit.retrieval", "treekit.core.fingerprints"]
[9_counting.world]
draw = {single = 8}
take = {single = [3, 1]}
"""


def course(folder, students=("ada", "bob"), made=None, settings=SETTINGS) -> CourseFolder:
    "A course in an empty folder, with the small assignment as its source."
    sources = Path(folder, "sources")
    sources.mkdir(parents=True)
    (sources / "9_counting.ipynb").write_text(json.dumps(made or source()))
    (sources / "course.toml").write_text(settings)
    Path(folder, "roster.csv").write_text("id\n" + "\n".join(students) + "\n")
    return CourseFolder(Path(folder), sources)


def copy_of(released, folder) -> CourseFolder:
    "Copy of a course's folder whose releases were written once for all tests of a module."
    shutil.copytree(released, Path(folder, "course"), symlinks=True)
    return CourseFolder(Path(folder, "course"), Path(folder, "course", "sources"))


RIGHT = dict(
    tally="def tally(letters):\n    return {c: letters.count(c) for c in letters}",
    twice="def twice(number): return 2 * number",
)


def hand_in(course, student, extra=(), **bodies):
    "A student fills in the release and hands it in: the bodies by grade_id, other cells in front."
    bodies = dict(text="The law of Zipf.") | bodies
    nb = read_notebook(course.release("9_counting", student, "9_counting.ipynb"))
    for c in nb["cells"]:
        if (name := c["metadata"].get("nbgrader", {}).get("grade_id")) in bodies:
            c["source"] = bodies[name]
    nb["cells"] = [cell(s) for s in extra] + nb["cells"]
    from treekit.classroom.collect import take_in

    take_in(course, "9_counting", student, json.dumps(nb).encode(), 1e9 + len(course.attempts("9_counting", student)))
    return nb


def points(grade):
    return {e["id"]: e["points"] for e in grade["exercises"]}
