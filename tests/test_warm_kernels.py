"Kernels forked from one process: what a notebook does to its own is unseen by the next, and nothing is left behind."

import json, os, signal, subprocess, sys, textwrap, threading, time
from pathlib import Path

import nbformat
import pytest

from treekit.artefacts.kernel_pool import ForkServer, can_fork
from treekit.artefacts.reproduce import Task, _execute, _interrupt

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not can_fork(), reason="no safe fork here: kernels start cold")


@pytest.fixture(scope="module")
def server():
    made = ForkServer(["ipykernel.kernelapp", "matplotlib.pyplot", "pandas", "treekit.config"], dict(os.environ))
    yield made
    made.close()


def notebook(folder, n, cell):
    "The task of a notebook of one cell, which is written."
    nb = nbformat.v4.new_notebook(
        metadata=dict(kernelspec=dict(name="python3", display_name="python3", language="python"))
    )
    nb.cells = [nbformat.v4.new_code_cell(cell)]
    nbformat.write(nb, folder / f"n{n}.ipynb")
    return Task(f"runs/n{n}", folder / f"n{n}.ipynb", {})


class Notebooks:
    "Runs a cell in a notebook of its own."

    def __init__(self, folder, server):
        self.folder, self.server, self.kernels, self.count = folder, server, [], 0

    def run(self, cell, server="its own"):
        "The task, and what the cell showed last."
        self.count += 1
        task = notebook(self.folder, self.count, textwrap.dedent(cell))
        _execute(task, self.folder, dict(os.environ), self.kernels, self.server if server == "its own" else server)
        outputs = nbformat.read(self.folder / f"{task.name}.ipynb", 4).cells[-1].outputs
        shown = [o["data"]["text/plain"] for o in outputs if o.output_type == "execute_result"]
        return task, shown[-1] if shown else ""


@pytest.fixture
def notebooks(tmp_path, server):
    return Notebooks(tmp_path, server)


LOOK = """
    import matplotlib as mpl, matplotlib.pyplot as plt, os, sys
    from treekit import config
    figure = plt.figure()
    [mpl.get_backend(), mpl.rcParams["lines.linewidth"], figure.get_size_inches().tolist(),
     config.choose.__module__, "spoiled" in globals(),
     "SPOILED" in os.environ, sorted(sys.path), __name__, sys.argv[0].rpartition("/")[2]]
"""


@pytest.mark.long
def test_what_a_notebook_does_to_its_process_changes_nothing_for_the_next(notebooks):
    "A global, a patched module, defaults of matplotlib, the environment, the search path, the working folder."
    _, before = notebooks.run(LOOK)
    task, _ = notebooks.run("""
        import builtins, matplotlib as mpl, os, sys
        from treekit import config
        spoiled = builtins.spoiled = True
        config.choose, mpl.rcParams["lines.linewidth"], os.environ["SPOILED"] = None, 77, "1"
        mpl.rcParams["figure.figsize"] = 1, 1
        sys.path.insert(0, "spoiled"); os.chdir("/")
    """)
    assert task.code == 0, task.error
    _, after = notebooks.run(LOOK)
    assert after == before and "inline" in before
    assert notebooks.run(LOOK, server=None)[1] == before  # as a kernel that starts cold


def test_a_notebook_that_dies_dies_alone(notebooks):
    task, _ = notebooks.run("import os; os.write(2, b'said by the process'); os._exit(3)")
    assert task.code == 1 and "Dead" in task.error
    assert "said by the process" in (notebooks.folder / f"{task.name}.log").read_text()
    assert notebooks.run("1 + 1")[1] == "2"


def in_turn(folder, monkeypatch, cells, **given):
    "Run notebooks of one cell each, one at a time and in this order, each with two lines in a log; the tasks and the log's lines."
    from treekit.artefacts import reproduce

    monkeypatch.setattr(reproduce, "_server", lambda *_: ForkServer(["ipykernel.kernelapp"], dict(os.environ)))
    monkeypatch.setattr(reproduce, "_by_length", lambda tasks: tasks)
    log, tasks = folder / "log", []

    def written(line):
        return f"with open({str(log)!r}, 'a') as f: f.write('{line}\\n')"

    for n, cell in enumerate(cells):
        tasks.append(
            notebook(folder, n, "\n".join([written(f"begins {n}"), *cell[:-1], written(f"ends {n}"), cell[-1]]))
        )
    try:
        reproduce.run_tasks([tasks], folder / "kept", 1, "test", **given)
    except KeyboardInterrupt:
        pass
    return tasks, log.read_text().splitlines()


@pytest.mark.long
def test_cells_run_in_turn_and_none_after_the_budget_is_reached(tmp_path, monkeypatch):
    "A further kernel starts while `jobs` notebooks run, and its cells wait. The third notebook reaches the budget."
    reaches = ["class BudgetExceeded(Exception): pass", "raise BudgetExceeded('$1 of $1')"]
    cells = [["import time; time.sleep(0.3)", ""]] * 2 + [reaches] + [["import time; time.sleep(4)", ""]] * 3
    tasks, lines = in_turn(tmp_path, monkeypatch, cells)
    ran = [int(line.removeprefix("begins ")) for line in lines[::2]]
    assert lines == [f"{what} {n}" for n in ran for what in ("begins", "ends")] and {0, 1, 2} <= {*ran}
    assert [t.code for t in tasks[:3]] == [0, 0, 3] and all(
        t.code == 0 for t in tasks if t.name[-1] in "345" and t.began
    )
    left = [t for t in tasks if not t.began]
    assert left and {(t.code, t.error) for t in left} == {(3, "not started: the budget was reached")}


def test_an_interrupt_reaches_it(notebooks, tmp_path):
    fates, on = [], tmp_path / "on"
    cell = f"import time\nopen({str(on)!r}, 'w').close(); time.sleep(60)"
    thread = threading.Thread(target=lambda: fates.append(notebooks.run(cell)[0]))
    thread.start()
    while not on.exists():  # the kernel has begun the cell
        time.sleep(0.05)
    _interrupt(notebooks.kernels)
    thread.join(50)
    assert fates[0].code == 130 and fates[0].seconds < 50


ALONE = """
import json, os, sys, time
from treekit.artefacts.kernel_pool import ForkServer
server = ForkServer(["json"], dict(os.environ))
kernel = server.start(["-f", sys.argv[1]], dict(os.environ), os.getcwd())
print(json.dumps([server.process.pid, kernel.pid]), flush=True)
time.sleep(60)
"""


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_the_server_ends_with_the_process_that_made_it(tmp_path):
    connection = tmp_path / "kernel.json"
    ports = dict(shell_port=1, iopub_port=2, stdin_port=3, hb_port=4, control_port=5)
    given = dict(transport="ipc", ip=str(tmp_path / "kernel"), key="", signature_scheme="hmac-sha256", **ports)
    connection.write_text(json.dumps(given))
    parent = subprocess.Popen(
        [sys.executable, "-c", ALONE, str(connection)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    pids = json.loads(parent.stdout.readline())
    assert not any(map(gone, pids))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 20
    while not all(map(gone, pids)) and time.monotonic() < until:
        time.sleep(0.1)
    assert all(map(gone, pids))


def test_a_server_that_was_killed_leaves_cold_kernels(notebooks):
    server = ForkServer(["json"], dict(os.environ))
    server.process.kill()
    try:
        assert notebooks.run("1 + 1", server=server)[1] == "2"
    finally:
        server.close()
