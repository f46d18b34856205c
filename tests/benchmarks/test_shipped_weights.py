"""Training from nothing gives the shipped weights, or on another processor, which may add in another order, the same numbers in the tables.

    pytest tests/benchmarks/test_shipped_weights.py -s

Takes an hour of a processor. What the tables show is measured for both only where the bytes differ.
"""

from pathlib import Path

import pytest

from treekit.config import use_options
from treekit.papers.searchr import training as navigator
from treekit.papers.rdr2 import training as router
from treekit.training import pretrained


@pytest.fixture(autouse=True)
def home(process_options, tmp_path):
    "An empty work folder, in which everything is trained again."
    process_options(home=tmp_path, retrain=True)


def same(monkeypatch, name, folder, measured):
    "The bytes; or what the tables show, of the model that was trained here and of the shipped one."
    differ = [n for n, content in pretrained._files(name).items() if n.startswith("model/") and (folder / n).read_bytes() != content]
    assert set(differ) <= {pretrained.WEIGHTS_FILE}
    if not differ: return
    here = measured()
    with use_options(retrain=False): assert here == measured(), f"{name}: trained here it is another model"


@pytest.mark.parametrize("row", [router.ROUTER, "enclose prompt, base, full, epoch 7.0"])
def test_a_router(monkeypatch, row):
    [made] = router.routers([(row, 0)])
    same(monkeypatch, f"router/{row}/0", Path(made["folder"]).parent, lambda: router.routers([(row, 0)])[0]["outputs"])


@pytest.mark.parametrize("stage", ["after SFT", "reward model", "after PPO"])
def test_a_stage_of_the_navigator(monkeypatch, stage):
    [made] = navigator.navigators([(stage, 0)])
    own = stage if stage != "reward model" else "after SFT"  # whose drawn paths it values
    same(monkeypatch, f"navigator/{stage}/0", Path(made["folder"]).parent, lambda: navigator.examined([(own, 0)]))
