"Whatever a benchmark measures says nothing while other work has the processors."
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from speed import busy


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    "A claim that fails on a busy machine is skipped with what it said; on a free one it fails."
    try: return (yield)
    except AssertionError as e:
        if not (how := busy()): raise
        pytest.skip(f"{str(e).splitlines()[0]}, on {how}")
