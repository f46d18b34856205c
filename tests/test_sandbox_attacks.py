"""Attacks on the grader. Each is a cell of a student who solves nothing; none may earn a point, learn a key or touch others' files.

Beside each stands what stops it: `compare` (values are compared outside), `filter` (system calls), `root` (the file system behind
bubblewrap and namespaces; a plain child remains open to these, and the report says so), `limits`, `cells` (what was locked is put back).
"""

import json, os, subprocess
from pathlib import Path

import pytest

from classes import RIGHT, WALL, cell, course, needs_wall, points
from treekit.classroom.grading import graded
from treekit.classroom.formats import read_notebook
from treekit.classroom.sandbox import Limits, SANDBOXES, choose_sandbox, is_available
from treekit.classroom.release import release_assignment
from treekit.config import UsageError

A = "9_counting"
QUICK = Limits(cell=3, call=1, cpu=20, memory=512, disk=8)
WALLED = [w for w in ("bubblewrap", "namespaces", "plain") if is_available(w)]

STUBS = "def tally(letters): raise ValueError\ndef twice(number): raise ValueError\n"
ATTACKS = {  # name -> (what stops it, cell); COURSE, GRADER, PORT and PWNED stand for a folder, a process, a port and a file
    name: (stopped_by, "\n".join(lines))
    for name, (stopped_by, lines) in json.loads(Path(__file__).with_name("attacks.json").read_text()).items()
}


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    c = course(tmp_path_factory.mktemp("course"), ("eve",))
    release_assignment(c, A, progress=False)
    return c


def submission(c, attack, port=9):
    "Eve's notebook with an attack in it."
    said = (
        attack.replace("PWNED", str(Path(c.folder, "pwned")))
        .replace("COURSE", str(c.folder))
        .replace("GRADER", str(os.getpid()))
        .replace("PORT", str(port))
    )
    nb = read_notebook(c.release(A, "eve", f"{A}.ipynb"))
    for k in nb["cells"]:
        mark = k["metadata"].get("nbgrader", {})
        if mark.get("grade_id") in ("tally", "twice"):
            k["source"] = "pass"
        if attack == "#FAKE" and k["cell_type"] == "code":
            k["outputs"] = [dict(output_type="stream", name="stdout", text="All tests passed. Points: 3/3")]
        if attack == "#POINTS" and mark:
            mark.update(points=100, grade=True, solution=True)
        if attack == "#SETUP" and mark.get("grade_id") == "setup":
            k["source"] = "import treekit.classroom.worker as w\nw.run_call = lambda *a: dict(value=0)"
        if attack == "#TESTS" and mark.get("grade"):
            k["source"] = "pass"
    if attack == "#TWICE":
        nb["cells"] += [cell("def tally(x): return 1", grade_id="tally", solution=True)]
    if not attack.startswith("#"):
        nb["cells"].insert(0, cell(STUBS + said))
    return nb


def grade(c, nb, wall, limits=QUICK):
    key, folder = c.record("keys", A, "eve"), c.release(A, "eve")
    files = {"world.json": (folder / "world.json").read_text()}
    return graded(json.dumps(nb).encode(), read_notebook(folder / f"{A}.ipynb"), key, files, wall, limits)


REMAINS = {"read the key from the disk", "read the solution from the disk"}  # behind a plain wall


@pytest.mark.long
@pytest.mark.parametrize("wall", WALLED)
@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_earns_a_point(classroom, name, wall):
    "Behind a plain wall, what `root` stops remains; those attacks are looked at below."
    stopped_by, attack = ATTACKS[name]
    if wall == "plain" and stopped_by == "root":
        pytest.skip("remains open without a root of its own: see `SANDBOXES`")
    before = {p: p.read_bytes() for p in Path(classroom.folder).rglob("*") if p.is_file()}
    worker = Path(grade.__code__.co_filename).parents[1] / "treekit/classroom/worker.py"
    kit = worker.read_bytes()
    found = grade(classroom, submission(classroom, attack), wall)
    assert sum(p or 0 for p in points(found).values()) == 0
    assert {e["id"]: e["of"] for e in found["exercises"]} == {"tally-tests": 3, "twice-tests": 2, "text": 1}
    assert (
        before == {p: p.read_bytes() for p in Path(classroom.folder).rglob("*") if p.is_file()}
        and worker.read_bytes() == kit
    )
    assert not Path(classroom.folder, "pwned").exists()


SAID = {  # what an attack that reports its success through the value must not have reached
    "the network": {"reached": []},
    "run a program": {"out": ""},
    "take the limits off": {"ok": 0},
    "mount and chroot": {"got": [False] * 3},
    "look into the grader": {"traced": -1, "read": 0},
}


@pytest.mark.parametrize("wall", WALLED)
@pytest.mark.parametrize("name", SAID)
def test_what_an_attack_could_reach(classroom, name, wall):
    "The value that comes back says how far the attack got; a listener on this machine would have been reached."
    import socket

    from treekit.classroom.grading import WorkerConnection

    with socket.create_server(("127.0.0.1", 0)) as server:
        nb = submission(classroom, ATTACKS[name][1], server.getsockname()[1])
        talk = WorkerConnection(wall, QUICK)
        talk.send(dict(cells=[dict(id="a", source="".join(nb["cells"][0]["source"]))], files={}, seconds=5), 30)
        reply = json.loads(talk.send(dict(number=0, fn="tally", args=["x"], seconds=2), 10))
        talk.close()
    if name == "look into the grader" and wall == "plain":
        reply["value"]["dict"][0][1] = 0  # /proc/<pid>/mem: the kernel's rule for one user's processes
    assert dict(reply["value"]["dict"]) == SAID[name]


@pytest.mark.parametrize("wall", [w for w in WALLED if w != "plain"])
def test_behind_a_root_of_its_own_nothing_is_to_be_seen(classroom, wall):
    from treekit.classroom.grading import WorkerConnection

    look = (
        "import os, glob\n"
        "def look(paths): return [p for p in paths if os.path.exists(p)]\n"
        "def others(_): return [p for p in glob.glob('/proc/[0-9]*') if int(p[6:]) not in (1, os.getpid())]\n"
        "def write(paths):\n    done = []\n    for p in paths:\n        try: open(p + '/x', 'w'); done.append(p)\n"
        "        except OSError: pass\n    return done\n"
    )
    talk = WorkerConnection(wall, QUICK)
    talk.send(dict(cells=[dict(id="a", source=look)], files={}, seconds=5), 30)

    def ask(f, arg):
        return json.loads(talk.send(dict(number=0, fn=f, args=[arg], seconds=2), 10))["value"]

    kit = Path(__file__).parents[1]
    hidden = [
        str(classroom.folder),
        str(classroom.private("secret")),
        str(kit / "nbs"),
        str(kit / "tests"),
        "/var",
        "/srv",
        "/etc/shadow",
        "/etc/passwd",
    ]
    assert ask("look", hidden) == []
    assert ask("write", ["/", "/usr", "/tmp", "/etc", str(kit / "treekit"), str(kit / "data")]) == []
    assert ask("write", ["."]) == ["."]
    assert len(ask("others", 0)) <= 2  # at most those that hold the wall itself
    talk.close()


@pytest.mark.parametrize("name", sorted(REMAINS))
def test_what_remains_without_a_root_of_its_own(classroom, name):
    "These attacks are alive: behind a plain wall they earn points, and that is why the report names the wall."
    if not is_available("plain"):
        pytest.skip("no filter of system calls here, or the user is root, who never grades behind a plain wall")
    assert sum(p or 0 for p in points(grade(classroom, submission(classroom, ATTACKS[name][1]), "plain")).values()) > 0


def test_a_plain_wall_says_what_it_leaves_open():
    assert "answer keys" in SANDBOXES["plain"] and "the network, too" in SANDBOXES["plain"]


@needs_wall
@pytest.mark.long
def test_an_honest_neighbour_is_untouched(classroom):
    "Two submissions side by side: one tries to hang everything, the other has its points. Its text is untouched."
    nb = submission(classroom, ATTACKS["swallow the alarm"][1])
    honest = read_notebook(classroom.release(A, "eve", f"{A}.ipynb"))
    for k in honest["cells"]:
        if (name := k["metadata"].get("nbgrader", {}).get("grade_id")) in RIGHT:
            k["source"] = RIGHT[name]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        bad, good = pool.map(lambda n: grade(classroom, n, WALL), (nb, honest))
    assert points(good) == {"tally-tests": 3, "twice-tests": 2, "text": 0} and points(bad)["tally-tests"] == 0


@needs_wall
def test_nothing_stays_behind(classroom):
    "No process of a submission outlives its grading."
    grade(
        classroom,
        submission(classroom, "import threading, time\nthreading.Thread(target=time.sleep, args=(999,)).start()"),
        WALL,
    )
    listed = (
        subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True).stdout
        if Path("/bin/ps").exists()
        else ""
    )
    mine = [
        row
        for row in listed.splitlines()
        if row.split()[0] == str(os.getpid()) and "classroom.worker" in row and "defunct" not in row
    ]
    assert mine == []


def test_an_unavailable_sandbox_is_an_error():
    with pytest.raises(UsageError, match="no sandbox named"):
        choose_sandbox("castle")
    if not is_available("bubblewrap"):
        with pytest.raises(UsageError, match="isn.t available"):
            choose_sandbox("bubblewrap")
