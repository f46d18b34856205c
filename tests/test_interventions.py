"An intervention without hooks replays byte for byte; each hook reaches the calls, searches and parses of each paper's method."

import json
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from treekit.config import UsageError, load_profile
from treekit.core.fingerprints import method_fingerprint
from treekit.core.method import Intervened, Intervention, bare_method, configure
from treekit.experiments.provenance import reading_of
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.core.types import Question
from treekit.explorer.forks import fork, same_bytes
from treekit.explorer.runs import open_run
from treekit.papers.registry import method
from treekit.store.run_store import Store

PAPERS = {
    "treerare": ("hotpotqa", {}),
    "toq": ("multihop", dict(levels=2)),
    "arise": ("musique", dict(iterations=4)),
    "searchr": ("musique", {}),
    "rdr2": ("asqa", {}),
}
SAID = "1. FINAL: nobody in Taphora"  # an article of the wiki: a reply is taken as a question, too
PARSES = []  # texts that reached the hook of `Parses`


@dataclass(frozen=True)
class OtherSamples(Intervention):
    def request(self, call):
        return replace(call, request=replace(call.request, sample=call.request.sample + 500))


@dataclass(frozen=True)
class Given(Intervention):
    async def request(self, call):
        return call.given(SAID) if call.continuation is None else call


@dataclass(frozen=True)
class Said(Intervention):
    def reply(self, call, completion):
        return replace(completion, text=SAID)


@dataclass(frozen=True)
class FindsNothing(Intervention):
    def search(self, queries, k, find):
        return [[] for _ in find(queries, k)]


@dataclass(frozen=True)
class Parses(Intervention):
    def parse(self, texts, trees):
        PARSES.extend(texts)
        return trees


@pytest.fixture(scope="module", params=PAPERS)
def asked(request):
    "(paper, its saved run, function that answers its question again with an intervention)"
    dataset, fields = PAPERS[request.param]
    store, profile = Store(), load_profile("offline", data="synthetic:100", retriever="bm25s")
    own, questions = configure(method(request.param), **fields), {dataset: load(dataset, "synthetic:100", n=1)}

    def answered(by=None, name="m"):
        made = run({name: own}, questions, profile, store=store, progress=False, intervene=by)
        assert made.failures == []
        return open_run(store, made.kept)

    return request.param, answered(), answered


def written(opened):
    row = opened.rows[0]
    return json.dumps([row.answer, row.trace.to_json()], sort_keys=True)


def calls(opened):
    return {k for n in opened.rows[0].trace.nodes for k in n.calls}


def test_without_a_hook_a_method_is_replayed_byte_for_byte(asked):
    _, opened, answered = asked
    again = answered(Intervention())
    assert written(again) == written(opened) and again.name != opened.name
    assert again.rows[0].usage.hits == again.rows[0].usage.calls, "it asks nothing"
    assert same_bytes(again, 0, fork(again, 0)), "and can be forked"


def test_each_hook_works(asked):
    paper, opened, answered = asked
    own = calls(opened)
    assert calls(answered(OtherSamples())) and not calls(answered(OtherSamples())) & own, "other calls of the store"
    given, said = answered(Given()), answered(Said())
    assert not calls(given) & own and "nobody" in written(given), "no key: it is never stored"
    before = opened.store.calls(own)
    assert "nobody" in written(said) and opened.store.calls(own) == before, "the store has what the model said"
    assert all(c.text != SAID for c in opened.store.calls(calls(said)).values())
    found = answered(FindsNothing()).rows[0].trace
    assert len(found.retrieved) < len(opened.rows[0].trace.retrieved)
    assert paper == "searchr" or not found.retrieved, "SEARCH-R's informativeness is no search"
    PARSES.clear()
    assert written(answered(Parses())) == written(opened)
    assert bool(PARSES) == (paper in ("treerare", "searchr"))


def test_keys_and_hyper_parameters_are_the_method_s_and_the_intervention_s():
    own = method("treerare")
    made = Intervened(Intervened(own, Said()), FindsNothing())
    assert configure(made, top_k=3).top_k == 3 and bare_method(configure(made, top_k=3)) == configure(own, top_k=3)
    assert made.requires == own.requires
    assert reading_of("TreeRare (DT)", configure(made, top_k=3)) == (
        "intervention=FindsNothing",
        "intervention=Said",
        "top_k=3",
    ), "no cell of it is compared with print"
    assert len({method_fingerprint(m) for m in (own, made, Intervened(own, Intervention()))}) == 3


@dataclass(frozen=True)
class Forgets(Intervention):
    def request(self, call):
        pass


class Keyless(Intervention):
    def __init__(self, k):
        self.k = k


@pytest.mark.parametrize("wrong", [Keyless(1), Said, "gold", SimpleNamespace(request=None)])
def test_what_would_not_be_part_of_the_key_is_refused(wrong):
    with pytest.raises(UsageError, match="frozen dataclass that extends"):
        run({"m": method("cot")}, {"d": [Question("q", "d", "Who?")]}, load_profile("offline"), intervene=wrong)


def test_a_hook_that_returns_nothing_says_what_it_should():
    asked = {"hotpotqa": load("hotpotqa", "synthetic:100", n=1)}
    profile = load_profile("offline", data="synthetic:100")
    made = run({"m": method("cot")}, asked, profile, store=Store(), progress=False, intervene=Forgets())
    assert made.rows[0].error == "Forgets.request should return the call, changed or not, or call.given(text), not None"
