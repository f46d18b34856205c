"""The export for nbgrader: the same points in both graders, by nbgrader's own commands where it is installed.

NBGRADER=DIR names the environment with nbgrader; default: the one on the PATH."""

import csv, io, json, os, shutil, subprocess, sys
from pathlib import Path

import pytest

from classes import RIGHT, WALL, course, needs_wall
from test_course_material import WRONG, code_pattern
from treekit.classroom.course import CourseFolder, sources_folder
from treekit.classroom.formats import marks, read_notebook, solution_texts
from treekit.classroom.grading import graded
from treekit.classroom.nbgrader_export import CLASS, export_nbgrader, hidden_test_points
from treekit.classroom.release import made_for
from treekit.classroom.sandbox import Limits

A = "9_counting"
LIMITS = Limits(cell=60, call=20, submission=600)


def test_the_value_of_a_grade_cell_is_the_number_of_points(tmp_path):
    "Prints nothing, even if the submission does; an error is a wrong answer and not an error of the cell."
    calls = json.dumps(
        [
            dict(fn="f", args=[2], value=4, criterion="a", weight=1, tolerance=0),
            dict(fn="f", args=["x"], value="xx", criterion="b", weight=1, tolerance=0),
        ]
    )

    def f(x):
        print("out")
        print("err", file=sys.stderr)
        return 2 * x if isinstance(x, int) else 1 / 0

    assert hidden_test_points(dict(f=lambda x: 2 * x), 3.0, calls) == 3.0 and hidden_test_points({}, 3.0, calls) == 0.0
    assert hidden_test_points(dict(f=f), 3.0, calls) == 1.5


def nbgrader(folder, *words):
    "Run one of nbgrader's commands in its course's folder."
    program = shutil.which(
        "nbgrader",
        path=os.pathsep.join(
            [*([f"{os.environ['NBGRADER']}/bin"] if "NBGRADER" in os.environ else []), os.environ["PATH"]]
        ),
    )
    if not program:
        pytest.skip("nbgrader isn't installed: pip install nbgrader in an environment, and NBGRADER=DIR")
    kernels = folder / "jupyter"
    spec = kernels / "kernels" / "python3"
    spec.mkdir(parents=True, exist_ok=True)  # its kernel is the kit's Python
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps(dict(argv=argv, display_name="Python 3", language="python")))
    own = dict(
        JUPYTER_PATH=str(kernels),
        JUPYTER_DATA_DIR=str(kernels),
        JUPYTER_CONFIG_DIR=str(kernels),
        JUPYTER_RUNTIME_DIR=str(kernels),
        IPYTHONDIR=str(kernels),
        PYTHONPATH="",
        HOME=str(folder),
        PATH=os.pathsep.join([str(Path(program).parent), os.environ["PATH"]]),
    )  # nbgrader runs alembic
    done = subprocess.run([program, *words], cwd=folder, env=os.environ | own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def their_points(folder, assignment, submissions):
    "Points by nbgrader: student -> {exercise: points}; feedback is generated, too."
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'c'\nc.ExecutePreprocessor.timeout = 300\n"
        "c.ExportApp.plugin_class = 'nbgrader.plugins.export.CsvExportPlugin'\n"
    )
    nbgrader(folder, "generate_assignment", assignment)
    released = read_notebook(folder / "release" / assignment / f"{assignment}.ipynb")
    assert "hidden_test_points" not in json.dumps(released) and "SOLUTION" not in json.dumps(released)
    for student, bodies in submissions.items():
        target = folder / "submitted" / student / assignment
        shutil.copytree(folder / "release" / assignment, target)
        nb = json.loads((target / f"{assignment}.ipynb").read_text())
        for k in nb["cells"]:
            if (name := marks(k).get("grade_id")) in bodies:
                k["source"] = bodies[name]
        (target / f"{assignment}.ipynb").write_text(json.dumps(nb))
    nbgrader(folder, "autograde", assignment)
    nbgrader(folder, "generate_feedback", assignment)
    found = {}
    for student in submissions:
        assert (folder / "feedback" / student / assignment / f"{assignment}.html").stat().st_size > 1000
        nb = json.loads((folder / "autograded" / student / assignment / f"{assignment}.ipynb").read_text())
        for k in nb["cells"]:
            m = marks(k)
            if not (m.get("grade") and k["cell_type"] == "code"):
                continue
            values = [o["data"]["text/plain"] for o in k["outputs"] if o["output_type"] == "execute_result"]
            other = [o for o in k["outputs"] if o["output_type"] in ("error", "stream")]
            assert len(values) == 1 and not other, (m["grade_id"], k["outputs"])
            found.setdefault(student, {})[m["grade_id"]] = float("".join(values[0]))
    nbgrader(folder, "export")
    total = {
        row["student_id"]: float(row["score"])
        for row in csv.DictReader(io.StringIO((folder / "grades.csv").read_text()))
    }
    for student, exercises in found.items():
        assert total[student] == pytest.approx(sum(exercises.values())), "nbgrader's own total"
    return found


def our_points(c, assignment, submissions):
    "Points of the same submissions by the kit, with the answer key of the export."
    files, key = made_for(c, assignment, CLASS)
    handed, found = json.loads(files[f"{assignment}.ipynb"]), {}
    accompanying = {name: data.decode() for name, data in files.items() if name.endswith(".json")}
    for student, bodies in submissions.items():
        nb = json.loads(files[f"{assignment}.ipynb"])
        for k in nb["cells"]:
            if (name := marks(k).get("grade_id")) in bodies:
                k["source"] = bodies[name]
        grade = graded(json.dumps(nb).encode(), handed, key, accompanying, WALL, LIMITS)
        found[student] = {e["id"]: e["points"] for e in grade["exercises"] if not e["by_hand"]}
    return found


def mistaken(bodies, assignment):
    "The solutions with a typical mistake in the first exercise, of which the visible tests have a hint."
    [(_, right, wrong, _), *_] = WRONG[assignment]
    changed = {name: code_pattern(right).sub(lambda _: wrong, text) for name, text in bodies.items()}
    assert sum(changed[name] != text for name, text in bodies.items()) == 1
    return changed


@needs_wall
@pytest.mark.slow
@pytest.mark.parametrize("assignment", [A, "4_question_trees"])
def test_nbgrader_gives_the_same_points(tmp_path, assignment):
    "The perfect student, one with a mistake, and one who hands in the release."
    if assignment == A:
        c = course(tmp_path / "course")
        right, wrong = RIGHT, RIGHT | dict(tally="def tally(letters):\n    return {c: 1 for c in letters}")
    else:
        c = CourseFolder(tmp_path / "course")
        right = solution_texts(read_notebook(sources_folder() / f"{assignment}.ipynb"), code_only=True)
        wrong = mistaken(right, assignment)
    folder = tmp_path / "nbgrader"
    folder.mkdir()
    submissions = dict(perfect=right, wrong=wrong, empty={})
    assert right != wrong
    export_nbgrader(c, assignment, folder)
    theirs, ours = their_points(folder, assignment, submissions), our_points(c, assignment, submissions)
    print(assignment, theirs)
    assert theirs == ours
    whole = sum(ours["perfect"].values())
    assert sum(ours["empty"].values()) == 0 < sum(ours["wrong"].values()) < whole
