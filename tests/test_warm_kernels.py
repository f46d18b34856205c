"Kernels forked from one process: what a notebook does to its own is unseen by the next, and nothing is left behind."

import os, signal, subprocess, sys, textwrap, threading, time
from pathlib import Path

import nbformat
import pytest

from commands import forked
from treekit.artefacts.kernel_pool import can_fork
from treekit.artefacts.reproduce import Task, _execute, _interrupt

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not can_fork(), reason="no safe fork here: kernels start cold")


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

    def __init__(self, folder):
        self.folder, self.kernels, self.count = folder, [], 0

    def run(self, cell, warm=True):
        "The task, and what the cell showed last."
        self.count += 1
        task = notebook(self.folder, self.count, textwrap.dedent(cell))
        _execute(task, self.folder, dict(os.environ), self.kernels, forked() if warm else None)
        outputs = nbformat.read(self.folder / f"{task.name}.ipynb", 4).cells[-1].outputs
        shown = [o["data"]["text/plain"] for o in outputs if o.output_type == "execute_result"]
        return task, shown[-1] if shown else ""


@pytest.fixture
def notebooks(tmp_path):
    return Notebooks(tmp_path)


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
    assert notebooks.run(LOOK, warm=False)[1] == before  # as a kernel that starts cold


def test_a_notebook_that_dies_dies_alone(notebooks):
    task, _ = notebooks.run("import os; os.write(2, b'said by the process'); os._exit(3)")
    assert task.code == 1 and "Dead" in task.error
    assert "said by the process" in (notebooks.folder / f"{task.name}.log").read_text()
    assert (
        "import os; os.write" in (notebooks.folder / f"{task.name}.ipynb").read_text()
    )  # the notebook as far as it came
    assert notebooks.run("1 + 1")[1] == "2"


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
import os, sys, time
from treekit.artefacts import kernel_pool
kernel_pool.manager({}, ("json",))
process = kernel_pool.multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(60,))
process.start()
print(process.pid, kernel_pool.forkserver._forkserver._forkserver_pid, flush=True)
time.sleep(60)
"""


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_the_server_ends_with_the_process_that_made_it():
    "Its kernels see that their parent has ended, and end as well."
    parent = subprocess.Popen([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    kernel, server = map(int, parent.stdout.readline().split())
    assert not gone(server)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    os.kill(kernel, signal.SIGKILL)
    until = time.monotonic() + 20
    while not gone(server) and time.monotonic() < until:
        time.sleep(0.1)
    assert gone(server)
