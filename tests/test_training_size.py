"Training at size, at a tiny one: masters of sixteen-bit weights, layers computed again, samples that are too long."

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from trainings import weights
from treekit.training.models import tiny_model, tokenizer_of, with_checkpoints
from treekit.training.sft import (
    Recipe,
    TrainingExample,
    encode,
    train,
)

torch.set_num_threads(1)
PAIRS = [(a, b) for a in "dam house tower bridge".split() for b in "Mole Tarn Orle".split()]
TEXTS = [f"{n}: The {a} of {b}" for n, (a, b) in enumerate(PAIRS)]
TOKENIZER = tokenizer_of(TEXTS * 2, 350)
DATA = encode(TOKENIZER, [TrainingExample(f"s{n}", t, " ".join(t.split()[:3])) for n, t in enumerate(TEXTS)])
FULL = Recipe("full", lr=3e-3, epochs=4, batch=5)


def llama(seed=0):
    return tiny_model(TOKENIZER, width=32, layers=2, heads=2, inner=64, seed=seed)


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
