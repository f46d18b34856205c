"Training at size, at a tiny one: several processes, masters of sixteen-bit weights, layers computed again, samples that are too long."

import json, os, socket, subprocess, sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from trainings import weights
from treekit.training.models import tiny_model, tokenizer_of, with_checkpoints
from treekit.training.sft import (
    Recipe,
    TrainingExample,
    adapted,
    encode,
    train,
    trainable,
)

torch.set_num_threads(1)
PAIRS = [(a, b) for a in "dam house tower bridge".split() for b in "Mole Tarn Orle".split()]
TEXTS = [f"{n}: The {a} of {b}" for n, (a, b) in enumerate(PAIRS)]
TOKENIZER = tokenizer_of(TEXTS * 2, 350)
DATA = encode(TOKENIZER, [TrainingExample(f"s{n}", t, " ".join(t.split()[:3])) for n, t in enumerate(TEXTS)])
FULL = Recipe("full", lr=3e-3, epochs=4, batch=5)  # a batch that two processes can't halve


def llama(seed=0):
    return tiny_model(TOKENIZER, width=32, layers=2, heads=2, inner=64, seed=seed)


# ---- several processes ----


def learned(method="full", micro=0):
    "What a training comes to: its losses, and its weights in a row."
    recipe = replace(FULL, method=method, micro=micro)
    model = adapted(llama(), recipe)
    log = train(model, DATA, recipe)
    return [row["loss"] for row in log], torch.cat([p.detach().flatten() for p in trainable(model).values()]).tolist()


def in_group(code, size=2, **env):
    "What each process of a group prints last."
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    here = dict(
        OMP_NUM_THREADS="1",
        TOKENIZERS_PARALLELISM="false",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        WORLD_SIZE=str(size),
        ACCELERATE_USE_CPU="true",
        CUDA_VISIBLE_DEVICES="",
        TQDM_DISABLE="1",
        **env,
    )
    start = f"import sys, json\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_training_size import *\n"
    start += "from treekit.training.distributed import *\nwith joined_group():\n" + "".join(
        f"    {line}\n" for line in code.splitlines()
    )
    ran = [
        subprocess.Popen(
            [sys.executable, "-c", start],
            env=os.environ | here | dict(RANK=str(r), LOCAL_RANK=str(r)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for r in range(size)
    ]
    said = [p.communicate(timeout=240) for p in ran]
    assert [p.returncode for p in ran] == [0] * size, said[0][1][-2000:] + said[1][1][-2000:]
    return [json.loads(out.strip().splitlines()[-1]) for out, _ in said]


@pytest.mark.slow
@pytest.mark.parametrize("method, micro", [("full", 0), ("lora", 2)])
def test_two_processes_train_to_the_same_loss_as_one(method, micro):
    "Losses within one in a million of each other at every step, weights within one in ten thousand; both processes have the same bits."
    pytest.importorskip("accelerate")
    losses, reached = learned(method, micro)
    one, two = in_group(f"print(json.dumps(learned({method!r}, {micro})))")
    assert one == two
    assert one[0] == pytest.approx(losses, rel=1e-6)
    assert one[1] == pytest.approx(reached, rel=1e-4, abs=1e-5)


# ---- sixteen bits ----


@pytest.mark.long
def test_a_model_in_sixteen_bits_learns_as_one_in_thirty_two():
    "Through the training itself: gradients of several micro-batches, clipping, checkpoints of masters."
    half, whole = llama().to(torch.bfloat16), llama().to(torch.bfloat16).float()
    slow = replace(FULL, lr=2e-5, epochs=20, micro=2)
    start = weights(whole)
    train(half, DATA, slow), train(whole, DATA, slow)
    masters = {k: p.master for k, p in half.named_parameters()}
    ours, theirs = (torch.cat([(w[k].float() - start[k]).flatten() for k in start]) for w in (masters, weights(whole)))
    assert (ours @ theirs / (theirs @ theirs)).item() > 0.9
    assert all(torch.equal(p, p.master.to(torch.bfloat16)) for p in half.parameters())


# ---- computed again ----


class Counted:
    "How often layers run."

    def __init__(self, model):
        self.times = 0

        def count(*_):
            self.times += 1

        for layer in model.model.layers:
            layer.self_attn.register_forward_hook(count)


def test_checkpointing_changes_no_loss_and_no_weight():
    usual, again = llama(), with_checkpoints(llama())
    counts = Counted(usual), Counted(again)
    assert train(usual, DATA, FULL) == train(again, DATA, FULL)
    assert all(torch.equal(a, b) for a, b in zip(usual.parameters(), again.parameters()))
    assert counts[1].times == 2 * counts[0].times  # it is on: each layer runs once more, in the backward pass


# ---- too long ----
