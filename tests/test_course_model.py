"The class's model: tokens, quotas, one key that never leaves, one payment for one question; and whose words a reply is."
import asyncio, json, os, signal, subprocess, sys, time, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from openai_server import Server
from speed import enough
from treekit.classroom.student_client import ClassModel
from treekit.classroom.course import CourseFolder
from treekit.classroom.model_server import ModelHandler, ModelServer, pack_words
from treekit.classroom.quotas import AT_ONCE, Quota, pseudonym, spent_by, student_token
from treekit.config import Profile, UsageError
from treekit.core.prompts import CallFailed, Request
from treekit.llm.openai_client import OpenAIClient
from treekit.store.run_store import Store

KEY = "teachers-own-key-1234567890"


@pytest.fixture(scope="module")
def upstream():
    with Server() as server: yield server


@pytest.fixture(autouse=True)
def fresh(upstream, monkeypatch):
    monkeypatch.setenv("TEACHERS_KEY", KEY)
    upstream.reset(faults=[], rules=[], latency=0.0)


@pytest.fixture
def course(tmp_path):
    (tmp_path / "roster.csv").write_text("id\nada\nbob\neve\n")
    return CourseFolder(tmp_path)


def profile(url, **more): return Profile("class", "gpt-4o-mini", url, "TEACHERS_KEY", **dict(retries=0, timeout=5.0, max_tokens=50) | more)


def served(course, upstream, quota=Quota(calls=5), budget=None, **more):
    return ModelServer(ModelHandler(course, profile(upstream.url, **more), quota, budget), port=0)


def token(course, student): return student_token(course.secret(), student)


def send(address, token, body, path="/chat/completions", method="POST"):
    "(status, JSON) of a question."
    data = None if method == "GET" else body if isinstance(body, bytes) else json.dumps(body).encode()
    heads = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked = urllib.request.Request(address + path, data, heads, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=30) as reply: return reply.status, json.load(reply)
    except urllib.error.HTTPError as e: return e.code, json.load(e)


def say(words, **more): return dict(messages=[dict(role="user", content=words)]) | more


def line(reply): return reply[1]["error"]["message"]


def test_what_two_ask_alike_is_asked_once_and_counts_for_the_first(course, upstream):
    with served(course, upstream) as s:
        upstream.script(latency=.3)
        with ThreadPoolExecutor(3) as pool:  # at the same moment
            got = list(pool.map(lambda who: send(s.address, token(course, who), say("Who is Ada Lovelace?")), ("ada", "bob", "eve")))
        later = send(s.address, token(course, "bob"), say("Who is Ada Lovelace?"))
        assert upstream.count == 1 and {status for status, _ in [*got, later]} == {200}
        assert len({r["choices"][0]["message"]["content"] for _, r in [*got, later]}) == 1
        assert sorted(r["course"]["new"] for _, r in got) == [0, 0, 1] and later[1]["course"]["new"] == 0
        left = [send(s.address, token(course, who), b"", "/quota", "GET")[1]["calls"] for who in ("ada", "bob", "eve")]
        assert sorted(left) == [4, 5, 5]
        assert send(s.address, token(course, "ada"), b"", "/models", "GET")[1]["data"][0]["id"] == "gpt-4o-mini"


def test_nobody_gets_past_a_quota_by_asking_at_once(course, upstream):
    "Forty different questions in parallel against a quota of five: five are asked, the others told why; nobody else is concerned."
    upstream.script(latency=.1)
    with served(course, upstream) as s:
        with ThreadPoolExecutor(40) as pool:
            got = list(pool.map(lambda i: send(s.address, token(course, "ada"), say(f"Question {i}?")), range(40)))
        asked = [i for i, (status, _) in enumerate(got) if status == 200]
        assert len(asked) == upstream.count <= 5 and upstream.most_at_once <= AT_ONCE
        more = 0
        while send(s.address, token(course, "ada"), say(f"More {more}?"))[0] == 200: more += 1
        assert upstream.count == 5
        over = send(s.address, token(course, "ada"), say("One more?"))
        assert over[0] == 429 and over[1]["error"]["code"] == "insufficient_quota"
        assert "your quota leaves 0 replies" in line(over) and "ask your teacher" in line(over)
        assert send(s.address, token(course, "ada"), say(f"Question {asked[0]}?"))[0] == 200  # what is there is still answered
        assert send(s.address, token(course, "bob"), say("Mine?", n=3, temperature=1))[1]["course"]["left"] == dict(calls=2, dollars=None)
        assert send(s.address, token(course, "bob"), say("Mine too?", n=3, temperature=1))[0] == 429


def test_who_asks_too_much_at_once_is_let_in_later(course, upstream):
    "Thirty calls at once by the kit's own client: all are answered in the end, eight at a time at most."
    upstream.script(latency=.05)
    with served(course, upstream, Quota(calls=30)) as s:
        chat = OpenAIClient("course", s.address, token(course, "ada"), concurrency=12, retries=20, max_tokens=50, pause=.05)
        async def ask():
            try: return await asyncio.gather(*(chat.complete(Request((dict(role="user", content=f"{i}?"),))) for i in range(30)))
            finally: await chat.close()
        assert len(asyncio.run(ask())) == upstream.count == 30 and upstream.most_at_once <= AT_ONCE


def test_the_key_is_nowhere_but_with_the_model(course, upstream, tmp_path, capfd):
    upstream.script(rules=[["echo", f"the key is {KEY}"]],
                    faults=[dict(kind="401", message=f"{KEY} is wrong", match="bad"),
                            dict(kind="raw", headers=[], body=f"x{KEY}", match="odd")])
    with served(course, upstream) as s:
        replies = [send(s.address, token(course, "ada"), say(w)) for w in ("echo", "bad", "odd")]
        replies += [send(s.address, "course-wrong", say("x")), send(s.address, KEY, say("x")), send(s.address, token(course, "ada"), b"{")]
    assert KEY in "".join(r["head"] for r in upstream.requests) and [status for status, _ in replies] == [200, 400, 502, 401, 401, 400]
    pack_words(course, tmp_path / "words.cassette")
    with Store.replay(tmp_path / "words.cassette") as tape: told = "\n".join(tape.connection.db.iterdump())
    said = capfd.readouterr()
    assert KEY not in json.dumps(replies) + told + said.out + said.err and "refused" in said.err
    assert not any(KEY.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert "the key is …" in replies[0][1]["choices"][0]["message"]["content"]


def test_a_dead_model_is_said_and_costs_nothing(course):
    with Server() as dying:
        with served(course, dying, timeout=2.0) as s:
            assert send(s.address, token(course, "ada"), say("Alive?"))[0] == 200
            dying.close()
            status, told = send(s.address, token(course, "ada"), say("And now?"))
            assert status == 502 and "can't be reached" in told["error"]["message"] and "no reply was counted" in told["error"]["message"]
            assert "127.0.0.1" not in told["error"]["message"]
            assert send(s.address, token(course, "bob"), say("Alive?"))[0] == 200  # from the store
            assert send(s.address, token(course, "ada"), b"", "/quota", "GET")[1]["calls"] == 4


@pytest.mark.parametrize("fault, status, word", [
    (dict(kind="500"), 502, "no answer that can be read"), (dict(kind="429"), 502, "no more questions at the moment"),
    (dict(kind="hang", seconds=9), 502, "too long"), (dict(kind="not json"), 502, "no answer that can be read"),
    (dict(kind="empty"), 502, "wrote nothing"), (dict(kind="400"), 400, "refused the question"), (dict(kind="cut"), 502, "no answer"),
])
def test_whatever_goes_wrong_has_a_line_and_counts_if_it_was_paid(course, upstream, fault, status, word):
    upstream.script(faults=[fault])
    paid = fault["kind"] in ("hang", "not json", "empty", "cut")
    with served(course, upstream, timeout=1.0) as s:
        found = send(s.address, token(course, "ada"), say("Who?"))
        assert found[0] == status and word in line(found)
        left = send(s.address, token(course, "ada"), say("Who?"))[1]["course"]["left"]["calls"]  # the next time it goes well
        assert left == (3 if paid else 4) and ("counts as one of your calls" if paid else "no reply was counted") in line(found)


@pytest.mark.parametrize("body, word", [
    (b"", "comes as JSON"), (b"[" * 9999, "comes as JSON"), (b"[1]", "a JSON object"), ({}, "messages should be a list"),
    (say(3), "should be text"), (dict(messages=[dict(role="tool", content="x")]), "a message has a role"), (say("x", n=99), "n should be"),
    (say("x", n=True), "n should be"),
    (say("x", temperature=9), "temperature should be"), (say("x", temperature=float("nan")), "temperature"),
    (say("x", max_tokens=51), "from 1 to 50"), (say("x", stream=True), "stream isn't passed on"), (say("x", top_k=3), "top_k isn't"),
    (say("x", model="gpt-5"), "one model here, gpt-4o-mini"),
    (say("x", stop=[""]), "stop should be"), (say("x", seed=-1), "seed should be"),
    (say("x", tools=[{}]), "tools isn't"), (say("x", logprobs="yes"), "logprobs should be"),
    (b"{" + b" " * 1_100_000 + b"}", "at most 1,000,000"),
])
def test_what_cant_be_passed_on_is_refused_not_dropped(course, upstream, body, word):
    with served(course, upstream) as s:
        found = send(s.address, token(course, "ada"), body)
        assert 400 <= found[0] < 500 and word in line(found) and upstream.count == 0


def test_what_clients_send_without_meaning_anything_is_taken(course, upstream):
    with served(course, upstream) as s:
        plain = dict(model="gpt-4o-mini", stream=False, top_p=1, user="me", frequency_penalty=0.0, presence_penalty=0, tools=[])
        assert send(s.address, token(course, "ada"), say([dict(type="text", text="Who?")], **plain))[0] == 200
        first, second = (send(s.address, token(course, "ada"), say("Again?", temperature=1, seed=k))[1]["course"]["new"] for k in (0, 1))
        again = send(s.address, token(course, "ada"), say("Again?", temperature=1, seed=1))
        assert (first, second) == (1, 1) and again[1]["course"]["new"] == 0
        found = send(s.address, token(course, "ada"), dict(prompt="x"), "/completions")
        assert found[0] == 404 and "scores no texts" in line(found)


def test_dollars_have_a_quota_and_the_class_a_budget(course, upstream):
    upstream.script(usage=dict(prompt_tokens=20, completion_tokens=50))
    each = (20 * .15 + 50 * .6) / 1e6
    with served(course, upstream, Quota(dollars=2.5 * each)) as s:
        statuses = [send(s.address, token(course, "ada"), say(f"{i}?"))[0] for i in range(4)]
        assert statuses == [200, 200, 429, 429]
        assert "$" in line(send(s.address, token(course, "ada"), say("9?")))
    for _ in range(2):  # also after a restart
        with served(course, upstream, Quota(calls=99), budget=2.5 * each) as s:
            found = send(s.address, token(course, "bob"), say("Mine?"))
            assert found[0] == 429 and "what the class may spend is used up" in line(found)
    with pytest.raises(UsageError, match="needs the price"):
        ModelHandler(course, Profile("class", "nobodys-model", upstream.url, "TEACHERS_KEY"), Quota(dollars=1))


@pytest.mark.slow
def test_a_server_that_is_killed_keeps_its_counts(course, upstream, tmp_path):
    lines = "[class]", "model = gpt-4o-mini", f"endpoint = {upstream.url}", "api_key_env = TEACHERS_KEY", "retries = 0"
    (tmp_path / "settings.ini").write_text("\n".join(lines))
    (tmp_path / "nbs" / "reproduce").mkdir(parents=True)  # a working folder, as `treekit init` lays one
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored where the tests were started in the background
    code = f"import os, signal; {heard}; os.chdir({str(tmp_path)!r}); from treekit.cli.main import main; main()"
    def start():
        process = subprocess.Popen([sys.executable, "-c", code, "course", "serve", "--profile", "class", "--calls", "4", "--port", "0"],
                                   stderr=subprocess.PIPE, text=True, env=os.environ | dict(TREEKIT_HOME=str(tmp_path / "home")))
        said = process.stderr.readline()
        assert " at http://127.0.0.1:" in said, said + process.stderr.read()
        return process, said.split(" at ")[1].split(";")[0]
    process, address = start()
    try:
        assert [send(address, token(course, "ada"), say(f"{i}?"))[0] for i in range(3)] == [200] * 3
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        process, address = start()
        assert send(address, token(course, "ada"), b"", "/quota", "GET")[1]["calls"] == 1
        assert [send(address, token(course, "ada"), say(f"{i}?"))[0] for i in (0, 1, 2, 3, 4)] == [200, 200, 200, 200, 429]
        assert upstream.count == 4
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_the_commands_say_who_has_had_what(course, upstream, tmp_path):
    from click.testing import CliRunner
    from treekit.cli.course import course_command
    def run(*words):
        done = CliRunner().invoke(course_command, [*words, "--course", str(tmp_path)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output
    with pytest.raises(UsageError, match="never asked"): run("usage")
    with pytest.raises(UsageError, match="how much may a student ask"): run("serve")
    with served(course, upstream) as s: send(s.address, token(course, "ada"), say("Who?"))
    used = json.loads(run("usage", "--json"))
    assert used["ada"]["calls"] == 1 and used["bob"]["calls"] == 0 and used["ada"]["dollars"] > 0
    assert token(course, "bob") in run("tokens") and len({*json.loads(run("tokens", "--json")).values()}) == 3
    pasted = run("tokens", "--student", "bob", "--address", "http://teacher:8765/v1")
    assert token(course, "bob") in pasted and token(course, "ada") not in pasted and "api_key_env = COURSE_TOKEN" in pasted
    assert "1 replies" in run("export-replies", str(tmp_path / "w.cassette"))


def test_who_leaves_the_roster_has_no_token(course, upstream, tmp_path):
    gone = token(course, "eve")
    (tmp_path / "roster.csv").write_text("id\nada\n")
    with served(course, upstream) as s:
        assert send(s.address, gone, say("Who?"))[0] == 401 and send(s.address, token(course, "ada"), say("Who?"))[0] == 200


def test_the_kit_asks_through_it_and_its_words_replay(course, upstream, tmp_path, monkeypatch):
    "A student's notebook: the class's model, then its cassette without a server, then a stand-in that says so; never a silent change."
    upstream.script(rules=[["Ada", "FINAL: Sark"]])
    request = Request((dict(role="user", content="Where does Ada live?"),))
    with served(course, upstream) as s:
        monkeypatch.setenv("COURSE_TOKEN", token(course, "ada"))
        live = ClassModel(server=s.address)
        live.served.retries, live.served.defaults["max_tokens"] = 0, 50
        said = live.ask(request)
        assert (said.text, said.who, said.stand_in) == ("FINAL: Sark", "gpt-4o-mini, asked now", False)
        def over():
            chat = OpenAIClient("gpt-4o-mini", s.address, token(course, "ada"), retries=3, max_tokens=50)
            async def ask(): return [await chat.complete(Request((dict(role="user", content=f"{i}?"),))) for i in range(9)]
            asyncio.run(ask())
        began = time.monotonic()
        with pytest.raises(CallFailed, match="your quota leaves 0 replies"): over()  # and it isn't tried again and again
        taken = time.monotonic() - began
    with pytest.raises(CallFailed): live.ask("Another?")  # the server is gone: nobody answers in its place
    assert pack_words(course, tmp_path / "words.cassette") == 5
    taped = ClassModel(tmp_path / "words.cassette")
    assert taped.ask(request).who == "gpt-4o-mini, on the cassette" and taped.ask(request).text == "FINAL: Sark"
    with pytest.raises(UsageError, match="words of your own take a model"): taped.ask("Where does Bob live?")
    from treekit.baselines.prompting import BY_KIND
    stand_in = taped.ask(BY_KIND[False, "answer", "multi-hop"](question="Who?", documents=[]))
    assert stand_in.stand_in and str(stand_in).startswith("[simulated: a stand-in, not gpt-4o-mini's words]")
    assert sum(taped.counts.values()) == 3
    with Store.replay(tmp_path / "words.cassette") as tape: told = "\n".join(tape.connection.db.iterdump())
    for who in course.students(): assert token(course, who) not in told and pseudonym(course.secret(), who) not in told
    with Store(course.private("words.sqlite")) as store: assert spent_by(store, pseudonym(course.secret(), "ada")).calls == 5
    assert os.path.getsize(Path(tmp_path, "words.cassette")) < 5e6
    enough(5 / taken, 1)
