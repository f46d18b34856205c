"How a real run starts: the hub's layouts, the doctor, and one line for what would stop a run that is paid for."

import json, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from treekit.cli.main import main
from treekit.config import Profile, UsageError, load_profile
from treekit.core.prompts import CallFailed, Request
from treekit.artefacts.environment_check import checks
from treekit.experiments.resources import exemplars, load, load_corpus

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "data" / "fixtures"
HUB = f"hub:{FIXTURES / 'hub'}"


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def treekit_(*words):
    "Exit code and what was said."
    found = CliRunner().invoke(main, list(map(str, words)))
    return found.exit_code, found.output


class Answers(BaseHTTPRequestHandler):
    "A server that answers by path: a body, or (status, headers)."

    told, replies = [], {}

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.told.append((self.path, self.headers.get("Authorization"), body))
        found = self.replies.get(self.path, (404, {}))
        status, headers, data = (*found, b"") if isinstance(found, tuple) else (200, {}, json.dumps(found).encode())
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer

    def log_message(self, *args):
        pass


@pytest.fixture
def serve():
    "Start servers with the given replies; (address, what they were told)."
    running = []

    def start(**replies):
        kind = type("Own", (Answers,), dict(told=[], replies={f"/{k}": v for k, v in replies.items()}))
        server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}", kind.told

    yield start
    for server in running:
        server.shutdown(), server.server_close()


@pytest.mark.parametrize("name", ["hotpotqa", "musique", "2wiki", "ambigdocs", "asqa"])
def test_the_hub_and_the_authors_own_files_say_the_same(name):
    hub, own = load(name, HUB), load(name, FIXTURES / "official")
    assert hub == own and len(hub) == 3 and all(q.paragraphs and q.supporting for q in hub)
    assert len(exemplars(name, HUB, 3)) == 3


@pytest.mark.parametrize("name", ["asqa", "qampari", "eli5"])
def test_alces_files(name):
    found = load(name, FIXTURES / "alce")
    assert len(found) == 3 and len(load_corpus(name, FIXTURES / "alce")) > 10
    if name == "asqa":
        return
    assert load(name, HUB) == found
    with pytest.raises(UsageError, match="evaluation only"):
        exemplars(name, HUB, 3)


def test_a_prompt_that_does_not_fit_is_not_sent(serve):
    import asyncio
    from treekit.llm.openai_client import OpenAIClient

    address, told = serve()
    chat = OpenAIClient.from_profile(Profile("p", model="m", endpoint=address, context=2000))
    with pytest.raises(CallFailed, match="reads 2,000; raise the server's context"):
        asyncio.run(chat.complete(Request(({"role": "user", "content": "word " * 2000},))))
    assert told == []


def test_a_server_without_log_probabilities(serve):
    address, _ = serve(models={"data": [{"id": "m"}]}, completions={"choices": [{"text": "x", "logprobs": None}]})
    profile = load_profile("vllm", model="m", endpoint=address)
    [row] = [c for c in checks(profile, "arise") if c[0] == "log-probabilities"]
    assert row[1] is False and "scorer=guess" in row[3]
    echoed = {"tokens": ["one", "\n", "two"], "text_offset": [0, 3, 4], "token_logprobs": [None, -1.5, -2.0]}
    good = {"choices": [{"text": "x", "logprobs": echoed}]}
    address, _ = serve(models={"data": [{"id": "m"}]}, completions=good)
    profile = load_profile("vllm", model="m", endpoint=address)
    assert [c[1] for c in checks(profile, "arise") if c[0] == "log-probabilities"] == [True]


def test_no_field_of_a_method_hides_a_setting_of_the_profile():
    "`--set` would reach the method, and never the profile. A temperature and a seed mean the same in both."
    import dataclasses, importlib
    from treekit.config import Profile
    from treekit.papers.registry import method_modules

    settings, hidden = {f.name for f in dataclasses.fields(Profile)}, set()
    for module in map(importlib.import_module, method_modules()):
        for kind in (
            k
            for k in vars(module).values()
            if isinstance(k, type) and dataclasses.is_dataclass(k) and "__call__" in dir(k)
        ):
            if kind.__name__ not in ("Prompt", "Reading"):
                hidden |= {(kind.__name__, f.name) for f in dataclasses.fields(kind)} & {
                    (kind.__name__, name) for name in settings - {"temperature", "seed"}
                }
    assert hidden <= {("GraphRAG", "entities")}, hidden
