"The command line for tests: in a process of its own where that is the point, else in this one, with notebooks in kernels that are warm."

import functools, os, subprocess, sys
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[1]
_ASIDE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background has it ignored


def start(*words, cwd=ROOT, **env):
    "`treekit WORDS` in a process of its own."
    code = _ASIDE + "from treekit.cli.main import main; main()"
    env = {k: v for k, v in os.environ.items() if k != "TREEKIT_HOME"} | env
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], cwd=cwd, env=env, **pipes)


def shell(*words, cwd=ROOT, **env):
    "`start`, to its end: exit code, output, errors."
    process = start(*words, cwd=cwd, **env)
    out, err = process.communicate(timeout=600)
    assert "Traceback" not in err, err
    return process.returncode, out, err


# torch and sentence_transformers take seven of twelve seconds, and few notebooks embed
SHOWN = (
    *("ipykernel.kernelapp", "IPython.display", "matplotlib.pyplot", "pandas", "scipy.stats", "seaborn", "openai"),
    *("treekit.figures.tables", "treekit.figures.verdicts", "treekit.figures.plots", "treekit.experiments.run"),
)


@functools.cache
def forked():
    "Manager of kernels that are forked from one process, which ends with the tests."
    from treekit.artefacts.kernel_pool import manager

    return manager({}, SHOWN)


def warmly(patch):
    "Until the patch is undone, every notebook's kernel is forked from one process, however few notebooks there are."
    from treekit.artefacts.kernel_pool import can_fork

    if can_fork():
        patch.setattr("treekit.artefacts.reproduce._warm", lambda *_: forked())


def run_notebook(nb, folder):
    "Run a notebook that was read with nbformat, in a warm kernel; what its cells say is in it afterwards."
    from nbclient import NotebookClient
    from treekit.artefacts.kernel_pool import can_fork

    warm = dict(kernel_manager_class=forked()) if can_fork() else {}
    NotebookClient(
        nb, timeout=300, kernel_name="python3", resources=dict(metadata=dict(path=str(folder))), **warm
    ).execute()


def inside(*words, cwd=ROOT, **env):
    "As `shell`, in this process."
    from treekit.cli.main import main

    with pytest.MonkeyPatch.context() as patch:
        warmly(patch)
        patch.chdir(cwd)
        patch.delenv("TREEKIT_HOME", raising=False)
        for name, value in env.items():
            patch.setenv(name, value)
        result = CliRunner().invoke(main, [str(w) for w in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.stderr, result.stderr
    return result.exit_code, result.stdout, result.stderr
