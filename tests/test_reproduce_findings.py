"The progress bar of `reproduce` counts work by its usual duration, not notebooks."

import pytest
from pathlib import Path

from treekit.artefacts.reproduce import Task, usual_seconds, work_done


def tasks(*names):
    return [Task(name, Path(), {}) for name in names]


def test_a_notebook_weighs_what_it_usually_takes():
    usual = usual_seconds(tasks("arise/table4", "toq/figure3", "mine/never_measured"))
    assert usual["arise/table4"] > 50 * usual["toq/figure3"] > 0 and usual["mine/never_measured"] > 0


@pytest.mark.parametrize(
    "now, done, expected",
    [(100, set(), 0), (110, set(), 10), (600, set(), 90), (600, {"long"}, 100), (600, {"short"}, 92)],
)
def test_a_running_notebook_counts_for_the_time_that_it_has_run(now, done, expected):
    first, second = tasks("long", "short")
    first.began = 100.0
    assert work_done([first, second], dict(long=100.0, short=2.0), done, now) == expected


def test_runs_are_found_if_the_clock_was_set_back(tmp_path, monkeypatch):
    import time
    from test_run import go
    from treekit.artefacts.build_cache import last_saved, runs_since
    from treekit.store.run_store import Store

    path, now = tmp_path / "s.sqlite", time.time()
    go(store=Store(path), about=dict(artefact="a/b"))
    before = last_saved(path)
    monkeypatch.setattr(time, "time", lambda: now - 7200)
    go(store=Store(path), about=dict(artefact="a/c"))
    assert len(runs_since(path, "a/c", before)) == 1 and runs_since(path, "a/b", before) == []


def test_too_few_open_files_and_a_dead_kernel_are_one_line(tmp_path, monkeypatch):
    import resource
    from treekit.artefacts.reproduce import _ended, need_open_files
    from treekit.config import UsageError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))

    def refused(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refused)
    with pytest.raises(UsageError, match="only 64 files may be open at a time.*ulimit -n 256"):
        need_open_files()
    log = tmp_path / "a.log"
    log.write_text("[Errno 24] Too many open files\n\n")
    assert _ended(RuntimeError(""), log) == "RuntimeError: [Errno 24] Too many open files"
    assert _ended(RuntimeError("the kernel died\nmore"), log) == "RuntimeError: the kernel died"
