"Training at size, at a tiny one: several processes, masters of sixteen-bit weights, layers computed again, samples that are too long."

import json, os, socket, subprocess, sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from trainings import PowerCut, cut_off, weights
from treekit.config import UsageError
from treekit.training.models import load_model, save_model, tiny_model, tokenizer_of, with_checkpoints
from treekit.training.ppo import PPO, RewardExample, ppo, train_reward
from treekit.training.sft import (
    Encoded,
    Recipe,
    TrainingExample,
    adapted,
    encode,
    load_checkpoint,
    sft_loss,
    short_enough,
    train,
    trainable,
    with_masters,
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


@pytest.mark.slow
def test_of_two_processes_one_writes_asks_and_pays(tmp_path):
    pytest.importorskip("accelerate")
    code = f"""from treekit.training.sft import kept
asked = []
def ask(): asked.append(1); return group_rank()
found = kept(Path({str(tmp_path)!r}, "a", "found.json"), lambda: dict(said=told_by_first(ask), all=summed_up(group_rank() + 1)))
model = llama()
train(model, DATA, FULL, Path({str(tmp_path)!r}, "b"))
save_model(model, TOKENIZER, Path({str(tmp_path)!r}, "b", "model"))
print(json.dumps([len(asked), found, own_share([1, 2, 3])]))"""
    assert in_group(code) == [[1, dict(said=0, all=3.0), [1, 3]], [0, dict(said=0, all=3.0), [2]]]
    assert load_checkpoint(tmp_path / "b" / "checkpoint.pt")["step"] == 10
    assert load_model(tmp_path / "b" / "model")[0]


@pytest.mark.slow
def test_an_error_of_the_first_process_is_everybodys():
    pytest.importorskip("accelerate")
    code = """def fail(): raise UsageError("no key")
try: told_by_first(fail)
except UsageError as e: print(json.dumps(str(e)))"""
    assert in_group(code) == ["no key", "no key"]


def test_more_processes_than_gpus_is_one_line(monkeypatch):
    pytest.importorskip("accelerate")
    from treekit.training.distributed import joined_group

    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(
        UsageError, match="2 processes can't share 1 GPU: start one process for each GPU .*nproc-per-node 1"
    ):
        with joined_group():
            pass


# ---- sixteen bits ----


def way(rate, masters, steps=100):
    "How far consistent steps move a bfloat16 model, as a share of single precision's way; in its masters, and in its rounded weights."

    def run(dtype):
        model = llama().to(torch.bfloat16).to(dtype)
        own = trainable(model)
        changed = with_masters(own) if masters else own
        start = {k: p.detach().float().clone() for k, p in own.items()}
        optimizer = torch.optim.AdamW(changed.values(), lr=rate, weight_decay=0.0)
        for _ in range(steps):
            sum(p.sum() for p in own.values()).backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for k, p in own.items():
                    p.copy_(changed[k])

        def gone(now):
            return sum((now[k].detach().float() - start[k]).sum().item() for k in own)

        return gone(changed), gone(own)

    (here, rounded), (there, _) = run(torch.bfloat16), run(torch.float32)
    return here / there, rounded / there


@pytest.mark.long
def test_masters_go_the_whole_way():
    for rate in (1e-6, 1e-5, 2e-5):
        assert way(rate, masters=False)[0] < 0.6, rate
        moved, rounded = way(rate, masters=True)
        assert moved > 0.95 and rounded > 0.6, (rate, moved, rounded)


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


def test_a_training_in_sixteen_bits_goes_on_to_the_same_weights(tmp_path):
    recipe = replace(FULL, lr=1e-4, save_every=3)

    def model():
        return llama().to(torch.bfloat16)

    whole, again = model(), model()
    train(whole, DATA, recipe)
    with pytest.raises(PowerCut):
        train(model(), DATA, recipe, tmp_path, loss=cut_off(7, sft_loss))
    assert all(w.dtype == torch.float32 for w in load_checkpoint(tmp_path / "checkpoint.pt")["weights"].values())
    train(again, DATA, recipe, tmp_path)
    assert all(
        torch.equal(a.master, b.master) and torch.equal(a, b) for a, b in zip(whole.parameters(), again.parameters())
    )


def test_adapters_are_in_single_precision_already():
    model = adapted(llama().to(torch.bfloat16), Recipe(rank=2))
    assert {p.dtype for p in trainable(model).values()} == {torch.float32}


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


def test_checkpointing_in_the_other_stages():
    "PPO's dropout stays off and its cache on; the reward model's head learns the same."

    def stages(checkpointing):
        model = with_checkpoints(llama()) if checkpointing else llama()
        judge, log = train_reward(
            model,
            TOKENIZER,
            [RewardExample(str(n), t, " yes", n % 2) for n, t in enumerate(TEXTS)],
            replace(FULL, epochs=1),
        )
        policy = with_checkpoints(llama(1)) if checkpointing else llama(1)
        counted = Counted(policy)
        how = PPO("full", lr=1e-3, rollouts=8, batch=4, passes=1, epochs=1, max_new=4, unfinished=0.0)
        said = ppo(
            policy,
            TOKENIZER,
            [(str(n), t) for n, t in enumerate(TEXTS[:8])],
            lambda p, r: [float(len(x)) for x in r],
            how,
        )[1]
        return log, said, counted.times

    (one, two, plain), (three, four, more) = stages(False), stages(True)
    assert one == three and two == four and more > plain


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_attention_is_a_choice(tmp_path, attention):
    save_model(llama(), TOKENIZER, tmp_path)
    model, _ = load_model(tmp_path, "cpu", attention=attention, checkpointing=True)
    assert model.config._attn_implementation == attention and any(
        getattr(m, "gradient_checkpointing", False) for m in model.modules()
    )
    usual = sft_loss(load_model(tmp_path, "cpu")[0], DATA[:3]).item()
    assert sft_loss(model, DATA[:3]).item() == pytest.approx(usual, rel=1e-5)


def test_an_attention_that_is_not_there_says_so(tmp_path):
    save_model(llama(), TOKENIZER, tmp_path)
    with pytest.raises(UsageError, match="pip install flash-attn"):
        load_model(tmp_path, attention="flash_attention_2")
    with pytest.raises(UsageError, match="sdpa"):
        load_model(tmp_path, attention="spda")


# ---- too long ----


def test_a_reward_sample_that_is_too_long_is_dropped_and_counted(tmp_path, capsys):
    rated = [RewardExample(f"r{n}", t, " yes", n % 2) for n, t in enumerate([*TEXTS, "0: The dam of Mole " * 30])]
    _, log = train_reward(llama(), TOKENIZER, rated, replace(FULL, epochs=1, max_tokens=60), tmp_path)
    assert "left out: 1 of 13 samples" in capsys.readouterr().out and len(log) == 3
    [[name, size]] = json.loads((tmp_path / "left_out.json").read_text())["samples"]
    assert name == "r12" and size > 60


def test_a_cut_prompt_keeps_its_ends_and_its_target(tmp_path, capsys):
    long = Encoded("long", [*range(100)], 90)
    [cut] = short_enough([long], 40, tmp_path, "cut")
    assert len(cut.tokens) == 40 and cut.tokens[cut.start :] == [*range(90, 100)]
    assert cut.tokens[:15] == [*range(15)] and cut.tokens[15:30] == [*range(75, 90)]
    assert "left out: 0, cut: 1 of 1 samples" in capsys.readouterr().out
    with pytest.raises(UsageError, match="'long' has 100 tokens"):
        short_enough([long], 40, tmp_path, "refuse")
    with pytest.raises(UsageError, match="drop"):
        short_enough([long], 40, tmp_path, "crop")
