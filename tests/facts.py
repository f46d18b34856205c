"Metadata of runs, made up."

import dataclasses

from treekit.experiments.paper_settings import said_of
from treekit.experiments.provenance import RunFacts


def facts_as_said(
    paper: str,
    artefact: str,
    dataset: str = "",  # the kit's name
    method: str = "",  # the printed name
    /,
    **others,  # other values of facts
) -> RunFacts:
    "Facts that differ in nothing from what a paper says."
    kinds = {f.name: getattr(f.type, "__name__", str(f.type)) for f in dataclasses.fields(RunFacts)}

    def example(pattern):
        needed = ", ".join(part for part in pattern.split(", ") if part[0] != "?")
        known = needed.removeprefix(">=").translate(str.maketrans({"*": "", "?": "0", "[": "", "]": ""}))
        return "any" if pattern == "*" else known

    def typed(name, text):
        kind = int if kinds[name] == "int" else float if kinds[name].startswith("float") else str
        return kind(1) if text == "any" and kind is not str else kind(text)

    there = said_of(paper, artefact, dataset, method, others.get("model", ""))
    said = {name: s.accepts[0] for name, s in there.items() if name in kinds and s.accepts}
    if "fields" in there:
        said["reading"] = there["fields"].accepts
    values = {
        name: typed(name, example(pattern)) if isinstance(pattern, str) else pattern for name, pattern in said.items()
    }
    return RunFacts(**values | others)
