"Low-rank adapters: what a batch learns, a training that goes on where it stopped, and what the bundled reader was not trained on."

import csv, hashlib, json, re
from pathlib import Path

import pytest

from treekit.config import kit_path
from treekit.experiments.resources import load
from treekit.llm.local_client import load_local, model_source
from treekit.training.adapters import Recipe, collated, encoded, train_adapter
from treekit.training.models import save_model, tiny_model, tokenizer_of

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
TEXT = "Paris is in France. Rome is in Italy."
GROUP = [
    ([dict(role="user", content=f"{TEXT} Where is {city}?")], country)
    for city, country in (("Paris", "France"), ("Rome", "Italy"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = tokenizer_of([TEXT, "Where is it? France Italy"] * 3, 320)
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    save_model(
        tiny_model(tokenizer, width=48, layers=2, heads=2, inner=64),
        tokenizer,
        path := tmp_path_factory.mktemp("model"),
    )
    return path


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


READER = kit_path("data", "models", "smollm2", "reader")


def key(text):
    return hashlib.sha256(" ".join(re.findall(r"\w+", text.lower())).encode()).hexdigest()[:16]


def trained():
    "Ids and hashes of the reader's questions and of their supporting paragraphs."
    rows = list(csv.DictReader((READER / "questions.csv").open(encoding="utf-8")))
    return {row["id"] for row in rows}, {
        i for row in rows for name in ("id", "question", "paragraphs", "texts") for i in row[name].split()
    }


def shared(evaluated, seen):
    "Evaluated questions that were trained on, or whose supporting paragraph was."

    def keys(q):
        return {q.id, key(q.question), *q.supporting, *(key(p.text) for p in q.paragraphs if p.id in q.supporting)}

    return [q.id for q in evaluated if seen & keys(q)]


@pytest.mark.parametrize("name", ["hotpotqa", "musique", "2wiki"])
def test_no_evaluated_question_and_none_of_its_paragraphs_was_trained_on(name):
    evaluated, (_, seen) = load(name, "real"), trained()
    assert len(evaluated) > 100 and shared(evaluated, seen) == []
    leaked = evaluated[0]
    assert (
        shared([leaked], seen | {key(leaked.question)})
        == shared([leaked], seen | {leaked.supporting[0]})
        == [leaked.id]
    )


@pytest.mark.parametrize("name", ["musique", "2wiki", "2wiki_hippo", "musique_questions"])
def test_nothing_of_the_development_sets_was_trained_on(name):
    folders = [up / "shared" / "data" for up in Path(__file__).resolve().parents]
    folder = next((f for f in folders if (f / f"{name}.dev.jsonl").is_file()), None) or pytest.skip(
        "no development sets beside the clone"
    )
    assert shared(load(name, folder), trained()[1]) == []


def test_the_reader_is_small_and_names_its_base():
    assert (READER / "adapter_model.safetensors").stat().st_size < 10_000_000
    assert (
        json.loads((READER / "adapter_config.json").read_text(encoding="utf-8"))["base_model_name_or_path"] == "smollm2"
    )
    path, content = model_source("smollm2-reader")
    assert path == READER and content != model_source("smollm2")[1]
