"A course's commands in their order, from release to export; and answer keys, whatever the order of sets."

import json, os, subprocess, sys

import pytest

from classes import WALL, needs_wall
from treekit.classroom.collect import collect_from
from treekit.classroom.course import CourseFolder, course_settings
from treekit.classroom.feedback import write_feedback
from treekit.classroom.formats import marks, read_notebook, solution_texts
from treekit.classroom.grading import grade_assignment
from treekit.classroom.gradebook import export_rows
from treekit.classroom.marking import update_sheet
from treekit.classroom.release import release_assignment

pytestmark = pytest.mark.slow
A = "1_retrieval"


def handed_in(released, solution, wrong):
    "A student's notebook: the solution, or the solution without its first cells."
    for c in released["cells"]:
        if (name := marks(c).get("grade_id")) not in solution:
            continue
        if c["cell_type"] != "code":
            c["source"] = "The passages with rare words are found first."
        elif wrong:
            wrong -= 1
        else:
            c["source"] = solution[name]
    return released


@needs_wall
def test_a_term(tmp_path):
    c, jobs = CourseFolder(tmp_path / "course"), os.cpu_count() or 1
    c.folder.mkdir()
    (c.folder / "roster.csv").write_text("id,name\ns0,Ada\ns1,Bob\ns2,Eve\n")
    assert len(release_assignment(c, A, jobs=jobs, progress=False)) == 3
    solution, box = solution_texts(read_notebook(c.source(A))), tmp_path / "inbox"
    box.mkdir()
    for n, s in enumerate(c.students()):
        released = read_notebook(c.release(A, s, f"{A}.ipynb"))
        (box / f"{s}.ipynb").write_text(json.dumps(handed_in(released, solution, n)))
    new, refused = collect_from(c, A, box)
    assert len(new) == 3 and refused == []
    grades = {g["student"]: g for g in grade_assignment(c, A, jobs=jobs, sandbox=WALL, progress=False)}
    lost = {
        s: sum(e["of"] - e["points"] for e in g["exercises"] if not e["by_hand"]) for s, g in sorted(grades.items())
    }
    assert lost["s0"] == 0 and lost["s1"] > 0 and lost["s2"] > 0
    rows = [f"{t['student']},{t['exercise']},{t['of']},\n" for t in update_sheet(c, A)]
    c.private("by_hand", f"{A}.csv").write_text("".join(["student,exercise,points,remark\n", *rows]))
    assert rows and all(t["points"] == t["of"] for t in update_sheet(c, A))
    assert len(write_feedback(c, A, course_settings(A).title)) == 3
    assert len(export_rows(c, A)) == 4


def test_the_order_of_sets_changes_no_corpus_and_no_answer_key(tmp_path):
    "Python orders sets by hashes of strings, which differ in each process: a key must not depend on them."
    code = (
        "import sys; from pathlib import Path; from treekit.classroom.course import CourseFolder; "
        "from treekit.classroom.release import made_for; c = CourseFolder(Path(sys.argv[1])); "
        "print(repr(made_for(c, sys.argv[2], 's0')[1:]))"
    )
    made = []
    for seed in ("1", "2"):  # each makes its own corpora
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "roster.csv").write_text("id\ns0\n")
        CourseFolder(folder).private("secret").write_text("the same secret")
        run = [sys.executable, "-c", code, folder, A]
        env = os.environ | dict(PYTHONHASHSEED=seed)
        made.append(subprocess.run(run, capture_output=True, text=True, check=True, env=env).stdout)
    assert made[0] == made[1] != ""
