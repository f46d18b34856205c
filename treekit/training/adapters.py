"""Low-rank adapters of a language model on this machine: `transformers`' Trainer with PEFT"""

import os
from dataclasses import dataclass
from pathlib import Path

from ..llm.local_client import SMOLLM2, load_local

@dataclass(frozen=True)
class Recipe:
    "Settings of a training."
    base: str = SMOLLM2  # as for `treekit.llm.local_client.model_source`
    rank: int = 16
    scale: int = 32  # LoRA's alpha
    layers: float = .5  # share of the layers that get an adapter, the upper ones; the lower ones need no gradient
    rate: float = 1e-3  # learning rate; cosine, after 5 % of warm-up
    batch: int = 4  # rows a step
    epochs: float = 1.0
    longest: int = 800  # tokens of a row; longer ones are left out
    seed: int = 0

def encoded(
    groups,  # each a list of (messages, reply); those of a group begin alike, for instance with the same passages
    tokenizer,
    longest: int,  # tokens
) -> list[dict]:
    "One row a group: what its requests have in common is read once, and each rest with its reply stands in a branch of its own."
    rows = []
    for group in groups:
        prompts = [tokenizer.apply_chat_template(list(m), add_generation_prompt=True, tokenize=True, return_dict=False) for m, _ in group]
        shared = len(os.path.commonprefix(prompts)) if len(group) > 1 else 0
        ids, places, branch, learnt = prompts[0][:shared], list(range(shared)), [0] * shared, []
        for number, (prompt, (_, reply)) in enumerate(zip(prompts, group), 1):
            wanted = tokenizer(reply + tokenizer.eos_token, add_special_tokens=False).input_ids
            own = prompt[shared:] + wanted
            learnt += range(len(ids) + len(own) - len(wanted), len(ids) + len(own))
            places += range(shared, shared + len(own))
            ids, branch = ids + own, branch + [number] * len(own)
        if len(ids) <= longest: rows.append(dict(ids=ids, places=places, branch=branch, learnt=learnt))
    return rows

def collated(rows: list[dict]) -> dict:
    "Batch of one row. A token sees what precedes it in its branch and what the branches have in common; replies alone are learnt."
    import torch
    [row] = rows
    ids, branch, learnt = (torch.tensor(row[name]) for name in ("ids", "branch", "learnt"))
    seen = ((branch[None] == branch[:, None]) | (branch[None] == 0)).tril()
    return dict(input_ids=ids[None], position_ids=torch.tensor(row["places"])[None], attention_mask=seen[None, None],
                logits_to_keep=learnt - 1, labels=ids[learnt][None], shift_labels=ids[learnt][None])

def train_adapter(
    groups,  # of the training, as for `encoded`
    held_out,  # of the validation
    folder: Path,  # of the adapter; checkpoints stand in its folder `run`, and a training that was interrupted goes on
    recipe: Recipe = Recipe(),
) -> list[dict]:  # what was logged: step, loss, eval_loss
    "Train a LoRA adapter of all linear layers on the replies."
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Trainer, TrainingArguments, set_seed
    from transformers.trainer_utils import get_last_checkpoint
    set_seed(recipe.seed)
    base, tokenizer = load_local(recipe.base)
    data, validation = (encoded(g, tokenizer, recipe.longest) for g in (groups, held_out))
    size = base.config.num_hidden_layers
    linear = {name.rpartition(".")[2] for name, m in base.named_modules() if isinstance(m, torch.nn.Linear)} - {"lm_head"}
    lora = LoraConfig(r=recipe.rank, lora_alpha=recipe.scale, target_modules=sorted(linear), task_type="CAUSAL_LM",
                      layers_to_transform=list(range(size - round(recipe.layers * size), size)))
    model, run = get_peft_model(base.train(), lora), folder / "run"
    settings = TrainingArguments(
        output_dir=str(run), seed=recipe.seed, learning_rate=recipe.rate, lr_scheduler_type="cosine", warmup_steps=.05,
        per_device_train_batch_size=1, gradient_accumulation_steps=recipe.batch, num_train_epochs=recipe.epochs, eval_strategy="steps",
        eval_steps=20, per_device_eval_batch_size=1, prediction_loss_only=True, logging_steps=1, save_steps=5, save_total_limit=2,
        report_to=[], use_cpu=True, disable_tqdm=True, remove_unused_columns=False, label_names=["labels"])
    trainer = Trainer(model, settings, train_dataset=data, eval_dataset=validation, data_collator=collated)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(run)) if run.is_dir() else None)
    lora.base_model_name_or_path = recipe.base  # not a machine's path
    model.to(torch.float16).save_pretrained(folder)
    return trainer.state.log_history
