"The class's server over raw sockets: ambiguous lengths, slow senders, many connections."
import contextlib, json, socket, time

import pytest

import treekit.classroom.model_server as model_server
from test_course_model import course, fresh, say, send, served, token, upstream  # noqa: F401 (fixtures)


def connect(server):
    host, port = server.address.removeprefix("http://").removesuffix("/v1").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def talk(server, data):
    "All that the server sends until it closes the connection, or for two seconds."
    with connect(server) as s:
        s.sendall(data)
        s.settimeout(2)
        got = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while part := s.recv(1 << 16): got += part
    return got


SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n"


@pytest.mark.parametrize("heads", [
    b"Content-Length: 5\r\nContent-Length: 70", b"Content-Length: +5", b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: xchunked", b"Content-Length: 0x5"], ids=["two", "plus", "both", "coding", "hex"])
def test_an_ambiguous_length_hides_no_request(course, upstream, heads):  # noqa: F811
    with served(course, upstream) as server:
        hidden = SMUGGLED.replace(b"TOKEN", token(course, "ada").encode())
        got = talk(server, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + heads + b"\r\n\r\n{\"a\"}" + hidden)
        assert got.count(b"HTTP/1.1 ") == 1 and got.split()[1] in (b"400", b"401", b"501") and b"\"data\"" not in got, got
        assert send(server.address, token(course, "ada"), say("Who?"))[0] == 200


def test_the_body_of_a_get_is_no_request(course, upstream):  # noqa: F811
    with served(course, upstream) as server:
        hidden = SMUGGLED.replace(b"TOKEN", token(course, "ada").encode())
        got = talk(server, hidden.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(hidden)) + hidden)
        assert got.count(b"HTTP/1.1 ") == 1 and got.split()[1] == b"200", got


def test_slow_senders_are_left_and_others_are_served(course, upstream, monkeypatch):  # noqa: F811
    monkeypatch.setattr(model_server, "_HEAD_SECONDS", 0.4)
    monkeypatch.setattr(model_server, "_BODY_SECONDS", 0.4)
    with served(course, upstream) as server, connect(server) as head, connect(server) as silent, connect(server) as body:
        head.sendall(b"GET /v1/models HTTP/1.1\r\nHo")
        body.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert send(server.address, token(course, "ada"), say("Who?"))[0] == 200
        assert head.recv(100) == b"" and silent.recv(100) == b"" and b"408" in body.recv(1000)


def test_a_flood_of_connections_is_refused_and_ends(course, upstream, monkeypatch):  # noqa: F811
    monkeypatch.setattr(model_server, "_HEAD_SECONDS", 1.0)
    monkeypatch.setattr(model_server, "MOST_CONNECTIONS", 20)
    with served(course, upstream) as server, contextlib.ExitStack() as stack:
        for _ in range(60): stack.enter_context(connect(server))
        assert b" 503 " in talk(server, SMUGGLED)
        end = time.monotonic() + 10
        while b" 503 " in (got := talk(server, SMUGGLED.replace(b"TOKEN", token(course, "ada").encode()))): assert time.monotonic() < end
        assert json.loads(got.partition(b"\r\n\r\n")[2])["data"]


def test_a_body_that_is_too_long_is_said(course, upstream):  # noqa: F811
    with served(course, upstream) as server:
        status, reply = send(server.address, token(course, "ada"), b" " * (model_server.LONGEST_ASKED + 1))
        assert status == 413 and reply["error"]["code"] == "too_long"
        assert send(server.address, token(course, "ada"), b"x" * 100)[0] == 400
