"A key that a server echoes wherever it can is in no file and in no line: doctor, ask, reproduce, exports, cassette, report."

import io, json, lzma, os, sqlite3, subprocess, tarfile, zipfile, zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote

import pytest

from commands import inside

KEY, MARK = "sk-canary/Zq81Rf+5tYw02LxM==", "Zq81Rf"


class Echo(BaseHTTPRequestHandler):
    "Puts the key that it got into the reason, the headers, the names and the texts; every ninth request is refused with it."

    protocol_version, asked, seen = "HTTP/1.1", 0, set()

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.reply(
            200, dict(object="list", data=[dict(id="m", owned_by=self.key()), dict(id=self.key())], note=self.key())
        )

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Echo.asked += 1
        key = self.key()
        if Echo.asked % 9 == 2:
            return self.reply(500, dict(error=dict(message=f"{'x' * 280} {key}", code=key)))
        message = dict(role="assistant", content=f"{key} thinks.\nFINAL: Ada {key}", reasoning_content=key)
        choice = dict(index=0, finish_reason="stop" if Echo.asked % 5 else f"stop {key}", message=message)
        self.reply(
            200,
            dict(
                id=key,
                object="chat.completion",
                model=f"m-{key}",
                system_fingerprint=key,
                choices=[choice],
                usage=dict(prompt_tokens=9, completion_tokens=9),
            ),
        )

    def key(self):
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        Echo.seen.add(key)
        return key

    def reply(self, status, found):
        key, body = self.key(), json.dumps(found).replace("/", "\\/" if Echo.asked % 2 else "/").encode()
        self.send_response(status, f"OK {key}")
        for name, value in (
            ("X-Key", key),
            ("Set-Cookie", f"k={quote(key)}"),
            ("Content-Type", f"application/json; x={key}"),
            ("Content-Length", str(len(body))),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def contents(folder):
    "All files below a folder, with what archives, compressed files and databases hold."

    def inner(name, data):
        yield name, data
        if data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as packed:
                for part in packed.namelist():
                    yield from inner(f"{name}/{part}", packed.read(part))
        elif data[:6] == b"\xfd7zXZ\0":
            yield from inner(f"{name}/unpacked", lzma.decompress(data))
        elif data[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(data)) as packed:
                for part in packed:
                    if part.isfile():
                        yield from inner(f"{name}/{part.name}", packed.extractfile(part).read())
        elif data[:4] == b"PAR1":
            import pandas

            yield f"{name}/rows", repr(pandas.read_parquet(io.BytesIO(data)).to_dict()).encode()
        elif data[:15] == b"SQLite format 3":
            with sqlite3.connect(":memory:") as db:
                db.deserialize(data[:18] + b"\1\1" + data[20:])  # not in WAL mode
                for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                    for row in db.execute(f'SELECT * FROM "{table}"'):
                        for value in row:
                            if not isinstance(value, bytes):
                                value = str(value).encode()
                            try:
                                value = zlib.decompress(value)
                            except zlib.error:
                                pass
                            yield f"{name}/{table}", value

    for path in folder.rglob("*.sqlite"):
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield from inner(str(path.relative_to(folder)), path.read_bytes())


@pytest.mark.slow
def test_an_echoed_key_is_nowhere(tmp_path, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "q").mkdir()
    question = dict(
        question="Who directed Velmora?",
        answers=["Ada"],
        supporting=["p"],
        paragraphs=[dict(id="p", title="Velmora", text="Velmora is a film that Ada directed.")],
    )
    (tmp_path / "q" / "mine.dev.jsonl").write_text(
        "\n".join(json.dumps(question | dict(id=f"q{i}")) for i in range(2)), encoding="utf-8"
    )
    started, popen = [], subprocess.Popen.__init__
    monkeypatch.setattr(
        subprocess.Popen,
        "__init__",
        lambda self, args, *a, **more: started.append(args) or popen(self, args, *a, **more),
    )
    profile = (
        "--profile",
        "local",
        "--set",
        "model=m",
        "--set",
        f"endpoint=http://127.0.0.1:{server.server_address[1]}/v1",
        "--set",
        "api_key_env=CANARY_KEY",
        "--set",
        "judges=",
    )
    mine, kit = (*profile, "--set", "data=q"), (*profile, "--set", "data=synthetic", "--set", "n=1")
    said, env = [], dict(TREEKIT_HOME=str(tmp_path / "home"), CANARY_KEY=KEY)

    def go(*words, code=(0,)):
        got, out, err = inside(*words, cwd=tmp_path, **env)
        assert got in code, (words, out + err)
        said.append(out + err)

    try:
        go("doctor", *mine, code=(0, 2))
        go("doctor", "--json", *mine[:3], "model=absent", *mine[4:], code=(0, 2))
        go("ask", "Who directed Velmora?", "--method", "zero-shot", *mine)
        go("reproduce", "toq/table2", "--out", "tables", *kit, code=(0, 1))
        go("export", "--profile", "local", "--out", "parquet")
        go("export", "toq/table2", "--profile", "local", "--to", "latex", "--tables", "tables", "--out", "latex")
        go("cassette", "pack", "a.cassette", "toq/table2", *kit)
        go("report", "toq/table2", "--profile", "local", "--tables", "tables", "--out", "report.zip")
    finally:
        server.shutdown(), server.server_close()
    assert Echo.seen >= {KEY} and Echo.asked > 5
    found = dict.fromkeys(name for name, data in contents(tmp_path) if MARK.lower().encode() in data.lower())
    assert not found, [*found]
    assert MARK not in "".join(said) + str(started) and "Ada …" in "".join(said)
    kinds = {os.path.splitext(name)[1] for name, _ in contents(tmp_path)}
    assert {".sqlite", ".parquet", ".tex", ".cassette", ".zip", ".ipynb", ".csv"} <= kinds, kinds
