"What the tests of training share: weights, and trainings that are cut off."

import os, signal, subprocess, sys, time
from pathlib import Path

import torch


def weights(model):
    return {k: p.detach().clone() for k, p in model.named_parameters()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


class PowerCut(Exception):
    pass


def cut_off(calls, answer):
    "A function that answers so many calls, and then stops everything."
    left = [calls]

    def until(*asked):
        left[0] -= 1
        if left[0] < 0:
            raise PowerCut
        return answer(*asked)

    return until


def killed(module, training, folder):
    "Run a training, in the words of a module of tests, and kill its process as soon as there is a checkpoint."
    code = f"import sys, time\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom {module} import *\n{training}"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
    )
    deadline = time.time() + 300
    while not (folder / "checkpoint.pt").exists() and process.poll() is None and time.time() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL), process.wait()
