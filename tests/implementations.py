"Hashes of the modules that contracts name, as data/papers/implementations.csv has them: after a change of a method, python tests/implementations.py"

from treekit.config import kit_path
from treekit.experiments.provenance import implementation_of
from treekit.papers.plugin import papers, resolve


def implementations() -> str:
    "Class and hash, a line each."
    lines = [r for p in papers() for r in p.rows("experiment.csv") if r["fact"] == "method"]
    named = sorted({name for r in lines for name in r["accepts"].split("|")})
    found = [implementation_of(resolve(":".join(name.rsplit(".", 1)))) for name in named]
    return "class,hash\n" + "".join(f"{line.replace(' ', ',')}\n" for line in found)


if __name__ == "__main__":
    kit_path("data", "papers", "implementations.csv").write_text(implementations(), encoding="utf-8")
