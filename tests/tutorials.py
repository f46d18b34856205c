"""The tutorials as programs: commands of their `console` blocks are run in order, in an empty folder, and outputs are compared.

    python tests/tutorials.py first_table first_study       run and compare
    python tests/tutorials.py --update first_table             write the real outputs into the page

In an expected output `…` stands for any text of a line; alone in a line it stands for any lines. Seconds may differ. A comment
`<!-- run … -->` has commands that a reader does elsewhere: in an editor, or with a paid server, for which the tests have a mock.
"""

import argparse, os, re, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "nbs" / "docs" / "tutorials"
NAMES = sorted(p.stem for p in PAGES.glob("*.md") if p.stem != "index")
BLOCK = re.compile(r"^```console\n(.*?)^```|^<!-- run\n(.*?)^-->", re.M | re.S)


def steps(text):
    "(command, expected output or None for a hidden command, place of the output in the text) of a page, in order."
    found = []
    for block in BLOCK.finditer(text):
        if block[2] is not None:
            found.append((block[2].strip("\n"), None, None))
            continue
        for step in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[1], re.M):
            start = block.start(1) + step.start(2)
            found.append((step[1], step[2], (start, start + len(step[2]))))
    return found


def pattern(expected):
    "Regular expression for an expected output."

    def line(text):
        if text.strip() == "…":
            return r"(?:.*\n)*?"
        parts = re.split(r"( *\d[\d,.]* s\b|…)", text.rstrip())

        def part(p):
            return ".*?" if p == "…" else r" *\d[\d,.]* s\b" if re.fullmatch(r" *\d[\d,.]* s", p) else re.escape(p)

        return "".join(map(part, parts)) + r"[ ]*\n"

    return re.compile("".join(map(line, expected.splitlines())))


def run(name, folder, **env):
    "Outputs of a tutorial's commands, run by one shell in an empty folder with an empty store. Raises `RuntimeError` if a command fails."
    todo = steps((PAGES / f"{name}.md").read_text(encoding="utf-8"))
    script = "\n".join(f'{command}\ncode=$?; echo; echo "<<<{i} $code>>>"' for i, (command, _, _) in enumerate(todo))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    site = folder.parent / "site"
    env = (
        {k: v for k, v in os.environ.items() if not k.startswith("TREEKIT_")}
        | dict(
            PATH=path,
            PYTHONPATH=os.pathsep.join([str(site), str(ROOT)]),
            COLUMNS="110",
            OPENAI_API_KEY="a-key-for-tests",
            TREEKIT_HOME=str(folder.parent / "home"),
            XDG_CONFIG_HOME=str(folder.parent / "config"),
            INSTALL=f"{sys.executable} {Path(__file__).resolve()} --install {site}",
        )
        | env
    )
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=1200)
    outputs, rest = [], done.stdout
    for i, (command, _, _) in enumerate(todo):
        found = re.search(rf"\n?<<<{i} (\d+)>>>\n", rest)
        if not found or found[1] != "0":
            raise RuntimeError(f"{name}: `{command}` failed\n{rest[-2000:]}\n{done.stderr[-2000:]}")
        outputs.append(rest[: found.start()])
        rest = rest[found.end() :]
    return [(*step, output) for step, output in zip(todo, outputs)]


def differences(made):
    "Commands whose output is not as expected, with both."

    def text(output):
        return "".join(f"{line.rstrip()}\n" for line in output.rstrip("\n").split("\n")) if output.strip() else ""

    return [
        f"$ {command}\nexpected:\n{expected}\ncame:\n{text(output)}"
        for command, expected, _, output in made
        if expected is not None and not pattern(expected).fullmatch(text(output))
    ]


def update(name, made):
    "Write outputs into the page where they differ from what is there."
    path = PAGES / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    for _, expected, place, output in reversed(made):
        shown = "".join(f"{line.rstrip()}\n" for line in output.rstrip("\n").split("\n")) if output.strip() else ""
        if expected is not None and (
            not pattern(expected).fullmatch(shown) or expected.strip() == "…" and shown.count("\n") < 30
        ):
            text = text[: place[0]] + shown + text[place[1] :]
    path.write_text(text, encoding="utf-8")


def install(site, package):
    "Install a package into a folder with pip; nothing is fetched."
    for python in (sys.executable, os.path.join(sys.base_prefix, "bin", "python3")):
        words = [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "--target",
            site,
            os.path.abspath(package),
        ]
        done = subprocess.run(
            words, capture_output=True, text=True, env=os.environ | dict(PYTHONPATH=os.pathsep.join(sys.path))
        )
        if done.returncode == 0:
            return
    sys.exit(done.stderr[-500:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    parser.add_argument("names", nargs="*", default=NAMES)
    given = parser.parse_args()
    from openai_server import Server

    for name in given.names:
        with tempfile.TemporaryDirectory() as folder, Server() as server:
            (here := Path(folder, "work")).mkdir()
            made = run(name, here, MOCK_ENDPOINT=server.url)
        if given.update:
            update(name, made)
        print("\n".join(differences(made)) or f"{name}: as written")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--install"]:
        install(*sys.argv[2:])
    else:
        main()
