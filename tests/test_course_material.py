"Course material: headers, hints and messages of the assignments, sample answers, index, and what students must not get."

import ast, contextlib, copy, importlib.util, io, json, re, textwrap, tokenize

import pytest

from test_assignments import WRONG as MISTAKES
from treekit.classroom.course import course_settings, sources_folder
from treekit.classroom.formats import cell_source, exercises, marks, read_notebook, regions, stripped
from treekit.classroom.release_check import leaks_in, secrets_of
from treekit.classroom.student_corpora import generate_corpus, use_corpus
from treekit.config import package_dir
from treekit.utils.scaffold import laid_files, teachers_only

FOLDER = sources_folder()
ASSIGNMENTS = [p.stem for p in sorted(FOLDER.glob("[0-9]*.ipynb"))]
QUICK = ("1",)

TOLD = {  # assignment -> (exercise, the mistake: as test_assignments calls it, or (in the solution, instead), what the message has to say)
    "1_retrieval": [
        ("tokenise-tests", "capitals stay", "upper-case letters are left"),
        ("index-tests", ('entry["title"] + " " + entry["text"]', 'entry["text"]'), "title isn't indexed"),
        ("rank-tests", ("1 - b + b * lengths[where]", "b + (1 - b) * lengths[where]"), "b and 1 - b are swapped"),
        ("recall-tests", "recall divided by k", "not by k"),
        ("rr-tests", ("dict.fromkeys(found), 1)", "dict.fromkeys(found), 0)"), "do you start from 0"),
        ("ndcg-tests", "ndcg without its ideal", "isn't normalised"),
        ("evaluate-tests", ("value / max(1, len(questions))", "value"), "sums, not means"),
    ],
    "2_syntax_trees": [
        (
            "below-tests",
            ('entry["id"] for entry in tokens if', 'entry["id"] - 1 for entry in tokens if'),
            "not its position",
        ),
        ("subtree-tests", "only direct dependents", "indirect dependents"),
        ("phrase-tests", "punctuation stays", "punctuation at the end"),
        ("phrases-tests", ('["relation"].split(":")[0] not in', '["relation"] not in'), "subtype of aux"),
        ("merge-tests", "lists one after the other", "take turns"),
        ("search-tests", ("set(gold) <= set(found)", "bool(set(gold) & set(found))"), "All of them"),
    ],
    "3_evidence": [
        ("kept-tests", "what hangs below a skipped node is lost", "moves up"),
        (
            "bottom-tests",
            ('entry["phrase"], lower)', 'entry["phrase"], [])'),
            "don't depend on the children's evidence",
        ),
        (
            "cover-tests",
            ("spaced(option) in spaced(answer)", "spaced(option).strip() in spaced(answer)"),
            "whole words",
        ),
        ("calls-tests", ('if entry["children"]: rows.append(', "rows.append("), "makes no call for queries"),
        ("bill-tests", ("/ 1_000_000", ""), "per million tokens"),
        (
            "path-tests",
            (
                'max((rank[earlier] for earlier in entry["after"]), default=0)',
                'sum(rank[earlier] for earlier in entry["after"])',
            ),
            "not the sum",
        ),
        ("finish-tests", "as many workers as one likes", "only `workers` calls"),
        ("chain-tests", "turns without a memory", "reads the earlier turns again"),
    ],
    "4_question_trees": [
        ("assess-tests", "a percentage on a scale to ten", "divide it by ten"),
        ("read-tests", "one kind of slot", "<1> becomes"),
        ("waves-tests", "one question a wave", "in the same group"),
        ("findings-tests", "below an accepted child, too", "child A. is accepted"),
        ("grow-tests", "never up again", "wasn't answered again"),
    ],
    "5_risk_and_uct": [
        (
            "likelihoods-tests",
            ("sum(counts.values()) + len(counts)", "sum(counts.values())"),
            "number of different words is missing",
        ),
        ("value-tests", "a sum for a mean", "a mean, not a sum"),
        ("choose-tests", "the first without a visit", "highest value, not the first"),
        ("back-tests", "means that don't count visits", "weighted by visits"),
        ("path-tests", "visited or not", "only children with a visit"),
        ("search-tests", ("len(trail) < depth", "len(trail) <= depth"), "more than two steps"),
        ("judged-tests", "the last number of all", "not the last number of the reply"),
    ],
    "6_decomposition": [
        ("below-tests", "only direct children", "indirect dependents"),
        ("importance-tests", "titles as they are", "part in brackets"),
        ("informative-tests", "1, 2, 2, 3", "next rank is 4"),
        ("two-tests", "no other in its place", "take the next similar passage"),
        ("chain-tests", "numbers of the list, not of the chain", "references get new numbers"),
        ("resolve-tests", "the first that fits", "the latest one counts"),
        ("follow-tests", "references stay", "isn't resolved"),
    ],
    "7_routing": [
        ("tree-tests", ("while mark and trail[-1][0] >= len(mark[1]): trail.pop()", ""), "parent is the root"),
        ("view-tests", "the hits alone are lit", "not only the hit"),
        ("route-tests", ("for pair in dict.fromkeys(pairs)", "for pair in pairs"), "each action once"),
        ("step-tests", "the first mark counts", "not the first"),
        ("walk-tests", "the last one first", "a queue"),
        ("whole-tests", ('ids[title, tree[goal]["text"]] for', "goal for"), "not of nodes"),
        (
            "share-tests",
            ("[both / len(set(found)) if found", "[both / len(set(gold)) if found"),
            "precision comes first|0.5, 0.25",
        ),
    ],
    "8_reproduction": [
        (
            "verdict-tests",
            ('if direction == "lower":', "if False:"),
            "contradicted, not supported",
        ),
        ("tests-tests", "one side of the coin", "one-sided"),
        ("power-tests", "equal ones are tossed, too", "is u >= 1 - loss worse"),
        ("interval-tests", "means of one difference", "not one difference"),
        ("compare-tests", "right minus left", "not right minus left"),
        ("cause-tests", "any gap will do", "look for this group only"),
        ("page-tests", "lines as they come", "aren't sorted"),
    ],
}


def change(name, mistake):
    "What a mistake replaces in the solution, and by what."
    return (
        next((old, new) for what, old, new, _ in MISTAKES[name] if what == mistake)
        if isinstance(mistake, str)
        else mistake
    )


WRONG = {
    name: [(exercise, *change(name, mistake), said) for exercise, mistake, said in rows] for name, rows in TOLD.items()
}


def source(name):
    return read_notebook(FOLDER / f"{name}.ipynb")


def rows_of(text, columns):
    "Rows of the Markdown tables with this number of columns, without heads."
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in rows if len(row) == columns]


def derived_hours(nb):
    "Time by the rule of the teacher's guide: four minutes per logical line of the solution, reading, ten minutes per point of the open question."
    lines = words = 0
    for c in stripped(nb)["cells"]:
        words += len(cell_source(c).split()) if c["cell_type"] == "markdown" else 0
    for c in nb["cells"]:
        if c["cell_type"] == "code" and marks(c).get("solution"):
            for name, text in regions(cell_source(c)):
                if name == "SOLUTION":
                    rows = tokenize.generate_tokens(io.StringIO(textwrap.dedent(text) + "\n").readline)
                    lines += sum(row.type == tokenize.NEWLINE for row in rows)
    return (4 * lines + words / 100 + 10 * sum(e["points"] for e in exercises(nb) if e["by_hand"])) / 60


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_header_says_what_the_metadata_say(name):
    nb = source(name)
    head, listed = cell_source(nb["cells"][0]), exercises(nb)
    assert 3 <= len(re.findall(r"^- [a-z]", head.split("**Learning objectives.**")[1].split("| | |")[0], re.M)) <= 5
    facts, points = dict(rows_of(head.split("| exercise | points |")[0], 2)), {}
    for e in listed:
        points[e["title"]] = points.get(e["title"], 0) + e["points"]
    assert {title: float(n) for title, n in rows_of(head.split("| exercise | points |")[1], 2)} == points
    total = sum(e["points"] for e in listed)
    hand = sum(e["points"] for e in listed if e["by_hand"])
    assert facts["Points"] == f"{total:g}: {total - hand:g} by automatic tests, {hand:g} for the open question"
    hours = float(re.fullmatch(r"about ([\d.]+) hours", facts["Time"])[1])
    assert abs(hours - derived_hours(nb)) <= 0.5, derived_hours(nb)
    assert f"--output checked {name}.ipynb" in head and f"cp {name}.ipynb STUDENT_ID.ipynb" in head
    assert {"Paper", "Prerequisites"} <= facts.keys()


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_each_exercise_has_a_hint_and_a_message(name):
    "A hint before each solution, and no bare assertion in the visible tests. Optional parts are marked as ungraded."
    cells = source(name)["cells"]
    for before, c in zip(cells, cells[1:]):
        if marks(c).get("solution"):
            assert "<details><summary>Hint: " in cell_source(before), marks(c)["grade_id"]
        if marks(c).get("grade") and c["cell_type"] == "code":
            shown = cell_source(c).split("### BEGIN HIDDEN")[0]
            made = [node for node in ast.walk(ast.parse(shown)) if isinstance(node, ast.Assert)]
            bare = [ast.unparse(node) for node in made if node.msg is None]
            assert len(made) >= 2 and not bare, (marks(c)["grade_id"], bare)
    text = "\n".join(cell_source(c) for c in cells if c["cell_type"] == "markdown")
    assert (
        text.count("<details>") == text.count("</details>")
        and "**Optional, ungraded.**" in text
        and "tretch" not in text
    )


def run(cells, namespace):
    for c in cells:
        if c["cell_type"] == "code" and not marks(c).get("grade"):
            exec(cell_source(c), namespace)


def complaint(cell, namespace):
    "Message of the visible tests of a grade cell; empty: all of them pass."
    try:
        exec(cell_source(cell).split("### BEGIN HIDDEN")[0], namespace)
    except AssertionError as e:
        return str(e) or "an assertion without a message"
    return ""


def code_pattern(text):
    "Pattern of a piece of code, however its lines are broken."
    return re.compile(r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", text))))


def complaint_about(part, namespace, old, new):
    "Message if something is changed in the solution cell with which a part of the notebook begins; the part ends with the grade cell."
    changed = copy.deepcopy(part)
    changed[0]["source"] = code_pattern(old).sub(lambda m: new.strip(), cell_source(changed[0]))
    for c in changed:
        with contextlib.suppress(Exception):
            run([c], namespace)  # a cell that shows results may fail, as a student's would
    try:
        return complaint(part[-1], namespace)
    finally:
        run(part, namespace)


@pytest.mark.parametrize(
    "name", [pytest.param(a, marks=pytest.mark.long if a[0] in QUICK else pytest.mark.slow) for a in ASSIGNMENTS]
)
def test_a_wrong_solution_gets_a_message_that_names_the_mistake(name):
    cells, namespace, told, passed = source(name)["cells"], {"__name__": "__main__"}, {}, {}
    wrong = {exercise: rest for exercise, *rest in WRONG[name]}
    assert list(wrong) == [e["id"] for e in exercises(dict(cells=cells)) if not e["by_hand"]]
    corpus, _ = generate_corpus(20261123, name, course_settings(name).world)
    with use_corpus(corpus), contextlib.redirect_stdout(io.StringIO()):
        for end, c in enumerate(cells):
            run([c], namespace)
            if (exercise := marks(c).get("grade_id")) not in wrong:
                continue
            old, new, _ = wrong[exercise]
            start = max(
                i
                for i, earlier in enumerate(cells[:end])
                if marks(earlier).get("solution") and code_pattern(old).search(cell_source(earlier))
            )
            told[exercise] = complaint_about(cells[start : end + 1], namespace, old, new)
            passed[exercise] = complaint(c, namespace)
    assert {e: said for e, said in told.items() if not re.search(wrong[e][2], said)} == {}
    assert passed == dict.fromkeys(wrong, "")  # the solutions pass


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_sample_answers_are_graded_and_stay_with_the_teacher(name):
    "A cell with three levels. It is in no release, and the leak check finds each of its sentences."
    nb = source(name)
    [samples] = [c for c in nb["cells"] if "teacher" in c["metadata"].get("tags", ()) and c["cell_type"] == "markdown"]
    of = next(e["points"] for e in exercises(nb) if e["by_hand"])
    levels = re.findall(rf"^\*\*(?:\d to )?(\d) of {of:g}\.\*\*", cell_source(samples), re.M)
    assert len(levels) == 3 and levels[0] == f"{of:g}"
    handed, secrets = json.dumps(stripped(nb)), secrets_of(nb)
    for sentence in re.split(r"(?<=[.;])\s", cell_source(samples)):
        if len(sentence.split()) < 8:
            continue
        assert sentence not in handed
        assert leaks_in({name: json.dumps("Consider: " + sentence).encode()}, secrets), sentence


def test_the_teachers_guide_is_not_handed_out():
    "Neither a wheel nor a working folder has it; it names every assignment and each command that exists."
    from treekit.cli.course import course_command

    spec = importlib.util.spec_from_file_location("treekit_setup", package_dir().parent / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    guides = [p for p in FOLDER.iterdir() if teachers_only(p.name)]
    assert [p.name for p in guides] == ["teachers_guide.ipynb"]
    assert not [
        name for names in (setup.shipped(), laid_files(package_dir().parent)) for name in names if teachers_only(name)
    ]
    text = "\n".join(cell_source(c) for c in read_notebook(guides[0])["cells"])
    assert all(name in text for name in ASSIGNMENTS)
    assert set(re.findall(r"treekit course ([a-z-]+)", text)) == set(course_command.commands)
