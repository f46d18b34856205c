"Pipelines of one's own: every adapter keeps answers, counts, cache, budget and resumption; errors are one line; the front door."

import importlib.util, json, textwrap, threading, urllib.request
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import pipelines
import treekit
from treekit.adapters.functions import function_method
from treekit.adapters.http_service import service_method
from treekit.adapters.loading import load_pipeline
from treekit.config import UsageError, load_profile
from treekit.experiments.run import run
from treekit.store.run_store import Store


async def two_steps(question, context):
    "Search, answer, check: two calls, one after the other."
    with context.step("read"):
        passages = await context.retrieve(question, k=5)
        shown = "\n".join(p.stated for p in passages)
        first = await context.ask(f"{shown}\n\nAnswer in a few words.\nQuestion: {question}")
    second = await context.ask(
        [
            dict(role="system", content="You check answers."),
            dict(role="user", content=f"{shown}\n\nSomebody said {first}.\n\nQuestion: {question}"),
        ]
    )
    return second or first


def two_steps_blocking(question, context):
    with context.step("read"):
        passages = context.retrieve(question, k=5)
        shown = "\n".join(p.stated for p in passages)
        first = context.ask(f"{shown}\n\nAnswer in a few words.\nQuestion: {question}")
    return context.ask(f"{shown}\n\nSomebody said {first}.\n\nQuestion: {question}") or first


QUESTIONS = treekit.load("hotpotqa", n=4, data="synthetic:100")
SIZES = pytest.mark.parametrize("n", [6, pytest.param(20, marks=pytest.mark.slow)])  # questions


@SIZES
@pytest.mark.parametrize("function", [two_steps, two_steps_blocking])
def test_a_plain_function(function, n, tmp_path):
    "Fresh, cached, within a budget, interrupted and resumed."
    made = pipelines.check(lambda code: function_method(function, "mine", code), tmp_path, calls=2, n=n)
    step, search = made.rows[0].trace.nodes[1:3]
    assert (step.kind, step.text, search.parent) == ("step", "read", step.id)


class Service(BaseHTTPRequestHandler):
    "A service that searches and asks through the run; what else it does, its path says."

    def do_GET(self):
        self.reply(dict(version="1"))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/broken":
            return self.reply(dict(why="no index"), 500)
        if self.path == "/list":
            return self.reply(["an answer"])
        if self.path == "/own":
            return self.reply(dict(answer="A", passages=[dict(text="B", title="C")], usage=dict(calls=2, tokens_in=9)))
        found = post(asked, "/retrieve", dict(queries=[asked["question"]], k=5))["passages"][0]
        shown = "\n".join(f"{p['title']}: {p['text']}" for p in found)
        for _ in range(2):
            messages = [dict(role="user", content=f"{shown}\n\nTake {_}. Question: {asked['question']}")]
            try:
                said = post(asked, "/chat/completions", dict(model="any", messages=messages))
            except OSError:
                return self.reply(dict(why="no reply"), 502)
        self.reply(dict(answer=said["choices"][0]["message"]["content"]))

    def reply(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


def post(asked, path, body):
    headers = {"Authorization": f"Bearer {asked['api_key']}", "Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(asked["base_url"] + path, json.dumps(body).encode(), headers)
    ) as reply:
        return json.load(reply)


@pytest.fixture
def service():
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


@SIZES
def test_an_http_service(service, n, tmp_path):
    "Its calls go through the proxy, and so through cache, budget and trace."
    pipelines.check(lambda code: service_method(f"{service}/answer?{code}"), tmp_path, calls=2, n=n)


def guide(heading):
    "Python code of a section of the guide."
    text = (Path(__file__).parents[1] / "nbs" / "docs" / "howto" / "own_pipeline.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("```python\n")[2].partition("```")[0]


def test_the_guide_s_service_answers(tmp_path):
    made = {"__name__": "service"}
    exec(guide("A service, in any language"), made)
    made["Service"].log_message = lambda *words: None
    with ThreadingHTTPServer(("127.0.0.1", 0), made["Service"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pipelines.check(
            lambda code: service_method(f"http://127.0.0.1:{server.server_address[1]}/{code}"), tmp_path, calls=1, n=6
        )
        server.shutdown()


def test_what_a_service_reports_and_how_it_fails(service, tmp_path):
    def ask(path):
        with Store(tmp_path / f"{path}.sqlite") as store:
            return run(
                {"mine": load_pipeline(f"{service}/{path}")},
                pipelines.questions(1),
                load_profile("offline"),
                store=store,
                progress=False,
            ).rows[0]

    row = ask("own")
    assert (row.answer, row.usage.calls, row.usage.tokens_in, row.usage.critical_path) == ("A", 2, 9, 2)
    assert [node.kind for node in row.trace.nodes] == ["question", "search", "answer"]
    host = service.removeprefix("http://")
    assert ask("broken").error == f'{host} answered 500: {{"why": "no index"}}; look at the service\'s log'
    assert ask("list").error.startswith(f"the response of {host} is no JSON object")
    with Store(tmp_path / "gone.sqlite") as store:
        gone = run(
            {"mine": load_pipeline("http://127.0.0.1:9/answer")},
            pipelines.questions(1),
            load_profile("offline"),
            store=store,
            progress=False,
        )
    assert gone.rows[0].error == "no connection to 127.0.0.1:9; check that the service runs there"


def write(folder, text, name="mine.py"):
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


MINE = """
async def answer(question, context):
    passages = await context.retrieve(question, k=5)
    shown = "\\n".join(p.stated for p in passages)
    return await context.ask(f"{shown}\\n\\nAnswer in a few words.\\nQuestion: {question}")

def broken(question, context):
    if "film" in question: raise ValueError("no films")
    return 3 / 0
"""


def test_other_code_is_asked_again(tmp_path):
    "The hash of the file is part of the key of a prediction; a comment is no other code."
    path, profile = write(tmp_path, MINE), load_profile("offline", n=3)
    with Store(tmp_path / "s.sqlite") as store:

        def stored():
            return [
                r.stored
                for r in run(
                    {"mine": load_pipeline(f"{path}:answer")},
                    pipelines.questions(3),
                    profile,
                    store=store,
                    progress=False,
                ).rows
            ]

        assert stored() == [False] * 3 and stored() == [True] * 3
        write(tmp_path, MINE + "# a comment\n")
        assert stored() == [True] * 3
        write(tmp_path, MINE.replace("k=5", "k=4"))
        assert stored() == [False] * 3


def test_an_exception_is_a_failure_of_its_question(tmp_path):
    path = write(tmp_path, MINE)
    found = treekit.run(["cot", f"{path}:broken"], QUESTIONS)
    broken = [r for r in found if r.method == "mine.py:broken"]
    assert {r.error for r in broken} <= {
        "ValueError: no films (mine.py, line 8)",
        "ZeroDivisionError: division by zero (mine.py, line 9)",
    }
    assert len(broken) == 4 and list(found.table().failures) == [0, 4] and found.table().value[1] == 0
    assert str(tmp_path) not in found._repr_html_() and "mine.py:broken" in found._repr_html_()


@pytest.mark.parametrize(
    "returned, line",
    [
        ("None", "the pipeline returned NoneType, where an answer is a text"),
        ("{}", "the pipeline returned a dictionary without 'answer'"),
        ("dict(answer='a', usage=dict(calls=-1))", "'usage' has no count of calls"),
        ("dict(answer='a', passages=['p'])", "'passages' should be a list of dictionaries with a text"),
        ("context.ask('Why?', temperatur=1)", "ask has no argument 'temperatur'"),
        ("exit(3)", "SystemExit: 3 (mine.py, line 3)"),
        ("context.ask([dict(role='me')])", "a message has a role"),
    ],
)
def test_wrong_answers_are_told_in_one_line(returned, line, tmp_path):
    path = write(tmp_path, f"\ndef answer(question, context):\n    return {returned}\n")
    with Store(tmp_path / "s.sqlite") as store:
        [row] = run(
            {"mine": load_pipeline(f"{path}:answer")},
            pipelines.questions(1),
            load_profile("offline"),
            store=store,
            progress=False,
        ).rows
    assert line in row.error and "\n" not in row.error


@pytest.mark.parametrize(
    "words, line",
    [
        (["nothing.py:answer"], "write a function answer(question, context)"),
        (["mine.py:answr"], "no function in mine.py named 'answr'; did you mean 'answer'?"),
        (["mine.py"], "mine.py needs the name of a function"),
        (["mine.py:number"], "mine.py:number is int, which can't be called"),
        (["mine.py:short"], "should take question and context"),
        (["bad.py:answer"], "bad.py can't be imported: "),
        (["raises.py:answer"], "raises.py can't be imported: RuntimeError: no (raises.py, line 2)"),
        (["treerar"], "no method named 'treerar'; did you mean 'treerare'"),
        (["cot", "cot"], "two methods are named 'COT (zero-shot)'"),
    ],
)
def test_wrong_words_are_one_line(words, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MINE + "\nnumber = 3\ndef short(question): return ''\n")
    write(tmp_path, "def answer(:\n", "bad.py")
    write(tmp_path, "\nraise RuntimeError('no')\n", "raises.py")
    with pytest.raises(UsageError) as said:
        treekit.run(words, QUESTIONS)
    assert line in str(said.value) and "\n" not in str(said.value)


EXAMPLES = sorted((Path(__file__).parents[1] / "examples" / "pipelines").glob("*.py"))


class Marked(pipelines.PaidModel):
    "Answers with the fields that DSPy asks for, and the marks that it asks for around them."

    async def complete(self, request):
        made = await super().complete(request)
        fields = "[[ ## reasoning ## ]]\nIt says so.\n\n[[ ## answer ## ]]\n{}\n\n[[ ## completed ## ]]"
        return [replace(c, text=fields.format(c.text)) for c in made]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_with_a_framework(path, tmp_path):
    "It compiles; where its library is installed, it answers through the run's model and retriever."
    code = compile(path.read_text(encoding="utf-8"), path.name, "exec")
    assert "answer" in code.co_names
    library = path.stem.removesuffix("_pipeline")
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} isn't installed")
    model = Marked() if library == "dspy" else pipelines.PaidModel()
    with Store(tmp_path / "s.sqlite") as store:
        done = run(
            {"mine": load_pipeline(f"{path}:answer")},
            pipelines.questions(2),
            pipelines.PROFILE,
            store=store,
            chat=model,
            progress=False,
        )
    kinds = [node.kind for node in done.rows[0].trace.nodes]
    assert (
        not done.failures
        and len(model.asked) == kinds.count("call") * 2
        and kinds.count("search") == 1
        and kinds[-1] == "answer"
    )
