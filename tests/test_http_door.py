"What a server sends back: an echoed key, proxies of the environment, sizes, what counts as charged."

import asyncio, gzip, json, socket, ssl, tracemalloc
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from treekit.config import Profile, UsageError
from treekit.core.output_parsers import TEXT
from treekit.core.prompts import CallFailed, Prompt
from treekit.core.http import certificates, http_client, without_key
from treekit.llm.openai_client import OpenAIClient

KEY = "canary-0123456789/abc"
REQUEST = Prompt("test.door", "answer", "$question", TEXT)(question="Who directed it?")


def ask(url, key=KEY, request=REQUEST, **more):
    async def main():
        chat = OpenAIClient("m", url, key, **dict(timeout=5, retries=0) | more)
        try:
            return await chat.complete(request)
        finally:
            await chat.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        KEY.upper(),
        KEY.replace("/", "%2F"),
        KEY.replace("/", "\\/"),
        KEY.replace("a", "\\u0061"),
        KEY.replace("-", "\\u002D"),
    ],
)
def test_an_echoed_key_is_hidden_in_every_field(server, form):
    text = json.dumps(
        dict(
            model="MARK",
            choices=[dict(finish_reason="MARK", message=dict(content="a MARK b", reasoning_content="MARK"))],
        )
    )
    server.script(faults=[dict(kind="raw", headers=[f"x-echo: {KEY}"], body=text.replace("MARK", form))])
    [got] = ask(server.url)
    assert "canary" not in repr(got).lower() and got.text.startswith("a ")
    refusal = json.dumps(dict(error=dict(message="x" * 290 + "MARK"))).replace("MARK", form)
    server.script(faults=[dict(kind="raw", status=400, headers=[], body=refusal)])
    with pytest.raises(CallFailed) as failed:
        ask(server.url)
    assert "canary" not in str(failed.value).lower() and "sk-" not in str(failed.value)


def test_placeholders_are_no_keys():
    for word in ("EMPTY", "ollama", "lm-studio", "none"):
        assert without_key(f"{word} said {word}", word) == f"{word} said {word}"


@pytest.mark.parametrize(
    "name, value",
    [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("ALL_PROXY", "socks5://127.0.0.1:9"),
        ("all_proxy", "socks4://127.0.0.1:9"),
    ],
)
@pytest.mark.parametrize("at", [ask, lambda url: http_client(url, 5)], ids=["run", "doctor"])
def test_a_server_on_this_machine_is_asked_without_a_proxy(server, monkeypatch, name, value, at):
    monkeypatch.setenv(name, value)
    assert ask(server.url)[0].text
    if "socks" in value:
        with pytest.raises(UsageError, match=name.upper()):
            at("http://models.invalid/v1")


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("http_proxy", "http://u:secret@127.0.0.1:9", "a proxy in the environment"),
        ("all_proxy", "127.0.0.1:9", "a proxy in the environment"),
        ("HTTP_PROXY", "http://[::1", "so should a proxy"),
        ("NO_PROXY", "*", "check the network"),
    ],
)
def test_a_proxy_that_fails_is_named(monkeypatch, name, value, said):
    monkeypatch.setenv("HTTP_PROXY" if name == "NO_PROXY" else name, "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises((CallFailed, UsageError), match=said) as failed:
        ask("http://models.invalid/v1")
    assert "secret" not in str(failed.value)


def test_a_proxy_that_wants_a_password_is_named(serve, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", serve(407).removesuffix("/v1"))
    monkeypatch.setenv("HTTPS_PROXY", serve(407).removesuffix("/v1"))
    with pytest.raises(CallFailed, match="407.*name the user of the proxy"):
        ask("http://models.invalid/v1")
    with pytest.raises(CallFailed, match="501.*a proxy in the environment"):
        ask("https://models.invalid/v1")


@pytest.mark.parametrize("key", ["sk-a\n", " sk-a", "sk-\r", "sk-é", "sk-\x00b", "열쇠"])
def test_a_key_that_no_header_can_have_is_refused_by_its_variable(monkeypatch, key):
    monkeypatch.setattr("treekit.config.variable", lambda name, default="": key)
    with pytest.raises(UsageError, match="API key in SOME_KEY") as failed:
        Profile("p", api_key_env="SOME_KEY").key()
    assert "sk-" not in str(failed.value)


def test_only_what_was_sent_is_charged(server):
    charged = []
    request = replace(REQUEST, on_charge=lambda *a: charged.append(a))
    for url in (server.url.replace("http", "https"), "http://127.0.0.1:9/v1"):
        with pytest.raises(CallFailed) as failed:
            ask(url, request=request)
        assert failed.value.kind == "unreachable"
    with pytest.raises(CallFailed):
        ask(server.url, "sk-bad\nkey", request=request)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(CallFailed, match="no connection to"):  # it hangs
            ask(f"http://127.0.0.1:{full.getsockname()[1]}/v1", timeout=1, request=request)
    assert not charged
    server.script(faults=[dict(kind="raw", headers=[], body="x" * (6 << 20))])
    with pytest.raises(CallFailed, match="which max_tokens doesn't allow"):
        ask(server.url, request=request)
    assert len(charged) == 1


def test_what_a_server_names_has_no_controls(server):
    server.script(
        faults=[
            dict(
                kind="raw",
                headers=[],
                body=json.dumps(
                    dict(model="m\x1b[31m\u202e", choices=[dict(finish_reason="no\x07vel", message=dict(content="a"))])
                ),
            )
        ]
    )
    [got] = ask(server.url)
    assert (got.model, got.finish) == ("m [31m", "no vel")


@pytest.fixture
def serve():
    "Function that starts a server: it answers each request with a status, headers and a body; `tls`: a certificate's name."
    running = []

    def start(status, body=b"", tls=None, **headers):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *words):
                pass

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                for name, value in (headers | {"Content-Length": str(len(body))}).items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

        made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.daemon_threads, made.handle_error = True, lambda *a: None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            made.socket = context.wrap_socket(made.socket, server_side=True, do_handshake_on_connect=False)
        Thread(target=made.serve_forever, kwargs=dict(poll_interval=0.02), daemon=True).start()
        running.append(made)
        return f"http{'s' * bool(tls)}://127.0.0.1:{made.server_address[1]}/v1"

    yield start
    for made in running:
        made.shutdown(), made.server_close()


REPLY = json.dumps(dict(choices=[dict(finish_reason="stop", message=dict(content="Ada"))])).encode()


ONCE = gzip.compress(b" " * (300 << 20), 9)
PACKED = {"gzip": ONCE, "gzip, gzip": gzip.compress(ONCE, 9), "br": b"x"}


@pytest.mark.parametrize("packed", PACKED)
def test_a_small_body_cannot_unpack_to_a_large_one(serve, packed):
    "Also if it is compressed twice: one piece of 64 kB would be 64 GB."
    url, said = serve(200, PACKED[packed], Content_Encoding=packed), "more than 64 MB|compressed as"
    tracemalloc.start()
    with pytest.raises(CallFailed, match=said) as failed:
        ask(url)
    with http_client(url, 5) as client, pytest.raises(Exception, match=said):
        client.get(url)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert failed.value.kind == "malformed" and peak < 256 << 20


def test_a_compressed_reply_is_read(serve):
    for packed in (dict(Content_Encoding="gzip"), {}):
        url = serve(200, gzip.compress(REPLY) if packed else REPLY, **packed)
        assert ask(url)[0].text == "Ada"
        with http_client(url, 5) as client:
            assert client.get(url).json()["choices"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    "Function that makes a self-signed certificate for names, valid for days."
    x509 = pytest.importorskip("cryptography.x509")
    import datetime, ipaddress
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def make(host, days=9):
        key, name = (
            ec.generate_private_key(ec.SECP256R1()),
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "t")]),
        )
        alternative = x509.IPAddress(ipaddress.ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
        start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(9)
        made = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        )
        made = made.not_valid_before(start).not_valid_after(start + datetime.timedelta(9 + days))
        made = made.add_extension(x509.SubjectAlternativeName([alternative]), False).sign(key, hashes.SHA256())
        path = tmp_path_factory.mktemp("tls") / "c.pem"
        path.write_bytes(
            made.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return path

    return make


@pytest.mark.parametrize(
    "host, days, trusted, said",
    [
        ("127.0.0.1", 9, False, "self-signed certificate.* set SSL_CERT_FILE"),
        ("127.0.0.1", 9, True, ""),
        ("other.example", 9, True, "name the server as its certificate does"),
        ("127.0.0.1", -1, True, "expired"),
    ],
)
def test_certificates(serve, certificate, monkeypatch, host, days, trusted, said):
    "A server's certificate is checked, SSL_CERT_FILE adds an authority, and each refusal says what helps."
    url = serve(200, REPLY, path := certificate(host, days))
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    certificates.cache_clear()
    try:
        if not said:
            assert ask(url)[0].text == "Ada"
        else:
            with pytest.raises(CallFailed, match=said) as failed:
                ask(url)
            assert failed.value.kind == "unreachable" and not failed.value.again
    finally:
        certificates.cache_clear()


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
@pytest.mark.parametrize("value", ["/nowhere/c.pem", __file__])
def test_certificates_that_are_not_there(monkeypatch, name, value):
    "A file that can't be read is named; a folder without certificates trusts nobody. This machine needs none without TLS."
    monkeypatch.setenv(name, value)
    certificates.cache_clear()
    try:
        if name == "SSL_CERT_FILE":
            with pytest.raises(UsageError, match="SSL_CERT_FILE"):
                ask("https://127.0.0.1:9/v1")
        with pytest.raises(CallFailed, match="no connection"):
            ask("http://127.0.0.1:9/v1")
    finally:
        certificates.cache_clear()


def test_a_port_that_speaks_tls_is_named(serve, certificate):
    url = serve(200, b"{}", certificate("127.0.0.1"))
    with pytest.raises(CallFailed, match="if it speaks TLS"):
        ask(url.replace("https", "http"))
    with pytest.raises(CallFailed, match="no connection to .*SSL"):
        ask(serve(200, b"{}").replace("http", "https"))


def test_a_redirect_to_another_host_gets_neither_key_nor_prompt(serve, server):
    "From http to https, to another port, and to another name of this machine."
    for there in (
        "https://localhost:9/v1/x",
        server.url,
        server.url.replace("127.0.0.1", "localhost"),
        "//evil.example/x",
    ):
        with pytest.raises(CallFailed, match="answered 307.*; name the address that answers"):
            ask(serve(307, Location=there))
    assert server.count == 0
