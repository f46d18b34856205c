"Fine-tuning at the pinned versions, and the router's samples and scores. Each training here takes a second or two."

import math
from dataclasses import replace

import pytest

from treekit.training.sft import (
    Diverged,
    TrainingExample,
    Recipe,
    adapted,
    batches,
    encode,
    generate,
    load_checkpoint,
    sft_loss,
    train,
    trainable,
)
from treekit.training.models import load_model, save_model, tiny_model, tokenizer_of
from treekit.papers.rdr2.training_data import (
    MAJORITIES,
    Gold,
    Sample,
    judged,
    percent,
    scores,
    views,
)
from treekit.papers.rdr2.router import FORMATS, RST, reveal_nodes
from treekit.synthetic.generate import SyntheticWiki

torch = pytest.importorskip("torch")
from trainings import PowerCut, cut_off, same, weights

torch.set_num_threads(1)

TEXTS = [
    f"{n}: The {a} of {b}"
    for n, (a, b) in enumerate(
        (a, b) for a in "dam house tower bridge".split() for b in "Mole Tanecenza Runess".split()
    )
]
TOKENIZER = tokenizer_of(TEXTS * 2, 350)
DATA = encode(TOKENIZER, [TrainingExample(f"s{n}", t, " ".join(t.split()[:3])) for n, t in enumerate(TEXTS)])


def llama(seed=0):
    return tiny_model(TOKENIZER, width=32, layers=2, heads=2, inner=64, seed=seed)


# ---- one step through transformers and peft ----


def test_a_step_of_lora_changes_the_adapters_alone():
    model = adapted(llama(), Recipe(rank=8, alpha=16))
    assert {k.rsplit(".", 3)[1] for k in trainable(model)} == {"lora_A", "lora_B"}
    assert model.peft_config["default"].r == 8
    assert model.peft_config["default"].lora_alpha == 16
    assert {k.split(".")[-4] for k in trainable(model)} == {
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    }
    before = weights(model)
    train(model, DATA[:8], Recipe(lr=1e-3, epochs=2))
    changed = {k for k, p in model.named_parameters() if not torch.equal(p, before[k])}
    assert changed and all("lora_" in k for k in changed)


# ---- the loss ----


def test_the_prompt_is_no_target():
    "Equal to the library's loss with masked labels; the gradient, too; and nothing is asked of the prompt's last token but the first of the target."
    model, one = llama(), DATA[3]
    ids = torch.tensor([one.tokens])
    labels = ids.clone()
    labels[0, : one.start] = -100
    library = model(input_ids=ids, labels=labels).loss * (len(one.tokens) - one.start)
    library.backward()
    theirs = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    ours = sft_loss(model, [one])
    ours.backward()
    assert ours.item() == pytest.approx(library.item(), rel=1e-5)
    assert all(torch.allclose(p.grad, g, atol=1e-5) for p, g in zip(model.parameters(), theirs))


def test_micro_batches_add_up():
    one, two = llama(), llama()
    recipe = Recipe("full", lr=1e-3, epochs=1, batch=12)
    train(one, DATA, recipe), train(two, DATA, replace(recipe, micro=5))
    assert all(torch.allclose(a, b, atol=2e-4) for a, b in zip(one.parameters(), two.parameters()))


# ---- cut off, broken, mismatched ----


@pytest.mark.slow
def test_a_training_that_was_cut_off_goes_on_to_the_same_weights(tmp_path):
    recipe = Recipe("lora", lr=5e-3, epochs=4, batch=4, save_every=3)
    whole, cut, again = (adapted(llama(), recipe) for _ in range(3))
    log = train(whole, DATA, recipe)
    with pytest.raises(PowerCut):
        train(cut, DATA, recipe, tmp_path, loss=cut_off(7, sft_loss))
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 6
    assert train(again, DATA, recipe, tmp_path) == log
    assert same(weights(whole), weights(again))
    third = adapted(llama(), recipe)  # all done: nothing is trained
    assert train(third, DATA, recipe, tmp_path, loss=None) == log and same(weights(whole), weights(third))


def test_a_loss_that_is_no_number_stops_it(tmp_path):
    recipe, left = Recipe("full", lr=1e-3, epochs=4, batch=4, save_every=1), [3]

    def sick(model, batch):
        left[0] -= 1
        return sft_loss(model, batch) * (float("nan") if left[0] < 0 else 1)

    with pytest.raises(Diverged, match=r"step 4: the loss is nan; the batch was (s\d+, ){3}s\d+") as e:
        train(llama(), DATA, recipe, tmp_path, loss=sick)
    due = batches([len(e.tokens) for e in DATA], 4, 4, 0)[3]
    assert all(DATA[i].id in str(e.value) for i in due) and "lower lr" in str(e.value)
    assert load_checkpoint(tmp_path / "checkpoint.pt")["step"] == 3  # the sound one stays


# ---- models, decoding, processes ----


def test_a_model_and_an_adapter_come_back(tmp_path):
    model = llama()
    save_model(model, TOKENIZER, tmp_path / "base")
    prompts = [t[:7] for t in TEXTS[:5]]
    tuned, tokenizer = load_model(tmp_path / "base")
    assert generate(tuned, tokenizer, prompts, 6) == generate(model, TOKENIZER, prompts, 6)
    tuned = adapted(tuned, recipe := Recipe(lr=2e-2, epochs=8, batch=6))
    train(tuned, DATA, recipe)
    save_model(tuned, tokenizer, tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_config.json").exists() and not (
        tmp_path / "adapter" / "model.safetensors"
    ).exists()
    again, _ = load_model(tmp_path / "adapter")
    assert (
        generate(again, tokenizer, prompts, 6)
        == generate(tuned, tokenizer, prompts, 6)
        != generate(model, TOKENIZER, prompts, 6)
    )


# ---- the router's samples and scores ----

TREE = (
    "0: Mole\n\t1: ==History==\n\t\t2: A dam of 1883.\n\t\t3: It was moved.\n\t4: ==Names==\n\t\t5: Moles have many.\n\t6: ==Empty "
    "parent==\n\t\t7: ===Below===\n\t\t\t8: Deep text."
)


def view(*behaviours, visible=(2, 3), id="q/d"):
    return Sample(id, "When?", TREE, visible, behaviours)


def test_scores_by_hand():
    rows = [  # behaviours due, output, then the terms: ANS-F1, EXP-PRE, REF-ACC (paper, code), XPL, COL
        ([("ANSWER", 2)], "[ANSWER] 2: A dam", 1, None, None, 0, 0),
        ([("ANSWER", 2)], "[ANSWER] 3: It was", 0, None, None, 0, 0),
        ([("ANSWER", 2), ("ANSWER", 3)], "[ANSWER] 2: A dam\n[EXPAND] 4: ==Names==", 2 / 3, None, None, 0, 0),
        ([("ANSWER", 2)], "[ANSWER] 2: A dam\n[ANSWER] 2: A dam", 1, None, None, 0, 0),  # twice is once
        ([("ANSWER", 2)], "[ANSWER] 2: A dam\nCannot answer", 0, None, None, 0, 0),  # voided
        ([("ANSWER", 2), ("EXPAND", 4)], "[EXPAND] 4: ==Names==\n[EXPAND] 7: ===Below===", 0, 1 / 2, None, 0, 0),
        ([("EXPAND", 4)], "[ANSWER] 2: A dam", None, 0, None, 0, 0),
        ([("EXPAND", 4)], "[EXPAND] 1: ==History==\n[EXPAND] 4: ==Names==", None, 1, None, 1, 0),  # 1 is open: expelled
        ([("EXPAND", 4)], "[EXPAND] 2: A dam", None, 0, None, 1, 0),  # a paragraph can't be expanded
        ([], "Cannot answer", None, None, (1, 1), 0, 0),
        ([], "well, er", None, None, (0, 1), 0, 1),  # collapsed: a refusal for the code only
        ([], "[ANSWER] 5: Moles have", None, None, (0, 1), 0, 1),  # not visible: dropped, nothing is left
        ([], "[ANSWER] 4: Names", None, None, (0, 1), 1, 0),  # expelled, so not collapsed
        ([], "[EXPAND] 4: ==Names==", None, None, (0, 0), 0, 0),
    ]
    for due, output, answer, expand, refuse, expelled, collapsed in rows:
        terms, code = scores([view(*due)], [output]), scores([view(*due)], [output], "code")
        assert terms["ANS-F1"] == ([] if answer is None else [pytest.approx(answer)]), output
        assert terms["EXP-PRE"] == ([] if expand is None else [expand]), output
        assert (terms["REF-ACC"], code["REF-ACC"]) == (([], []) if refuse is None else ([refuse[0]], [refuse[1]])), (
            output
        )
        assert (terms["XPL-AVG"], terms["COL-RATE"]) == ([expelled], [collapsed]), output
    both = percent(scores([view(*r[0]) for r in rows], [r[1] for r in rows]))
    assert both["XPL-AVG"] == pytest.approx(100 * 3 / 14) and both["COL-RATE"] == pytest.approx(100 * 2 / 14)


@pytest.mark.parametrize("form", FORMATS)
def test_gold_scores_full(form):
    samples = [view(("ANSWER", 2), ("EXPAND", 4)), view(("EXPAND", 7)), view()]
    said = [FORMATS[form].render([(t, i, s.rst.tree[i].text) for t, i in s.behaviours]) for s in samples]
    assert percent(scores(samples, said)) == {
        "ANS-F1": 100,
        "EXP-PRE": 100,
        "REF-ACC": 100,
        "XPL-AVG": 0,
        "COL-RATE": 0,
        "FIT": 100,
    }
    assert set(MAJORITIES) and all(judged(s.rst, say(s, form)) for s in samples for say in MAJORITIES.values())


def test_the_worlds_gold():
    "The asked entity's paragraph is answered with where it is visible, its heading expanded where it is folded, and other pages are refused."
    world = SyntheticWiki(0, 200)
    gold, seen = Gold(world), set()
    for q in world.dataset("asqa", 12, "train"):
        holders = gold.holders(q)
        assert holders and all(d in gold.trees for d in holders)
        for d, nodes in holders.items():
            tree = gold.trees[d]
            for node in nodes:
                s = gold.label(q, reveal_nodes(tree, [node]))
                assert node in s.ids("ANSWER") and s.kind == "ANSWER"
                other = [
                    n.id for n in tree.nodes if n.type == "content" and n.parent not in {tree[i].parent for i in nodes}
                ]
                if other:
                    assert (e := gold.label(q, reveal_nodes(tree, other[:1]))).kind == "EXPAND" and tree[
                        node
                    ].parent in e.ids("EXPAND")
        stranger = next(t for i, t in gold.trees.items() if i not in holders)
        assert gold.label(q, RST(stranger, stranger.content(stranger.headings[1]))).kind == "REFUSE"


def test_a_view_is_made_for_each_passage():
    "As the public code curates (struct_curation.py without --group_passages), and as RDR2 routes."
    from treekit.corpora.documents import build_tree
    from treekit.corpora.lookup import Documents
    from treekit.core.types import Passage, Question
    from treekit.papers.rdr2.method import RDR2
    from treekit.retrieval.bm25 import Hit
    from treekit.papers.rdr2.training import PRESETS

    rows = [
        (1, "structure", "History"),
        (2, "content", "A dam of 1883."),
        (1, "structure", "Names"),
        (2, "content", "Moles have many."),
    ]
    tree = build_tree("Mole", rows, "m")

    class Shelf:
        def search(self, queries, k):
            return [[Hit(Passage(str(i), "Mole", tree[i].text), 1.0, i) for i in (2, 4, 2)] for _ in queries]

    shelf, asked = Shelf(), [Question("q", "asqa", "When?")]

    def visible(**per):
        return [rst.visible for _, rst in views(asked, shelf, Documents([tree]), **per)]

    content = tuple(n.id for n in tree.nodes if n.type == "content")
    assert visible() == [(i,) for i in content] and visible(per="document") == [content]
    assert RDR2().views == PRESETS["tiny"].views == "passage"


# ---- the five rows of Table 4, in miniature ----


def test_the_rows_are_the_printed_ones():
    from treekit.figures.verdicts import published
    from treekit.papers.rdr2.training import CURVE, ROUTER, SETTINGS

    assert list(SETTINGS) == list(dict.fromkeys(r["method"] for r in published("rdr2", "table4"))) and {
        CURVE,
        ROUTER,
    } <= set(SETTINGS)


@pytest.mark.long
def test_a_router_is_trained_kept_and_serves(monkeypatch, tmp_path):
    "All of the tiny preset with thirty samples: lessons, LoRA, all weights, looks while training; found again; and a routing call answered in either format."
    import asyncio
    import treekit.papers.rdr2.training as t
    from treekit.papers.rdr2.router import ROUTE

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    monkeypatch.setitem(
        t.PRESETS, "tiny", replace(t.PRESETS["tiny"], train=30, test=12, articles=200, lessons=40, lesson_epochs=1.0)
    )
    monkeypatch.setattr(t, "TINY", dict(width=32, layers=1, heads=2, inner=64))
    monkeypatch.setattr(t, "LOOKS", 2)
    t.tiny_samples.cache_clear()
    try:
        made = {name: t._trained(name, 0) for name in (t.CURVE, "enclose prompt, base, full, epoch 7.0")}
        assert all(len(r["outputs"]) == len(t.tiny_samples()["test"]) for r in made.values())
        log = made[t.CURVE]["log"]
        assert len(log) == math.ceil(5 * len(t.tiny_samples()["train"]) / 8)
        assert "ANS-F1" in log[-1]
        assert sum("ANS-F1" in row for row in log) >= 2
        assert log[-1]["loss"] < log[0]["loss"]
        monkeypatch.setattr(t, "train", None)  # from here on nothing is trained
        assert t._trained(t.CURVE, 0) == made[t.CURVE] == t.routers([(t.CURVE, 0)])[0]
        router = t.TrainedRouter.tiny(t.CURVE)
        s = t.tiny_samples()["test"][0]
        monkeypatch.setattr(
            t, "generate", lambda *_, **how: ["<answer>2: other words</answer>\n<expand>77: nothing</expand>"]
        )
        reply = asyncio.run(
            router.complete(
                ROUTE["tag"](question=s.question, document="0: T\n\t1: ==H==\n\t\t2: The words of this line")
            )
        )[0].text
        assert reply == "[ANSWER] 2: The words of this line\n[EXPAND] 77: nothing"
    finally:
        t.tiny_samples.cache_clear()
