"Files of pipelines as Python reads them, a changed working folder, a budget of none, and badges on the passages of a trace."

import os

import pytest

from treekit.adapters.loading import load_pipeline
from treekit.artefacts.catalog import settled
from treekit.cli.options import profile_of
from treekit.config import UsageError
from treekit.core.method import Node, Trace
from treekit.core.types import Passage, Question
from treekit.explorer.trees import details

CODE = 'def answer(question, context): return "예"\n'


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + CODE.encode(),
        b"# -*- coding: cp949 -*-\n" + CODE.encode("cp949"),
        b"#!/usr/bin/python\n# coding: euc-kr\n" + CODE.encode("euc-kr"),
        CODE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf# coding: utf-8\n" + CODE.encode(),
    ],
)
def test_a_file_is_read_as_python_reads_it(content, tmp_path):
    (tmp_path / "mine.py").write_bytes(content)
    assert load_pipeline(f"{tmp_path}/mine.py:answer").name == "mine.py:answer"


@pytest.mark.parametrize(
    "content",
    [
        CODE.encode("cp949"),
        b"# coding: nonsense\n" + CODE.encode(),
        b"\xef\xbb\xbf# coding: cp949\n" + CODE.encode(),
        b"x = '\0'\n",
        CODE.encode("utf-16"),
    ],
)
def test_a_broken_file_is_one_line(content, tmp_path):
    (tmp_path / "mine.py").write_bytes(content)
    with pytest.raises(UsageError, match=r"^mine.py can't be (imported|read as Python): .+$"):
        load_pipeline(f"{tmp_path}/mine.py:answer")


def test_a_module_beside_it_is_read_as_python_reads_it(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def answer(question, context):\n    import other_beside\n    return 'x'\n", encoding="utf-8"
    )
    (tmp_path / "other_beside.py").write_bytes(b"# coding: cp949\n" + CODE.encode("cp949"))
    assert load_pipeline(f"{tmp_path}/mine.py:answer").code
    (tmp_path / "other_beside.py").write_bytes(CODE.encode("cp949"))
    with pytest.raises(UsageError, match=r"^other_beside.py can't be read as Python"):
        load_pipeline(f"{tmp_path}/mine.py:answer")


def test_a_pipeline_that_changes_the_folder_leaves_the_results_here(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import os, tempfile\nos.chdir(tempfile.gettempdir())\ndef answer(question, context):\n"
        "    os.chdir('/')\n    return 'x'\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    load_pipeline("mine.py:answer")
    assert os.getcwd() == str(tmp_path)
    from treekit import load, run

    run("mine.py:answer", load("hotpotqa", n=2, data="synthetic:100"))
    assert os.getcwd() == str(tmp_path)


@pytest.mark.parametrize("said", ["none", "None", "", "0.5"])
def test_a_budget_by_set_is_one_by_its_option(said):
    given, others = settled("openai", dict(budget=said), n=3, seed=None, data=None, budget=None)
    assert profile_of("openai", given, others).budget == (0.5 if said == "0.5" else None)


@pytest.mark.parametrize(
    "gold, text, where",
    [
        ("no", "No one of the north knows.", []),
        ("yes", "Yes, the eyes.", []),
        ("Yes", "yes", []),
        ("Ada", "Canada and Ada, Adam.", [(11, 14)]),
        ("1899", "In 18990 or 1899.", [(12, 16)]),
        ("서울", "서울은 수도다.", [(0, 2)]),
        ("Ada", "ADA", [(0, 3)]),
    ],
)
def test_a_passage_is_marked_where_it_says_the_answer_as_words(gold, text, where):
    node = Node(0, None, "search", "?", dict(hits=[dict(id="p", title="T", score=1.0)]))
    found = details(Trace([node]), node, Question("q", "d", "?", (gold,)), passages=lambda i: Passage(i, "T", text))
    assert [tuple(m) for m in found["hits"][0]["marks"]] == where
