"Planted leaks: each is something of a solution, a hidden test or a closed question in what is handed out. The gate has to see every one."

import copy, html, json

import pytest

from classes import cell, source
from treekit.classroom.course import course_settings, sources_folder
from treekit.classroom.formats import check_source, read_notebook, stripped
from treekit.classroom.release_check import check_release, leaks_of, needles_of
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
    "one name of a solution": in_cell(0, "Think of a harvest_table."),
    "a plain word of a solution": in_cell(0, "Each glyph counts."),
    "a name inside a longer one": in_cell(1, "my_harvest_table_2 = None"),
    "a name in full-width letters": in_cell(0, "ｈａｒｖｅｓｔ_table"),
    "a name with a zero-width sign in it": in_cell(0, "har\u200bvest_table"),
    "a solution that wasn't taken out": lambda nb: nb["cells"].__setitem__(2, source()["cells"][2]),
    "hidden tests that weren't taken out": lambda nb: nb["cells"].__setitem__(3, source()["cells"][3]),
    "a hidden test's line": in_cell(3, TEST),
    "a hidden test's text": in_cell(0, "for instance zebra-crossing-8471"),
    "a hidden test's number": in_cell(0, "try 31.4159"),
    "a hidden test's criterion": in_cell(0, "questions that nobody has seen"),
    "the answer of a text": in_cell(0, "The counts follow a law that is named after Zipf."),
    "a closed question": in_cell(0, CLOSED),
    "the course's secret": in_cell(0, SECRET),
    "the world's seed": in_cell(0, "seed = 918273645546372819"),
    "a printed output": stream("{'harvest_table': 3}"),
    "an output in pieces": stream(["harvest", "_table"]),
    "a traceback": output(output_type="error", ename="E", evalue="x", traceback=["\x1b[0;31m---> " + LINE]),
    "an output's HTML": shown("text/html", f"<pre>{html.escape(LINE)}</pre>"),
    "an output's HTML with marks inside a word": shown("text/html", "<b>harvest</b>_table"),
    "HTML entities": shown("text/html", "".join(f"&#{ord(c)};" for c in "harvest_table")),
    "an output's JSON": shown("application/json", dict(deep=[dict(harvest_table=1)])),
    "JSON inside of JSON": stream(json.dumps(dict(a=json.dumps(dict(b="\u0068arvest_table"))))),
    "a widget's state": lambda nb: nb["metadata"].update(widgets={"state": {"value": LINE}}),
    "a cell's metadata": lambda nb: nb["cells"][0]["metadata"].update(note="harvest_table"),
    "a cell's tag": lambda nb: nb["cells"][0]["metadata"].update(tags=["harvest_table"]),
    "nbgrader's block": lambda nb: nb["cells"][3]["metadata"]["nbgrader"].update(solution_source=LINE),
    "a key of the metadata": lambda nb: nb["metadata"].update(harvest_table=1),
    "a cell's id": lambda nb: nb["cells"][0].update(id="harvest_table"),
    "an attachment's name": lambda nb: nb["cells"][0].update(
        attachments={"harvest_table.png": {"image/png": "iVBORw0KGgo="}}
    ),
    "an attachment's text": lambda nb: nb["cells"][0].update(attachments={"a.txt": {"text/plain": LINE}}),
}


def needles():
    return needles_of(source(), "letters", [dict(question=CLOSED)], (SECRET, "918273645546372819"))


def laid(folder, notebook, **files):
    "A release folder, and what the release says that it made: so only the look into the files can find something."
    made = {NB: json.dumps(notebook, ensure_ascii=False).encode()} | files
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return made


def test_the_small_release_passes(tmp_path):
    check_release(tmp_path, needles(), laid(tmp_path, stripped(source())))


@pytest.mark.parametrize("where", IN_THE_NOTEBOOK)
def test_a_leak_in_the_notebook(tmp_path, where):
    nb = copy.deepcopy(stripped(source()))
    IN_THE_NOTEBOOK[where](nb)
    with pytest.raises(UsageError, match="would leak"):
        check_release(tmp_path, needles(), laid(tmp_path, nb))


def test_a_closed_question_in_the_corpus(tmp_path):
    world = json.dumps(dict(questions=[dict(question=CLOSED)])).encode()
    assert leaks_of(tmp_path, needles(), laid(tmp_path, stripped(source()), **{"world.json": world}))


def strange(folder):
    "Things that lie in a release folder and shouldn't."
    yield (
        "a checkpoint",
        lambda: (
            (folder / ".ipynb_checkpoints").mkdir(),
            (folder / ".ipynb_checkpoints" / "x-checkpoint.ipynb").write_text("{}"),
        ),
    )
    yield "a file that wasn't made", lambda: (folder / "key.json").write_text("{}")
    yield "a link", lambda: (folder / "more").symlink_to("/etc")
    yield "a changed file", lambda: (folder / NB).write_text((folder / NB).read_text() + " ")
    yield "a name of a file", lambda: (folder / "harvest_table").write_text("")
    yield "a missing file", lambda: (folder / NB).unlink()


@pytest.mark.parametrize("number", range(6))
def test_what_does_not_belong_there(tmp_path, number):
    made = laid(tmp_path, stripped(source()))
    what, plant = list(strange(tmp_path))[number]
    plant()
    assert leaks_of(tmp_path, needles(), made), what


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
def test_no_false_alarm_on_the_courses_assignments(tmp_path, name):
    nb = read_notebook(sources_folder() / f"{name}.ipynb")
    check_source(nb, name)
    made = laid(tmp_path, stripped(nb))
    assert leaks_of(tmp_path, needles_of(nb, course_settings(name).given), made) == []
