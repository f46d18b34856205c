"The reward model and PPO at the pinned versions of torch, transformers and peft. Each training here takes a second or less."

import json, math
from dataclasses import replace

import pytest

from treekit.training.sft import (
    TrainingExample,
    Recipe,
    adapted,
    encode,
    generate,
    inner,
    load_checkpoint,
    train,
    trainable,
)
from treekit.training.models import load_model, save_model, tiny_model, tokenizer_of
from treekit.training.ppo import (
    PPO,
    RewardExample,
    clipped_objective,
    continued,
    frozen,
    gae,
    with_value_head,
    load_headed,
    without_head,
    ppo,
    predicted,
    rehearsal,
    reward_loss,
    sample,
    save_headed,
    scores,
    seen,
    train_reward,
    use_adapter,
)

torch = pytest.importorskip("torch")
from trainings import PowerCut, cut_off, same, weights

torch.set_num_threads(1)

WORDS = "dam house tower bridge Mole Tanecenza Runess".split()
TOKENIZER = tokenizer_of([f"{a} of {b}: {b} {a}" for a in WORDS for b in WORDS], 320)
PROMPTS = [(f"p{n}", f"{a} of {b}:") for n, (a, b) in enumerate((a, b) for a in WORDS[:4] for b in WORDS[4:])]
EXAMPLES = [TrainingExample(i, p, " " + " ".join(p.rstrip(":").split()[::-2])) for i, p in PROMPTS]
RATED = [RewardExample(e.id, e.prompt, e.target if n % 2 else " dam dam", float(n % 2)) for n, e in enumerate(EXAMPLES)]
SMALL = PPO("full", lr=3e-3, rollouts=8, batch=4, passes=2, epochs=2, max_new=6, save_every=1)


def llama(seed=0):
    return tiny_model(TOKENIZER, width=32, layers=2, heads=2, inner=64, seed=seed)


def long(prompts, replies):
    return [min(len(r), 20) / 20 for r in replies]


def logprobs(model, episodes):
    with torch.no_grad():
        return seen(model, episodes)[0]


# ---- one step of each stage, on a Llama with LoRA ----


def test_a_step_of_each_stage_with_lora(tmp_path):
    "SFT makes an adapter; the reward model and PPO start from it; each changes the adapter (and its head) alone; all three are kept and come back."
    save_model(llama(), TOKENIZER, tmp_path / "base")
    base = weights(llama())

    def untouched(model):
        return all(
            torch.equal(p, base[k.replace("base_model.model.", "").replace("base_layer.", "")])
            for k, p in model.named_parameters()
            if "lora_" not in k and "head" not in k
        )

    recipe = Recipe(lr=1e-2, epochs=1, batch=12)
    sft = adapted(load_model(tmp_path / "base")[0], recipe)
    assert len(train(sft, encode(TOKENIZER, EXAMPLES), recipe)) == 1 and untouched(sft)
    save_model(sft, TOKENIZER, tmp_path / "sft")

    judge, log = train_reward(load_model(tmp_path / "sft")[0], TOKENIZER, RATED, recipe, held_out=RATED[:4])
    assert len(log) == 1
    assert log[0]["loss"] == pytest.approx(0.25)
    assert {"mse", "correlation", "baseline"} <= log[0].keys()
    assert untouched(judge)
    assert judge.head.weight.abs().sum() > 0
    save_headed(judge, TOKENIZER, tmp_path / "judge")
    again, _ = load_headed(tmp_path / "judge")
    texts = [p for _, p in PROMPTS], [" dam"] * 12
    assert scores(again, TOKENIZER, *texts) == scores(judge, TOKENIZER, *texts)

    start = load_model(tmp_path / "sft")[0]
    policy, log = ppo(
        start, TOKENIZER, PROMPTS, frozen(again, TOKENIZER), PPO(lr=1e-2, rollouts=12, batch=12, passes=1, max_new=6)
    )
    assert len(log) == 1
    assert log[0]["kl"] == 0
    assert untouched(policy)
    assert {k.split(".")[-3] for k in trainable(policy) if "lora" in k} == {"lora_A", "lora_B"}
    assert not same(
        {k: v for k, v in weights(policy).items() if "lora" in k},
        {k: v for k, v in weights(sft).items() if "lora" in k},
    )
    save_model(without_head(policy), TOKENIZER, tmp_path / "ppo")
    assert (tmp_path / "ppo" / "adapter_config.json").exists() and not (tmp_path / "ppo" / "model.safetensors").exists()
    back, tokenizer = load_model(tmp_path / "ppo")
    assert generate(back, tokenizer, texts[0][:4], 6) == generate(policy, TOKENIZER, texts[0][:4], 6)


# ---- the reward model ----


def test_the_rewards_loss_is_the_mean_square():
    model, data = with_value_head(llama(), Recipe("full")), [e for e in encode(TOKENIZER, RATED)]
    torch.nn.init.normal_(model.head.weight)
    from treekit.training.ppo import _Scored

    data = [_Scored(e.id, e.tokens, e.start, r.score) for e, r in zip(data, RATED)]
    alone = [
        model.head(inner(model).get_decoder()(input_ids=torch.tensor([e.tokens])).last_hidden_state[0, -1]).item()
        for e in data
    ]
    assert torch.allclose(predicted(model, data), torch.tensor(alone), atol=1e-5)  # padding and neighbours don't matter
    assert reward_loss(model, data).item() == pytest.approx(
        sum((a - r.score) ** 2 for a, r in zip(alone, RATED)), rel=1e-4
    )
    assert scores(model, TOKENIZER, [r.prompt for r in RATED], [r.target for r in RATED], batch=5) == pytest.approx(
        alone, abs=1e-5
    )


# ---- sampling ----


def test_samples_follow_the_distribution_and_not_their_neighbours():
    model = llama()
    for p in model.parameters():
        p.data *= 3
    rows = [TOKENIZER(text).input_ids for _, text in PROMPTS]
    noise = torch.rand(12, 8, generator=torch.Generator().manual_seed(4))
    ended = lambda drawn: drawn[-1] == TOKENIZER.eos_token_id or drawn[-1] % 5 == 0
    together = continued(model, rows, 8, ended, noise)
    assert (
        together
        == [continued(model, [r], 8, ended, noise[[i]])[0] for i, r in enumerate(rows)]
        == continued(model, rows, 8, ended, noise, at_once=5)
    )
    assert len({len(r) for r in together}) > 2
    assert {type(token) for r in together for token in r} == {int}
    assert continued(model, rows, 8, ended) == [
        continued(model, [r], 8, ended)[0] for r in rows
    ]  # the likeliest tokens
    p, u = (
        model(input_ids=torch.tensor([rows[0]])).logits[0, -1].double().softmax(-1),
        torch.linspace(0, 0.9999, 500)[:, None],
    )
    drawn = (
        torch.bincount(torch.tensor(continued(model, [rows[0]] * 500, 1, bool, u, 500)).flatten(), minlength=len(p))
        / 500
    )
    assert (drawn - p).abs().max() < 0.005  # even numbers give even shares


# ---- probabilities, reference, ratio ----


def test_log_probabilities_are_the_librarys():
    model = with_value_head(llama(), SMALL)
    episodes = sample(model, TOKENIZER, PROMPTS[:5], SMALL, 3)
    theirs = []
    for e in episodes:
        p = model(input_ids=torch.tensor([e.tokens])).logits[0].log_softmax(-1)
        theirs += [p[k - 1, e.tokens[k]].item() for k in e.own]
    found, values, entropy = [x.detach() if x is not None else x for x in seen(model, episodes)]
    assert found.tolist() == pytest.approx(theirs, abs=1e-5) and entropy is None and values.abs().max() == 0
    with torch.no_grad():
        assert seen(model, episodes)[2].mean().item() == pytest.approx(math.log(len(TOKENIZER)), rel=0.05)


@pytest.mark.parametrize("method", ["full", "lora"])
@pytest.mark.parametrize("micro", [0, 3])
def test_at_the_first_minibatch_the_ratio_is_one_and_the_kl_zero(monkeypatch, method, micro):
    import treekit.training.ppo as module

    ratios = []

    def watched(new, old, *rest):
        ratios.append((new - old).detach().exp())
        return clipped_objective(new, old, *rest)

    monkeypatch.setattr(module, "clipped_objective", watched)
    _, log = ppo(llama(), TOKENIZER, PROMPTS, long, replace(SMALL, method=method, micro=micro, epochs=2, rollouts=12))
    assert (ratios[0] == 1).all() and not (torch.cat(ratios) == 1).all()
    assert log[0]["kl"] == 0 and log[1]["kl"] != 0


def test_the_reference_is_where_it_started():
    "A new adapter: the base with the adapter off. SFT's adapter: the SFT model, not the base; and the weights come back."
    for made_by_sft in (False, True):
        model = llama()
        if made_by_sft:
            model = adapted(model, recipe := Recipe(lr=2e-2, epochs=3, batch=6))
            train(model, encode(TOKENIZER, EXAMPLES), recipe)
        model = with_value_head(model, PPO())
        episodes = sample(model, TOKENIZER, PROMPTS, SMALL, 0)
        start, reference = logprobs(model, episodes), {k: p.detach().clone() for k, p in trainable(model).items()}
        with torch.no_grad():
            for p in trainable(model).values():
                p.add_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))
        moved = weights(model)
        with use_adapter(model, reference):
            assert torch.equal(logprobs(model, episodes), start)
        assert same(weights(model), moved) and not torch.equal(logprobs(model, episodes), start)
        with model.disable_adapter():
            assert torch.equal(logprobs(model, episodes), start) != made_by_sft


# ---- the objective ----


def test_clipping_zeroes_the_gradient_where_it_should():
    "Through the model: a good token that has become likely enough, and a bad one that has become unlikely enough, move nothing."
    model = with_value_head(llama(), SMALL)
    episodes = sample(model, TOKENIZER, PROMPTS[:4], SMALL, 0)

    def gradient(shift, sign):
        model.zero_grad()
        new = seen(model, episodes)[0]
        objective, cut = clipped_objective(new, new.detach() - shift, sign * torch.ones(len(new)), 0.2)
        objective.sum().backward()
        return sum(
            p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None
        ), cut.float().mean().item()

    assert gradient(0.5, +1) == gradient(-0.5, -1) == (0, 1)  # ratio e^±0.5, beyond 1 ± 0.2
    for shift, sign in ((0.1, +1), (-0.1, -1), (0.5, -1), (-0.5, +1)):
        moved, cut = gradient(shift, sign)
        assert moved > 0 and cut == 0


def test_advantages_against_the_plain_sum():
    r, v = (
        torch.randn(30, generator=torch.Generator().manual_seed(0)).double(),
        torch.randn(30, generator=torch.Generator().manual_seed(1)).double(),
    )
    for gamma, lam in ((1.0, 0.95), (0.9, 0.5), (1.0, 0.0), (0.99, 1.0)):
        delta = [r[t] + gamma * (v[t + 1] if t < 29 else 0) - v[t] for t in range(30)]
        plainly = [sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, 30)).item() for t in range(30)]
        assert gae(r, v, gamma, lam).tolist() == pytest.approx(plainly)
    assert len(gae(r[:0], v[:0], 1.0, 1.0)) == 0


def test_it_learns():
    found = rehearsal(10)
    assert found[-1] > found[0] + 0.3


# ---- cut off, broken, mismatched ----


@pytest.mark.slow
def test_a_training_that_was_cut_off_goes_on_to_the_same_weights(tmp_path):
    recipe = replace(SMALL, method="lora", epochs=4, save_every=2, target_kl=0.5)
    whole, log = ppo(llama(), TOKENIZER, PROMPTS, long, recipe)
    assert json.loads(json.dumps(log)) == log  # it is kept as JSON
    with pytest.raises(PowerCut):
        ppo(llama(), TOKENIZER, PROMPTS, cut_off(5, long), recipe, tmp_path)
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 4 and len(log) == 6
    again, found = ppo(llama(), TOKENIZER, PROMPTS, long, recipe, tmp_path)
    assert found == log and same(weights(whole), weights(again))
    third, found = ppo(llama(), TOKENIZER, PROMPTS, None, recipe, tmp_path)  # all done: nothing is sampled
    assert found == log and same(weights(whole), weights(third))
