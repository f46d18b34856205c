"Low-rank adapters: what a batch learns, a training that goes on where it stopped, and what the bundled reader was not trained on."

import csv, json
from pathlib import Path

import pytest

from treekit.config import kit_path
from treekit.experiments.resources import load
from treekit.llm.local_client import load_local, model_source
from treekit.training.adapters import (
    Recipe,
    collated,
    encoded,
    reward_model,
    train_adapter,
    train_policy,
    train_reward,
)
from treekit.training.questions import key_hash
from fakes import tiny_llama

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
TEXT = "Paris is in France. Rome is in Italy."
GROUP = [
    ([dict(role="user", content=f"{TEXT} Where is {city}?")], country)
    for city, country in (("Paris", "France"), ("Rome", "Italy"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    return tiny_llama(tmp_path_factory.mktemp("model"), [TEXT, "Where is it? France Italy"] * 3, template)


def test_a_branch_is_read_as_if_it_stood_alone(folder):
    model, tokenizer = load_local(str(folder))
    [row] = encoded([GROUP], tokenizer, 400)
    alone = [row for pair in GROUP for row in encoded([[pair]], tokenizer, 400)]
    assert len(row["ids"]) < sum(len(r["ids"]) for r in alone) and max(row["places"]) == max(
        max(r["places"]) for r in alone
    )
    with torch.no_grad():
        together, *each = (model(**collated([r])) for r in (row, *alone))
    assert torch.allclose(together.logits[0], torch.cat([e.logits[0] for e in each]), atol=1e-4)
    learnt = [tokenizer.decode([r["ids"][i] for i in r["learnt"]]) for r in alone]
    assert learnt == [reply + tokenizer.eos_token for _, reply in GROUP]
    mean = sum(float(e.loss) * len(r["learnt"]) for e, r in zip(each, alone)) / len(row["learnt"])
    assert float(together.loss) == pytest.approx(mean, abs=1e-4)


@pytest.mark.long
def test_an_adapter_is_merged_and_identifies_its_replies(folder, tmp_path):
    recipe = Recipe(base=str(folder), rank=16, rate=0.02, batch=2, epochs=4, layers=1)

    def losses(log):
        return [entry["loss"] for entry in log if "loss" in entry]

    log = train_adapter([GROUP] * 8, [GROUP], tmp_path, recipe)
    assert len(losses(log)) == 16 and losses(log)[-1] < losses(log)[0] - 0.2
    assert json.loads((tmp_path / "adapter_config.json").read_text())["base_model_name_or_path"] == str(folder)
    model, tokenizer = load_local(str(tmp_path))
    with torch.no_grad():
        merged = float(model(**collated(encoded([GROUP], tokenizer, 400))).loss)
    assert (
        merged == pytest.approx(losses(log)[-1], abs=0.5)
        and model_source(str(tmp_path))[1] != model_source(str(folder))[1]
    )
    assert losses(train_adapter([GROUP] * 8, [GROUP], tmp_path, recipe)) == losses(log), "nothing is left to train"


@pytest.mark.long
def test_a_reward_model_predicts_scores_and_a_policy_follows_them(folder, tmp_path):
    prompts, said = [messages for messages, _ in GROUP], ["France", "Italy"]
    rated = [(p, reply, float(reply == "France")) for p in prompts for reply in said]
    recipe = Recipe(base=str(folder), rate=0.005, batch=2, epochs=10, layers=1)
    log = train_reward(rated, rated, tmp_path / "reward", recipe)
    errors = [entry["eval_loss"] for entry in log if "eval_loss" in entry]
    assert len(errors) == 2 and errors[-1] < 0.1
    assert reward_model(tmp_path / "reward")(prompts * 2, said + said[::-1]) == pytest.approx([1, 0, 0, 1], abs=0.4)

    def worth(text):
        return text.strip()[:1].lower() > "n"

    model, tokenizer = load_local(str(folder))
    model.model.norm.weight.data *= 8  # else all tokens stay about equally likely
    model.save_pretrained(base := tmp_path / "base")
    tokenizer.save_pretrained(base)
    paid = torch.tensor([worth(tokenizer.decode([i], skip_special_tokens=True)) for i in range(len(tokenizer))])

    def reward(asked, replies):
        assert all(p in prompts for p in asked)
        return [float(worth(reply)) for reply in replies]

    def share(model):
        "Probability of a first token that is paid."
        row = tokenizer.apply_chat_template(prompts[0], add_generation_prompt=True, return_dict=False)
        with torch.no_grad():
            return float(model(input_ids=torch.tensor([row])).logits[0, -1].softmax(-1)[paid].sum())

    recipe, before = Recipe(base=str(base), rate=0.003, batch=16, epochs=4, layers=1), share(model)
    log = train_policy(prompts * 2, reward, tmp_path / "policy", recipe, longest=1)
    assert len([entry for entry in log if "reward" in entry]) == 8
    assert share(load_local(str(tmp_path / "policy"))[0]) > 2 * before


ADAPTERS = sorted(p.parent for p in kit_path("data", "models", "smollm2").glob("*/questions.csv"))


def trained():
    "Ids and hashes of the adapters' questions and of their supporting paragraphs."
    rows = [row for a in ADAPTERS for row in csv.DictReader((a / "questions.csv").open(encoding="utf-8"))]
    return {i for row in rows for name in ("id", "question", "paragraphs", "texts") for i in row[name].split()}


def shared(evaluated, seen):
    "Evaluated questions that were trained on, or whose supporting paragraph was."

    def keys(q):
        return {
            q.id,
            key_hash(q.question),
            *q.supporting,
            *(key_hash(p.text) for p in q.paragraphs if p.id in q.supporting),
        }

    return [q.id for q in evaluated if seen & keys(q)]


@pytest.mark.parametrize("name", ["hotpotqa", "musique", "2wiki", "asqa"])
def test_no_evaluated_question_and_none_of_its_paragraphs_was_trained_on(name):
    evaluated, seen = load(name, "real"), trained()
    assert len(evaluated) > 80 and shared(evaluated, seen) == []
    leaked = evaluated[0]
    for known in (leaked.id, key_hash(leaked.question), *leaked.supporting):
        assert shared([leaked], seen | {known}) == [leaked.id]


def beside(file):
    "Folder of the development sets beside the clone."
    folders = [up / "shared" / "data" for up in Path(__file__).resolve().parents]
    return next((f for f in folders if (f / file).is_file()), None) or pytest.skip(
        "no development sets beside the clone"
    )


@pytest.mark.parametrize("name", ["musique", "2wiki", "2wiki_hippo", "musique_questions"])
def test_nothing_of_the_development_sets_was_trained_on(name):
    assert shared(load(name, beside(f"{name}.dev.jsonl")), trained()) == []


def test_no_article_of_an_evaluated_question_was_trained_on():
    file, evaluated = "articles_ambigqa_wiki.jsonl", {q.id for q in load("asqa", "real")}
    with open(beside(file) / file, encoding="utf-8") as f:
        articles = [r["id"] for r in map(json.loads, f) if evaluated & set(r.get("asqa_ids") or ())]
    assert len(articles) > 80 and not trained() & set(articles)


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda p: p.name)
def test_an_adapter_is_small_and_names_its_base(folder):
    assert (folder / "adapter_model.safetensors").stat().st_size < 10_000_000
    about = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    bases = {"smollm2", *(f"smollm2-{a.name}" for a in ADAPTERS if a != folder)}
    assert about["base_model_name_or_path"] in bases
    path, content = model_source(f"smollm2-{folder.name}")
    assert path == folder and content != model_source("smollm2")[1]
