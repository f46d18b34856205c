"""The ways into the command, and what a first user meets: the help's examples, `python -m treekit`, files for this user only, caches that
run nothing, the run that `treekit explore RUN --with OTHER` opens, a question of `treekit ask` replayed."""

import json, re, shlex, stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.config import UsageError
from treekit.store.run_store import Store
from treekit.explorer.diff import compare_runs
from treekit.explorer.forks import Edits, fork, same_bytes
from treekit.explorer.runs import open_run, open_store
from treekit.explorer.overrides import switch

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = {  # a question in the help or in the README -> its answer, as the passages have it
    "Who wrote the novel Taphora?": "Tephne Talapoulos",
    "Who directed the film that is based on the novel Taphora?": "Numos Talapoulos",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    "A work folder of its own."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def treekit_(*words):
    return CliRunner().invoke(main, list(map(str, words)))


def examples():
    "The words of each `treekit ask` in the help, the README and its notebook, whose question is written out."
    texts = [
        main.get_help(main.make_context("treekit", ["list"])),
        main.commands["ask"].get_help(main.commands["ask"].make_context("ask", ["?"])),
        (ROOT / "README.md").read_text(encoding="utf-8"),
        *(
            "".join(c["source"])
            for c in json.loads((ROOT / "nbs" / "index.ipynb").read_text(encoding="utf-8"))["cells"]
        ),
    ]
    found = re.findall(r'^ *(?:!|\$ )?treekit ask ("[^"]+".*?)(?:  +\S.*)?$', "\n".join(texts), re.M)
    split = {line: shlex.split(line, comments=True) for line in found}
    return {
        line: words for line, words in split.items() if words[0].isascii() and "..." not in words[0]
    }  # "…" is no ASCII; nor is Korean


def test_the_examples_are_these():
    "An example without a line above, or a line without an example, is found here."
    assert {words[0] for words in examples().values()} == set(EXAMPLES)


@pytest.mark.parametrize("line", sorted(examples()))
def test_each_example_of_ask_answers_rightly(line, home):
    words = examples()[line]
    done = treekit_("ask", *words, "--json")
    assert done.exit_code == 0, done.output
    assert EXAMPLES[words[0]] in json.loads(done.stdout)["answer"]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_files_with_prompts_replies_and_vectors_are_for_this_user_only(home):
    assert (
        treekit_("ask", "Who wrote the novel Taphora?", "--method", "zero-shot", "--set", "retriever=bm25s").exit_code
        == 0
    )
    assert mode(home) == 0o700
    [store] = (home / "store").glob("*.sqlite")
    assert mode(store) == 0o600
    from treekit.utils.sqlite_cache import cache_database

    with Store(home / "other.sqlite") as other:
        other.put_prediction("k", {})
        beside = [f for f in home.glob("other.sqlite*")]
        assert len(beside) == 3 and {mode(f) for f in beside} == {0o600}, "the log and the index beside it, too"
    with cache_database(home / "vectors.sqlite", "vectors (key BLOB PRIMARY KEY, value BLOB)", "vectors") as db:
        db.execute("SELECT 1")
    assert mode(home / "vectors.sqlite") == 0o600


def test_no_module_loads_a_pickle():
    "But a reader that admits arrays alone, and what Ray's own processes exchange."
    loads = re.compile(r"pickle\.loads?\(|allow_pickle=True")
    files = [p for p in (ROOT / "treekit").rglob("*.py") if p.name != "ray_engine.py"]
    assert [p.name for p in files if loads.search(p.read_text(encoding="utf-8"))] == []


def test_a_question_of_ask_is_replayed_forked_and_switched(home, tmp_path):
    "Its record says which passages were searched: the profile's own, or a file's."
    pages = tmp_path / "pages.jsonl"
    first, second = (
        dict(title="Taphora", text="Taphora is a novel written by Ada Roth."),
        dict(title="Ada Roth", text="A novelist."),
    )
    pages.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    asked = ("ask", "Who wrote the novel Taphora?", "--method", "cot", "--set", "retriever=bm25s")
    for words in (asked, (*asked, "--passages", pages)):
        assert treekit_(*words).exit_code == 0
        opened = open_run(open_store())
        again = fork(opened, 0)
        assert same_bytes(opened, 0, again) and again.asked == 0
        key = opened.rows[0].trace.answer.calls[-1]
        made = fork(opened, 0, Edits(replies=((key, "FINAL: nobody"),)))
        found = compare_runs(opened, made.run)  # no gold answer, so no score: what changed is the answer
        assert (found.pairs, found.alone, len(found.unjudged), found.changed) == ([], [], 1, [0])
        assert made.row.answer == "nobody" and fork(made.run, 0, name="once more").row.answer == "nobody"
        assert switch(opened, opened.rows[0].method, settings=dict(search_scope="own")).rows[0].answer
        hit = next(h for n in opened.rows[0].trace.nodes for h in n.data.get("hits", ()))
        assert opened.data.passages(opened.rows[0])(hit["id"]).text, "the explorer shows what was read"
    pages.write_text('{"title": "Taphora", "text": "A song."}\n')
    with pytest.raises(UsageError, match="aren't those of the run any more"):
        fork(opened, 0, name="changed")
