"A student's calls: what was paid counts, answered or not, and one course has one server."
import os, signal, subprocess, sys

import pytest

from test_course_model import course, fresh, line, profile, say, send, served, token, upstream  # noqa: F401 (fixtures)
from treekit.classroom.model_server import ModelHandler
from treekit.classroom.quotas import Quota, pseudonym, spent_by
from treekit.config import UsageError
from treekit.store.run_store import Store

PAID = [dict(kind="empty"), dict(kind="hang", seconds=9), dict(kind="not json"), dict(kind="cut"), dict(kind="schema")]


def left(s, course, who="ada"): return send(s.address, token(course, who), b"", "/quota", "GET")[1]["calls"]  # noqa: F811


@pytest.mark.parametrize("fault", PAID, ids=[f["kind"] for f in PAID])
def test_a_paid_failure_is_a_call(course, upstream, fault):  # noqa: F811
    "With a quota of three, three requests reach the model, however often a student asks; and the student is told that it counts."
    upstream.script(faults=[fault | dict(times=99)])
    with served(course, upstream, Quota(calls=3), timeout=.5, retries=5) as s:
        got = [send(s.address, token(course, "ada"), say(f"Question {i}?")) for i in range(6)]
        assert [status for status, _ in got] == [502] * 3 + [429] * 3 and upstream.count == 3
        assert "counts as one of your calls" in line(got[0]) and "your quota leaves 0" in line(got[3])
        assert left(s, course) == 0 and left(s, course, "bob") == 3
    with served(course, upstream, Quota(calls=3)) as s: assert left(s, course) == 0  # also after a restart
    with Store(course.private("words.sqlite")) as store:
        spent = spent_by(store, pseudonym(course.secret(), "ada"))
        assert (spent.calls, spent.failed) == (3, 3) and spent.dollars > 0


def test_a_model_without_a_price_counts_too(course, upstream):  # noqa: F811
    from treekit.config import Profile
    upstream.script(faults=[dict(kind="empty", times=99)])
    own = Profile("class", "nobodys-model", upstream.url, "TEACHERS_KEY", retries=0, timeout=5.0, max_tokens=50)
    from treekit.classroom.model_server import ModelServer
    with ModelServer(ModelHandler(course, own, Quota(calls=2)), port=0) as s:
        statuses = [send(s.address, token(course, "ada"), say(f"{i}?"))[0] for i in range(4)]
        assert statuses == [502, 502, 429, 429] and upstream.count == 2


def test_two_servers_on_one_course_are_refused(course, upstream, tmp_path):  # noqa: F811
    with served(course, upstream) as s:
        with pytest.raises(UsageError, match="has a server already") as e: ModelHandler(course, profile(upstream.url), Quota(calls=5))
        assert "\n" not in str(e.value) and str(os.getpid()) in str(e.value)
    with served(course, upstream) as s: assert left(s, course) == 5  # the first has ended


@pytest.mark.slow
def test_a_killed_server_leaves_no_lock(course, upstream, tmp_path):  # noqa: F811
    code = ("import sys, time\nfrom pathlib import Path\nfrom treekit.classroom.course import CourseFolder\n"
            "from treekit.classroom.model_server import ModelHandler\nfrom treekit.classroom.quotas import Quota\n"
            "from treekit.config import Profile\n"
            f"desk = ModelHandler(CourseFolder(Path({str(tmp_path)!r})), Profile('class', 'gpt-4o-mini', {upstream.url!r}, 'TEACHERS_KEY'),"
            " Quota(calls=5))\nprint('up', flush=True)\ntime.sleep(60)")
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "up\n"
        with pytest.raises(UsageError, match=f"has a server already.*{other.pid}"): served(course, upstream)
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    with served(course, upstream) as s: assert left(s, course) == 5
