"What teachers and students really have: rosters of spreadsheets, cells of Jupyter, many hands on one sheet."

import pytest

from treekit.classroom.course import CourseFolder
from treekit.classroom.deadlines import deadline_settings
from treekit.classroom.worker import run_cell
from treekit.config import UsageError

NAMES = "id,name\r\n001,김철수\r\n002,이영희\r\n"
ROSTERS = {
    "UTF-8": NAMES.encode(),
    "a byte order mark": NAMES.encode("utf-8-sig"),
    "CP949": NAMES.encode("cp949"),
    "tabs in UTF-16, as Excel's Unicode text": NAMES.replace(",", "\t").encode("utf-16"),
    "semicolons and quotes": b'"ID";"Name"\r\n"001";"Kim, Lee"\r\n002;\r\n',
    "CP1252": "id,name\n001,Müller\n002,José\n".encode("cp1252"),
    "empty lines and short rows": b"\nid,name\n\n001\n,\n002,Lee,more\n\n",
}


@pytest.mark.parametrize("name", ROSTERS)
def test_rosters_are_read_as_spreadsheets_save_them(tmp_path, name):
    (tmp_path / "roster.csv").write_bytes(ROSTERS[name])
    assert CourseFolder(tmp_path, tmp_path).students() == ["001", "002"]


@pytest.mark.parametrize(
    "content, said",
    [
        (b"\xff\xfe\x00", "no known encoding"),
        (b"name\nKim\n", "'name'"),
        (b"", "no student"),
        (b"id,name\n", "no student"),
        (b"First name,ID number\nKim,001\n", "its first line is 'First name,ID number'"),
        (b"id|name\n001|Kim\n", r"'id\|name'"),
        (b"<html><table><tr><td>id", "'<html>"),
        (b"PK\x03\x04\x14\x00 of a spreadsheet", "'PK"),
        (b"id,name\n001,Kim\n001,Lee\n", "the id 001 twice"),
        (b'id,name\n001,"Kim\n002,Lee\n', "unexpected end of data"),
    ],
)
def test_a_roster_that_cannot_be_read_is_one_line(tmp_path, content, said):
    (tmp_path / "roster.csv").write_bytes(content)
    with pytest.raises(UsageError, match=r"^roster.csv:? [^\n]*" + said + r"[^\n]*$"):
        CourseFolder(tmp_path, tmp_path).students()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp949"])
def test_settings_are_read_in_the_same_encodings(tmp_path, encoding):
    (tmp_path / "settings.toml").write_bytes('[extensions."검색"]\n'.encode(encoding))
    assert deadline_settings(CourseFolder(tmp_path, tmp_path)).extensions == {"검색": {}}


CELLS = {  # cell -> error; `x` is 1 afterwards where there is none
    "files = !ls\nx = 1": "",
    "len?\nx = 1": "",
    "x = 1\n?len": "",
    "x = 1; display(x)": "",
    "get_ipython().run_line_magic('matplotlib', 'inline')\nx = 1": "",
    "import asyncio\nawait asyncio.sleep(0)\nx = 1": "",
    "%time x = 1": "",
    "%%time\nx = 1": "",
    "%matplotlib inline\nx = 1": "",
    "!pip install x\nx = 1": "",
    "if True:\n    %time y = 2\n    x = 1": "",
    "%%bash\nrm -r x": "",
    "p = %pwd\nx = 1": "",
    "len??\nx = 1": "",
    "async def f(): return 1\nx = await f()": "",
    "import asyncio\nx, = await asyncio.gather(asyncio.sleep(0, 1))": "",
    "x = 1\nx =": "SyntaxError (line 2)",
    "%time 1 / 0": "ZeroDivisionError (line 1)",
    "x = 1\nawait 3": "TypeError (line 2)",
}


@pytest.mark.parametrize("source", CELLS)
def test_cells_run_as_in_jupyter(source):
    from treekit.classroom import worker

    space = worker.notebook_namespace()
    assert run_cell(source, space, "<a>", 5) == CELLS[source] and (CELLS[source] or "bash" in source or space["x"] == 1)
