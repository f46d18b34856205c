"What others planted isn't obeyed: settings, notebooks, modules, keys; and secrets are for the user only: arguments, work folder."

import ast, json, os, re, shutil, signal, stat, subprocess, sys, tempfile, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from treekit.config import UsageError, add_trust, child_environment, kit_path, load_profile, root, work_dir
from treekit.papers import plugin

posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a file to another user"
)
SETTINGS = "[offline]\nmodel = simulated\nendpoint = offline\n\n[theirs]\nmodel = m\nendpoint = {}\napi_key_env = {}\n"


@pytest.fixture
def laid(tmp_path, monkeypatch):
    "A laid folder, the working folder below it, and an empty configuration of the user."
    folder = tmp_path / "laid"
    (folder / "nbs" / "reproduce").mkdir(parents=True)
    (folder / "data").mkdir()
    (folder / "here").mkdir()
    (folder / "settings.ini").write_text(SETTINGS.format("http://127.0.0.1:9/v1", "SECRET_KEY"), encoding="utf-8")
    (folder / "data" / "prices.csv").write_text("", encoding="utf-8")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TREEKIT_HOME", raising=False)
    monkeypatch.chdir(folder / "here")
    return folder


def treekit(*words, cwd, module=False, **env):
    "`treekit WORDS` as the installed command, or as `python -m treekit`."
    env = {k: v for k, v in os.environ.items() if k not in ("TREEKIT_HOME", "PYTHONSAFEPATH")} | env
    how = [sys.executable, "-m", "treekit"] if module else [str(Path(sys.executable).with_name("treekit"))]
    return subprocess.run([*how, *words], cwd=cwd, env=env, capture_output=True, timeout=120)


def test_ones_own_folder_is_taken(laid):
    assert root() == laid and kit_path("data", "prices.csv") == laid / "data" / "prices.csv"


@posix
@pytest.mark.parametrize("path, mode", [(".", 0o777), ("settings.ini", 0o666), (".", 0o1777), ("settings.ini", 0o602)])
def test_a_folder_that_others_can_write_to_is_refused_until_it_is_marked(laid, path, mode):
    (laid / path).chmod(mode)
    for read in (root, load_profile):
        with pytest.raises(UsageError, match="treekit trust"):
            read()
    add_trust(laid)
    assert root() == laid
    file = laid.parent / "config" / "treekit" / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and json.loads(file.read_text())["folders"] == [
        str(laid.resolve())
    ]


@posix
@pytest.mark.parametrize("path", ["data", "data/prices.csv"])
def test_a_file_that_others_can_write_is_refused(laid, path):
    (laid / path).chmod(0o777)
    with pytest.raises(UsageError, match="treekit trust"):
        kit_path("data", "prices.csv")


@as_root
@pytest.mark.parametrize("path", [".", "settings.ini", "data"])
def test_another_users_folder_is_refused(laid, path):
    os.chown(laid / path, 12345, 12345)
    with pytest.raises(UsageError, match="treekit trust"):
        kit_path("data", "prices.csv")


@as_root
def test_a_group_that_others_are_in_counts(laid):
    os.chown(laid / "settings.ini", 0, 12345)
    (laid / "settings.ini").chmod(0o664)
    with pytest.raises(UsageError, match="treekit trust"):
        root()


@posix
def test_a_trust_file_of_others_is_refused(laid):
    laid.chmod(0o777)
    add_trust(laid)
    (laid.parent / "config" / "treekit" / "trust.json").chmod(0o666)
    with pytest.raises(UsageError, match="others can write"):
        root()


@pytest.mark.parametrize(
    "endpoint, name",
    [
        ("http://127.0.0.1:9/v1", "AWS_SECRET_ACCESS_KEY"),
        ("https://api.openai.com/v1", "GITHUB_TOKEN"),
        ("https://api.openai.com.evil.example/v1", "OPENAI_API_KEY"),
        ("https://api.openai.com@evil.example/v1", "OPENAI_API_KEY"),
        ("http://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://api.openai.com:8443/v1", "OPENAI_API_KEY"),
    ],
)
def test_found_settings_send_no_key_to_a_server_that_isnt_bound_to_it(laid, monkeypatch, endpoint, name):
    monkeypatch.setenv(name, "canary")
    (laid / "settings.ini").write_text(SETTINGS.format(endpoint, name), encoding="utf-8")
    with pytest.raises(UsageError, match=f"treekit trust --key {name} ") as e:
        load_profile("theirs").key()
    assert "canary" not in str(e.value)
    add_trust(key=str(e.value).rstrip("`").split("--key ")[1].split())
    assert load_profile("theirs").key() == "canary"


def test_the_usual_server_and_a_named_one_get_their_key(laid, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    (laid / "settings.ini").write_text(SETTINGS.format("https://api.openai.com/v1", "OPENAI_API_KEY"), encoding="utf-8")
    assert load_profile("theirs").key() == load_profile("theirs", endpoint="https://named.example/v1").key() == "canary"


def test_the_command_trust(laid):
    laid.chmod(0o777)
    for words, code in (((), 2), (("here",), 2), ((".",), 0), (("--key", "A_KEY", "a.example"), 0)):
        assert treekit("trust", *words, cwd=laid).returncode == code
    assert root() == laid
    found = json.loads((laid.parent / "config" / "treekit" / "trust.json").read_text())
    assert found["keys"] == dict(A_KEY=["https://a.example"])


@pytest.mark.parametrize("module", [False, True])
def test_modules_of_the_working_folder_are_not_imported(tmp_path, module):
    for name in ("pandas", "seaborn", "click", "json", "signal", "configparser", "matplotlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')", encoding="utf-8")
    done = treekit("--version", cwd=tmp_path, module=module)
    assert (done.returncode, done.stderr) == (0, b"")
    child = subprocess.run(
        [sys.executable, "-c", "import json; print(json.dumps(1))"],
        cwd=tmp_path,
        env=child_environment(),
        capture_output=True,
        text=True,
    )
    assert child.stdout == "1\n", child.stderr


STARTED = re.compile(
    r"(subprocess\.(run|Popen|call|check_\w+)|os\.(exec|spawn|posix_spawn|system|popen)\w*|webbrowser\.open)$"
)
SECRET = re.compile(r"(?<!cache_)(?<!index_)\b(api_?key|key|token|secret|password)s?\b", re.I)


def test_a_child_process_has_no_secret_in_its_arguments_and_not_the_working_folder_on_its_path():
    "All users of a machine see a process's arguments. `-P`: a module beside one's files isn't imported."
    import treekit as kit

    started = pythons = 0
    for file in Path(kit.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                pythons += 1
                assert ast.unparse(node.elts[1]) in ("'-P'", "'-I'"), f"{file.name}, line {node.lineno}"
                assert not SECRET.search(ast.unparse(node)), f"{file.name}, line {node.lineno}"
            if isinstance(node, ast.Call) and STARTED.match(ast.unparse(node.func)):
                started += 1
                assert not any(SECRET.search(ast.unparse(a)) for a in node.args), f"{file.name}, line {node.lineno}"
    assert started >= 5 and pythons >= 3


def test_the_browser_gets_a_file_without_the_token_in_its_name(tmp_path, monkeypatch):
    from treekit.cli.explore import _redirect

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    with _redirect("http://127.0.0.1:1/?token=secret") as file:
        assert "secret" not in file.as_uri() and "?token=secret" in file.read_text()
        assert os.name != "posix" or stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not file.exists()


def test_the_browser_opens_when_the_page_is_served(tmp_path, monkeypatch):
    import urllib.request
    from click.testing import CliRunner
    from treekit.cli import explore
    from treekit.explorer.server import ServedExplorer
    from treekit.store.run_store import Store

    seen = []

    def opened(uri):
        page = Path(urllib.request.url2pathname(uri.removeprefix("file://"))).read_text()
        seen.append((uri, urllib.request.urlopen(page.split('href="')[1].split('"')[0], timeout=10).status))

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(explore, "_has_display", lambda: True)
    monkeypatch.setattr(explore, "_example_if_empty", lambda profile: None)
    monkeypatch.setattr("treekit.explorer.runs.open_store", lambda profile: Store())
    monkeypatch.setattr("treekit.explorer.runs.open_run", lambda store, name: type("Run", (), dict(name=name)))
    monkeypatch.setattr(explore.webbrowser, "open", opened)
    monkeypatch.setattr(ServedExplorer, "forever", lambda served: None)
    made = CliRunner().invoke(explore.explore_command, [])
    assert made.exit_code == 0, made.output
    [(uri, status)] = seen
    assert status == 200 and "token" not in uri


@posix
@pytest.mark.parametrize("mode", [0o755, 0o777, 0o750, 0o701])
def test_an_open_work_folder_is_closed(tmp_path, monkeypatch, mode):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    monkeypatch.setenv("TREEKIT_HOME", str(home))
    work_dir("runs")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@posix
def test_a_shared_folder_is_no_work_folder(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    for place in (tmp_path / "shared", Path.home()):
        monkeypatch.setenv("TREEKIT_HOME", str(place))
        before = place.stat().st_mode
        with pytest.raises(UsageError, match="set TREEKIT_HOME"):
            work_dir()
        assert place.stat().st_mode == before


def test_without_a_home_folder_one_line_says_what_to_set(tmp_path, monkeypatch):
    for name in ("TREEKIT_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr("treekit.config.root", lambda: tmp_path)
    with pytest.raises(UsageError, match="^this account has no home folder: set HOME, or TREEKIT_HOME"):
        work_dir()
    with pytest.raises(UsageError, match="no home folder"):
        add_trust(tmp_path)


@pytest.mark.parametrize("encoding", ["cp949", "euc-kr", "cp1252", "latin-1", "ascii", "koi8-r", "utf-16", "shift_jis"])
def test_any_encoding_of_the_output_does(tmp_path, encoding):
    code = "import treekit.cli.main as m; m.main = lambda: print('✓ 알 수 없음 χ\\u2009é'); from treekit.__main__ import main; main()"
    env = os.environ | dict(PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_is_an_interrupt(number):
    code = (
        f"import os, signal, treekit.cli.main as m; m.main = lambda: os.kill(os.getpid(), signal.{number}); "
        "signal.signal(signal.SIGINT, signal.default_int_handler); from treekit.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "treekit: interrupted: run the same again\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a working folder can't be deleted there")
def test_a_deleted_working_folder_is_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    code = "import os; os.rmdir(os.getcwd()); from treekit.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "gone", capture_output=True, text=True)
    assert done.stderr == "treekit: the working folder was deleted: change to another one\n" and done.returncode == 1


@pytest.mark.parametrize(
    "body",
    [
        "print('hello')",
        "raise BaseException('x')",
        "raise GeneratorExit",
        "import sys; sys.exit('x')",
        "import sys; sys.stdout.write('x')",
        "import asyncio; raise asyncio.CancelledError",
    ],
)
def test_a_plugin_that_prints_or_raises_at_import(tmp_path, monkeypatch, capsys, body):
    from importlib.metadata import EntryPoint

    (tmp_path / "loud_paper.py").write_text(f"{body}\npaper = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "loud_paper", raising=False)
    paper, reason = plugin._loaded(EntryPoint("loud", "loud_paper:paper", plugin.GROUP))
    assert reason and capsys.readouterr().out == ""


@pytest.mark.long
def test_the_users_matplotlibrc_changes_no_figure(tmp_path):
    lines = "font.size: 30\naxes.facecolor: red\nlines.linestyle: :\nfigure.autolayout: True\ntext.usetex: True\n"
    (tmp_path / "matplotlibrc").write_text(lines, encoding="utf-8")
    code = "from treekit.figures.plots import house_style as h; h(); import matplotlib as m; print({k: v for k, v in m.rcParams.items()})"

    def drawn(**env):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=os.environ | dict(MPLBACKEND="agg") | env,
            text=True,
            capture_output=True,
        ).stdout

    assert drawn() == drawn(MATPLOTLIBRC=str(tmp_path / "matplotlibrc")) != ""


@pytest.fixture
def shared():
    "A folder in which every user may write, as /tmp, and a function that runs a command as another user of the machine."
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="shared-"))
    folder.chmod(0o1777)

    def other(command, *words):
        return subprocess.run(
            ["/bin/sh", "-c", command, "sh", *map(str, words)],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            text=True,
            capture_output=True,
        )

    yield folder, other
    shutil.rmtree(folder)


@as_root
@pytest.mark.long
def test_what_another_user_plants_above_ones_folder_is_not_obeyed(shared):
    "Settings that name a key of the environment, a notebook and a module: nothing is sent, nothing is executed."
    folder, other = shared
    got = []

    class Planter(BaseHTTPRequestHandler):
        def log_message(self, *words):
            pass

        def do_GET(self):
            got.append(dict(self.headers))

        do_POST = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Planter)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    settings = SETTINGS.replace("offline\n", f"{address}\napi_key_env = AWS_SECRET_ACCESS_KEY\n").format(
        address, "AWS_SECRET_ACCESS_KEY"
    )
    done = other(
        'cd "$1" && mkdir -p nbs/reproduce/treerare data && printf %s "$2" > settings.ini && echo "raise SystemExit" > pandas.py '
        '&& echo > data/prices.csv && echo "{}" > nbs/reproduce/treerare/table4.ipynb',
        folder,
        settings,
    )
    assert done.returncode == 0 and (folder / "settings.ini").stat().st_uid == 65534, done.stderr
    (folder / "mine").mkdir(mode=0o700)
    env = dict(
        AWS_SECRET_ACCESS_KEY="canary",
        TREEKIT_HOME=str(folder / "mine" / "home"),
        XDG_CONFIG_HOME=str(folder / "mine" / "config"),
    )
    try:
        for words in (
            ("ask", "Who?"),
            ("doctor",),
            ("reproduce", "treerare/table4"),
            ("ask", "Who?", "--profile", "theirs"),
        ):
            done = treekit(*words, cwd=folder / "mine", **env)
            assert (
                done.returncode == 2 and b"treekit trust" in done.stderr and b"canary" not in done.stdout + done.stderr
            ), (words, done)
    finally:
        server.shutdown(), server.server_close()
    assert not got


@as_root
@pytest.mark.long
def test_another_user_sees_no_token_and_reads_nothing_of_the_work_folder(shared, tmp_path):
    "Of an explorer that has opened a browser: its processes' arguments, its work folder, and the page that leads to its address."
    folder, other = shared
    (folder / "browser").write_text("#!/bin/sh\nsleep 20\ntrue\n", encoding="utf-8")
    (folder / "browser").chmod(0o755)
    home = folder / "home"
    home.mkdir(mode=0o755)
    env = {k: v for k, v in os.environ.items()} | dict(
        TREEKIT_HOME=str(home), DISPLAY=":0", BROWSER=f"{folder}/browser %s &"
    )
    made = treekit("ask", "Who wrote the novel Taphora?", cwd=folder, TREEKIT_HOME=str(home))
    assert made.returncode == 0, made.stderr
    command = [str(Path(sys.executable).with_name("treekit")), "explore", "last"]
    running = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
    try:
        token = running.stdout.readline().split("token=")[1].split("&")[0].split()[0]
        for _ in range(600):
            if f"file://{home}" in (seen := other("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").stdout):
                break
            time.sleep(0.1)
        page = seen.split(f"file://{home}")[1].split()[0]
        page = f"{home}{page}"
        assert (
            token in Path(page).read_text() and token not in seen
        )  # the browser got the page, and the arguments have no token
        assert other('cat /proc/"$1"/environ', running.pid).stdout == ""
        for path in (page, home, home / "store", *home.rglob("*.sqlite")):
            assert other('ls "$1"/ || cat "$1"', path).stdout == "", path
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
    finally:
        running.terminate(), running.wait(30), running.stdout.close()
