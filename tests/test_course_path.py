"The teacher's path: a sample course from init to export, due dates, manual grades, and the columns of grade books."

import csv, io, json, subprocess, sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from classes import WALL, needs_wall
from treekit.classroom.course import CourseFolder
from treekit.classroom.course_check import solved
from treekit.classroom.course_template import create_course
from treekit.classroom.deadlines import deadline_settings
from treekit.classroom.formats import read_notebook
from treekit.classroom.gradebook import export_rows
from treekit.classroom.sandbox import SANDBOXES
from treekit.classroom.marking import update_sheet
from treekit.cli.course import course_command
from treekit.cli.handout import init_command
from treekit.config import UsageError

A = "1_word_counts"
TEXT = (
    "The most frequent word of my corpus is the. It is in all passages, so it doesn't help a search: each passage gets the same score, "
    "and the order of the others is not changed by it."
)
DUE = "[due]\n1_word_counts = 2026-12-04T23:59:00+01:00\n[late]\ngrace_minutes = 15\npercent_per_day = 10\ndays = 3\n"


def grade_record(student, attempt, read=None):
    rows = [
        dict(id="counts-tests", title="Count words", by_hand=False, points=3.0, of=4.0, criteria=[]),
        dict(id="frequent", title="Your corpus", by_hand=True, points=read, of=2.0, criteria=[], text=TEXT),
    ]
    return dict(
        student=student,
        assignment=A,
        attempt=attempt,
        exercises=rows,
        errors={},
        missing=[],
        banned=[],
        twice=[],
        wall="namespaces",
        seconds=1.0,
    )


@pytest.fixture
def graded(tmp_path):
    "A course in which one submission was in time and one 26 hours late; nothing was run."
    c = create_course(tmp_path / "course")
    (c.folder / "settings.toml").write_text(DUE)
    for s, attempt in (("student01", "20261204T220000Z-000-abcdef"), ("student02", "20261206T005900Z-000-abcdef")):
        c.save("grades", A, s, grade_record(s, attempt))
    return c


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


def fill_in(course, points):
    update_sheet(course, A)
    rows = [f"{s},frequent,{points},right\n" for s in course.students()]
    course.private("by_hand", f"{A}.csv").write_text("".join(["student,exercise,points,remark\n", *rows]))


def test_late_submissions_lose_points_and_an_extension_gives_them_back(graded):
    fill_in(graded, "2")
    header, first, second = export_rows(graded, A)
    assert header[-2:] == ["late hours", "deducted percent"]
    assert first[2:5] == [5.0, 6.0, 0] and first[-2:] == [0, 0]
    assert second[2:5] == [4.0, 6.0, 0] and second[-2:] == [26.0, 20.0]  # the second day has begun
    from treekit.classroom.feedback import write_feedback

    pages = write_feedback(graded, A, "Word counts")
    assert (
        "26 hours after the due date: 20 percent" in pages[1].read_text()
        and "after the due date" not in pages[0].read_text()
    )
    with open(graded.folder / "settings.toml", "a") as f:
        f.write("[extensions.student02]\n1_word_counts = 2026-12-08T23:59:00+01:00\n")
    assert export_rows(graded, A)[2][2] == 5.0


@pytest.mark.parametrize(
    "text, said",
    [
        ("[due]\n1_word_counts = 2026-12-04T23:59:00\n", "isn't a time with a zone"),
        ('[due]\n1_word_counts = "Friday"\n', "isn't a time"),
        ("[late]\npercent_per_day = nan\n", "isn't a number"),
        ("[late]\nhours = 3\n", "no setting of"),
        ("[due\n", "settings.toml"),
    ],
)
def test_wrong_settings_are_named(graded, text, said):
    (graded.folder / "settings.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        deadline_settings(graded)


def test_manual_grades_are_validated(graded):
    c, sheet = graded, graded.private("by_hand", f"{A}.csv")
    assert (
        len(update_sheet(c, A)) == 2
        and sheet.read_text().count(",frequent,") == 2
        and sheet.stat().st_mode & 0o077 == 0
    )
    assert TEXT in sheet.read_text()
    sheet.write_text(
        'student,exercise,points,remark\nstudent01,frequent,1.5,"=which, word?"\nstudent02,frequent,,look again\n'
    )
    for _ in range(2):  # what was entered stays, also a remark without points
        assert [(t["points"], t["remark"]) for t in update_sheet(c, A)] == [
            (1.5, "=which, word?"),
            (None, "look again"),
        ]
    with_semicolons = 'student;exercise;of;text;points;remark\nstudent01;frequent;2;"a; b\nc";1.5;그렇다\n'
    sheet.write_bytes(with_semicolons.encode("cp949"))  # as Excel saves it in Korea
    assert update_sheet(c, A)[0]["points"] == 1.5 and "그렇다" in sheet.read_text(encoding="utf-8")
    for wrong, said in (
        ("student02,frequent,2.5,", "2.5 points, but the exercise has 2"),
        ("student09,frequent,1,", "student09, frequent.*roster"),
        ("student02,frequnt,1,", "no exercise to be graded manually"),
        ("student02,frequent,two,", "'two' isn't a number"),
        ("student02,frequent,1,\nstudent02,frequent,2,", "there twice"),
    ):
        sheet.write_text(f"student,exercise,points,remark\n{wrong}\n")
        with pytest.raises(UsageError, match=said):
            update_sheet(c, A)
    sheet.write_text("student,exercise,points,remark\nstudent01,frequent,,\n")
    c.save("grades", A, "student01", grade_record("student01", "20261204T220000Z-000-abcdef", 0))  # nothing was written
    assert [t["points"] for t in update_sheet(c, A)] == [0, None]
    c.save("grades", A, "student02", grade_record("student02", "20261206T005900Z-000-abcdef", 0))
    sheet.unlink()
    assert update_sheet(c, A) and "student02" not in sheet.read_text(), "a later attempt may have a text"


def init(folder):
    return CliRunner().invoke(init_command, [str(folder), "--course", "sample"], catch_exceptions=False).output


def run(*words, at=".", code=0):
    done = CliRunner().invoke(course_command, ["--course", str(at), *map(str, words)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


@needs_wall
@pytest.mark.long
def test_the_sample_course_from_init_to_export(tmp_path):
    folder = tmp_path / "course"
    assert "treekit course check" in init(folder) and folder.stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="isn't empty"):
        init(folder)
    checks = dict(
        line.partition(":")[0].split(maxsplit=1)[::-1]
        for line in run("check", "--sandbox", WALL, at=folder).splitlines()
    )
    assert {*checks.values()} == {"ok"} and {A, "2_exact_match", "sandbox", "roster.csv"} <= set(checks)
    c = CourseFolder(folder)
    assert "2 folders" in run("release", A, at=folder)
    assert "1 folder in" in run("release", A, "--student", "student01", at=folder)
    nb = solved(read_notebook(c.source(A)))
    for cell in nb["cells"]:
        if cell["cell_type"] == "markdown" and "nbgrader" in cell["metadata"]:
            cell["source"] = TEXT
    (tmp_path / "inbox").mkdir()
    for s in c.students():
        (tmp_path / "inbox" / f"{s}.ipynb").write_text(json.dumps(nb))
    assert "2 new" in run("collect", A, tmp_path / "inbox", "--received", "2026-01-04T23:00+01:00", at=folder)
    assert c.attempts(A, "student01")[0].name.startswith("20260104T220000Z")
    made = run("grade", A, "--sandbox", WALL, "--seconds", 1, at=folder)
    assert "2 graded" in made and any(f"sandbox: {name}" in made for name in SANDBOXES)
    command = [sys.executable, "-m", "treekit", "course", "--course", str(folder), "mark", A]
    at_once = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(12)]
    assert [p.wait() for p in at_once] == [0] * 12 and len(
        rows_of(c.private("by_hand", f"{A}.csv").read_text())
    ) == 3, "each text once"
    assert "2 to be read" in run("mark", A, at=folder)
    fill_in(c, "2")
    assert "0 to be read" in run("mark", A, at=folder)
    assert (
        "2 pages" in run("feedback", A, at=folder)
        and "6 of 6" in Path(folder, "feedback", A, "student01.html").read_text()
    )
    run("export", A, "--out", tmp_path / "grades.csv", at=folder)
    assert (
        rows_of((tmp_path / "grades.csv").read_text())[1][2] == "6.0"
        and (tmp_path / "grades.csv").stat().st_mode & 0o077 == 0
    )
    assert run("status", A, at=folder).count("graded") == 2
