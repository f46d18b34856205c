"Whatever a benchmark measures says nothing while other work has the processors."
import os

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    "A claim that fails on a busy machine is skipped with what it said, and is to be measured again; on a free one it fails."
    try: return (yield)
    except AssertionError as e:
        load, cores = os.getloadavg()[0], os.cpu_count()
        if load <= 1.5 * cores: raise
        pytest.skip(f"on a busy machine (load {load:.0f} on {cores} cores), run it again when it is free: {str(e).splitlines()[0]}")
