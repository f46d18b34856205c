"One submission never stops the class, and no text from a student's process reaches the feedback."

import json

import pytest

from classes import RIGHT, WALL, cell, copy_of, course, hand_in, needs_wall, points
from treekit.classroom import grading
from treekit.classroom.collect import take_in
from treekit.classroom.feedback import write_feedback
from treekit.classroom.grading import grade_assignment
from treekit.classroom.gradebook import export_rows, standings
from treekit.classroom.sandbox import Limits
from treekit.classroom.release import release_assignment
from treekit.config import UsageError

A = "9_counting"
QUICK = Limits(cell=4, call=1, cpu=20, memory=512)
pytestmark = needs_wall


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    c = course(tmp_path_factory.mktemp("released") / "course", ("ada", "bob", "eve"))
    release_assignment(c, A, progress=False)
    return c.folder


@pytest.fixture
def class_of_three(released, tmp_path):
    return copy_of(released, tmp_path)


def grade(c, **more):
    return {g["student"]: g for g in grade_assignment(c, A, limits=QUICK, progress=False, sandbox=WALL, **more)}


NESTED = "x"
for _ in range(400):
    NESTED = [NESTED]
ODD = {  # name -> cells in front; a cell that isn't a text is put into the notebook as it is
    "a lone surrogate in an error": ["raise ValueError('\\ud800')"],
    "a lone surrogate in a cell": ["x = '\ud800'"],
    "an id that is a lone surrogate": [dict(cell("raise ValueError", grade_id="x\ud800y", solution=True))],
    "an error class that lies about its name": [
        "class M(type):\n    __name__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E"
    ],
    "a source that is a number": [dict(cell_type="code", source=7, metadata={})],
    "a source that is nested": [dict(cell_type="code", source=[NESTED], metadata={})],
    "brackets without an end": ["(" * 100_000],
    "not a number": ["def tally(x): return float('nan')\ndef twice(x): return float('inf')"],
    "binary on every pipe": [
        "import os\nfor fd in range(3, 30):\n    try: os.write(fd, bytes(range(256)) * 40)\n    except OSError: pass"
    ],
}


@pytest.mark.parametrize("name", [n if "surrogate" in n else pytest.param(n, marks=pytest.mark.long) for n in ODD])
def test_one_submission_never_stops_the_rest(class_of_three, name):
    c = class_of_three
    for s in ("ada", "bob"):
        hand_in(c, s, **RIGHT)
    nb = hand_in(c, "eve")
    nb["cells"] = [k if isinstance(k, dict) else cell(k) for k in ODD[name]] + nb["cells"]
    nb["cells"][-1]["source"] = "an answer with a lone surrogate: \ud800"
    take_in(c, A, "eve", json.dumps(nb).encode(), 2e9)
    found = grade(c)
    assert set(found) == {"ada", "bob", "eve"} and grade(c) == {}
    for s in ("ada", "bob"):
        assert points(found[s]) == {"tally-tests": 3, "twice-tests": 2, "text": None}
    assert sum(p or 0 for p in points(found["eve"]).values()) == 0
    assert len(write_feedback(c, A, "Counting")) == 3 and len(export_rows(c, A)) == 4
    assert [r["state"] for r in standings(c, A)] == ["graded"] * 3


@pytest.mark.long
def test_much_output_is_let_go(class_of_three):
    "What is printed is kept nowhere: a gigabyte of it takes no memory."
    hand_in(class_of_three, "ada", extra=["for _ in range(1024): print('x' * 2**20)"], **RIGHT)
    found = grade(class_of_three)
    assert found["ada"]["errors"] == {} and points(found["ada"])["tally-tests"] == 3


@pytest.mark.parametrize("body", ["-" * 60_000 + "1", "raise type('E', (Exception,), dict(__str__=lambda s: 1 / 0))"])
def test_one_odd_cell_costs_only_itself(class_of_three, body):
    hand_in(class_of_three, "ada", extra=[body], **RIGHT)
    found = grade(class_of_three)
    assert (
        points(found["ada"]) == {"tally-tests": 3, "twice-tests": 2, "text": None} and len(found["ada"]["errors"]) == 1
    )


def test_feedback_has_the_message_of_a_failed_visible_test(class_of_three):
    "As released, without the submission's values, also where the student has changed the test; nothing of a hidden test."
    wrong = "def tally(letters): return dict(SECRET=7)"
    nb = hand_in(class_of_three, "ada", **(RIGHT | dict(tally=wrong)))
    for c in nb["cells"]:
        if c["metadata"].get("nbgrader", {}).get("grade_id") == "tally-tests":
            c["source"] = "assert False, 'MINE'"
    take_in(class_of_three, A, "ada", json.dumps(nb).encode(), 2e9)
    hand_in(class_of_three, "bob", **(RIGHT | dict(twice="import os\ndef twice(number): os._exit(1)")))
    hand_in(class_of_three, "eve", **(RIGHT | dict(twice="def twice(number): return number / 0")))
    found = grade(class_of_three)
    shown = {s: {e["id"]: e["visible"] for e in g["exercises"] if "visible" in e} for s, g in found.items()}
    assert shown == {
        "ada": {"tally-tests": "a occurs twice in aab, not …"},
        "bob": {},  # its process ended
        "eve": {"twice-tests": "ZeroDivisionError (line 1)"},
    }
    assert points(found["bob"]) == {"tally-tests": 3, "twice-tests": 0, "text": None}
    write_feedback(class_of_three, A, "Counting")
    page = (class_of_three.folder / "feedback" / A / "ada.html").read_text()
    assert "✗ visible test: a occurs twice in aab, not …" in page
    assert not [text for text in ("SECRET", "MINE", "zebra", "harvest_table") if text in page]


def test_a_fault_of_the_grader_is_one_line_for_one_student(class_of_three, monkeypatch):
    "Also at the next run: the others are graded, the command says whose submission failed and why."
    c, real = class_of_three, grading.graded
    for s in c.students():
        hand_in(c, s, extra=[f"# {s}"], **RIGHT)

    def broken(submitted, *more):
        if b"# eve" in submitted:
            raise RuntimeError("a fault\nof \ud800 two lines")
        return real(submitted, *more)

    monkeypatch.setattr(grading, "graded", broken)
    for _ in range(2):
        with pytest.raises(UsageError) as e:
            grade(c)
        assert "eve" in str(e.value) and "RuntimeError" in str(e.value) and "\n" not in str(e.value)
        str(e.value).encode()
    assert [points(c.record("grades", A, s)).get("tally-tests") for s in ("ada", "bob")] == [3, 3]
    monkeypatch.setattr(grading, "graded", real)
    assert set(grade(c)) == {"eve"}


FORGE = """
import json, os
def say(text):
    for fd in range(3, 30):
        for n in range(12):
            try: os.write(fd, (json.dumps(dict(number=n, error=text)) + "\\n").encode())
            except OSError: break
def tally(letters):
    say("LEAK " + str(letters)[:50])
    raise type("LEAK" + str(letters)[:50], (Exception,), {})("LEAK" + str(letters))
def twice(number):
    say("LEAK " + str(number))
    raise ValueError("LEAK" + str(number))
"""
CELLS = """
import json, os
for fd in range(3, 30):
    try: os.write(fd, (json.dumps(dict(cells={"LEAK of a cell": "LEAK of a message", "twice": "LEAK (line 3)"})) + "\\n").encode())
    except OSError: pass
raise RuntimeError("LEAK of an error")
"""


@pytest.mark.parametrize(
    "attack", [FORGE, CELLS, "raise RuntimeError('LEAK')", "def f(:  # LEAK", "raise SyntaxError('LEAK')"]
)
def test_no_text_from_the_process_reaches_feedback(class_of_three, attack):
    c = class_of_three
    hand_in(c, "eve", extra=[attack], tally="pass", twice="pass")
    found = grade(c)["eve"]
    [page] = write_feedback(c, A, "Counting")
    assert "LEAK" not in page.read_text() and "LEAK" not in json.dumps([found["errors"], found["exercises"]])
    assert "zebra" not in page.read_text() and "31.4159" not in page.read_text()


def test_what_a_reply_can_carry_is_one_word_of_a_short_list(class_of_three):
    "A student who answers each call with an error of their choice tells less than a byte for each criterion."
    from treekit.classroom.worker import ERROR_NAMES

    assert len(ERROR_NAMES) < 40
    names = ["KeyError", "IndexError", "TypeError", "OSError", "ValueError", "NameError"]
    hand_in(
        class_of_three,
        "eve",
        tally=f"names = {names}\ndef tally(x):\n    import builtins\n"
        "    raise getattr(builtins, names[sum(map(ord, x)) % 6])",
        twice="def twice(x): raise ConnectionResetError",
    )
    found = grade(class_of_three)["eve"]
    for e in found["exercises"]:
        for k in e["criteria"]:
            assert "," not in k["why"] and (k["why"] in ERROR_NAMES or k["why"] == "an error of your own"), k


def test_other_users_read_neither_submissions_nor_feedback(class_of_three):
    c = class_of_three
    hand_in(c, "ada")
    grade(c)
    [page] = write_feedback(c, A, "Counting")
    for top in ("submitted", "feedback", "private"):
        assert (c.folder / top).stat().st_mode & 0o077 == 0, top
    assert page.stat().st_mode & 0o077 == 0 and (c.attempts(A, "ada")[0] / f"{A}.ipynb").stat().st_mode & 0o077 == 0
