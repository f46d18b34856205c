"""A term: thirty students and the eight assignments, from release to export, with the time of each step.

COURSE_STUDENTS=N takes another number of students. CPU time is the measure on a machine that is busy otherwise."""

import json, os, subprocess, sys, time
from random import Random

import pytest

from classes import WALL, needs_wall
from treekit.classroom.collect import collect_from
from treekit.classroom.course import CourseFolder, course_settings
from treekit.classroom.feedback import write_feedback
from treekit.classroom.formats import marks, read_notebook, solution_texts
from treekit.classroom.grading import grade_assignment
from treekit.classroom.gradebook import export_csv
from treekit.classroom.marking import check_marks, open_texts, write_sheet
from treekit.classroom.mock_class import changed
from treekit.classroom.release import prepare_worlds, release_assignment

ASSIGNMENTS = CourseFolder(".").assignments()
STUDENTS = int(os.environ.get("COURSE_STUDENTS", 30))
RELEASE = 120  # seconds of CPU time for corpora and release of thirty students: a minute on two cores


def cpu_seconds():
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def handed_in(released, solution, wrong):
    "A student's notebook: the solution, or the solution with a mistake in each cell."
    for c in released["cells"]:
        if (name := marks(c).get("grade_id")) not in solution:
            continue
        if c["cell_type"] != "code":
            c["source"] = "The passages with rare words are found first."
        else:
            c["source"] = changed(solution[name], Random(f"{name} {wrong}")) if wrong else solution[name]
    return released


@needs_wall
@pytest.mark.slow
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_a_term(tmp_path, assignment):
    c, took, cpu, began, used = CourseFolder(tmp_path / "course"), {}, {}, time.monotonic(), cpu_seconds()
    c.folder.mkdir()
    rows = [f"s{n:02},Student {n}" for n in range(STUDENTS)]
    (c.folder / "roster.csv").write_text("\n".join(["id,name", *rows]))
    jobs = os.cpu_count() or 1

    def step(name):
        nonlocal began, used
        took[name], began = round(time.monotonic() - began, 1), time.monotonic()
        cpu[name], used = round(cpu_seconds() - used, 1), cpu_seconds()

    prepare_worlds(c, assignment, jobs=jobs, progress=False)
    step("corpora")
    assert len(release_assignment(c, assignment, jobs=jobs, progress=False)) == STUDENTS
    step("release")
    solution, box = solution_texts(read_notebook(c.source(assignment))), tmp_path / "inbox"
    box.mkdir()
    for n, s in enumerate(c.students()):
        released = read_notebook(c.release(assignment, s, f"{assignment}.ipynb"))
        (box / f"{s}.ipynb").write_text(json.dumps(handed_in(released, solution, n % 3 and n)))
    step("(students)")
    new, refused = collect_from(c, assignment, box)
    assert len(new) == STUDENTS and refused == []
    step("collect")
    grades = {g["student"]: g for g in grade_assignment(c, assignment, jobs=jobs, sandbox=WALL, progress=False)}
    step("grade")
    for n, s in enumerate(c.students()):
        lost = {e["id"]: e["points"] for e in grades[s]["exercises"] if not e["by_hand"] and e["points"] != e["of"]}
        assert n % 3 or not lost, (s, lost, grades[s]["errors"])  # a right solution has all points, on any corpus
    write_sheet(c, assignment)
    rows = [f"{t.student},{t.exercise},{t.of},\n" for t in open_texts(c, assignment)]
    c.private("by_hand", f"{assignment}.csv").write_text("".join(["student,exercise,points,remark\n", *rows]))
    assert all(t.points == t.of for t in check_marks(c, assignment))
    step("mark")
    assert len(write_feedback(c, assignment, course_settings(assignment).title)) == STUDENTS
    step("feedback")
    assert export_csv(c, assignment).count("\n") == STUDENTS + 1
    step("export")
    print(f"\n{assignment}, {STUDENTS} students, {jobs} processes, seconds: {took}, CPU time: {cpu}")
    assert cpu["corpora"] + cpu["release"] <= RELEASE * max(1, STUDENTS / 30)


@pytest.mark.slow
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_order_of_sets_changes_no_corpus_and_no_answer_key(tmp_path, assignment):
    "Python orders sets by hashes of strings, which differ in each process: a key must not depend on them."
    code = (
        "import sys; from pathlib import Path; from treekit.classroom.course import CourseFolder; "
        "from treekit.classroom.release import made_for; c = CourseFolder(Path(sys.argv[1])); "
        f"print([repr(made_for(c, {assignment!r}, s)[1:]) for s in ('s0', 's1', 's2')])"
    )
    made = []
    for seed in ("1", "2"):  # each makes its own corpora
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "roster.csv").write_text("id\ns0\ns1\ns2\n")
        CourseFolder(folder).private("secret").write_text("the same secret")
        made.append(
            subprocess.run(
                [sys.executable, "-c", code, folder],
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | dict(PYTHONHASHSEED=seed),
            ).stdout
        )
    assert made[0] == made[1]
