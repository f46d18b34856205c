"""Training from nothing gives the shipped weights. Takes half an hour of a processor.

    pytest tests/benchmarks/test_shipped_weights.py -s

Another processor may add in another order. Then the bytes differ, and the test says so; what the models say at the evaluation is compared
in the tables.
"""

import pytest

from treekit.training import navigator, router, shipped


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    "An empty work folder, in which everything is trained again."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    monkeypatch.setenv("TREEKIT_RETRAIN", "1")


def same(name, folder):
    files = shipped._files(name)
    differ = [n for n, content in files.items() if n.startswith("model/") and (folder / n).read_bytes() != content]
    if differ == [shipped.WEIGHTS_FILE]: pytest.skip(f"{name}: this processor trains other bytes")
    assert not differ


def test_a_router():
    from pathlib import Path
    [made] = router.routers([(router.ROUTER, 0)])
    same(f"router/{router.ROUTER}/0", Path(made["folder"]).parent)


def test_a_stage_of_the_navigator():
    from pathlib import Path
    [made] = navigator.navigators([("after SFT", 0)])
    same("navigator/after SFT/0", Path(made["folder"]).parent)
