"Blows to files: read while they are written, written by two at once, handed on with what nobody else should see."

import json, os, subprocess, sys, tempfile
from pathlib import Path

import pytest

from test_agreement import row
from treekit.analysis.outcomes import read_annotations, write_annotation
from treekit.analysis.human_eval import read_votes, write_vote
from treekit.config import root
from treekit.core.prompts import Prompt
from treekit.core.output_parsers import TEXT
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient
from treekit.utils.atomic_write import write_whole
from treekit.experiments.resources import identity_of
from workers import processes


def vote(path, name, numbers):
    for i in numbers:
        write_vote(path, name, row(f"q{i}"), i % 2 == 0)


def judge(path, name, numbers):
    for i in numbers:
        write_annotation(path, name, row(f"q{i}"), "Success")


@pytest.mark.slow
@pytest.mark.parametrize("write, read", [(vote, read_votes), (judge, read_annotations)])
def test_two_raters_on_one_file_lose_no_judgement(tmp_path, write, read):
    path = tmp_path / "votes.csv"
    raters = [processes.Process(target=write, args=(path, f"rater {k}", range(40))) for k in range(3)]
    for r in raters:
        r.start()
    for r in raters:
        r.join(60)
    assert [r.exitcode for r in raters] == [0] * 3 and [p.name for p in tmp_path.iterdir()] == ["votes.csv"]
    found = read([path], complete=False)
    assert len(found) == 120 and {l["annotator"] for l in found} == {f"rater {k}" for k in range(3)}


def tables(folder, word):
    import pandas as pd
    from treekit.papers.comparison.figures import save_both
    from treekit.figures.cells import write_scores
    from treekit.figures.claims_page import save_claims
    from treekit.figures.index_page import index_page
    from treekit.figures.plots import save_figure
    from treekit.figures.tables import save_csv, save_table
    import matplotlib.pyplot as plt

    df = pd.DataFrame([dict(a=word, b=1.0)])
    save_table(df, folder, "table")
    save_csv(df, folder / "plain.csv")
    save_both(df, df, folder, "cells", word)
    save_claims([], folder, word)
    write_scores({("g", "m", "d", word): {"d": {"q": 1.0}}}, folder / "table_scores.jsonl")
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


WRITING = (
    "import sys\nfrom pathlib import Path\nfrom treekit.utils.atomic_write import write_whole\nprint(flush=True)\n"
    "while True: write_whole(Path(sys.argv[1]), b'x' * 30_000_000)\n"
)


def test_a_kill_leaves_no_half_file(tmp_path):
    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", WRITING, tmp_path / "page.html"], stdout=subprocess.PIPE)
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        process.kill()
        process.communicate()
    assert [p.name for p in tmp_path.iterdir()] in ([], ["page.html"])


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    write_whole(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "a", "\ud800")
    (tmp_path / "b" / "c").mkdir(parents=True)
    with pytest.raises(OSError):
        write_whole(tmp_path / "b", "new")
    assert (tmp_path / "a").read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


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


def model(folder, weights):
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize("role", ["router", "navigator"])
def test_two_trained_models_in_folders_of_one_name_are_two(tmp_path, role):
    "And one that was trained again is another: neither is served the other's replies."
    import asyncio
    from treekit.core.prompts import Completion
    from treekit.experiments.resources import trained_class

    class Said(trained_class(role)):
        async def complete(self, request):
            return [Completion(Path(self.folder, "model.safetensors").read_text())]

    one, other = (model(tmp_path / k / "x" / "run" / "model", k.encode()) for k in ("one", "other"))
    store, prompt = Store(), Prompt("blows/route", "route", "$question", TEXT)

    def says(folder):
        return asyncio.run(CachedClient(Said(folder), store).complete(prompt(question="?")))[0].text

    assert Said(one).model == Said(other).model and identity_of(Said(one)) != identity_of(Said(other))
    assert [says(one), says(other), says(one)] == ["one", "other", "one"]
    (one / "model.safetensors").write_bytes(b"again")
    assert says(one) == "again"
    assert identity_of(Said(one)) == identity_of(Said(one))
