"""What is saved where nothing has changed, as ratios to the full work.

    pytest tests/benchmarks/test_main_job.py -s

`reproduce` at a small size: all artefacts of two papers from an empty home, then unchanged, then with a changed sentence in one notebook,
a comment in `core/llm`, and another default in one paper's method.
`ask`: first in an empty home, another question, the same again.
"""

import json, os, re, shutil, subprocess, sys, time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from speed import enough

ROOT = Path(__file__).resolve().parents[2]


def seconds(cwd, home, *words):
    "Wall-clock seconds of a command, and what it printed."
    env = os.environ | dict(TREEKIT_HOME=str(home), PYTHONPATH=str(cwd))
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", "from treekit.cli.main import main; main()", *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - began, done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    "A clone of its own, whose notebooks may be changed."
    home = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "nbs" / "reproduce", home / "nbs" / "reproduce")
    shutil.copytree(ROOT / "treekit", home / "treekit", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "data").symlink_to(ROOT / "data")
    shutil.copy(ROOT / "settings.ini", home)
    return home


def another_default(clone):
    "Give one of ARISE's settings another default, in the clone."
    method = clone / "treekit/papers/arise/method.py"
    method.write_text(re.sub(r"^    width: int = 5\b", "    width: int = 4", was := method.read_text(), flags=re.M))
    assert method.read_text() != was


def test_unchanged_and_one_changed_sentence(clone, tmp_path):
    words = ("reproduce", "arise", "toq", "--n", "2", "--json")
    full, _ = seconds(clone, tmp_path, *words)
    none, said = seconds(clone, tmp_path, *words)
    assert all(r["unchanged"] for r in json.loads(said))
    notebook = clone / "nbs/reproduce/toq/prompts.ipynb"
    nb = json.loads(notebook.read_text())
    next(c for c in nb["cells"] if c["cell_type"] == "markdown")["source"] += ["\n\nA sentence."]
    notebook.write_text(json.dumps(nb))
    one, said = seconds(clone, tmp_path, *words)
    assert [r["artefact"] for r in json.loads(said) if not r["unchanged"]] == ["toq/prompts"]
    llm = clone / "treekit/core/prompts.py"
    llm.write_text(llm.read_text() + "\n# a comment\n")
    comment, said = seconds(clone, tmp_path, *words)
    assert all(r["unchanged"] for r in json.loads(said))
    another_default(clone)
    arise, said = seconds(clone, tmp_path, *words)
    again = [r["artefact"] for r in json.loads(said) if not r["unchanged"]]
    assert again and {name.partition("/")[0] for name in again} == {"arise"}
    print(
        f"\nfull {full:.1f} s, unchanged {none:.1f} s, a sentence {one:.1f} s, a comment in core/llm {comment:.1f} s, "
        f"a default of ARISE's {arise:.1f} s",
        end="",
    )
    enough(full / none, 15)
    enough(full / one, 4)
    enough(full / comment, 15)


def test_ask_first_another_and_the_same(tmp_path):
    first, _ = seconds(ROOT, tmp_path, "ask", "Who directed the film that is based on the novel Taphora?")
    other, _ = seconds(ROOT, tmp_path, "ask", "Where was the film that is based on the novel Taphora filmed?")
    again, said = min(
        seconds(ROOT, tmp_path, "ask", "Where was the film that is based on the novel Taphora filmed?")
        for _ in range(3)
    )
    assert "nothing was asked" in said
    print(f"\nfirst {first:.2f} s, another {other:.2f} s, the same {again:.2f} s", end="")
    enough(first / again, 5)
    enough(other / again, 2)
