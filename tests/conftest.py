"Fixtures for tests across processes: a local server that speaks the OpenAI protocol."

import os, sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.modules.setdefault(
    "rfc3987_syntax", None
)  # jsonschema would spend seconds on it (as in treekit.artefacts.reproduce)
from openai_server import Server


def pytest_collection_modifyitems(items):
    "What runs on the real questions beside the clone runs on their twin everywhere: the real ones are for `make test-all`."
    for item in items:
        given = getattr(item, "callspec", None)
        if given and any(str(value).partition(":")[0] == "real" for value in given.params.values()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def _server():
    with Server() as server:
        yield server


@pytest.fixture
def server(_server):
    "The local server, without latency, faults or memory of the test before; `server.url` is its endpoint."
    _server.reset()
    return _server


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A figure of a paper that was run, its report with a cassette, and the home in which that was done: (archive, command, home). Made
    once for all test processes."""
    from commands import inside
    from treekit.utils.atomic_write import file_lock

    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "made"
    home = dict(TREEKIT_HOME=str(folder / "home"))
    words = ("report", "arise/figure3", "--tables", folder / "offline", "--out", folder / "r.zip")
    with file_lock(folder / "r.zip"):
        if not (folder / "r.zip").exists():
            code, out, err = inside("reproduce", "arise/figure3", "--n", "3", "--out", folder / "offline", **home)
            assert code == 0, out + err
            code, out, err = inside(*words, **home)
            assert code == 0 and "a cassette of" in out, out + err
    return folder / "r.zip", words, home


@pytest.fixture
def treekit_(tmp_path, monkeypatch):
    "Run a command in a work folder of its own: (exit code, all it said)."
    from click.testing import CliRunner
    from treekit.cli.main import main

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))

    def command(*args):
        done = CliRunner().invoke(main, [str(a) for a in args])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return command
