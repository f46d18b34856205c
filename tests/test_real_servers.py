"""Servers of others: LiteLLM's proxy, `transformers serve`, llama.cpp's server. LiteLLM and llama.cpp have
environments of their own, and are skipped where they can't be installed. Models are tiny, with random weights, and made here.
Each server answers a request; then a table is made with three questions, reported and verified."""

import asyncio, functools, json, os, secrets, socket, sqlite3, subprocess, sys, time, urllib.request, venv
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from openai_server import Server
from commands import inside
from treekit.config import Profile, load_profile
from treekit.core.prompts import Request
from treekit.experiments.planning import store_path
from treekit.experiments.resources import chat_for

PACKAGES = {
    "litellm": ["litellm[proxy]"],
    "llama.cpp": ["xllamacpp", "gguf"],
}  # xllamacpp: llama.cpp with its server, as wheels
KEY = f"sk-{secrets.token_hex(16)}"  # LiteLLM's proxy doesn't start without one; the others don't look at it
pytestmark = pytest.mark.slow


@functools.cache
def installed(name):
    "Python of an environment with a server's package; skips the test if it can't be installed."
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "treekit-servers" / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", *PACKAGES[name]], capture_output=True, text=True, timeout=900
        )
        if done.returncode:
            pytest.skip(
                f"{name} can't be installed here: {(done.stderr.strip().splitlines() or ['no word'])[-1][:200]}"
            )
        ready.touch()
    return python


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def running(words, port, path, log, **env):
    "A server's process, once a path answers."
    with open(log, "w") as out:
        process = subprocess.Popen([*map(str, words)], stdout=out, stderr=out, env=os.environ | env)
    try:
        end = time.monotonic() + 180
        while True:
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.5)
            else:
                break
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def tiny_chat_model(folder):
    "A causal model with random weights and a chat template, in a folder."
    import torch, transformers
    from treekit.utils.model_files import MINILM, model_folder

    torch.manual_seed(0)
    words = transformers.AutoTokenizer.from_pretrained(model_folder(MINILM))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words.backend_tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        eos_token=words.sep_token,
        pad_token=words.pad_token,
        unk_token=words.unk_token,
        chat_template="{% for m in messages %}{{ m['content'] }}\n{% endfor %}",
    )
    shape = dict(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2
    )
    config = transformers.LlamaConfig(vocab_size=tokenizer.vocab_size, max_position_embeddings=8192, **shape)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


GGUF = """
import sys, gguf, numpy
width, hidden, rng = 32, 64, numpy.random.default_rng(0)
tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", *"abcdefghijklmnopqrstuvwxyz"]
kinds = [2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)]  # unknown, control, byte, normal
w = gguf.GGUFWriter(sys.argv[1], "llama")
w.add_context_length(32768), w.add_embedding_length(width), w.add_block_count(1), w.add_feed_forward_length(hidden)
w.add_head_count(2), w.add_head_count_kv(2), w.add_rope_dimension_count(width // 2), w.add_layer_norm_rms_eps(1e-5)
w.add_vocab_size(len(tokens)), w.add_tokenizer_model("llama"), w.add_token_list(tokens), w.add_token_types(kinds)
w.add_token_scores([0.0] * len(tokens)), w.add_unk_token_id(0), w.add_bos_token_id(1), w.add_eos_token_id(2)
w.add_chat_template("{% for m in messages %}{{ m['content'] }}\\n{% endfor %}")
shapes = {"token_embd": (len(tokens), width), "output": (len(tokens), width), "output_norm": (width,)}
shapes |= {f"blk.0.attn_{k}": (width, width) for k in ("q", "k", "v", "output")}
shapes |= {"blk.0.attn_norm": (width,), "blk.0.ffn_norm": (width,), "blk.0.ffn_gate": (hidden, width), "blk.0.ffn_up": (hidden, width),
           "blk.0.ffn_down": (width, hidden)}
for name, shape in shapes.items(): w.add_tensor(name + ".weight", rng.standard_normal(shape).astype("float32") / 4)
w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()
"""

LLAMA_CPP = """
import sys, threading, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.model_alias, p.hostnames, p.port = sys.argv[1], {"m"}, ["127.0.0.1"], int(sys.argv[2])
p.n_parallel, p.n_ctx, p.warmup = 4, 4 * 32768, False
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(p)
threading.Event().wait()
"""


@contextmanager
def litellm(tmp_path):
    python, port = installed("litellm"), free_port()
    with Server() as upstream:
        (tmp_path / "config.yaml").write_text(
            json.dumps(
                dict(
                    model_list=[
                        dict(model_name="m", litellm_params=dict(model="openai/m", api_base=upstream.url, api_key="x"))
                    ],
                    general_settings=dict(master_key=KEY),
                )
            )
        )
        words = (python.parent / "litellm", "--config", tmp_path / "config.yaml", "--port", port, "--host", "127.0.0.1")
        own = dict(LITELLM_LOCAL_MODEL_COST_MAP="True")  # else its start waits for a file of prices from the network
        with running(words, port, "/health/liveliness", tmp_path / "server.log", **own) as url:
            yield url, "m"


@contextmanager
def transformers_serve(tmp_path):
    port, model = free_port(), tiny_chat_model(tmp_path / "tiny")
    words = (Path(sys.executable).parent / "transformers", "serve", "--host", "127.0.0.1", "--port", port)
    (tmp_path / "hub").mkdir()
    own = dict(HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path / "hub"))
    with running(words, port, "/v1/models", tmp_path / "server.log", **own) as url:
        yield url, str(model)


@contextmanager
def llama_cpp(tmp_path):
    python, port = installed("llama.cpp"), free_port()
    model = tmp_path / "tiny.gguf"
    subprocess.run([python, "-c", GGUF, model], check=True)
    with running((python, "-c", LLAMA_CPP, model, port), port, "/v1/models", tmp_path / "server.log") as url:
        yield url, "m"


async def replied(url, model):
    "A completion of one request through the kit's client."
    chat = chat_for(Profile("p", model, url, api_key_env="SERVER_KEY", max_tokens=8))
    try:
        return await chat.complete(Request((dict(role="user", content="Where is Lyon?"),)))
    finally:
        await chat.close()


@pytest.mark.parametrize(
    "server, table",
    [(litellm, "searchr/table3"), (transformers_serve, "treerare/table1"), (llama_cpp, "toq/table2")],
    ids=["litellm", "transformers", "llamacpp"],
)
def test_from_a_request_to_report_and_verify(server, table, tmp_path, monkeypatch):
    "Failed questions are allowed, since a model with random weights writes garbage; exit code 1 says so. Some are answered."
    home = dict(TREEKIT_HOME=str(tmp_path / "home"), SERVER_KEY=KEY)
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    with server(tmp_path) as (url, model):
        [completion] = asyncio.run(replied(url, model))
        assert completion.text and completion.tokens_in > 0 and completion.finish in ("stop", "length")
        settings = (f"endpoint={url}", f"model={model}", "max_tokens=32", "judges=", "api_key_env=SERVER_KEY")
        words = ["--profile", "local"]
        words += [word for setting in (*settings, "n=3", "data=synthetic") for word in ("--set", setting)]
        code, out, err = inside("reproduce", table, *words, "--out", tmp_path / "out", **home)
        assert code in (0, 1) and "Traceback" not in out + err, out + err
    with closing(sqlite3.connect(store_path(load_profile("local")))) as store:
        assert store.execute("SELECT COUNT(*) FROM predictions").fetchone()[0], out + err
    archive = tmp_path / "report.zip"
    made = inside("report", table, "--tables", tmp_path / "out", "--out", archive, *words, **home)
    assert made[0] == 0, made
    code, out, err = inside("verify", archive, **home)
    if server is transformers_serve:  # its model's name is a folder, which no cassette holds
        assert code == 1 and "files that it doesn't hold" in out, out
    else:
        assert code == 0, out + err
