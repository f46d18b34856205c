"Fairness: banned imports, and submissions of another assignment."

import json
from pathlib import Path

import pytest

from classes import RIGHT, WALL, cell, copy_of, course, hand_in, needs_wall, points
from treekit.classroom.collect import collect_from
from treekit.classroom.feedback import write_feedback
from treekit.classroom.formats import read_notebook
from treekit.classroom.grading import WorkerConnection, grade_assignment
from treekit.classroom.release import release_assignment
from treekit.classroom.sandbox import Limits

A = "9_counting"
QUICK = Limits(cell=4, call=1, cpu=20, memory=512)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    c = course(tmp_path_factory.mktemp("released") / "course", ("ada", "bob", "eve", "S10"))
    release_assignment(c, A, progress=False)
    return c.folder


@pytest.fixture
def classroom(released, tmp_path):
    return copy_of(released, tmp_path)


def grade(c):
    return {g["student"]: g for g in grade_assignment(c, A, limits=QUICK, progress=False, sandbox=WALL)}


@needs_wall
def test_a_cell_with_a_banned_import_is_not_run(classroom):
    "The grade names the import; what the released notebook imports itself is free, and the other exercise keeps its points."
    c, kit = classroom, "from treekit.scoring.short import em\n"
    hand_in(
        c,
        "ada",
        extra=["from treekit.classroom.student_corpora import open_corpus"],
        **RIGHT | dict(tally=kit + RIGHT["tally"]),
    )
    found = grade(c)["ada"]
    assert points(found) == {"tally-tests": 0, "twice-tests": 2, "text": None}
    assert found["banned"] == [dict(cell="tally", line=1, module="treekit.scoring.short.em")]
    assert found["errors"] == {"tally": "banned import (line 1)"}
    [page] = write_feedback(c, A, "Counting")
    assert "an import that this assignment doesn&#x27;t allow (line 1)" in page.read_text()


HIDDEN = """
import sys
def imported(name):
    try: exec("import " + name)
    except ImportError as e: return type(e).__name__
    return "imported"
def readable(paths):
    found = []
    for p in paths:
        try:
            if open(p, "rb").read(): found.append(p)
        except OSError: pass
    return found
"""


@needs_wall
@pytest.mark.skipif(WALL.startswith("plain"), reason="a plain child can read every file")
def test_the_kits_solutions_are_not_there_at_run_time(classroom):
    import treekit.retrieval.bm25 as solution
    from treekit.config import kit_path

    hidden = classroom.record("keys", A, "ada")["hidden"]
    assert "treekit.retrieval" in hidden
    talk = WorkerConnection(WALL, QUICK, tuple(hidden))
    talk.send(dict(cells=[dict(id="a", source=HIDDEN)], files={}, seconds=5), 30)

    def ask(fn, arg):
        return json.loads(talk.send(dict(number=0, fn=fn, args=[arg], seconds=5), 20))["value"]

    assert ask("imported", "treekit.retrieval.bm25") == "ModuleNotFoundError" and ask("imported", "math") == "imported"
    package = Path(solution.__file__).parent
    files = [*package.rglob("*"), *kit_path("nbs").rglob("*.ipynb"), *kit_path("data", "course_template").rglob("*")]
    assert len(files) > 100 and ask("readable", [str(p) for p in files]) == []
    assert ask("readable", [str(package.parent / "config.py")])
    talk.close()


def box_of(folder, **files):
    for name, content in files.items():
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_another_assignments_notebook_is_refused(classroom, tmp_path):
    "By its marked cells."
    mine = read_notebook(classroom.release(A, "ada", f"{A}.ipynb"))
    other = mine | dict(cells=[cell("x = 1", grade_id=name, solution=True) for name in ("tokenise", "rank", "setup")])
    new, refused = collect_from(classroom, A, box_of(tmp_path / "box", bob=other, eve=mine | dict(metadata={})))
    assert new == ["eve"] and refused == ["bob: it has 1 of the 6 marked cells of 9_counting"]


def test_letter_case_of_a_name_does_not_matter(classroom, tmp_path):
    mine = read_notebook(classroom.release(A, "S10", f"{A}.ipynb"))
    assert collect_from(classroom, A, box_of(tmp_path / "one", s10=mine)) == (["S10"], [])
