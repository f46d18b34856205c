"Jobs for the tests of `treekit bulk`, in a module that workers can import."

import json, os, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from treekit.bulk.jobs import Made


@dataclass(frozen=True)
class Squares:
    "n -> n²; 13 raises, 666 kills its process; each row that is worked on is noted."

    notes: str = ""  # a file
    seconds: float = 0.0  # a row
    name: ClassVar[str] = "squares"
    takes: ClassVar[str] = "records"
    rows: ClassVar[int] = 4

    def identity(self):
        return dict(power=2)

    def item(self, record):
        return record.get("n", int)

    def made(self, items):
        if 13 in items:
            raise ValueError("thirteen")
        for n in items:
            if n == 666:
                os._exit(9)
            time.sleep(self.seconds)
            if self.notes:
                with open(self.notes, "ab", buffering=0) as file:
                    file.write(b"%d\n" % n)
        return [Made((json.dumps(dict(n=n, square=n * n)),)) for n in items]


def source_file(path: Path, numbers) -> Path:
    "A file with a number a line; what is no number is written as it is."
    path.write_text("".join((json.dumps(dict(n=n)) if isinstance(n, int) else n) + "\n" for n in numbers))
    return path


def content(folder: Path) -> dict[str, bytes]:
    "All that must be the same whoever made it."
    kept = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in ("journal.jsonl", ".lock"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in kept}


def noted(path: Path) -> list[int]:
    "The rows that were worked on, as often as they were."
    return [int(line) for line in path.read_text().split()] if path.exists() else []
