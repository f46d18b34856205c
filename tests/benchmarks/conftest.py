"""Whatever a benchmark measures says nothing while other work has the processors; and every benchmark can be started without measuring.

`TREEKIT_BENCH_START=1 pytest tests/benchmarks` lets each benchmark run for that many seconds and then goes on to the next: what it measures
is skipped, and what it can't import, name or call fails. That is `make bench-start`.
"""

import os, signal, sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from speed import busy

SECONDS = float(os.environ.get("TREEKIT_BENCH_START", 0))  # that each benchmark gets; 0: as long as it takes


class Started(BaseException):
    "A benchmark that has run for its seconds."


def started(signum, frame):
    global over
    over = True
    raise Started


over = False  # whether the benchmark's seconds are over: what it raises then comes of the interruption


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    "A claim that fails on a busy machine is skipped with what it said; on a free one it fails."
    import psutil

    global over
    over = False
    before = {p.pid for p in psutil.Process().children(recursive=True)} if SECONDS else ()
    if SECONDS:
        signal.signal(signal.SIGALRM, started)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return (yield)
    except Started:
        pass
    except Exception as e:
        if over:
            return
        if not isinstance(e, AssertionError):
            raise
        if "Traceback" in str(e):
            raise  # a process that was started: not what it measured
        if SECONDS:
            pytest.skip("what it measures doesn't count here")
        if not (how := busy()):
            raise
        pytest.skip(f"{str(e).splitlines()[0]}, on {how}")
    finally:
        if SECONDS:
            signal.setitimer(signal.ITIMER_REAL, 0)
            left = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
            for p in left:
                p.kill()
            psutil.wait_procs(left, timeout=10)  # so that the next benchmark sees them gone
