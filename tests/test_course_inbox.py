"Every file of an inbox is taken, or named with its reason; nothing of a student's exhausts the grader."

import io, json, re, zipfile

import pytest

from classes import RIGHT, WALL, copy_of, course, hand_in, needs_wall, points, source
from treekit.classroom.collect import collect_from, student_named
from treekit.classroom.feedback import write_feedback
from treekit.classroom.formats import read_notebook
from treekit.classroom.grading import grade_assignment
from treekit.classroom.release import release_assignment
from treekit.classroom.sandbox import Limits

A = "9_counting"
QUICK = Limits(cell=4, call=1, cpu=20, memory=512)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    c = course(tmp_path_factory.mktemp("released") / "course", ("ada", "bob"))
    release_assignment(c, A, progress=False)
    return c.folder


@pytest.fixture
def classroom(released, tmp_path):
    return copy_of(released, tmp_path)


def packed(**members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in members.items():
            z.writestr(name.replace("__", "/"), content)
    return made.getvalue()


NOTEBOOK = json.dumps(source()).encode()
ZEROS = b'{"cells": [' + b" " * 19_000_000 + b"]}"
TAKEN = {
    "ada.ipynb.json": NOTEBOOK,
    "ADA.IPYNB": NOTEBOOK,
    "ada.ipynb.txt": NOTEBOOK,
    "ada.json": NOTEBOOK,
    "ada/x.ipynb": NOTEBOOK,
    "ada (1).ipynb": NOTEBOOK,
    "ada": NOTEBOOK,
    "ada.ZIP": packed(**{"hw__x.ipynb": NOTEBOOK}),
    "ada.zip": packed(**{"hw__x.ipynb": NOTEBOOK, "hw__.ipynb_checkpoints__x-checkpoint.ipynb": NOTEBOOK}),
}
REFUSED = {
    "ada.tar.gz": (b"x", "no notebook"),
    "ada.rar": (b"x", "no notebook"),
    "ada.7z": (b"x", "no notebook"),
    "ada.html": (b"<p>", r"no notebook \(.html\)"),
    "ada.pdf": (b"%PDF", "no notebook"),
    "ada.py": (b"x = 1", "no notebook"),
    "ada/sub/x.ipynb": (NOTEBOOK, "too deep"),
    "ada.txt": (b"I have it at home", "not a notebook"),
    "ada.json": (b"[1]", "not a notebook"),
    "ada.zip": (packed(**{f"{n}.ipynb": ZEROS for n in range(9)}), "it holds 9 notebooks"),
    "adda.ipynb": (NOTEBOOK, "did you mean ada"),
    "ada.ipynb": (b"x" * 20_000_001, "longer than 20 MB"),
    "bob_1_2_x.ipynb": (NOTEBOOK, "Canvas.*canvas_id"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_notebook_is_taken_by_any_name_that_browsers_give(classroom, tmp_path, name):
    (path := tmp_path / "in" / name).parent.mkdir(parents=True)
    path.write_bytes(TAKEN[name])
    assert collect_from(classroom, A, tmp_path / "in") == (["ada"], [])


def test_each_other_file_is_named_and_hidden_ones_are_not(classroom, tmp_path):
    for n, (name, (content, _)) in enumerate(REFUSED.items()):
        (path := tmp_path / str(n) / name).parent.mkdir(parents=True)
        path.write_bytes(content)
        for more in (".DS_Store", "__MACOSX/ada.ipynb", "bob/.ipynb_checkpoints/x.ipynb", "bob/world.json"):
            (other := tmp_path / str(n) / more).parent.mkdir(parents=True, exist_ok=True)
            other.write_bytes(NOTEBOOK)
    for n, (name, (_, said)) in enumerate(REFUSED.items()):
        new, refused = collect_from(classroom, A, tmp_path / str(n))
        assert new == [] and len(refused) == 1, (name, refused)
        assert re.search(said, refused[0]) and name.split("/")[-1].split("_")[0] in refused[0], refused


ROSTER = dict(
    u1=dict(name="Ada Lovelace", canvas_id="12345"),
    u2=dict(name="Grace Brewster Hopper"),
    u3=dict(name="김철수", moodle_id="77"),
    u4=dict(name="Kim Lee"),
    u5=dict(name="Kim Lee"),
)
NAMES = {
    "lovelaceada_12345_678901_x": "u1",
    "lovelaceada_99_678901_x": "u1",
    "hoppergracebrewster_LATE_5_6_a_b": "u2",
    "U1": "u1",
    "Ada Lovelace_12345_assignsubmission_file_": "u1",
    "김철수_12_assignsubmission_file": "u3",
    "Nobody_77_assignsubmission_file_": "u3",
    "1_words_u2_attempt_2026-01-02-03-04-05_x": "u2",
    "Kim Lee_9_assignsubmission_file_": "",
    "leekim_1_2_x": "",
    "adalovelace": "",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_learning_systems_are_matched_to_the_roster(name):
    student, why = student_named(name, ROSTER)
    assert student == NAMES[name] and bool(why) != bool(student)


@needs_wall
def test_of_a_duplicated_cell_the_last_copy_counts_and_a_changed_cell_is_named(classroom):
    nb = hand_in(classroom, "ada", **RIGHT)
    from treekit.classroom.collect import take_in

    [at] = [n for n, c in enumerate(nb["cells"]) if c["metadata"].get("nbgrader", {}).get("grade_id") == "tally"]
    nb["cells"].insert(at, nb["cells"][at] | dict(source="def tally(letters): return 0"))
    next(c for c in nb["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == "twice")["cell_type"] = (
        "markdown"
    )
    take_in(classroom, A, "ada", json.dumps(nb).encode("utf-16"), 2e9)
    [found] = grade_assignment(classroom, A, limits=QUICK, progress=False, sandbox=WALL)
    assert points(found) == {"tally-tests": 3, "twice-tests": 0, "text": None} and found["twice"] == ["tally"]
    page = write_feedback(classroom, A, "Counting")[0].read_text()
    assert "tally</td><td>the cell is there twice" in page and "twice</td><td>the cell is missing, or of" in page


HUGE = {
    "one long list": lambda nb: nb["cells"][2].update(source="x = [" + "1," * 4_000_000 + "]") or json.dumps(nb),
    "deep JSON": lambda nb: "[" * 9_000_000,
}


@needs_wall
@pytest.mark.long
@pytest.mark.parametrize("name", HUGE)
def test_a_notebook_that_exhausts_memory_costs_its_student_alone(classroom, name):
    from treekit.classroom.collect import take_in

    hand_in(classroom, "bob", **RIGHT)
    nb = read_notebook(classroom.release(A, "ada", f"{A}.ipynb"))
    take_in(classroom, A, "ada", HUGE[name](nb).encode(), 2e9)
    grades = {g["student"]: g for g in grade_assignment(classroom, A, limits=QUICK, progress=False, sandbox=WALL)}
    assert points(grades["bob"])["tally-tests"] == 3 and points(grades["ada"])["tally-tests"] == 0
    assert len(grades["ada"]["errors"]) >= 1 or any(
        c["why"] == "ended" for e in grades["ada"]["exercises"] for c in e["criteria"]
    )


@pytest.mark.long
def test_an_inbox_is_parsed_within_limits(classroom, tmp_path):
    "19 MB that would be a gigabyte of lists are one line, and the next student's notebook is taken."
    (box := tmp_path / "in").mkdir()
    (box / "ada.ipynb").write_bytes(b'{"cells": [' + b"[[]]," * 3_800_000 + b"0]}")
    (box / "bob.ipynb").write_bytes(NOTEBOOK)
    new, [refused] = collect_from(classroom, A, box)
    assert new == ["bob"] and re.match("ada.ipynb: .*(the limits|more memory)", refused), refused
