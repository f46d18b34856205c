"""Tables in the notebooks of nbs/reproduce: python tests/notebook_outputs.py, after treekit reproduce

The Markdown that the last run's executed notebooks show is copied into the committed ones. Pictures are links there, and other outputs
differ from machine to machine."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "nbs/reproduce").glob("*/*.ipynb"))


def code_cells(notebook: dict) -> dict[str, dict]:
    "Code cells of a notebook by their source, without the injected parameters."
    cells = (c for c in notebook["cells"] if c["cell_type"] == "code")
    return {"".join(c["source"]): c for c in cells if "injected-parameters" not in c["metadata"].get("tags", ())}


def shown(cell: dict) -> str:
    "Markdown that a cell shows."
    found = (o.get("data", {}).get("text/markdown", "") for o in cell["outputs"])
    return "".join(text if isinstance(text, str) else "".join(text) for text in found)


def copy_outputs(runs: Path) -> None:
    "Copy from runs/PAPER/ARTEFACT.ipynb; a notebook that wasn't run stays as it is."
    for path in (p for p in NOTEBOOKS if (runs / p.parent.name / p.name).exists()):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        ran = code_cells(json.loads((runs / path.parent.name / path.name).read_text(encoding="utf-8")))
        for source, cell in code_cells(notebook).items():
            text = shown(ran[source]) if source in ran else ""
            data = {"text/markdown": text.splitlines(keepends=True)}
            cell["outputs"] = [dict(data=data, metadata={}, output_type="display_data")] if text else []
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    from treekit.config import work_dir

    copy_outputs(work_dir("runs", "offline"))
