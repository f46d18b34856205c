"""`score` against a real server with echoed log-probabilities: llama-cpp-python's, with a tiny random model.

Skipped where it isn't installed. It needs the packages llama-cpp-python[server] and gguf, here or in another environment whose Python is
named by TREEKIT_LLAMA_PYTHON:

    python -m venv llama && llama/bin/pip install 'llama-cpp-python[server]' gguf
    TREEKIT_LLAMA_PYTHON=llama/bin/python pytest tests/test_scoring_server.py
"""

import asyncio, math, os, socket, subprocess, sys, time, urllib.request
from pathlib import Path

import pytest

from treekit.papers.arise.method import ARISE
from treekit.core.prompts import Request
from treekit.llm.openai_client import OpenAIClient
from treekit.core.method import Context
from treekit.papers.arise.states import risk_value
from treekit.store.run_store import Store
from treekit.llm.cached_client import CachedClient

PYTHON = os.environ.get("TREEKIT_LLAMA_PYTHON", sys.executable)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    if subprocess.run([PYTHON, "-c", "import llama_cpp.server, gguf"], capture_output=True).returncode:
        pytest.skip("no llama-cpp-python[server] and gguf: name a Python that has them in TREEKIT_LLAMA_PYTHON")
    folder = tmp_path_factory.mktemp("llama")
    subprocess.run([PYTHON, Path(__file__).with_name("tiny_model.py"), folder / "tiny.gguf"], check=True)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(
            [
                PYTHON,
                "-m",
                "llama_cpp.server",
                "--model",
                folder / "tiny.gguf",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--n_ctx",
                "4096",
                "--logits_all",
                "true",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models").close()
                break
            except OSError:
                time.sleep(0.5)
        else:
            raise RuntimeError((folder / "log").read_text()[-2000:])
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def score(endpoint, given, *continuations):
    async def main():
        chat = OpenAIClient("tiny", endpoint)
        try:
            return [await chat.score(Request((dict(role="user", content=given),)), c) for c in continuations]
        finally:
            await chat.close()

    return asyncio.run(main())


def test_the_tokens_are_the_continuations(endpoint):
    "Scores are those of the continuation alone: a longer one begins with the same, and each letter of a text of no known words is a token."
    short, longer = score(endpoint, "Given some facts,\nthe original question might be:", "Xq7?", "Xq7? Zk")
    assert len(short) == 4 and all(-30 < p < 0 for p in longer)
    assert short == pytest.approx(longer[:4], abs=1e-3)
    (other,) = score(endpoint, "Given other facts,\nthe original question might be:", "Xq7?")
    assert other != pytest.approx(short, abs=1e-3)  # it depends on what is given


def test_accented_letters_and_other_scripts(endpoint):
    for text in ("Who was Renée Žižka of Café Élan?", "東京 in the film", "¿Quién?"):
        [values] = score(endpoint, "Given é and 東,\nthe question might be:", text)
        assert len(values) >= len(text.split()) and all(map(math.isfinite, values))


def test_arise_by_the_models_own_likelihood(endpoint):
    "The random model writes nothing useful, so its words are replaced; the risk is its own."
    from test_arise import OneEach, QUESTION, Scripted, TREE

    class Tiny(Scripted):
        async def score(self, request, continuation):
            return await real.score(request, continuation)

    real = OpenAIClient("tiny", endpoint)

    async def main():
        try:
            return await ARISE()(QUESTION, Context(CachedClient(Tiny(TREE), Store()), OneEach()))
        finally:
            await real.close()

    states = [n.data for n in asyncio.run(main()).trace.nodes if n.kind == "state"]
    assert (
        len(states) > 5 and all(2 < s["risk"] < 15 for s in states) and len({s["risk"] for s in states}) == len(states)
    )
    first = [
        (s["changes"][0], s["risk"]) for s in states if not s["changes"][0][1]
    ]  # not rolled out in the round it was made
    assert first and all(value == pytest.approx(risk_value(risk), abs=1e-8) for (_, _, value), risk in first)
