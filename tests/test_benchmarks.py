"That no benchmark is broken: each can be imported, and the programs that some carry as text have no undefined name."

import ast, os, re, subprocess, sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "tests/benchmarks").glob("test_*.py"))


def programs(path):
    "The programs in a file's strings, with the places of `format` filled in."
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if not re.search(r"^(import|from) \w", text, re.M) or text.count("\n") < 2:
            continue
        if "{{" in text:
            text = re.sub(r"\{\w+!r\}", "''", text).replace("{{", "{").replace("}}", "}")  # it goes through `format`
        yield text


def undefined(text):
    "Ruff's lines about undefined names in a program."
    words = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "F821,E9",
        "--output-format",
        "concise",
        "-",
    ]
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    return [
        line for line in done.stdout.splitlines() if "F821" in line or "SyntaxError" in line or "invalid-syntax" in line
    ]


def test_what_is_not_defined_is_found():
    assert undefined("import os\nprint(Store())\n") and not undefined("import os\nprint(os)\n")


def test_programs_in_benchmarks_name_only_what_they_have():
    found = {path.name: lines for path in FILES for text in programs(path) if (lines := undefined(text))}
    assert found == {} and sum(len(list(programs(path))) for path in FILES) >= 4


@pytest.mark.slow
def test_every_benchmark_is_collected():
    "One file that can't be imported ends the collection of all of them."
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-q",
        "--collect-only",
        "-m",
        "slow or not slow",
        "tests/benchmarks",
    ]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    )
    assert done.returncode == 0, done.stdout[-2000:]
    collected = set(re.findall(r"tests/benchmarks/(test_\w+\.py): \d+", done.stdout))
    extras = {
        "test_encoders.py": "openvino",
        "test_corpora.py": "faiss",
    }  # skipped as a whole where the library isn't installed
    assert {f.name for f in FILES} - collected <= {name for name, library in extras.items() if not find_spec(library)}
