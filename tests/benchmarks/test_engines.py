"""Engines for a model on this machine, in one run: SmolLM2's replies to real questions, read and written by each that is installed.

    pip install ctranslate2 openvino-genai openvino-tokenizers xllamacpp
    pytest tests/benchmarks/test_engines.py -s

`TREEKIT_MEASURE=1` writes the table to `data/measured/engines.csv`, which `nbs/05_llm/09_local_client.ipynb` shows. Each engine runs in a
process of its own, with one thread: it loads the model, reads 16 prompts (one token is written for each), and writes 16 replies together.
`equal` is the share of greedy replies that are those of `transformers` in float32, one at a time.
"""

import csv, json, os, resource, subprocess, sys, time


TOKENS, ASKED = 48, 16
COLUMNS = ("engine", "weights", "load_s", "read_tokens_s", "write_tokens_s", "memory_mb", "equal", "scores")


def messages():
    "Prompts about bundled HotpotQA questions with their supporting paragraphs."
    from treekit.baselines.prompting import BY_KIND
    from treekit.experiments.resources import load

    prompt = BY_KIND[False, "cot", "multi-hop"]
    return [
        prompt(question=q.question, documents=[p for p in q.paragraphs if p.id in q.supporting]).messages
        for q in load("hotpotqa", "real", n=ASKED)
    ]


def sources():
    "GGUF file and converted folder of SmolLM2, its tokenizer, and the prompts as text."
    from transformers import AutoTokenizer
    from treekit.llm.local_client import SMOLLM2, converted, model_source

    file, content = model_source(SMOLLM2)
    folder = converted(file, content)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    asked = [tokenizer.apply_chat_template(list(m), add_generation_prompt=True, tokenize=False) for m in messages()]
    return file, folder, tokenizer, asked


def transformers(dtype, at_once):
    import torch
    from treekit.llm.local_client import SMOLLM2, Decoder, _Job, load_local

    torch.set_num_threads(1)
    model, tokenizer = load_local(SMOLLM2)
    decoder = Decoder(model.to(getattr(torch, dtype)), tokenizer)
    asked = [tuple((m["role"], m["content"]) for m in one) for one in messages()]

    def write(tokens, together=at_once):
        jobs = [_Job(m, tokens) for m in asked]
        decoder._kept = {}
        made = decoder(jobs) if together else {j: decoder([j])[j] for j in jobs}
        return [made[j].text for j in jobs]

    return write, True


def ctranslate2(weights):
    import ctranslate2 as engine
    from treekit.config import work_dir

    _, folder, tokenizer, asked = sources()
    made = work_dir("weights") / f"ctranslate2-{weights}"
    if not made.is_dir():
        engine.converters.TransformersConverter(str(folder)).convert(str(made), quantization=weights)
    model = engine.Generator(str(made), compute_type=weights, intra_threads=1, inter_threads=1)
    ids = [tokenizer.convert_ids_to_tokens(tokenizer(t).input_ids) for t in asked]
    how = dict(include_prompt_in_result=False, sampling_topk=1, end_token="<|im_end|>", max_batch_size=ASKED)

    def write(tokens):
        found = model.generate_batch(ids, max_length=tokens, **how)
        return [tokenizer.decode(f.sequences_ids[0], skip_special_tokens=True).strip() for f in found]

    return write, True


def openvino():
    import openvino_genai as engine

    file, _, _, asked = sources()
    apart = engine.SchedulerConfig()
    apart.enable_prefix_caching = False  # each prompt is read again
    model = engine.LLMPipeline(str(file), "CPU", INFERENCE_NUM_THREADS=1, scheduler_config=apart)

    def write(tokens):
        how = engine.GenerationConfig(max_new_tokens=tokens, do_sample=False, apply_chat_template=False)
        return [t.strip() for t in model.generate(asked, how).texts]

    return write, False


def llama_cpp():
    import xllamacpp as engine
    from concurrent.futures import ThreadPoolExecutor

    file, _, _, asked = sources()
    params = engine.CommonParams()
    params.model.path, params.n_ctx, params.n_parallel, params.cache_prompt = str(file), 16 * 2048, ASKED, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = engine.Server(params)

    def ask(prompt, tokens):
        body = dict(prompt=prompt, max_tokens=tokens, temperature=0, cache_prompt=False)
        made = server.handle_completions(body)
        return (json.loads(made) if isinstance(made, (str, bytes)) else made)["choices"][0]["text"].strip()

    def write(tokens):
        with ThreadPoolExecutor(ASKED) as threads:
            return list(threads.map(lambda p: ask(p, tokens), asked))

    return write, False


ENGINES = {  # engine, weights -> what is imported, and the maker of `write`
    ("transformers, one at a time", "float32"): ("transformers", lambda: transformers("float32", False)),
    ("transformers", "float32"): ("transformers", lambda: transformers("float32", True)),
    ("transformers", "bfloat16"): ("transformers", lambda: transformers("bfloat16", True)),
    ("ctranslate2", "float32"): ("ctranslate2", lambda: ctranslate2("float32")),
    ("ctranslate2", "int8"): ("ctranslate2", lambda: ctranslate2("int8")),
    ("OpenVINO GenAI", "Q4_1"): ("openvino_genai", openvino),
    ("llama.cpp (xllamacpp)", "Q4_1"): ("xllamacpp", llama_cpp),
}


def measured(engine, weights):
    "Row of an engine, and its replies; in a process of its own."
    began = time.perf_counter()
    write, scores = ENGINES[engine, weights][1]()
    loaded = time.perf_counter()
    write(1)  # warm
    _, _, tokenizer, asked = sources()
    began_reading = time.perf_counter()
    write(1)
    read = time.perf_counter() - began_reading
    began_writing = time.perf_counter()
    replies = write(TOKENS)
    wrote = time.perf_counter() - began_writing - read
    size, out = (sum(len(tokenizer(t).input_ids) for t in texts) for texts in (asked, replies))
    return dict(
        engine=engine,
        weights=weights,
        load_s=round(loaded - began, 1),
        read_tokens_s=round(size / read),
        write_tokens_s=round(out / wrote),
        memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        replies=replies,
        scores="yes" if scores else "",
    )


def run(engine, weights):
    "The row of an engine, measured in a process with one thread."
    environment = os.environ | dict(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    made = subprocess.run(
        [sys.executable, __file__, engine, weights], capture_output=True, text=True, env=environment, timeout=900
    )
    assert made.returncode == 0, f"{engine}, {weights}: {made.stderr[-800:]}"
    return json.loads(made.stdout.splitlines()[-1])


def test_engines():
    import importlib.util

    from treekit.config import root

    there = [key for key, (module, _) in ENGINES.items() if importlib.util.find_spec(module)]
    rows = [run(*key) for key in there]
    first = rows[0].pop("replies")
    for row in rows:
        row["equal"] = sum(a == b for a, b in zip(row.pop("replies", first), first)) / len(first)
        print({name: row[name] for name in COLUMNS})
    if os.environ.get("TREEKIT_MEASURE"):
        with open(root() / "data" / "measured" / "engines.csv", "w", encoding="utf-8", newline="") as f:
            table = csv.DictWriter(f, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    assert rows[1]["equal"] > 0.9, "replies of a batch differ from replies one at a time"


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], sys.argv[2])))
