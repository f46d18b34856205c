"Blows to files: read while they are written, written by two at once, handed on with what nobody else should see."

import json, os, subprocess, sys, tempfile
from pathlib import Path

import pytest

from treekit.config import root


def tables(folder, word):
    import pandas as pd
    from treekit.figures.cells import write_scores
    from treekit.figures.claims import save_claims
    from treekit.figures.index_page import index_page
    from treekit.figures.plots import save_figure
    from treekit.figures.tables import save_csv, save_table
    import matplotlib.pyplot as plt

    df = pd.DataFrame([dict(a=word, b=1.0)])
    save_table(df, folder, "table")
    save_csv(df, folder / "plain.csv")
    save_claims([], folder, word)
    write_scores({("g", "m", "d", word): {"d": {"q": 1.0}}}, folder / "table_scores.json")
    fig, ax = plt.subplots(figsize=(1, 1))
    save_figure(fig, folder, "figure", title=word, ran=word)
    plt.close(fig)
    index_page(folder.parent)
    return folder


def test_a_page_is_never_seen_in_part(tmp_path):
    "Who has an old file open reads it to its end: the new one is another file, put in its place."
    folder = tables(tmp_path / "figures" / "toq", "first")
    old = {p: (p.stat().st_ino, p.read_bytes(), p.open("rb")) for p in (tmp_path / "figures").rglob("*.*")}
    assert len(old) > 10
    tables(folder, "second")
    for path, (inode, content, reader) in old.items():
        with reader:
            assert reader.read() == content, path.name
        assert path.stat().st_ino != inode or path.read_bytes() == content, f"{path.name} was written in place"
    assert {p for p in (tmp_path / "figures").rglob("*.*")} == set(old)


FULL = """import errno, os, resource, sys
from pathlib import Path
from treekit.cli.main import main
import treekit.cli.main as cli
from treekit.utils.atomic_write import write_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
def inventory(paper):
    if sys.argv[1]: write_whole(Path(sys.argv[1]), "x" * 5000)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
cli.inventory = inventory
main(["list"])
"""


@pytest.mark.parametrize(
    "name, line", [("table.csv", "treekit: File too large: table.csv"), ("", "treekit: No space left on device")]
)
def test_a_write_that_fails_is_one_line_with_the_file(tmp_path, name, line):
    "A full disk: the system names no file."
    done = subprocess.run([sys.executable, "-c", FULL, name], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (1, line)


NOTEBOOK = [
    ("parameters", "endpoint = ''\nfolder = ''\nprofile = ''"),
    ("", "import sys, tempfile, os\nfrom treekit.config import root"),
    ("", "print(endpoint, folder, tempfile.gettempdir(), sys.prefix, root(), os.path.expanduser('~'))"),
    ("", "raise RuntimeError(f'no answer from {endpoint} in {tempfile.gettempdir()}')"),
]


@pytest.mark.long
def test_an_executed_notebook_holds_no_path_and_no_secret(tmp_path):
    "Also where it failed; and nothing is on disk that wasn't cleaned first."
    import nbformat
    from treekit.artefacts.reproduce import Task, _execute

    nb = nbformat.v4.new_notebook()
    nb.cells = [nbformat.v4.new_code_cell(code, metadata=dict(tags=[tag] if tag else [])) for tag, code in NOTEBOOK]
    nb.metadata["kernelspec"] = dict(name="python3", display_name="python3", language="python")
    nbformat.write(nb, source := tmp_path / "demo.ipynb")
    given = dict(endpoint="https://ann:hunter22@host.example/v1?api-key=hunter33", folder=str(tmp_path))
    task = Task("toq/demo", source, given)
    _execute(task, tmp_path / "kept", dict(os.environ), [])
    text = (tmp_path / "kept" / "toq" / "demo.ipynb").read_text(encoding="utf-8")
    assert task.code == 1 and "host.example/v1" in text and "hunter" not in text and "treekit:" not in text
    for folder in (tmp_path, tempfile.gettempdir(), sys.prefix, root(), Path.home()):
        assert f"{folder}/" not in text, folder
    assert any(
        "https://host.example/v1" in "".join(o.get("text", ""))
        for c in json.loads(text)["cells"]
        for o in c.get("outputs", ())
    )
    assert sorted(p.name for p in (tmp_path / "kept" / "toq").iterdir()) == ["demo.ipynb", "demo.log"]
