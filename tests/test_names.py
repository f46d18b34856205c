"Names and addresses: nobody who follows a committed text installs a stranger's code."

import re, subprocess, tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {
    ".py",
    ".ipynb",
    ".md",
    ".toml",
    ".cff",
    ".ini",
    ".bib",
    ".cfg",
    ".txt",
    ".csv",
    ".html",
    ".js",
    ".tex",
    ".json",
    ".in",
}
FOREIGN = (  # `treekit` on the Python package index and on GitHub belong to others
    r"(?:github|gitlab)\.(?:com|io)[/:]treekit|treekit\.(?:github\.io|readthedocs)|pypi\.org/\w+/treekit\b",  # an address
    r"(?:pip3?|pipx|uv|uvx|conda|mamba|poetry)[ \t]+(?!uninstall)(?:\w+[ \t]+|-\S+[ \t]+)*[\\\"']*treekit(?![\w./-])",  # the bare name
    r"(?<![\w./-])treekit\\?\[(?:[a-z]+\\?[],]|\{)",  # an extra of it: treekit[tables]
    r"(?<![\w./-])treekit\s*(?:[=~><]=|@ )\s*[\d.gh]",  # a version of it
    r"dependencies\s*=\s*\[[^]]*[\"']treekit[\"']",  # what a package of one's own is installed with
    r"treekit-\d[\d.]*(?:-py|\.tar)",  # its files
)


def foreign(text):
    return [m[0] for pattern in FOREIGN for m in re.finditer(pattern, text)]


def test_no_text_names_the_distribution_or_the_address_of_a_stranger():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [
        ROOT / n for n in listed.stdout.split("\0") if n and (Path(n).suffix in TEXTS or Path(n).name == "Makefile")
    ]
    files = [f for f in files if f.is_file() and f != Path(__file__).resolve() and f.stat().st_size < 3_000_000]
    found = {
        f.relative_to(ROOT).as_posix(): bad
        for f in files
        if (bad := foreign(f.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {} and len(files) > 500


@pytest.mark.parametrize(
    "text",
    [
        "pip install treekit",
        "pip install 'treekit[tables]'",
        'pip install \\"treekit[explorer]\\"',
        "%pip install -q -U treekit",
        "uv add treekit",
        "pip install 'treekit[class,tables]'",
        "pipx install treekit",
        "treekit>=0.1",
        "treekit==0.0.22",
        "uv pip install treekit",
        'dependencies = ["click", "treekit"]',
        "git clone https://github.com/treekit/treekit",
        "git@github.com:treekit/treekit.git",
        "https://treekit.github.io",
        "treekit-0.1.0-py3-none-any.whl",
        "pip install 'treekit[{extra}]'",
        r"match='treekit\[dense\]'",
    ],
)
def test_the_pattern_finds_such_a_text(text):
    assert foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'treekit-rag[tables]'",
        "pip install '.[dev]'",
        "pip install -e lookstwice, then treekit list",
        "pip install -e lookstwice\n  treekit list lookstwice",
        "treekit_rag-0.1.0-py3-none-any.whl",
        'known["treekit"]',
        "import treekit",
        "pip uninstall --yes treekit",
        "pip install -e examples/treekit-probtree",
        "the entry points `treekit.papers`",
    ],
)
def test_the_pattern_lets_our_own_texts_be(text):
    assert not foreign(text)


def test_the_distribution_has_its_own_name_and_no_invented_address():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "treekit-rag" and "urls" not in project
    own = [d for extra in project["optional-dependencies"].values() for d in extra if d.startswith("treekit")]
    assert own and all(d.startswith("treekit-rag[") for d in own)
    assert not re.search(r"^git_url *= *\S", (ROOT / "settings.ini").read_text(encoding="utf-8"), re.M)
