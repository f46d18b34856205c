"""Training from nothing gives the shipped weights. Another processor may add in another order; then the measures of both agree.

    pytest tests/benchmarks/test_shipped_weights.py -s -m slow

Takes an hour of a processor, so `make bench` leaves it out. The measures are computed only where the bytes differ.
"""

from pathlib import Path

import pytest

from treekit.config import use_options
from treekit.papers.searchr import training as navigator
from treekit.papers.rdr2 import training as router
from treekit.training import pretrained


pytestmark = pytest.mark.slow
POINTS = 10  # that a percentage, or a mean, may differ by: training to the end amplifies the last bits
SAME_OUTPUTS = 0.8  # share of a router's outputs


@pytest.fixture(autouse=True)
def home(process_options, tmp_path):
    "An empty work folder, in which everything is trained again."
    process_options(home=tmp_path, retrain=True)


def differing(name, folder):
    "Files of the model that was trained here which are not the shipped ones; only the weights may be."
    differ = [
        n
        for n, content in pretrained._files(name).items()
        if n.startswith("model/") and (folder / n).read_bytes() != content
    ]
    assert set(differ) <= {pretrained.WEIGHTS_FILE}
    return differ


@pytest.mark.parametrize("row", [router.ROUTER, "enclose prompt, base, full, epoch 7.0"])
def test_a_router(row):
    [made] = router.routers([(row, 0)])
    if not differing(f"router/{row}/0", Path(made["folder"]).parent):
        return
    with use_options(retrain=False):
        [shipped] = router.routers([(row, 0)])
    same = sum(a == b for a, b in zip(made["outputs"], shipped["outputs"], strict=True))
    assert same >= SAME_OUTPUTS * len(made["outputs"]), f"{same} of {len(made['outputs'])} outputs are the same"


@pytest.mark.parametrize("stage", ["after SFT", "reward model", "after PPO"])
def test_a_stage_of_the_navigator(stage):
    [made] = navigator.navigators([(stage, 0)])
    if not differing(f"navigator/{stage}/0", Path(made["folder"]).parent):
        return
    own = stage if stage != "reward model" else "after SFT"  # whose drawn paths it values
    [here] = navigator.examined([(own, 0)])
    with use_options(retrain=False):
        [shipped] = navigator.examined([(own, 0)])
    assert here == pytest.approx(shipped, abs=POINTS), stage
