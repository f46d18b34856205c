"""How well does a recording hold? Recorded requests, asked again of the model on this machine with other batches, threads, instruction
sets and precision.

    pytest tests/benchmarks/test_replies_again.py -s

`TREEKIT_MEASURE=1` writes `data/measured/replies_again.csv`, one row for each setting and request, which `nbs/05_llm/09_local_client.ipynb`
sums up. A row that is there isn't asked again, so that it can be stopped and go on; 200 short requests take about five minutes a setting, more without vector instructions.
"""

import asyncio, csv, json, os, random, subprocess, sys, zlib

REQUESTS = 200
COLUMNS = ("setting", "request", "prompt", "equal", "same_answer", "difference")
SETTINGS = {  # name -> requests at once, threads, dtype, environment
    "again, as recorded": (16, 1, "float32", {}),
    "one at a time": (1, 1, "float32", {}),
    "two threads": (16, 2, "float32", {}),
    "no vector instructions": (
        16,
        1,
        "float32",
        dict(ATEN_CPU_CAPABILITY="default", ONEDNN_MAX_CPU_ISA="SSE41", MKL_CBWR="COMPATIBLE"),
    ),
    "bfloat16": (16, 1, "bfloat16", {}),
}


def recorded(folder):
    "Short recorded requests, their hashes, and what was replied; one sample each."
    from treekit.config import kit_path
    from treekit.core.prompts import Request
    from treekit.store.run_store import Store

    store, found = Store(folder / "recorded.sqlite"), []
    store.add_recorded(kit_path("data", "recorded", "smollm2.cassette"))
    query = "SELECT hash, body, completion FROM calls JOIN requests ON hash=request WHERE sample=0 ORDER BY hash"
    for name, body, completion in store.query(query):
        body, said = json.loads(zlib.decompress(body)), json.loads(completion)
        own, size = body["parameters"], sum(len(m["content"]) for m in body["messages"])
        if "continuation" in body or size > 2400 or len(said.get("text", "")) > 240 or own["temperature"]:
            continue
        request = Request(
            tuple(body["messages"]), max_tokens=own["max_tokens"], temperature=0.0, stop=tuple(own["stop"])
        )
        found.append((name, body["model"], request, said.get("text", "")))
    return random.Random(0).sample(found, min(REQUESTS, len(found)))


def readers():
    "Prompts by a piece of their template, to find what a recorded request asked."
    import re
    from treekit.experiments.prompts import known_prompts

    pieces = {n: sorted(re.split(r"\$\w+", p.template), key=len)[-1].strip() for n, p in known_prompts().items()}
    return {n: (piece, known_prompts()[n]) for n, piece in pieces.items() if len(piece) > 30}


def answer_of(text, request, prompts):
    "What the prompt's parser reads from a reply, and the prompt's name."
    asked = request.messages[-1]["content"]
    for name, (piece, prompt) in prompts.items():
        if piece in asked:
            return name, json.dumps(prompt.read(text).value, sort_keys=True, default=str)
    return "", text


async def again(setting, folder, done):
    "Rows of a setting."
    import torch
    from treekit.llm.local_client import LocalClient
    from treekit.scoring.short import f1

    at_once, threads, dtype, _ = SETTINGS[setting]
    torch.set_num_threads(threads)
    asked, prompts, clients, rows = recorded(folder), readers(), {}, []
    asked = [one for one in asked if one[0][:12] not in done]
    for at in range(0, len(asked), at_once):
        part = asked[at : at + at_once]
        for model in {model for _, model, *_ in part} - clients.keys():
            clients[model] = LocalClient(model)
            clients[model].decoder.model.to(getattr(torch, dtype))
        made = await asyncio.gather(*(clients[model].complete(request) for _, model, request, _ in part))
        for (name, _, request, said), [completion] in zip(part, made):
            prompt, before = answer_of(said, request, prompts)
            after = answer_of(completion.text, request, prompts)[1]
            row = dict(setting=setting, request=name[:12], prompt=prompt, equal=int(completion.text == said))
            row |= dict(same_answer=int(before == after), difference=round(1 - f1(completion.text, [said]), 4))
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def table():
    from treekit.config import root

    return root() / "data" / "measured" / "replies_again.csv"


def test_replies_again(tmp_path):
    kept = list(csv.DictReader(table().open(encoding="utf-8"))) if table().exists() else []
    for setting, (_, threads, _, environment) in SETTINGS.items():
        done = [row["request"] for row in kept if row["setting"] == setting]
        if len(done) >= REQUESTS:
            continue
        own = os.environ | environment | dict(OMP_NUM_THREADS=str(threads), REPLIES_DONE=",".join(done))
        command = [sys.executable, __file__, setting, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as running:
            kept += [json.loads(line) for line in running.stdout if line.startswith("{")]
        assert running.returncode == 0, setting
        if os.environ.get("TREEKIT_MEASURE"):
            with table().open("w", encoding="utf-8", newline="") as f:
                written = csv.DictWriter(f, COLUMNS, lineterminator="\n")
                written.writeheader()
                written.writerows(kept)
        rows = [row for row in kept if row["setting"] == setting]
        print(setting, {k: sum(float(r[k]) for r in rows) / len(rows) for k in ("equal", "same_answer", "difference")})
    rows = [row for row in kept if row["setting"] == "again, as recorded"]
    assert sum(int(row["same_answer"]) for row in rows) >= 0.9 * len(rows)


if __name__ == "__main__":
    from pathlib import Path

    finished = set(filter(None, os.environ.get("REPLIES_DONE", "").split(",")))
    asyncio.run(again(sys.argv[1], Path(sys.argv[2]), finished))
