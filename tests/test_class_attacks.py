"Attacks in a whole class: no cheat earns a point, all others keep theirs, and grading ends with a grade for everybody."

import json, shutil, time
from pathlib import Path

import pytest

from classes import RIGHT, WALL, course, hand_in, needs_wall, points
from test_sandbox_attacks import ATTACKS, submission
from treekit.classroom.collect import take_in
from treekit.classroom.feedback import write_feedback
from treekit.classroom.grading import grade_assignment
from treekit.classroom.gradebook import export_rows, standings
from treekit.classroom.release import release_assignment
from treekit.classroom.sandbox import Limits

A = "9_counting"
QUICK = Limits(cell=3, call=1, cpu=20, memory=512, disk=8, submission=30)
MORE = {
    name: (stopped_by, "\n".join(lines))
    for name, (stopped_by, lines) in json.loads(Path(__file__).with_name("class_attacks.json").read_text()).items()
}
EVERY = ATTACKS | MORE
FAST = ("System V shared memory", "an import of the kit's grader", "the kit's source read")


def graded_class(tmp_path, attacks, honest, jobs=2):
    "A class with one attack per cheat and some honest students, graded: the course, the cheats' names, the grades, seconds."
    names = [f"s{n:03}" for n in range(len(attacks) + honest)]
    cheats = dict(zip(names[:: max(1, len(names) // len(attacks))], attacks))  # spread over the class
    c = course(tmp_path, ("eve", *names))
    release_assignment(c, A, ["eve"], progress=False)
    for s in names:  # one release is enough: what is attacked is grading
        shutil.copytree(c.release(A, "eve"), c.release(A, s))
        c.save("keys", A, s, c.record("keys", A, "eve") | dict(student=s))
        if s in cheats:
            take_in(c, A, s, json.dumps(submission(c, EVERY[cheats[s]][1])).encode(), 1e9)
        else:
            hand_in(c, s, **RIGHT)
    keys = {p: p.read_bytes() for p in c.private("keys").rglob("*.json")}
    began = time.monotonic()
    made = grade_assignment(c, A, names, jobs=jobs, limits=QUICK, progress=False, sandbox=WALL)
    took = time.monotonic() - began
    assert (
        keys == {p: p.read_bytes() for p in c.private("keys").rglob("*.json")} and not Path(c.folder, "pwned").exists()
    )
    return c, cheats, {g["student"]: g for g in made}, took


def look_at(c, cheats, grades):
    "No points for a cheat, all points for everybody else, and nobody is missing in any step."
    names = [s for s in c.students() if s != "eve"]
    assert set(grades) == set(names)
    earned = {cheats[s]: points(grades[s]) for s in cheats if sum(p or 0 for p in points(grades[s]).values())}
    assert earned == {}
    assert {
        s for s in names if s not in cheats and points(grades[s]) != {"tally-tests": 3, "twice-tests": 2, "text": None}
    } == set()
    assert len(write_feedback(c, A, "Counting")) == len(names) and len(export_rows(c, A)) == len(names) + 2
    assert {r["state"] for r in standings(c, A) if r["student"] != "eve"} == {"graded"}


@needs_wall
@pytest.mark.long
def test_a_small_class_with_cheats(tmp_path):
    c, cheats, grades, _ = graded_class(tmp_path, FAST, 1)
    look_at(c, cheats, grades)
    by_name = {attack: grades[s] for s, attack in cheats.items()}
    assert [b["module"] for b in by_name["an import of the kit's grader"]["banned"]] == [
        "treekit.classroom.answer_keys.exercise_score"
    ]


@needs_wall
@pytest.mark.slow
def test_a_class_with_every_attack(tmp_path):
    assert len(EVERY) >= 60
    c, cheats, grades, took = graded_class(tmp_path, list(EVERY), 3)
    look_at(c, cheats, grades)
    slowest = max(grades.values(), key=lambda g: g["seconds"])
    print(
        f"{len(grades)} submissions, {len(cheats)} attacks, in {took:.0f} s; the slowest one {slowest['seconds']:.0f} s"
    )
    assert slowest["seconds"] < QUICK.submission + 15
