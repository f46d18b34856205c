"A class of thirty: thirty worlds for each of the eight assignments, no two keys alike, all equally hard."

import json

import pytest

from classes import course as small_course
from treekit.classroom.course import CourseFolder
from treekit.classroom.release import made_for, share_answered, source_of_assignment
from treekit.config import UsageError

ASSIGNMENTS = sorted(p.stem for p in CourseFolder(".").sources.glob("[1-8]*.ipynb"))
STUDENTS = [f"student{n:02}" for n in range(1, 31)]


def handed(course, assignment, student):
    "A student's key, the questions in it, and how much the reference answers of what the student has, in percent."
    source = source_of_assignment(course, assignment)
    files, key, closed = made_for(course, assignment, student)
    world = json.loads(files["world.json"])
    share = share_answered(source, key["seed"], world, closed)
    asked = [q["question"] for q in world["questions"] + closed]
    assert len(set(asked)) == len(asked) == sum(map(sum, source.settings.world["take"].values()))
    return key, asked, share


def tally(course, assignment, students=STUDENTS):
    "What the class has, looked at: a line to read."
    made = [handed(course, assignment, s) for s in students]
    keys = [
        [(e["id"], json.dumps(e["calls"], sort_keys=True)) for e in key["exercises"] if not e["by_hand"]]
        for key, _, _ in made
    ]
    assert len({json.dumps(k) for k in keys}) == len(students), "two answer keys are equal"
    own = {e: len({dict(k)[e] for k in keys}) for e, _ in keys[0]}
    questions = [q for _, asked, _ in made for q in asked]
    shares = [found for _, _, found in made]
    assert max(shares) - min(shares) <= 2, (
        f"{assignment}: the reference answers {min(shares):.1f} to {max(shares):.1f} percent"
    )
    said = (
        f"{assignment}: {len(students)} keys, all different; different answers to each exercise: {own}; "
        f"{len(set(questions))} of {len(questions)} questions; the reference answers {min(shares):.1f} to {max(shares):.1f} percent"
    )
    print(said)
    return own, questions


@pytest.mark.slow
def test_a_class_of_thirty_on_a_small_assignment(tmp_path):
    "Thirty keys of the tests' own assignment, its difficulty held by the kit's search."
    from classes import SETTINGS

    held = SETTINGS.replace("given", 'reference = "bm25"\ngiven').replace("single = 8", "single = 20")
    own, _ = tally(small_course(tmp_path, settings=held), "9_counting")
    assert own["tally-tests"] == own["twice-tests"] == 30


def test_without_a_reference_nobody_says_how_hard_a_world_is(tmp_path):
    course = small_course(tmp_path)
    with pytest.raises(UsageError, match="has no reference"):
        share_answered(source_of_assignment(course, "9_counting"), 1, dict(questions=[], passages=[]), [])


@pytest.mark.slow
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_class_of_thirty(tmp_path, assignment):
    own, questions = tally(CourseFolder(tmp_path), assignment)
    assert len(set(questions)) > 0.97 * len(questions)  # worlds share next to nothing
