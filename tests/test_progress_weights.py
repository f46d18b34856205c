"The progress bar of `reproduce` counts work by its usual duration, not notebooks."
import pytest
from pathlib import Path

from treekit.artefacts.reproduce import Task, usual_seconds, work_done


def tasks(*names): return [Task(name, Path(), {}) for name in names]


def test_a_notebook_weighs_what_it_usually_takes():
    usual = usual_seconds(tasks("across/table1", "toq/figure3", "mine/never_measured"))
    assert usual["across/table1"] > 100 * usual["toq/figure3"] > 0 and usual["mine/never_measured"] > 0


@pytest.mark.parametrize("now, done, expected", [(100, set(), 0), (110, set(), 10), (600, set(), 90), (600, {"long"}, 100), (600, {"short"}, 92)])
def test_a_running_notebook_counts_for_the_time_that_it_has_run(now, done, expected):
    first, second = tasks("long", "short")
    first.began = 100.0
    assert work_done([first, second], dict(long=100.0, short=2.0), done, now) == expected
