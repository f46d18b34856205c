"""Attacks on the grader. Each is a cell of a student who solves nothing; none may earn a point, learn a key or touch what isn't the student's.

Which wall stops what is said beside each: `compare` (values are compared outside), `filter` (system calls), `root` (the file system behind bubblewrap and
namespaces; a plain child remains open to these, and the report says so), `limits`, `cells` (what was locked is put back), `intake` (tests/test_classroom.py).
"""
import json, os, subprocess
from pathlib import Path

import pytest

from classes import RIGHT, cell, course, points
from treekit.classroom.collect import take_in
from treekit.classroom.grading import graded
from treekit.classroom.formats import read_notebook
from treekit.classroom.jail import Limits, WALLS, best_wall, holds
from treekit.classroom.release import release_assignment
from treekit.config import UsageError

A = "9_counting"
QUICK = Limits(cell=3, call=1, cpu=20, memory=512, disk=8)
WALLED = [w for w in ("bubblewrap", "namespaces", "plain") if holds(w)]

STUBS = "def tally(letters): raise ValueError\ndef twice(number): raise ValueError\n"
LIE = "import json, os\ndef tally(letters): {}\ntwice = tally\n"
ATTACKS = {  # name -> (what stops it, cell)
    "patch the comparison": ("compare", "import treekit.classroom.keys as k\nk.same = lambda *a: True\nk.scored = lambda p, c, r: dict(points=p, of=p, criteria=[])"),
    "patch the worker": ("compare", "import treekit.classroom.worker as w\nw.run_call = lambda *a: dict(value=True, points=99)\nw.plain = lambda v, depth=0: True"),
    "patch json": ("compare", "import json\njson.dumps = lambda *a, **k: '{\"number\": 0, \"points\": 99, \"value\": true}'"),
    "patch builtins": ("compare", "import builtins\nbuiltins.len = lambda x: 0\nbuiltins.abs = lambda x: 0\nbuiltins.all = lambda x: True\nbuiltins.isinstance = lambda *a: True"),
    "a value that equals all": ("compare", "class Yes(dict):\n    def __eq__(self, o): return True\n    def __hash__(self): return 0\n    def items(self): return [('x', 1)]\ntally = twice = lambda x: Yes()"),
    "a number that equals all": ("compare", "class Yes(float):\n    def __eq__(self, o): return True\n    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__\ntally = twice = lambda x: Yes(1)"),
    "not a number": ("compare", "tally = twice = lambda x: float('nan')"),
    "infinity": ("compare", "tally = twice = lambda x: float('inf')"),
    "settrace": ("compare", "import sys\nkeep = {}\ndef spy(frame, event, arg):\n    for n, v in frame.f_locals.items():\n        if n in ('expected', 'key', 'value'): keep[n] = v\n    return spy\nsys.settrace(spy)\ntally = twice = lambda x: keep.get('expected', keep.get('value'))"),
    "setprofile": ("compare", "import sys\nkeep = []\nsys.setprofile(lambda f, e, a: keep.append(a))\ntally = twice = lambda x: keep[-1]"),
    "walk the frames": ("compare", "import sys\ndef tally(x):\n    f = sys._getframe()\n    while f:\n        for v in f.f_locals.values():\n            if isinstance(v, dict) and 'expected' in v: return v['expected']\n            if isinstance(v, dict) and 'value' in v: return v['value']\n        f = f.f_back\ntwice = tally"),
    "search the garbage collector": ("compare", "import gc\ndef tally(x):\n    for o in gc.get_objects():\n        if isinstance(o, dict) and 'criterion' in o and 'value' in o: return o['value']\ntwice = tally"),
    "atexit": ("compare", "import atexit, os\natexit.register(lambda: os.write(1, b'{\"number\": 0, \"value\": true}\\n'))\ndef tally(x): raise SystemExit(0)\ntwice = tally"),
    "forge replies": ("compare", "import os\nfor fd in range(3, 20):\n    for n in range(9):\n        try: os.write(fd, b'{\"number\": %d, \"value\": {\"dict\": []}, \"points\": 9, \"criteria\": []}\\n' % n)\n        except OSError: pass\ntally = twice = lambda x: None"),
    "forge a grade": ("compare", "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'{\"cells\": {}, \"exercises\": [{\"id\": \"tally-tests\", \"points\": 3, \"of\": 3}]}\\n')\n    except OSError: pass"),
    "a reply nested too deeply": ("compare", "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'[' * 200000 + b'\\n')\n    except OSError: pass"),
    "a reply without an end": ("limits", "import os\ndef tally(x):\n    for fd in range(3, 20):\n        try:\n            while True: os.write(fd, b'x' * 65536)\n        except OSError: pass\ntwice = tally"),
    "pickle": ("compare", "import os\nclass Bomb:\n    def __reduce__(self): return (os.system, ('touch /tmp/treekit-pwned',))\ntally = twice = lambda x: Bomb()"),
    "a huge integer": ("compare", "tally = twice = lambda x: 10 ** 100000"),
    "the network": ("filter", "import socket\nreached = []\ntry:\n    socket.create_connection(('127.0.0.1', PORT), 2).close(); reached.append('tcp')\nexcept OSError: pass\ntry:\n    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', 9)); reached.append('udp')\nexcept OSError: pass\ntally = lambda x: {'reached': reached}"),
    "a local socket": ("filter", "import socket\ntry: socket.socketpair(); ok = 1\nexcept OSError: ok = 0\ntally = lambda x: {'ok': ok}"),
    "run a program": ("filter", "import subprocess\ntry: out = subprocess.run(['id'], capture_output=True).stdout.decode()\nexcept OSError as e: out = ''\ntally = lambda x: {'out': out}"),
    "fork bomb": ("filter", "import os\ndef tally(x):\n    while True: os.fork()\ntwice = tally"),
    "multiprocessing": ("filter", "import multiprocessing as m\ntry: m.Process(target=print).start(); ok = 1\nexcept OSError: ok = 0"),
    "thread bomb": ("limits", "import threading, time\ndef tally(x):\n    while True: threading.Thread(target=time.sleep, args=(99,)).start()\ntwice = tally"),
    "kill the grader": ("filter", "import os, signal\nfor pid in {os.getppid(), 1, GRADER} - {os.getpid()}:\n    try: os.kill(pid, signal.SIGKILL)\n    except OSError: pass"),
    "look into the grader": ("filter", "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ntraced = libc.ptrace(16, GRADER, 0, 0)\ntry: memory = open(f'/proc/{GRADER}/mem', 'rb').read(1)\nexcept OSError: memory = b''\ntally = lambda x: {'traced': traced, 'read': len(memory)}"),
    "read /proc": ("root", "import glob\nsaid = ''\nfor p in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):\n    try: said += open(p, 'rb').read().decode('utf-8', 'ignore')\n    except OSError: pass\ntally = lambda x: {'said': said}"),
    "read the key from the disk": ("root", "import glob, json\nfound = {}\nfor p in glob.glob('COURSE/private/keys/*/*.json') + glob.glob('/**/private/keys/*/*.json')[:3]:\n    try:\n        for e in json.load(open(p))['exercises']:\n            for c in e['calls']: found[json.dumps(c['args'][0])] = c['value']\n    except OSError: pass\ndef tally(x): return {k: v for k, v in (found[json.dumps(x)]['dict'])}\ntwice = lambda x: found[json.dumps(x)]"),
    "read the solution from the disk": ("root", "import json, re\ntext = open('COURSE/sources/9_counting.ipynb').read()\nfor c in json.loads(text)['cells']:\n    s = ''.join(c['source'])\n    if 'BEGIN SOLUTION' in s: exec(s)"),
    "overwrite the grade": ("root", "import os\nos.makedirs('COURSE/private/grades/9_counting', exist_ok=True)\nopen('COURSE/private/grades/9_counting/eve.json', 'w').write('{}')"),
    "change the kit for the next one": ("root", "import treekit.classroom.worker as w\nopen(w.__file__, 'a').write('\\n# was here')"),
    "a link out of the folder": ("root", "import os\nos.symlink('COURSE/private/secret', 'world2.json')\nsecret = open('world2.json').read()\ntally = lambda x: {'secret': secret}"),
    "fill the disk": ("limits", "wrote = 0\ntry:\n    for i in range(99):\n        with open(f'f{i}', 'wb') as f:\n            for _ in range(64): wrote += f.write(b'x' * 2**20)\nexcept OSError: pass\ntally = lambda x: {'wrote': wrote}"),
    "eat the memory": ("limits", "def tally(x): return {'n': len(bytearray(2**34))}\ntwice = tally"),
    "swallow the alarm": ("limits", "def tally(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\ntwice = tally"),
    "mount and chroot": ("filter", "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ngot = [libc.unshare(0x10000000) == 0, libc.mount(b'none', b'/', b'tmpfs', 0, None) == 0]\ntry: os.chroot('/tmp'); got.append(True)\nexcept OSError: got.append(False)\ntally = lambda x: {'got': got}"),
    "take the limits off": ("limits", "import resource\ntry: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); ok = 1\nexcept (OSError, ValueError): ok = 0\ntally = lambda x: {'ok': ok}"),
    "fake outputs": ("cells", "#FAKE"),
    "more points by metadata": ("cells", "#POINTS"),
    "a cheating setup cell": ("cells", "#SETUP"),
    "two cells of one name": ("cells", "#TWICE"),
    "the tests' cell made easy": ("cells", "#TESTS"),
}


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    c = course(tmp_path_factory.mktemp("course"), ("eve",))
    release_assignment(c, A, progress=False)
    return c


def submission(c, attack, port=9):
    "Eve's notebook with an attack in it."
    said = attack.replace("COURSE", str(c.folder)).replace("GRADER", str(os.getpid())).replace("PORT", str(port))
    nb = read_notebook(c.release(A, "eve", f"{A}.ipynb"))
    for k in nb["cells"]:
        mark = k["metadata"].get("nbgrader", {})
        if mark.get("grade_id") in ("tally", "twice"): k["source"] = "pass"
        if attack == "#FAKE" and k["cell_type"] == "code": k["outputs"] = [dict(output_type="stream", name="stdout", text="All tests passed. Points: 3/3")]
        if attack == "#POINTS" and mark: mark.update(points=100, grade=True, solution=True)
        if attack == "#SETUP" and mark.get("grade_id") == "setup": k["source"] = "import treekit.classroom.worker as w\nw.run_call = lambda *a: dict(value=0)"
        if attack == "#TESTS" and mark.get("grade"): k["source"] = "pass"
    if attack == "#TWICE": nb["cells"] += [cell("def tally(x): return 1", grade_id="tally", solution=True)]
    if not attack.startswith("#"): nb["cells"].insert(0, cell(STUBS + said))
    return nb


def grade(c, nb, wall, limits=QUICK):
    key, folder = c.record("keys", A, "eve"), c.release(A, "eve")
    return graded(nb, read_notebook(folder / f"{A}.ipynb"), key, {"world.json": (folder / "world.json").read_text()}, wall, limits)


REMAINS = {"read the key from the disk", "read the solution from the disk"}  # behind a plain wall


@pytest.mark.parametrize("wall", WALLED)
@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_earns_a_point(classroom, name, wall):
    "Behind a plain wall, what `root` stops remains; those attacks are looked at below."
    stopped_by, attack = ATTACKS[name]
    if wall == "plain" and stopped_by == "root": pytest.skip("remains open without a root of its own: see `WALLS`")
    before = {p: p.read_bytes() for p in Path(classroom.folder).rglob("*") if p.is_file()}
    worker = Path(grade.__code__.co_filename).parents[1] / "treekit/classroom/worker.py"
    kit = worker.read_bytes()
    found = grade(classroom, submission(classroom, attack), wall)
    assert sum(p or 0 for p in points(found).values()) == 0
    assert {e["id"]: e["of"] for e in found["exercises"]} == {"tally-tests": 3, "twice-tests": 2, "text": 1}
    assert before == {p: p.read_bytes() for p in Path(classroom.folder).rglob("*") if p.is_file()} and worker.read_bytes() == kit
    assert not Path("/tmp/treekit-pwned").exists()


SAID = {  # what an attack that reports its success through the value must not have reached
    "the network": {"reached": []}, "run a program": {"out": ""}, "take the limits off": {"ok": 0}, "mount and chroot": {"got": [False] * 3},
    "look into the grader": {"traced": -1, "read": 0},
}


@pytest.mark.parametrize("wall", WALLED)
@pytest.mark.parametrize("name", SAID)
def test_what_an_attack_could_reach(classroom, name, wall):
    "The value that comes back says how far the attack got; a listener on this machine would have been reached."
    import socket

    from treekit.classroom.grading import Talk
    with socket.create_server(("127.0.0.1", 0)) as server:
        nb = submission(classroom, ATTACKS[name][1], server.getsockname()[1])
        talk = Talk(wall, QUICK)
        talk.say(dict(cells=[dict(id="a", source="".join(nb["cells"][0]["source"]))], files={}, seconds=5), 30)
        reply = json.loads(talk.say(dict(number=0, fn="tally", args=["x"], seconds=2), 10))
        talk.close()
    if name == "look into the grader" and wall == "plain": reply["value"]["dict"][0][1] = 0  # /proc/<pid>/mem: the kernel's rule for one user's processes
    assert dict(reply["value"]["dict"]) == SAID[name]


@pytest.mark.parametrize("wall", [w for w in WALLED if w != "plain"])
def test_behind_a_root_of_its_own_nothing_is_to_be_seen(classroom, wall):
    from treekit.classroom.grading import Talk
    look = ("import os, glob\n"
            "def look(paths): return [p for p in paths if os.path.exists(p)]\n"
            "def others(_): return [p for p in glob.glob('/proc/[0-9]*') if int(p[6:]) not in (1, os.getpid())]\n"
            "def write(paths):\n    done = []\n    for p in paths:\n        try: open(p + '/x', 'w'); done.append(p)\n        except OSError: pass\n    return done\n")
    talk = Talk(wall, QUICK)
    talk.say(dict(cells=[dict(id="a", source=look)], files={}, seconds=5), 30)
    def ask(f, arg): return json.loads(talk.say(dict(number=0, fn=f, args=[arg], seconds=2), 10))["value"]
    kit = Path(__file__).parents[1]
    hidden = [str(classroom.folder), str(classroom.private("secret")), str(kit / "nbs"), str(kit / "tests"), "/home/" + "x", "/var", "/root/.bashrc", "/etc/shadow", "/etc/passwd"]
    assert ask("look", hidden) == []
    assert ask("write", ["/", "/usr", "/tmp", "/etc", str(kit / "treekit"), str(kit / "data")]) == []
    assert ask("write", ["."]) == ["."]
    assert len(ask("others", 0)) <= 2  # at most those that hold the wall itself
    talk.close()


@pytest.mark.parametrize("name", sorted(REMAINS))
def test_what_remains_without_a_root_of_its_own(classroom, name):
    "These attacks are alive: behind a plain wall they earn points, and that is why the report names the wall."
    if not holds("plain"): pytest.skip("no filter of system calls here")
    assert sum(p or 0 for p in points(grade(classroom, submission(classroom, ATTACKS[name][1]), "plain")).values()) > 0


def test_a_plain_wall_says_what_it_leaves_open():
    assert "answer keys" in WALLS["plain"] and "network" in WALLS["plain, unfiltered"]


def test_an_honest_neighbour_is_untouched(classroom):
    "Two submissions side by side: one tries to hang everything, the other has its points."
    nb = submission(classroom, ATTACKS["swallow the alarm"][1])
    honest = read_notebook(classroom.release(A, "eve", f"{A}.ipynb"))
    for k in honest["cells"]:
        if (name := k["metadata"].get("nbgrader", {}).get("grade_id")) in RIGHT: k["source"] = RIGHT[name]
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool: bad, good = pool.map(lambda n: grade(classroom, n, best_wall()), (nb, honest))
    assert points(good) == {"tally-tests": 3, "twice-tests": 2, "text": None} and points(bad)["tally-tests"] == 0


def test_nothing_stays_behind(classroom):
    "No process of a submission outlives its grading."
    grade(classroom, submission(classroom, "import threading, time\nthreading.Thread(target=time.sleep, args=(999,)).start()"), best_wall())
    listed = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True).stdout if Path("/bin/ps").exists() else ""
    mine = [row for row in listed.splitlines() if row.split()[0] == str(os.getpid()) and "classroom.worker" in row and "defunct" not in row]
    assert mine == []


def test_a_wall_that_is_not_there_is_said():
    with pytest.raises(UsageError, match="no wall named"): best_wall("castle")
    if not holds("bubblewrap"):
        with pytest.raises(UsageError, match="can't be built"): best_wall("bubblewrap")


def test_a_zip_slips_nowhere(classroom, tmp_path):
    "The paths, links and bombs of archives are looked at in tests/test_classroom.py; here: what is taken in is only ever one file of one name."
    path = take_in(classroom, A, "eve", b"{}", 2e9)
    assert path.parent.parent == classroom.submitted(A, "eve") and path.name == f"{A}.ipynb"
    path.unlink()
    path.parent.rmdir()
