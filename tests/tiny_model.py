"""Write a tiny language model with random weights as a GGUF file, for servers that load one: python tiny_model.py FILE

A llama of two layers whose vocabulary is the bytes and a few words; needs the package gguf. It knows nothing, but its log-probabilities
are real ones.
"""

import sys

import gguf
import numpy as np

WORDS = sorted(f"▁{w}" for w in "a born by director film in is might of original question the was which who".split())


def write(path):
    draw = np.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *WORDS, "▁"]
    types = [2, 3, 3] + [6] * 256 + [1] * (len(WORDS) + 1)  # unknown, control, bytes, words
    scores = [0.0] * 3 + [-1000.0] * 256 + [-float(i) for i in range(len(WORDS) + 1)]
    size, width, heads, layers, inner = len(tokens), 32, 4, 2, 64
    w = gguf.GGUFWriter(path, "llama")
    for name, value in dict(
        context_length=4096,
        embedding_length=width,
        block_count=layers,
        feed_forward_length=inner,
        head_count=heads,
        head_count_kv=heads,
        layer_norm_rms_eps=1e-5,
        rope_dimension_count=width // heads,
        vocab_size=size,
        tokenizer_model="llama",
        token_list=tokens,
        token_scores=scores,
        token_types=types,
        bos_token_id=1,
        eos_token_id=2,
        unk_token_id=0,
        add_bos_token=True,
    ).items():
        getattr(w, f"add_{name}")(value)

    def tensor(name, *shape):
        w.add_tensor(
            f"{name}.weight", (draw.normal(0, 0.3, shape) if len(shape) > 1 else np.ones(shape)).astype(np.float32)
        )

    tensor("token_embd", size, width), tensor("output_norm", width), tensor("output", size, width)
    for i in range(layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{i}.{name}", width, width)
        (
            tensor(f"blk.{i}.ffn_gate", inner, width),
            tensor(f"blk.{i}.ffn_up", inner, width),
            tensor(f"blk.{i}.ffn_down", width, inner),
        )
        tensor(f"blk.{i}.attn_norm", width), tensor(f"blk.{i}.ffn_norm", width)
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()


if __name__ == "__main__":
    write(sys.argv[1])
