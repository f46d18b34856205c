"Low-rank adapters of a local model: what a batch learns, and a training that goes on where it stopped. A tiny model stands for the real one."
import json

import pytest

from treekit.llm.local_client import load_local, model_source
from treekit.training.adapters import Recipe, collated, encoded, train_adapter
from treekit.training.models import save_model, tiny_model, tokenizer_of

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
TEXT = "Paris is in France. Rome is in Italy."
GROUP = [([dict(role="user", content=f"{TEXT} Where is {city}?")], country) for city, country in (("Paris", "France"), ("Rome", "Italy"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = tokenizer_of([TEXT, "Where is it? France Italy"] * 3, 320)
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    save_model(tiny_model(tokenizer, width=48, layers=2, heads=2, inner=64), tokenizer, path := tmp_path_factory.mktemp("model"))
    return path


def test_a_branch_is_read_as_if_it_stood_alone(folder):
    model, tokenizer = load_local(str(folder))
    [row] = encoded([GROUP], tokenizer, 400)
    alone = [row for pair in GROUP for row in encoded([[pair]], tokenizer, 400)]
    assert len(row["ids"]) < sum(len(r["ids"]) for r in alone) and max(row["places"]) == max(max(r["places"]) for r in alone)
    with torch.no_grad(): together, *each = (model(**collated([r])) for r in (row, *alone))
    assert torch.allclose(together.logits[0], torch.cat([e.logits[0] for e in each]), atol=1e-4)
    learnt = [tokenizer.decode([r["ids"][i] for i in r["learnt"]]) for r in alone]
    assert learnt == [reply + tokenizer.eos_token for _, reply in GROUP]
    assert float(together.loss) == pytest.approx(float(sum(e.loss * len(r["learnt"]) for e, r in zip(each, alone)) / len(row["learnt"])), abs=1e-4)


@pytest.mark.long
def test_an_adapter_is_merged_and_identifies_its_replies(folder, tmp_path):
    recipe = Recipe(base=str(folder), rank=16, rate=.02, batch=2, epochs=4, layers=1)
    def losses(log): return [entry["loss"] for entry in log if "loss" in entry]
    log = train_adapter([GROUP] * 8, [GROUP], tmp_path, recipe)
    assert len(losses(log)) == 16 and losses(log)[-1] < losses(log)[0] - .2
    assert json.loads((tmp_path / "adapter_config.json").read_text())["base_model_name_or_path"] == str(folder)
    model, tokenizer = load_local(str(tmp_path))
    with torch.no_grad(): merged = float(model(**collated(encoded([GROUP], tokenizer, 400))).loss)
    assert merged == pytest.approx(losses(log)[-1], abs=.5) and model_source(str(tmp_path))[1] != model_source(str(folder))[1]
    assert losses(train_adapter([GROUP] * 8, [GROUP], tmp_path, recipe)) == losses(log), "nothing is left to train"
