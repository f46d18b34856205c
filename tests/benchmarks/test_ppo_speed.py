"""How fast PPO is on one core, and how wide its logits are.

    pytest tests/benchmarks/test_ppo_speed.py -s

A model as the tiny navigator's (width 128, two layers, some 700 tokens), prompts of 40 tokens, replies of 48. Each time is the best of
three, since other work on the machine can only lower it.
"""

import time
from dataclasses import replace

import pytest

from treekit.training.sft import prompt_tokens
from treekit.training.ppo import PPO, continued, with_value_head, ppo, sample
from treekit.training.sft import inner
from treekit.training.models import tiny_model, tokenizer_of

torch = pytest.importorskip("torch")

WORDS = [
    a + b for a in "ka ro ti mu le sa ne vo".split() for b in "ban dor fel gis hun lam mor pet rak sil tov wen".split()
]
TOKENIZER = tokenizer_of([f"{a} of the {b} that {a} has" for a in WORDS for b in WORDS], 700)
PROMPTS = [(str(n), " ".join(WORDS[(n * 7 + k) % len(WORDS)] for k in range(40))) for n in range(64)]
RECIPE = PPO("full", lr=1e-3, rollouts=64, batch=32, passes=2, max_new=48)


@pytest.fixture(autouse=True)
def one_core():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model():
    return tiny_model(TOKENIZER, width=128, layers=2, heads=4, inner=256)


def best(work, n=3):
    took = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return min(took)


def test_sampling_is_as_fast_as_the_librarys():
    m = model().eval()
    rows = [prompt_tokens(TOKENIZER, text) for _, text in PROMPTS]
    longest = max(map(len, rows))
    ids, seen = (
        torch.tensor([[0] * (longest - len(r)) + r for r in rows]),
        torch.tensor([[0] * (longest - len(r)) + [1] * len(r) for r in rows]),
    )
    noise = torch.rand(64, 48, generator=torch.Generator().manual_seed(0))
    ours = best(lambda: continued(m, rows, 48, lambda drawn: False, noise))
    with torch.no_grad():
        theirs = best(
            lambda: m.generate(
                input_ids=ids,
                attention_mask=seen,
                do_sample=True,
                top_k=0,
                temperature=1.0,
                min_new_tokens=48,
                max_new_tokens=48,
                pad_token_id=0,
            )
        )
    print(
        f"\n64 replies of 48 tokens: {ours:.2f} s ({64 * 48 / ours:,.0f} tokens a second), transformers' generate {theirs:.2f} s"
    )
    assert ours < 1.5 * theirs


def test_an_update():
    "Sampling, the old policy and the reference, two passes of two minibatches."
    m = with_value_head(model(), RECIPE)
    sampling = best(lambda: sample(m, TOKENIZER, PROMPTS, RECIPE, 0))
    whole = best(lambda: ppo(model(), TOKENIZER, PROMPTS, lambda p, r: [0.0] * len(r), RECIPE))
    print(f"\nan update of 64 replies: {whole:.2f} s, of which sampling {sampling:.2f} s")
    assert whole < 30


def test_the_prompts_logits_never_exist():
    "The output layer is asked about the policy's own tokens, a minibatch at a time."
    m, rows = model(), []
    inner(m).get_output_embeddings().register_forward_hook(
        lambda layer, inputs, output: rows.append(output.shape[:-1].numel())
    )
    _, log = ppo(m, TOKENIZER, PROMPTS, lambda p, r: [0.0] * len(r), replace(RECIPE, micro=8))
    own = log[0]["length"] * 64
    print(
        f"\n{own:.0f} own tokens, {sum(len(prompt_tokens(TOKENIZER, t)) for _, t in PROMPTS)} of the prompts; at most {max(rows)} rows of "
        f"logits at a time"
    )
    assert max(rows) <= max(64, 8 * 48)
    assert sum(n for n in rows if n > 64) <= own * (2 + RECIPE.passes) + 1
