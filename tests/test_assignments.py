"Each assignment: the solution has full marks, the release nothing on what is to be done, five plausible mistakes what the rubric says."

import contextlib, io, json

import pytest

from classes import WALL, needs_wall
from treekit.classroom.course import course_settings, sources_folder
from treekit.classroom.formats import exercises, marks, read_notebook, regions, stripped, cell_source
from treekit.classroom.grading import graded
from treekit.classroom.sandbox import Limits
from treekit.classroom.answer_keys import run_source
from treekit.classroom.student_corpora import generate_corpus, use_corpus

ASSIGNMENTS = [p.stem for p in sorted(sources_folder().glob("[0-9]*.ipynb"))]
LIMITS = Limits(cell=60, call=20, submission=900)

WRONG = {  # assignment -> (what is wrong, in the solution, instead, the points of the exercises that lose some)
    "1_retrieval": [
        (
            "capitals stay",
            "text.lower()",
            "text",
            {"tokenise-tests": 1, "index-tests": 0, "rank-tests": 2, "evaluate-tests": 0},
        ),
        (
            "b the wrong way round",
            "1 - b + b * lengths[where] / mean_length",
            "b + (1 - b) * lengths[where] / mean_length",
            {"rank-tests": 2, "evaluate-tests": 1},
        ),  # where one question is asked, the first passage may be right all the same
        # this world has equal scores of its own: two criteria are missed beside the one that is about them
        ("ties by luck", "key=lambda pair: (-pair[1], pair[0])", "key=lambda pair: -pair[1]", {"rank-tests": 2}),
        (
            "recall divided by k",
            "/ len(set(gold)) if gold else 0.0",
            "/ k",
            {"recall-tests": 1.33, "evaluate-tests": 0},
        ),
        ("ndcg without its ideal", "return reached / ideal if ideal else 0.0", "return reached", {"ndcg-tests": 1}),
    ],
    "2_syntax_trees": [
        (
            "only direct dependents",
            "gathered += subtree(tokens, dependent)",
            "gathered += [dependent]",
            {"subtree-tests": 0, "phrase-tests": 1.5, "phrases-tests": 0, "merge-tests": 1.67, "search-tests": 1.33},
        ),
        (
            "punctuation stays",
            'while span and span[-1]["tag"] == "PUNCT":',
            "while False:",
            {"phrase-tests": 0, "phrases-tests": 1.33, "merge-tests": 1.67},
        ),
        (
            "top-down",
            "yield from climb(dependent)\n",
            "yield from ()\n",
            {"phrases-tests": 0, "search-tests": 1.33},
        ),
        (
            "lists one after the other",
            "[column[row] for row in range(deepest) for column in columns if row < len(column)]",
            "[item for column in columns for item in column]",
            {"merge-tests": 1.67, "search-tests": 1.33},
        ),
        (
            "passages twice",
            "list(dict.fromkeys(in_turn))[:kept]",
            "in_turn[:kept]",
            {"merge-tests": 1.67, "search-tests": 1.33},
        ),
    ],
    "3_evidence": [
        (
            "what hangs below a skipped node is lost",
            "return lower",
            "return []",
            {"kept-tests": 2.4},
        ),
        ("leaves ask for queries, too", "[:3] if lower else []", "[:3]", {"bottom-tests": 0}),
        (
            "evidence stays where it is",
            'write_queries(question, entry["phrase"], lower)',
            'write_queries(question, entry["phrase"], [])',
            {"bottom-tests": 1.67},
        ),
        (
            "letters, not words",
            "spaced(option) in spaced(answer)",
            "option.lower() in answer.lower()",
            {"cover-tests": 0.67},
        ),
        ("a sum where the longest counts", "1 + max((rank[earlier]", "1 + sum((rank[earlier]", {"path-tests": 0}),
        ("as many workers as one likes", "len(running) < workers and ", "", {"finish-tests": 1.33}),
        ("turns without a memory", "pile += len(uttered.split())", "pass", {"chain-tests": 1}),
    ],
    "4_question_trees": [
        (
            "a percentage on a scale to ten",
            "(sense + sure / 10) / 2",
            "(sense + sure) / 2",
            {"assess-tests": 0.5, "grow-tests": 0},
        ),
        ("grades as they are written", "min(max(float(hit[1]), low), high)", "float(hit[1])", {"assess-tests": 2.5}),
        (
            "validity isn't read",
            ' and not re.search(r"response_validity[^a-zA-Z0-9]+false", reply, re.I)',
            "",
            {"assess-tests": 2, "grow-tests": 3.6},
        ),
        ("one kind of slot", r'r"#(\d{1,2})|<(\d{1,2})>"', r'r"#(\d{1,2})|#(\d{1,2})"', {"read-tests": 2.25}),
        (
            "one question a wave",
            "groups.append(ready)\n        settled.update(ready)",
            "groups.append(ready[:1])\n        settled.update(ready[:1])",
            {"waves-tests": 2, "grow-tests": 3.6},
        ),
        (
            "an empty answer is one",
            "answers.get(n) for n in wanted",
            "n in answers for n in wanted",
            {"waves-tests": 2.5, "grow-tests": 2.4},
        ),
        ("below an accepted child, too", 'if not entry["accepted"]:', "if True:", {"findings-tests": 0.75}),
        ("the tree grows behind an accepted root", 'if nodes[0]["accepted"]:', "if False:", {"grow-tests": 4.8}),
        ("never up again", 'if renewed["score"] > entry["score"]:', "if False:", {"grow-tests": 2.4}),
    ],
    "5_risk_and_uct": [
        (
            "weights that aren't shares",
            "mix * inside[token] / size + (1 - mix)",
            "mix * inside[token] / size + mix",
            {"likelihoods-tests": 2.25},
        ),
        ("a sum for a mean", "-sum(logs) / len(logs)", "-sum(logs)", {"value-tests": 1.5, "search-tests": 1}),
        (
            "a high risk is a high value",
            "alpha * (risk - beta)",
            "-alpha * (risk - beta)",
            {"value-tests": 0.5, "search-tests": 1},
        ),
        (
            "exponents without a limit",
            "max(-700, min(700, alpha * (risk - beta)))",
            "alpha * (risk - beta)",
            {"value-tests": 1.5},
        ),
        (
            "the first without a visit",
            "max(fresh, key=lambda place: children[place][0])",
            "fresh[0]",
            {"choose-tests": 2.25, "search-tests": 1},
        ),
        (
            "visits without a logarithm",
            "math.log(above) / children",
            "above / children",
            {"choose-tests": 2.25, "search-tests": 2},
        ),
        (
            "means that don't count visits",
            'sum(entry["value"] * entry["visits"] for entry in below) / sum(\n            entry["visits"] for entry in below\n        )',
            'sum(entry["value"] for entry in below) / len(below)',
            {"back-tests": 2.67, "search-tests": 1},
        ),
        (
            "visited or not",
            'if entry["parent"] == here and entry["visits"]]',
            'if entry["parent"] == here]',
            {"path-tests": 0},
        ),
        ("the last number of all", 'r"evaluation[^a-zA-Z0-9]+(', 'r"(', {"judged-tests": 1.5}),
    ],
    "6_decomposition": [
        (
            "only direct children",
            "        while above:\n            tally[above] += 1\n            above = heads[above]",
            "        if above: tally[above] += 1",
            {"below-tests": 0.67, "importance-tests": 1.5, "informative-tests": 1.6},
        ),
        (
            "the best sentence for their sum",
            "total.get(name, 0) + most",
            "max(total.get(name, 0), most)",
            {"importance-tests": 2.25},
        ),
        ("titles as they are", 'title.split(" (")[0]', "title", {"importance-tests": 1.5, "informative-tests": 3.2}),
        (
            "1, 2, 2, 3",
            "sum(other > worth for other in importances.values())",
            "len({other for other in importances.values() if other > worth})",
            {"informative-tests": 0.8},
        ),
        (
            "repeated names count",
            "for name in sorted(set(names)) if",
            "for name in names if",
            {"informative-tests": 3.2},
        ),
        (
            "no other in its place",
            "similar if key not in head][:b]",
            "similar[:b] if key not in head]",
            {"two-tests": 0},
        ),
        (
            "numbers of the list, not of the chain",
            "spots[number] = len(asked)",
            "spots[number] = number",
            {"chain-tests": 2},
        ),
        (
            "the first that fits",
            "for pair in reversed(history) if pair[1]]",
            "for pair in history if pair[1]]",
            {"resolve-tests": 1.8, "follow-tests": 3},
        ),
        (
            "letters, not words",
            'in re.findall(r"\\w+", pair[0].lower())]',
            "in pair[0].lower()]",
            {"resolve-tests": 2.4},
        ),
        ("references stay", "settled = resolve(item, history)", "settled = item", {"follow-tests": 1}),
    ],
    "7_routing": [
        (
            "below the root or the last heading",
            "while mark and trail[-1][0] >= len(mark[1]):",
            "while mark and len(trail) > 1:",
            {"tree-tests": 1.5, "whole-tests": 2},
        ),
        ("any line with equals signs", r'r"(={2,})([^=](?:.*[^=])?)\1"', 'r"(=+)(.*?)=+"', {"tree-tests": 2.25}),
        (
            "the hits alone are lit",
            'entry["type"] == "content" and entry["parent"] in homes]',
            'entry["id"] in hits]',
            {"view-tests": 2.4},
        ),
        (
            "only headings above what is lit",
            'if entry["type"] == "structure" or entry["id"] in visible)',
            'if entry["id"] in visible or any(nodes[i]["parent"] == entry["id"] for i in visible))',
            {"view-tests": 1.8, "walk-tests": 1.5, "whole-tests": 1},
        ),
        (
            "headings on trust",
            'in (visible if word == "ANSWER" else folded)]',
            'in visible or word == "EXPAND"]',
            {"route-tests": 1.5},
        ),
        (
            "the first mark counts",
            "*_, last = [None, *re.finditer(pattern, reply, re.S)]",
            "last = next(re.finditer(pattern, reply, re.S), None)",
            {"step-tests": 1.5},
        ),
        ("the last one first", "line.append(goal)", "line.insert(0, goal)", {"walk-tests": 1.5}),
        (
            "a step too many",
            "for turn in range(steps):",
            "for turn in range(steps + 1):",
            {"walk-tests": 4.5, "whole-tests": 2},
        ),
        ("repeated ids count", "both / len(set(found)) if found", "both / len(found) if found", {"share-tests": 1.33}),
    ],
    "8_reproduction": [
        (
            "lower is higher",
            'if direction == "lower":',
            "if False:",
            {"verdict-tests": 2, "compare-tests": 2.25},
        ),
        (
            "the same as soon as 0 is inside",
            "-margin <= low and high <= margin, low > margin",
            "low <= 0 <= high, low > margin",
            {"verdict-tests": 2.5, "compare-tests": 2.25},
        ),
        (
            "one side of the coin",
            "min(1.0, 2 * sum(",
            "min(1.0, sum(",
            {"tests-tests": 1.6, "power-tests": 0.8, "compare-tests": 0.75},
        ),
        ("Bonferroni", "(len(values) - done)", "len(values)", {"tests-tests": 3.2}),
        (
            "equal ones are tossed, too",
            "sum(u >= 1 - loss for u in throws)",
            "sum(u >= gain for u in throws)",
            {"power-tests": 0},
        ),
        (
            "means of one difference",
            "sum(dice.choices(differences, k=size)) / size for",
            "dice.choice(differences) for",
            {"interval-tests": 0, "compare-tests": 0.75},
        ),
        (
            "right minus left",
            "[a - b for a, b in zip(left, right)]",
            "[b - a for a, b in zip(left, right)]",
            {"compare-tests": 0.75},
        ),
        (
            "p for the verdict",
            "verdict=verdict(direction, bottom, top, margin)",
            'verdict="supported" if sign_test(ups, downs) < 0.05 else "inconclusive"',
            {"compare-tests": 0.75},
        ),
        (
            "any gap will do",
            'any(covers(told, gap) for told in record["given"])',
            'any(covers(told, group) for told in record["given"] for group in record["answers"])',
            {"cause-tests": 2.86},
        ),
        (
            "lines as they come",
            "sorted(moved.items(), key=lambda pair: (-pair[1], pair[0]))",
            "moved.items()",
            {"page-tests": 0.67},
        ),
    ],
}


QUICK = ("1", "7")  # CI grades these; all eight take minutes


@pytest.fixture(
    scope="module", params=[a if a[0] in QUICK else pytest.param(a, marks=pytest.mark.slow) for a in ASSIGNMENTS]
)
def assignment(request):
    "(name, source, key, what lies beside the notebook)"
    name = request.param
    nb = read_notebook(sources_folder() / f"{name}.ipynb")
    world, closed = generate_corpus(20261123, name, course_settings(name).world)
    with contextlib.redirect_stdout(io.StringIO()):
        calls = run_source(nb, world, 7, closed)
    return (
        name,
        nb,
        dict(exercises=[e | dict(calls=calls.get(e["id"], [])) for e in exercises(nb)], hidden=[]),
        {"world.json": json.dumps(world)},
    )


def submitted(nb, old="", new=""):
    "The release with its solutions filled in, and one thing in them changed."
    handed, changed = stripped(nb), 0
    solved = {
        marks(c)["grade_id"]: "\n".join(code for region, code in regions(cell_source(c)) if region != "HIDDEN TESTS")
        for c in nb["cells"]
        if marks(c)
    }
    for c in handed["cells"]:
        if marks(c).get("solution") and c["cell_type"] == "code":
            text = solved[marks(c)["grade_id"]]
            changed += bool(old) and text.count(old)
            c["source"] = text.replace(old, new) if old else text
        elif marks(c).get("solution"):
            c["source"] = "An answer in words."
    assert changed == bool(old) or changed > 0 and old, f"{old!r} stands nowhere in the solutions"
    return handed


def scores(nb, key, files, handed):
    grade = graded(json.dumps(handed).encode(), stripped(nb), key, files, WALL, LIMITS)
    return {e["id"]: (e["points"], e["of"]) for e in grade["exercises"]}


@pytest.mark.parametrize("seed", (20261123, 7, 8))
def test_a_student_sees_what_exploration_finds(seed):
    "Assignment 5: in 60 rounds UCT finds needed passages that a greedy search doesn't find; in 3 rounds both find the same."
    world, _ = generate_corpus(seed, "5_risk_and_uct", course_settings("5_risk_and_uct").world)
    namespace = {}
    with use_corpus(world), contextlib.redirect_stdout(io.StringIO()) as printed:
        for c in read_notebook(sources_folder() / "5_risk_and_uct.ipynb")["cells"]:
            if c["cell_type"] == "code" and not marks(c).get("grade"):
                exec(cell_source(c), namespace)
    found = namespace["results"]
    pairs = list(zip(found[0.0, 60], found[1.4, 60]))
    more, less = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
    assert found[0.0, 3] == found[1.4, 3] and more >= 3 and more >= 3 * less
    assert f"for {more} of {len(pairs)} questions, less for {less}" in printed.getvalue()


@needs_wall
@pytest.mark.long
def test_the_solution_has_full_marks(assignment):
    name, nb, key, files = assignment
    found = scores(nb, key, files, submitted(nb))
    assert all(p in (of, None) for p, of in found.values()), found


@needs_wall
@pytest.mark.long
def test_the_release_has_nothing(assignment):
    name, nb, key, files = assignment
    assert all(not p for p, _ in scores(nb, key, files, stripped(nb)).values())


@needs_wall
@pytest.mark.slow
def test_plausible_mistakes(assignment):
    "What a mistake costs is what the rubric says, and nothing else."
    name, nb, key, files = assignment
    told = {}
    for what, old, new, lost in WRONG[name]:
        found = scores(nb, key, files, submitted(nb, old, new))
        told[what] = {e: p for e, (p, of) in found.items() if p not in (of, None)}
    assert told == {
        what: {e: p for e, p in lost.items() if p != {x["id"]: x["points"] for x in exercises(nb)}[e]}
        for what, _, _, lost in WRONG[name]
    }


@pytest.mark.long
def test_every_criterion_can_be_missed_by_a_constant(assignment):
    "Who answers 0, [] or nothing to everything has at most half of an exercise's points."
    name, nb, key, files = assignment
    for e in key["exercises"]:
        if e["by_hand"]:
            continue
        for constant in (0, 0.0, [], "", {"dict": []}, False, None):
            met = {}
            for c in e["calls"]:
                met.setdefault(c["criterion"], []).append(c["value"] == constant)
            assert sum(map(all, met.values())) <= len(met) / 2, (e["id"], constant)
