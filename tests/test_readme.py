"The front page: short, every local link alive, commands that exist."

import re, shlex
from pathlib import Path

from treekit.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def prose():
    "The text without code, tables, pictures and targets of links."
    text = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
    text = re.sub(r"^\|.*$|^    .*$|!\[[^\]]*\]\([^)]*\)", "", text, flags=re.M)
    return re.sub(r"\]\([^)]*\)", "]", text)


def test_it_is_short():
    assert 300 < len(prose().split()) <= 600


def test_local_links_are_alive():
    links = re.findall(r'\]\(([^)]+)\)|src="([^"]+)"', TEXT)
    local = [a or b for a, b in links if "://" not in (a or b)]
    assert len(local) > 20 and [name for name in local if not (ROOT / name).exists()] == []


def test_commands_and_their_options_exist():
    lines = re.findall(r"^treekit (.*?)(?:  +#.*)?$|`treekit ([^`]*)`", TEXT, re.M)
    for line in (a or b for a, b in lines):
        words, command = line.split(), main
        while words and hasattr(command, "commands") and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        known = {o for p in command.params for o in p.opts} | {"--help"}
        assert command is not main or words[0] in known, line
        assert {w for w in words if w.startswith("--")} <= known, line
        if command is not main and "PAPER" not in words:
            command.make_context(command.name, shlex.split(" ".join(words)))  # arguments, too
