"""What a wheel carries beside the package: notebooks, data and profiles, in `treekit/_shipped`, where `treekit.config.kit_path` finds them.

The assignments go along as students get them: no solution, no hidden test, no teacher's guide. Whoever grades takes them from a clone, or from the source distribution.
Of `data/kept` the trees go along, since the small install has no parser. The vectors stay in the clone: without them a first run computes them, and has the same results.
"""
import json, shutil, sys
from importlib import import_module
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
LEFT_OUT = {".ipynb_checkpoints", "__pycache__", ".DS_Store"}
CACHE, TREES = "data/kept", ("entities.npz", "parses.npz")  # the vectors weigh 22 MB, a third of what the wheel would


def of_the_kit(module, name):
    "A function of the package beside this file."
    sys.path.insert(0, str(ROOT))
    try: return getattr(import_module(f"treekit.{module}"), name)
    finally: del sys.path[0]


def shipped(root=ROOT):
    "Place in the wheel's copy, with slashes -> the file that goes there."
    teachers_only = of_the_kit("utils.scaffold", "teachers_only")
    files = [p for part in ("data", "nbs") for p in sorted((root / part).rglob("*")) if p.is_file() and not LEFT_OUT & set(p.parts)
             and not teachers_only(p.name) and not p.is_relative_to(root / "nbs/docs")
             and not (p.is_relative_to(root / CACHE) and p.name not in TREES)]
    return {p.relative_to(root).as_posix(): p for p in [*files, root / "settings.ini"]}


def content(name, path):
    "What goes there: the file as it is, but of an assignment what a release keeps."
    if not (name.startswith("nbs/assignments/") and name.endswith(".ipynb")): return path.read_bytes()
    stripped = of_the_kit("classroom.formats", "stripped")
    return (json.dumps(stripped(json.loads(path.read_text(encoding="utf-8"))), indent=1, ensure_ascii=False) + "\n").encode()


class WithShipped(build_py):
    "The package, and what it needs at run time. An editable install has the clone for that."
    def run(self):
        super().run()
        if self.editable_mode: return
        place = Path(self.build_lib, "treekit", "_shipped")
        shutil.rmtree(place, ignore_errors=True)  # of an earlier build
        for name, path in shipped().items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content(name, path))


if __name__ == "__main__": setup(cmdclass=dict(build_py=WithShipped))
