"Cassettes to hand on: what a replay reads and nothing else, from any source, in one small file that needn't be trusted."

import io, json, lzma, os, shutil, tarfile
from pathlib import Path

import pytest

from commands import inside
from openai_server import Server
from test_cli import BODY, clone, notebook, small_clone  # noqa: F401 (a fixture)
from treekit.config import UsageError
from treekit.store import cassette_archive
from treekit.store.run_store import Store
from treekit.store.cassette_archive import STORE_FILE, open_archive, write_archive
from treekit.experiments.cassettes import about_cassette, unpack_cassette

SEARCHING = (
    BODY
    + """
seen = [*shown, *(f"{r.question.id} {r.answer} {r.trace.nodes[0].text}" for r in results.rows)]
(Path(out or root() / "figures" / P.name) / "treerare" / "table1_seen.csv").write_text(" ".join(seen))
"""
)
for old, new in (  # the same notebook, with a source's questions, exemplars, passages and trees
    ("documents=hits", "documents=[h.passage for h in hits]"),
    (
        "    async def __call__(self, question, context):\n        [hits]",
        """    requires = ("parser",)
    async def __call__(self, question, context):
        context.trace.add("tree", context.parse([question.question])[0].sentences[0].root.text)
        [hits]""",
    ),
    (
        'asked = {"hotpotqa": [',
        """from treekit.experiments.resources import exemplars, load
shown = [q.id for q in exemplars("hotpotqa", P.data, 2, P.seed)]
asked = {"hotpotqa": load("hotpotqa", P.data, n=P.n, seed=P.seed) or [""",
    ),
    (', corpora={"hotpotqa": LazyRetriever(Shelf, "shelf", "one page")}', ""),
):
    assert old in SEARCHING
    SEARCHING = SEARCHING.replace(old, new)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    "A clone in which a server has answered twelve questions; what goes behind `treekit cassette pack FILE treerare`."
    home = small_clone(tmp_path_factory.mktemp("recorded") / "clone")
    with Server(latency=0) as server:
        words = ("--profile", "local", "--set", f"endpoint={server.url}")
        assert inside("reproduce", "--n", "12", "--out", "elsewhere", *words, cwd=home)[0] == 0
        assert inside("reproduce", *words, cwd=home)[0] == 0
    return home, words


def calls(tape):
    with Store.replay(tape) as store:
        return store.query("SELECT COUNT(*) FROM calls")[0][0]


def replayed(tape, home, tmp_path):
    "The tables of a replay that has nothing but the cassette: neither store nor server."
    shutil.rmtree(tmp_path / "new", ignore_errors=True)
    code, out, err = inside(
        "cassette", "replay", tape, "--out", tmp_path / "new/out", cwd=home, TREEKIT_HOME=str(tmp_path / "new")
    )
    assert code == 0 and not (tmp_path / "new/store").exists(), out + err
    return tmp_path / "new/out/treerare"


@pytest.mark.slow
def test_what_a_replay_reads_goes_along_and_nothing_else(recorded, tmp_path):
    (home, words), tape = recorded, tmp_path / "one.cassette"
    code, out, err = inside("cassette", "pack", tape, "treerare/table1", "--json", *words, cwd=home)
    assert code == 0 and json.loads(out)["calls"] == calls(tape) == 6, out + err
    assert tape.stat().st_size < (home / ".treekit/store/local.sqlite").stat().st_size / 8
    assert os.listdir(tmp_path) == ["one.cassette"] and os.listdir(home / ".treekit/packing") == []
    with open_archive(tape) as held:
        assert set(held) == {"about.json", "noted.txt", STORE_FILE}  # its questions come with its notebook
    first = (home / "figures/local/treerare/table1.csv").read_bytes()
    assert (replayed(tape, home, tmp_path) / "table1.csv").read_bytes() == first


def archive(path, **files):
    write_archive(path, {name.replace("__", "/"): content for name, content in files.items()})
    return path


def test_a_cassette_need_not_be_trusted(tmp_path, monkeypatch):
    "Cut off, damaged, without a store, too long, with paths that lead elsewhere, with links."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    tape = archive(tmp_path / "a.cassette", other=b"")
    with pytest.raises(UsageError, match="is not a cassette"):
        Store.replay(tape)
    whole = archive(tape, **{STORE_FILE: os.urandom(5000)}).read_bytes()
    for wrong in (whole[:-9], whole[:2000] + b"?" * 40 + whole[2040:], lzma.compress(b"no archive"), whole[:6]):
        tape.write_bytes(wrong)
        for read in (Store.replay, about_cassette):
            with pytest.raises(UsageError, match="cassette"):
                read(tape)
    extended = tarfile.TarInfo("x")
    extended.type = tarfile.XHDTYPE
    tape.write_bytes(lzma.compress(3000 * extended.tobuf()))  # `tarfile` calls itself for each of them
    with pytest.raises(UsageError, match="no plain file"):
        Store.replay(tape)
    for said in (b"[]", b"{", b"\xff"):
        with pytest.raises(UsageError, match="about.json"):
            about_cassette(archive(tape, **{"about.json": said}))
    for odd in ("data/../up.txt", "data//etc", "/abs", "data/.hid", "data/a b"):
        forged = write_archive(tape, {odd: b"", "data/ok.jsonl": b""})
        with pytest.raises(UsageError, match="a cassette has no file"):
            unpack_cassette(forged)
    with pytest.raises(UsageError, match="about.json"):
        unpack_cassette(write_archive(tape, {"data/ok.jsonl": b"", "about.json": b'{"data": "../../up"}'}))
    laid, _ = unpack_cassette(write_archive(tape, {"data/ok.jsonl": b"", "about.json": b'{"data": "films"}'}))
    assert (
        os.listdir(laid) == ["ok.jsonl"] and Path(laid).name == "films" and Path(laid).is_relative_to(tmp_path / "home")
    )
    assert not (tmp_path / "up.txt").exists()
    with pytest.raises(UsageError, match="parses"):
        unpack_cassette(archive(tape, **{"parses.jsonl": b'["k", "[1]"]'}))
    assert unpack_cassette(
        archive(tape, **{"noted.txt": b'{"hotpotqa 0f": ["25 of 7405, and not those drawn", true]}'})
    )
    for forged in (b'{"a": ["<b>", true]}', b'{"a": "x"}', b"[1]", b"{", b"[" * 99_999):
        with pytest.raises(UsageError, match="notes"):
            unpack_cassette(archive(tape, **{"noted.txt": forged}))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        link = tarfile.TarInfo(STORE_FILE)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    tape.write_bytes(lzma.compress(plain.getvalue()))
    with pytest.raises(UsageError, match="is not a cassette"):
        Store.replay(tape)
    monkeypatch.setattr(cassette_archive, "LONGEST_TAPE", 1 << 20)
    with pytest.raises(UsageError, match="longer than 1 MB"):
        Store.replay(archive(tape, **{STORE_FILE: bytes(3 << 20)}))
