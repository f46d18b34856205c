"What the tables are made of: MuSiQue's questions by their number of hops, and the modules that answer."

from collections import Counter
from dataclasses import replace

from treekit.experiments.results import Results, Scored
from treekit.scoring.statistics import bootstrap

COLUMNS = dict.fromkeys(("hotpotqa", "musique", "2wiki"), ("F1",))  # data set -> its metrics
MODULES = {"leaf": ("closed-book", "open-book"), "node": ("closed-book", "open-book", "child-aggregating")}


def by_hops(results: Results) -> Results:
    "The same run with MuSiQue's questions of 2, 3 and 4 hops as data sets."

    def name(hops):
        return f"MuSiQue {hops}-hop"

    rows = [
        replace(r, dataset=name(r.question.hops)) for r in results.rows if r.dataset == "musique" and r.question.hops
    ]
    facts = {(m, name(h)): f for (m, d), f in results.facts.items() if d == "musique" for h in (2, 3, 4)}
    return replace(results, rows=rows, facts=results.facts | facts)


def chosen_modules(trace) -> Counter:  # (leaf or node, module) -> questions of the tree
    "Modules whose answers were chosen in a tree."
    counts = Counter()
    for node in trace.nodes:
        if node.kind != "question" or not node.data.get("source"):
            continue
        above = any(child.kind == "question" for child in trace.children(node))
        counts["node" if above else "leaf", node.data["source"]] += 1
    return counts


def module_shares(
    results: Results,
    method: str,  # its name in the results
) -> list[dict]:  # method, dataset, metric, n, failures, value, low, high
    "Share of each module among the answers of the leaves, and of the questions above them; each question counts by its own share."
    rows = []
    for (name, dataset), own in results.cells().items():
        if name != method:
            continue
        counts = {r.question.id: chosen_modules(r.trace) for r in own if not r.error}
        for where, modules in MODULES.items():
            totals = {q: sum(c[where, m] for m in modules) for q, c in counts.items()}
            for module in modules:
                each = {q: c[where, module] / totals[q] for q, c in counts.items() if totals[q]}
                if not each:
                    continue
                mean, low, high = map(float, bootstrap(list(each.values())))
                rows.append(
                    Scored(
                        dict(
                            method=f"{where}: {module}",
                            dataset=dataset,
                            metric="share",
                            n=len(each),
                            failures=sum(bool(r.error) for r in own),
                            value=mean,
                            low=low,
                            high=high,
                        ),
                        {dataset: each},
                    )
                )
    return rows
