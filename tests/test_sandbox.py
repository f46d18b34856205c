"""Attacks on the limits of the sandbox, written apart from its code: each is a cell that reports how far it got.

And when grading without isolation is refused."""

import json, os, struct, subprocess, sys, time
from pathlib import Path

import pytest
from click.testing import CliRunner

from classes import course, hand_in
from treekit.classroom import course_check, sandbox
from treekit.classroom.course import CourseFolder
from treekit.classroom.course_check import course_checks
from treekit.classroom.grading import WorkerConnection, grade_assignment
from treekit.classroom.sandbox import SANDBOXES, Limits, choose_sandbox, hidden_paths, is_available, readable
from treekit.config import UsageError

A = "9_counting"
QUICK = Limits(cell=4, call=4, cpu=20, memory=512, disk=8)
ISOLATED = [w for w in ("bubblewrap", "namespaces") if is_available(w)]
FILTERED = ISOLATED + (["plain"] if is_available("plain") and sandbox.filters() else [])
isolated = pytest.mark.skipif(
    not ISOLATED, reason="no sandbox on this machine: bubblewrap is missing and user namespaces are refused"
)


def reached(wall, source, arg=0, limits=QUICK, hidden=()):
    "What `probe(arg)` of a student's cell gives back."
    talk = WorkerConnection(wall, limits, hidden)
    try:
        talk.send(dict(cells=[dict(id="a", source=source)], files={}, seconds=limits.cell), 30)
        return json.loads(talk.send(dict(number=0, fn="probe", args=[arg], seconds=limits.call), limits.call + 4))[
            "value"
        ]
    finally:
        talk.close()


SYSTEM_V = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def probe(_):
    got = dict(shm=libc.shmget(0, 1 << 20, 0o1600), sem=libc.semget(0, 1, 0o1600), msg=libc.msgget(0, 0o1600),
               queue=libc.mq_open(b"/treekit-attack", 0o102, 0o600, None))
    return sorted(name for name, number in got.items() if number >= 0)
"""


@pytest.mark.parametrize("wall", FILTERED)
def test_memory_outside_the_limit_is_refused(wall):
    "Segments of System V shared memory and message queues count against no limit of the process."
    assert reached(wall, SYSTEM_V) == []


OPEN_TREE = """
import ctypes
def probe(number): return ctypes.CDLL(None, use_errno=True).syscall(number, -100, b"/", 0) >= 0
"""


@pytest.mark.parametrize("wall", FILTERED)
def test_the_new_mount_calls_are_refused(wall):
    "open_tree has the number 428 on both architectures."
    assert reached(wall, OPEN_TREE, 428) is False


MANY_FILES = """
def probe(most):
    for n in range(most):
        try: open(f"f{n}", "w").close()
        except OSError: return n
    return most
"""


@pytest.mark.parametrize("wall", ISOLATED)
def test_the_number_of_files_is_limited(wall):
    made = reached(wall, MANY_FILES, 20_000)
    assert 100 <= made <= 4_000


MANY_THREADS = """
import threading, time
threading.stack_size(65536)
def probe(most):
    for n in range(most):
        try: threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
        except RuntimeError: return n
    return most
"""


@pytest.mark.parametrize("wall", ISOLATED)
def test_the_number_of_threads_is_limited(wall):
    assert reached(wall, MANY_THREADS, 500) <= 64


@pytest.mark.parametrize("wall", FILTERED)
def test_a_few_threads_are_allowed(wall):
    assert reached(wall, MANY_THREADS, 8) == 8


@pytest.mark.parametrize("wall", ISOLATED)
def test_nothing_is_writable_but_the_students_folder(wall):
    write = (
        "import os\ndef probe(_):\n    done = []\n    for p in ('/dev', '/dev/shm', '/home', '/tmp', '/proc', '/'):\n"
        "        try: open(p + '/x', 'w').close(); done.append(p)\n        except OSError: pass\n    return done\n"
    )
    assert reached(wall, write) == ["/home"]


HIDDEN = """
import os
def probe(path):
    if os.path.isdir(path):
        try: open(path + "/x", "w").close()
        except OSError: return sorted(os.listdir(path))
        return "writable"
    try: return len(open(path, "rb").read())
    except OSError: return 0
"""
MODULES = ("treekit.retrieval", "treekit.core.fingerprints")  # a folder and a file


@pytest.mark.parametrize("wall", ISOLATED)
def test_hidden_modules_are_empty_and_not_writable(wall):
    paths = hidden_paths(MODULES)
    assert any(map(os.path.isdir, paths)) and any(map(os.path.isfile, paths))
    assert not any(reached(wall, HIDDEN, path, hidden=MODULES) for path in paths)
    assert all(
        reached(wall, HIDDEN, path) for path in paths if path not in hidden_paths(())
    )  # the others are always hidden


def test_the_command_line_of_bubblewrap(monkeypatch):
    "Also where bubblewrap isn't installed: what is hidden covers what is bound before it, and only the student's folder is writable."
    monkeypatch.setattr(sandbox, "_bwrap", lambda: "/usr/bin/bwrap")
    paths = hidden_paths(MODULES)
    words = sandbox._bubblewrap(QUICK, paths)

    def at(*some):
        return next(i for i in range(len(words)) if tuple(words[i : i + len(some)]) == some)

    kit = max(i for i, word in enumerate(words) if word in readable())
    for p in paths:
        if os.path.isdir(p):
            assert kit < at("--tmpfs", p) < at("--remount-ro", p)
        else:
            assert kit < at("--ro-bind", "/dev/null", p)
    assert (
        words[0] == "/usr/bin/bwrap"
        and words[-1] == "--"
        and {"--unshare-all", "--die-with-parent", "--clearenv"} <= set(words)
    )
    assert at("--size", str(QUICK.disk << 20), "--tmpfs", "/home") < at("--remount-ro", "/")
    writable = [words[i + 1] for i, word in enumerate(words) if word in ("--tmpfs", "--bind")]
    read_only = [words[i + 1] for i, word in enumerate(words) if word == "--remount-ro"]
    assert set(writable) - set(read_only) == {"/home"}


ENVIRONMENT = "import os\ndef probe(_): return sorted(os.environ.values()) + [open('/proc/self/environ').read()]\n"


@pytest.mark.parametrize("wall", FILTERED)
def test_the_graders_environment_does_not_arrive(wall, monkeypatch):
    monkeypatch.setenv("COURSE_SECRET_FOR_TEST", "mellon-8341")
    assert "mellon-8341" not in json.dumps(reached(wall, ENVIRONMENT))


@pytest.mark.skipif(
    "plain" not in FILTERED, reason="without isolation nothing is graded here: no filter, or the user is root"
)
def test_without_isolation_the_grader_itself_cannot_be_read(tmp_path):
    "Its memory holds the right answers, and its environment the teacher's API key."
    c = course(tmp_path)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\nfrom classes import *\nfrom pathlib import Path\nimport json\n"
        "from treekit.classroom.release import release_assignment\nfrom treekit.classroom.grading import grade_assignment\n"
        "from treekit.classroom.course import CourseFolder\nc = CourseFolder(Path(sys.argv[3]), Path(sys.argv[3], 'sources'))\n"
        "release_assignment(c, '9_counting', ['ada'], progress=False)\n"
        'peek = \'import os\\nfor name in ("environ", "mem"): open(f"/proc/{os.getppid()}/{name}", "rb").close()\'\n'
        "hand_in(c, 'ada', extra=[peek])\n"
        "print(json.dumps(grade_assignment(c, '9_counting', sandbox='plain', progress=False)[0]['errors']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parents[1]), str(Path(__file__).parent), str(c.folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "PermissionError" in done.stdout, done.stderr


# name -> number on x86-64, on ARM; from the kernel's tables (asm/unistd_64.h and asm-generic/unistd.h); None: there is no such call
FORBIDDEN = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "tkill": (200, 130),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, None),
    "vfork": (58, None),
}
ALLOWED = {
    "read": (0, 63),
    "write": (1, 64),
    "mmap": (9, 222),
    "futex": (202, 98),
    "openat": (257, 56),
    "getdents64": (217, 61),
}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def verdict(program, arch, number, argument=0):
    "What the kernel would do: the program is interpreted here, instruction by instruction."
    data, at, a = {0: number, 4: arch, 16: argument}, 0, 0
    while True:
        code, yes, no, k = struct.unpack("HBBI", program[at])
        at += 1
        if code == 0x20:
            a = data[k]
        elif code == 0x06:
            return k
        else:
            at += yes if {0x15: a == k, 0x35: a >= k, 0x45: bool(a & k)}[code] else no


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_of_both_architectures(machine, monkeypatch):
    column, arch = MACHINES[machine]
    monkeypatch.setattr(sandbox.platform, "machine", lambda: machine)
    program = sandbox._filter(4711)
    allow = {
        name
        for name, numbers in FORBIDDEN.items()
        if numbers[column] and verdict(program, arch, numbers[column]) == 0x7FFF0000
    }
    assert allow == set()
    assert all(verdict(program, arch, numbers[column]) == 0x7FFF0000 for numbers in ALLOWED.values())
    assert verdict(program, arch ^ 1, 0) == 0x80000000  # another architecture's calls end the process
    kill, clone = FORBIDDEN["kill"][column], FORBIDDEN["clone"][column]
    assert (
        verdict(program, arch, kill, 4711) == verdict(program, arch, clone, 0x10000) == 0x7FFF0000
    )  # itself; a thread


HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_the_kernels(machine):
    "The table above against the kernel's header, where it is installed."
    import re

    path = Path(HEADERS[machine])
    if not path.exists():
        pytest.skip(f"no {path}")
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)\s", path.read_text())}
    mine = {name: numbers[MACHINES[machine][0]] for name, numbers in FORBIDDEN.items()}
    assert {n: known[n] for n in mine if n in known} == {n: k for n, k in mine.items() if n in known}
    assert len([n for n in mine if n in known]) > 40


@pytest.fixture
def class_of_one(tmp_path):
    from treekit.classroom.release import release_assignment

    c = course(tmp_path / "course", ("ada",))
    release_assignment(c, A, progress=False)
    return c


LOOPS = "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\nwhile True: pass"


@isolated
@pytest.mark.long
def test_a_submission_has_a_limit_in_all(class_of_one):
    "A cell that never ends held a place for four times as long as all cells together may take."
    hand_in(class_of_one, "ada", extra=[LOOPS])
    began = time.monotonic()
    [grade] = grade_assignment(class_of_one, A, limits=Limits(cell=1, call=1, submission=5), progress=False)
    assert time.monotonic() - began < 20  # without it 24 s and more
    assert all(not e["points"] for e in grade["exercises"])


@isolated
def test_slow_functions_share_the_limit(class_of_one):
    "A function that is too slow in every exercise; after the limit nothing is started any more."
    slow = "import time\ndef {}(x): time.sleep(60)"
    hand_in(class_of_one, "ada", tally=slow.format("tally"), twice=slow.format("twice"))
    [grade] = grade_assignment(class_of_one, A, limits=Limits(cell=4, call=4, submission=8), progress=False)
    assert {c["why"] for e in grade["exercises"] for c in e["criteria"]} == {"too slow"}


@pytest.mark.parametrize("wall", ISOLATED)
def test_a_submission_leaves_no_folder_behind(wall):
    def there():
        return {
            p.name for p in Path("/tmp").glob("treekit-*") if "-" not in p.name.removeprefix("treekit-")
        }  # a mount point

    before = there()
    assert reached(wall, "def probe(x): return x", 3) == 3
    assert there() - before == set()


NO_SANDBOX = dict.fromkeys(SANDBOXES, False) | {"plain": True}


def test_no_isolation_is_never_the_default(monkeypatch):
    "Where no sandbox works, one line says what to install and what to pass."
    monkeypatch.setattr(sandbox, "is_available", NO_SANDBOX.get)
    with pytest.raises(UsageError) as e:
        choose_sandbox()
    assert "bubblewrap" in str(e.value) and "--sandbox plain" in str(e.value) and "\n" not in str(e.value)


def test_the_command_stops_before_grading(class_of_one, monkeypatch):
    import treekit.classroom.grading

    monkeypatch.setattr(sandbox, "is_available", NO_SANDBOX.get)
    hand_in(class_of_one, "ada")
    from treekit.cli.main import main

    words = ["course", "--course", str(class_of_one.folder), "--sources", str(class_of_one.sources), "grade", A]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and "bubblewrap" in done.output and "Traceback" not in done.output
    assert not class_of_one.record("grades", A, "ada")
    said = []
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(treekit.classroom.grading, "grade_assignment", lambda *a, **k: said.append("graded") or [])
    import click

    monkeypatch.setattr(click, "echo", lambda text="", **k: said.append(str(text)))
    CliRunner().invoke(main, [*words, "--sandbox", "plain"])
    assert said.index("graded") > 0 and "answer keys" in said[0] and "memory" in said[0] and "environment" in said[0]


def test_a_check_without_isolation_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(course_check, "choose_sandbox", lambda asked: asked)
    (tmp_path / "roster.csv").write_text("id\nada\n")
    found = {what: ok for what, ok, _ in course_checks(CourseFolder(tmp_path), ["none"], "plain")}
    assert found == {"roster.csv": True, "settings.toml": True, "sandbox": True, "isolation": False, "none": False}


def test_no_isolation_is_refused_as_root(monkeypatch):
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 0)
    is_available.cache_clear()
    try:
        with pytest.raises(UsageError, match="root"):
            choose_sandbox("plain")
    finally:
        is_available.cache_clear()


def test_an_environment_behind_a_link_is_readable(tmp_path, monkeypatch):
    "Else no sandbox starts there, and its tests are skipped."
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "link"))
    assert {str(tmp_path / "link"), str(tmp_path / "real")} <= {*readable()}
