"Cassettes that somebody has forged: nothing in them is obeyed."

import gzip, json, lzma, sqlite3, subprocess, sys, tarfile
from contextlib import closing

import pytest

from commands import inside
from openai_server import Server
from test_cli import BODY, notebook, small_clone
from treekit.config import Replay, UsageError, load_profile, replay, use_command
from treekit.store.run_store import Store
from treekit.store import cassette_archive
from treekit.store.cassette_archive import STORE_FILE, open_archive
from treekit.experiments.cassettes import about_cassette
from treekit.experiments.resources import chat_for
from treekit.reports.report import clean_environment


# --- what a cassette may say

GOOD = dict(what=["treerare/table1"], profile="offline", given=dict(n=3), sets=dict(search_scope="own"), questions=[])
DEEP = b'{"sets": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
OBEYED = dict(  # what would be obeyed: a place, another profile, a server, a key's name, an amount
    out=dict(sets=dict(out="../elsewhere")),
    profile=dict(sets=dict(profile="openai")),
    settings=dict(sets=dict(settings=dict(n=3))),
    roles=dict(sets=dict(roles="navigator=openai")),
    key=dict(sets=dict(api_key_env="HOME")),
    trained=dict(sets=dict(trained="/x")),
    thinkers=dict(sets=dict(thinkers="m=http://127.0.0.1:1/v1")),
    corpus=dict(sets=dict(corpus="/etc/passwd")),
    documents=dict(sets=dict(corpus="trees=a.jsonl")),
    prompts=dict(sets=dict(prompts="p.toml")),
    parser=dict(sets=dict(parser="../parser")),
    entities=dict(sets=dict(parser="bundled, entities=../x")),
    model=dict(sets=dict(model="/models/mine")),
    up=dict(sets=dict(reranker="../../mine")),
    judges=dict(sets=dict(judges="qa=~/judge")),
    hidden_judge=dict(sets=dict(judges="nli=./judge")),
    retriever=dict(sets=dict(retriever="dense:/models/mine")),
    folder=dict(given=dict(data="/home")),
    hub=dict(given=dict(data="hub")),
    large=dict(given=dict(data="synthetic:99999999999")),
    budget=dict(given=dict(budget=100)),
    given_out=dict(given=dict(out="x")),
    profile_path=dict(profile="../settings"),
    field=dict(endpoint="http://127.0.0.1:1/v1"),
    name=dict(data="../../up"),
)
MALFORMED = dict(
    what_text=dict(what="treerare"),
    what_number=dict(what=3),
    what_object=dict(what={}),
    what_mixed=dict(what=["treerare", 3]),
    what_path=dict(what=["../../etc"]),
    what_long=dict(what=["a"] * 10_000),
    what_none=dict(what=None),
    profile_list=dict(profile=["offline"]),
    profile_none=dict(profile=None),
    profile_number=dict(profile=1),
    given_list=dict(given=[]),
    given_text=dict(given="n=3"),
    given_none=dict(given=None),
    n_text=dict(given=dict(n="many")),
    n_list=dict(given=dict(n=[3])),
    n_half=dict(given=dict(n=1.5)),
    n_negative=dict(given=dict(n=-3)),
    n_true=dict(given=dict(n=True)),
    n_long=dict(given=dict(n="9" * 5000)),
    seed=dict(given=dict(seed={})),
    sets_list=dict(sets=["search_scope=own"]),
    sets_none=dict(sets=None),
    search_scope_list=dict(sets=dict(search_scope=[])),
    depth=dict(sets=dict(depth={"a": 1})),
    questions_text=dict(questions="q1"),
    questions_number=dict(questions=3),
    questions_mixed=dict(questions=["q1", None]),
    parser_list=dict(parser=[]),
    data_list=dict(data=["a"]),
    data_number=dict(data=7),
    left_out=dict(left_out="x"),
    unknown=dict(more=1),
)
RAW = dict(
    empty=b"",
    half=b"{",
    list=b"[]",
    number=b"3",
    text=b'"x"',
    null=b"null",
    no_utf8=b"\xff",
    utf16='{"n": 1}'.encode("utf-16"),
    deep=DEEP,
    digits=b'{"given": {"n": ' + b"9" * 5000 + b"}}",
)


def packed(path, about, **more):
    about = about if isinstance(about, bytes) else json.dumps(about).encode()
    return cassette_archive.write_archive(path, {"about.json": about, STORE_FILE: b"", **more})


@pytest.mark.parametrize("case", [*OBEYED, *MALFORMED, *RAW])
def test_what_a_cassette_cannot_say_is_refused_in_one_line(tmp_path, case, treekit_, monkeypatch):
    monkeypatch.setattr("treekit.artefacts.reproduce.reproduce_all", lambda *_, **__: pytest.fail("it was obeyed"))
    about = RAW[case] if case in RAW else GOOD | (OBEYED | MALFORMED)[case]
    tape = packed(tmp_path / "a.cassette", about)
    code, said = treekit_("cassette", "replay", tape)
    assert code == 2 and len(said.strip().splitlines()) == 1 and "a.cassette" in said and "about.json" in said, said
    with pytest.raises(UsageError, match="about.json"):
        about_cassette(tape)


# never ends
RECURSIVE = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x, x, x, x, x, x, x FROM n"


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(gzip.compress(b"x" * 5000)),
        lambda path: path.write_bytes(b""),
        lambda path: views(path),
    ],
    ids=["gzip", "empty", "view"],
)
def test_a_file_that_is_no_cassette_is_refused_before_anything_runs(tmp_path, make, treekit_, monkeypatch):
    monkeypatch.setattr(
        "treekit.artefacts.reproduce.reproduce_all", lambda *_, **__: pytest.fail("all artefacts would run")
    )
    make(path := tmp_path / "a.cassette")
    code, said = treekit_("cassette", "replay", path)
    assert code == 2 and len(said.strip().splitlines()) == 1 and "a.cassette" in said and "cassette" in said, said


def views(path):
    "A store whose calls are a view."
    Store(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA journal_mode=DELETE; DROP TABLE calls; CREATE VIEW calls AS {RECURSIVE}")


# --- who can be asked in a replay


def test_in_a_replay_no_client_is_made(tmp_path, monkeypatch):
    import asyncio
    from treekit.core.prompts import Request
    from treekit.llm.openai_client import OpenAIClient
    from treekit.llm.cached_client import NotOnCassette

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    profile = load_profile("openai")
    with use_command(replay=Replay(str(tmp_path / "x.cassette"))):
        for chat in (chat_for(profile), chat_for(load_profile("openai", batch=True))):
            with pytest.raises(NotOnCassette):
                asyncio.run(chat.complete(Request(messages=(), prompt=None)))
        with pytest.raises(UsageError, match="asks no server"):
            OpenAIClient.from_profile(profile)


PROBE = (
    BODY
    + """
import asyncio, os, socket, subprocess, sys
from treekit.config import replay
from treekit.core.prompts import Request
from treekit.experiments.resources import chat_for
def tried(go):
    try: return str(go())[:40]
    except BaseException as e: return type(e).__name__
from concurrent.futures import ThreadPoolExecutor
who = Request(messages=(dict(role="user", content="Who?"),))
chat = lambda: ThreadPoolExecutor().submit(asyncio.run, chat_for(P).complete(who)).result()
away = "import socket; socket.getaddrinfo('example.org', 80)"
seen = dict(asked=tried(chat), reached=tried(lambda: socket.socket().connect_ex(("192.0.2.1", 9))), key=os.environ.get("LAB_ACCESS", ""),
            token=os.environ.get("HF_TOKEN", ""), child="reaches no network" in subprocess.run(
                [sys.executable, "-c", away], capture_output=True, text=True).stderr)
if replay() and not replay().packs: Path(os.environ["PROBE_SEEN"]).write_text(json.dumps(seen))
""".replace("import asyncio", "import asyncio, json", 1)
)


@pytest.mark.slow
def test_a_notebook_that_asks_all_the_same_reaches_nobody(tmp_path):
    "It makes a client, opens a connection, looks for keys, and starts a process."
    home, tape, seen = small_clone(tmp_path / "clone"), tmp_path / "one.cassette", tmp_path / "seen.json"
    with open(home / "settings.ini", "a") as f:
        f.write("\n[lab]\nmodel = llama3.3\nendpoint = http://localhost:1/v1\napi_key_env = LAB_ACCESS\n")
    keys = dict(LAB_ACCESS="sk-lab", HF_TOKEN="hf-secret", PROBE_SEEN=str(seen))
    with Server(latency=0) as server:
        words = ("--profile", "lab", "--set", f"endpoint={server.url}")
        code, out, err = inside("reproduce", *words, cwd=home, **keys)
        assert code == 0, out + err
        code, out, err = inside("cassette", "pack", tape, "treerare/table1", *words, cwd=home, **keys)
        assert code == 0, out + err
        with open_archive(tape) as held:
            assert b"localhost" not in held["about.json"]() and b"127.0.0.1" not in held["about.json"]()
        notebook(home / "nbs/reproduce/treerare/table1.ipynb", _parameters(home), PROBE)
        before = server.count
        code, out, err = inside("cassette", "replay", tape, "--out", tmp_path / "out", cwd=home, **keys)
        assert code == 0, out + err
        assert server.count == before > 0
    assert json.loads(seen.read_text()) == dict(asked="NotOnCassette", reached="OSError", key="", token="", child=True)
    assert not replay()


def _parameters(home):
    import nbformat

    return nbformat.read(home / "nbs/reproduce/treerare/table1.ipynb", 4).cells[0].source


# --- archives that aren't


def tarred(*members):
    "A compressed archive of (TarInfo, content), headers as they are given."
    plain = b"".join(header + content + bytes(-len(content) % 512) for header, content in members)
    return lzma.compress(plain + bytes(1024))


def header(name, size, kind=tarfile.REGTYPE, **more):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse(name, claims):
    "The header of a sparse file in GNU's old format: one block of data at its end."
    raw = bytearray(header(name, 512, tarfile.GNUTYPE_SPARSE))

    def octal(n):
        return tarfile.itn(n, 12, tarfile.GNU_FORMAT)

    raw[386:410], raw[483:495], raw[148:156] = octal(claims - 512) + octal(512), octal(claims), b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


HOSTILE = dict(
    sparse=[(sparse(STORE_FILE, 20 << 30), b"x" * 512)],
    sparse_pax=[
        (
            header("./PaxHeaders/x", 72, b"x"),
            b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n28 GNU.sparse.realsize=2e10\n"[:72],
        ),
        (header(STORE_FILE, 512), b"1\n0\n1\n" + bytes(506)),
    ],
    link=[(header(STORE_FILE, 0, tarfile.SYMTYPE, linkname="/etc/passwd"), b"")],
    hard_link=[(header("data/a.jsonl", 0, tarfile.LNKTYPE, linkname=STORE_FILE), b"")],
    device=[(header(STORE_FILE, 0, tarfile.CHRTYPE), b"")],
    folder=[(header("data/", 0, tarfile.DIRTYPE), b"")],
    claims=[(header(STORE_FILE, 1 << 29), b"")],
    twice=[(header(STORE_FILE, 1), b"a"), (header(STORE_FILE, 1), b"b")],
    program=[(header("data/a.py", 1), b"a")],
    upwards=[(header("data/../up.jsonl", 1), b"a")],
    absolute=[(header("/abs", 1), b"a")],
    hidden=[(header("data/.hid.jsonl", 1), b"a")],
    escape=[(header("\x1b[2K\rOK", 1), b"a")],
    large_about=[(header("about.json", 17 << 20), bytes(17 << 20))],
    many=[(header(f"data/{i}.jsonl", 0), b"") for i in range(300)],
)


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_holds_plain_files_with_known_names_only(tmp_path, kind, treekit_):
    "A sparse file of three kilobytes may claim twenty gigabytes."
    tape = tmp_path / "a.cassette"
    tape.write_bytes(tarred(*HOSTILE[kind]))
    assert tape.stat().st_size < 5000
    with pytest.raises(UsageError, match="is not a cassette") as e:
        with open_archive(tape):
            pytest.fail("it was opened")
    assert str(e.value).isprintable()
    code, said = treekit_("cassette", "replay", tape)
    assert code == 2 and len(said.strip().splitlines()) == 1 and said.strip().isprintable()


# --- corpora under names that nothing reads


def test_a_replaying_process_reaches_this_machine_only(tmp_path):
    "In the process, by whatever call, and in its children; loopback stays."
    code = (
        "import _socket, socket\n"
        "def tried(go):\n    try: go()\n    except OSError as e: print(e)\n"
        "tried(lambda: _socket.socket().connect(('192.0.2.1', 9)))\ntried(lambda: socket.gethostbyname('example.org'))\n"
        "tried(lambda: socket.create_connection(('192.0.2.1', 80), 1))\ntried(lambda: socket.getaddrinfo('example.org', 80))\n"
        "tried(lambda: socket.socket().connect_ex(('192.0.2.1', 80)))\n"
        "tried(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53)))\n"
        "with socket.create_server(('127.0.0.1', 0)) as s: socket.create_connection(s.getsockname()).close()\n"
    )
    env = clean_environment(tmp_path / "home")
    assert not [k for k in env if "KEY" in k or "TOKEN" in k or "proxy" in k.lower()]
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("reaches no network") == 6, done
