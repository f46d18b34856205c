"""How much of the five methods' prompts a provider's cache may know, as they are worded and with what is fixed in front.

    pytest tests/benchmarks/test_prefixes.py -s

Twenty questions of the world for each method, one after another into a cache of OpenAI's rule (1,024 tokens, then steps of 128) and into
one without a floor (steps of four tokens, as near as a server's own cache comes). SEARCH-R parses its passages, so all have few.
"""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import batch_worker as worker
from treekit.config import load_profile
from treekit.store.run_store import Store
from treekit.experiments.prompt_prefixes import RecordingClient, prefix_shares
from treekit.experiments.resources import chat_for, load_corpus
from treekit.experiments.run import run

PROFILE = load_profile("offline", data="synthetic:100", retriever="bm25s")


@pytest.mark.parametrize("name", worker.METHODS)
def test_shares(name):
    heard = RecordingClient(chat_for(PROFILE))
    corpora = worker.passages() if name == "SEARCH-R" else {"hotpotqa": load_corpus("hotpotqa", "synthetic:100")}
    results = run({name: worker.METHODS[name]}, worker.asked(20), PROFILE, corpora=corpora, chat=heard, store=Store(), progress=False)
    assert not results.failures
    shares = prefix_shares(heard.requests)
    tokens = sum(len(r.text.encode()) for r in heard.requests) / 4 / len(heard.requests)
    said = ", ".join(f"{k} {v:.1%}" for k, v in shares.items())
    print(f"\n{name}: {len(heard.requests)} prompts of {tokens:,.0f} tokens; {said}", end="")
    assert shares["shared"] >= shares["cached"] and shares["shared_static_first"] >= shares["shared"] - 0.05
