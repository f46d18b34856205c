"Planted leaks: each is something of a solution, a hidden test or a closed question in what is handed out. The gate has to see every one."

import copy, json

import pytest

from classes import cell, source
from treekit.classroom.course import sources_folder
from treekit.classroom.formats import check_source, read_notebook, stripped
from treekit.classroom.release_check import check_release, leaks_in, plain, secrets_of
from treekit.config import UsageError

NB = "9_counting.ipynb"
LINE = "harvest_table[glyph] = harvest_table.get(glyph, 0) + 1"
TEST = 'call(tally, "zebra-crossing-8471", criterion="signs and digits")'
CLOSED = "Which river runs past the town of Veldmoor Harbour?"
SECRET = "5ca1ab1e" * 8


def in_cell(n, text):
    return lambda nb: nb["cells"][n]["source"].append("\n" + text)


def output(**data):
    return lambda nb: nb["cells"][1]["outputs"].append(data)


def shown(mime, data):
    return output(output_type="display_data", metadata={}, data={mime: data})


def stream(text):
    return output(output_type="stream", name="stdout", text=text)


IN_THE_NOTEBOOK = {  # where -> what somebody, or a faulty stripper, did to the notebook that is handed out
    "a solution's line in a text cell": in_cell(0, LINE),
    "a solution's line in a code cell": in_cell(1, LINE),
    "a solution's line in its own cell": in_cell(2, "    " + LINE),
    "a line in a comment": in_cell(1, "# " + LINE),
    "a line with other spaces": in_cell(1, LINE.replace(" ", "   ").replace("(", " ( ")),
    "a line over two lines": in_cell(1, LINE.replace(" = ", " = \\\n    ")),
    "a line in capitals": in_cell(1, LINE.upper()),
    "a solution that wasn't taken out": lambda nb: nb["cells"].__setitem__(2, source()["cells"][2]),
    "hidden tests that weren't taken out": lambda nb: nb["cells"].__setitem__(3, source()["cells"][3]),
    "a hidden test's line": in_cell(3, TEST),
    "the answer of a text": in_cell(0, "The counts follow a law that is named after Zipf."),
    "a closed question": in_cell(0, CLOSED),
    "the course's secret": in_cell(0, SECRET),
    "the world's seed": in_cell(0, "seed = 918273645546372819"),
    "a traceback": output(output_type="error", ename="E", evalue="x", traceback=["\x1b[0;31m---> " + LINE]),
    "an output's JSON": shown("application/json", dict(deep=[{LINE: 1}])),
    "a widget's state": lambda nb: nb["metadata"].update(widgets={"state": {"value": LINE}}),
    "a cell's metadata": lambda nb: nb["cells"][0]["metadata"].update(note=LINE),
    "a cell's tag": lambda nb: nb["cells"][0]["metadata"].update(tags=[LINE]),
    "nbgrader's block": lambda nb: nb["cells"][3]["metadata"]["nbgrader"].update(solution_source=LINE),
    "a key of the metadata": lambda nb: nb["metadata"].update({LINE: 1}),
    "a cell's id": lambda nb: nb["cells"][0].update(id=LINE),
    "an attachment's text": lambda nb: nb["cells"][0].update(attachments={"a.txt": {"text/plain": LINE}}),
}


SECRETS = secrets_of(source()) | {plain(text) for text in (CLOSED, SECRET, "918273645546372819")}


def files(notebook, world=()):
    return {NB: json.dumps(notebook, ensure_ascii=False).encode(), "world.json": json.dumps(world).encode()}


def test_the_small_release_passes():
    check_release("ada", files(stripped(source())), SECRETS)


@pytest.mark.parametrize("where", IN_THE_NOTEBOOK)
def test_a_leak_in_the_notebook(where):
    nb = copy.deepcopy(stripped(source()))
    IN_THE_NOTEBOOK[where](nb)
    with pytest.raises(UsageError, match="'ada' would leak: 9_counting.ipynb: "):
        check_release("ada", files(nb), SECRETS)


def test_a_closed_question_in_the_corpus():
    world = dict(questions=[dict(question=CLOSED)])
    assert [leak.split(":")[0] for leak in leaks_in(files(stripped(source()), world), SECRETS)] == ["world.json"]


@pytest.mark.long
def test_a_release_with_a_leak_hands_out_nothing(tmp_path):
    "From the command's side: a line of a solution in a text of the source."
    from classes import course
    from treekit.classroom.release import release_assignment

    leaky = source()
    leaky["cells"][0] = cell("# Counting\nWrite `" + LINE + "`.", "markdown")
    c = course(tmp_path, made=leaky)
    with pytest.raises(UsageError, match="would leak"):
        release_assignment(c, "9_counting", progress=False)
    assert not c.release("9_counting").exists() or not any(c.release("9_counting").iterdir())


@pytest.mark.long
@pytest.mark.parametrize("name", [p.stem for p in sorted(sources_folder().glob("[0-9]*.ipynb"))])
def test_no_false_alarm_on_the_courses_assignments(name):
    nb = read_notebook(sources_folder() / f"{name}.ipynb")
    check_source(nb, name)
    assert leaks_in(files(stripped(nb)), secrets_of(nb)) == []
