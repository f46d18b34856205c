"""A replay without an edit gives the saved answer byte for byte and asks nothing, for each method of the registry.

A replay uses the models that the run used: a navigator and a router that a program gave, too. A model that can't be made again answers from
the store alone; a call before the edit that the store doesn't hold ends the replay with one line."""

import json

import pytest
from fakes import FakeChat

from treekit.config import UsageError, load_profile
from treekit.core.method import configure
from treekit.store.run_store import Store
from treekit.experiments.resources import exemplars, load
from treekit.experiments.run import run
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.forks import Edits, fork, same_bytes
from treekit.explorer.runs import open_run
from treekit.explorer.overrides import switch
from treekit.papers.registry import find, method, method_names

SMALL = {
    "papers.toq.method": ("multihop", {}),
    "papers.rdr2.method": ("asqa", {}),
    "papers.rdr2.baselines": ("asqa", {}),
}
FIELDS = {
    "ARISE (ours)": dict(iterations=8),
    "ToQ (ours)": dict(levels=2),
    "SEARCH-R*": dict(informative=0),
} | dict.fromkeys(
    ("ChainRAG", "ChainRAG (w/ cache)", "ChainRAG (w/o cache)"), dict(reranker="")
)  # no cross-encoder offline
METHODS = list(dict.fromkeys(method_names().values()))
LONG = ("GraphRAG", "HippoRAG", "Tree-Retrieval (DT)", "Tree-Retrieval (CT)", "TreeRare (CT)")


def profile(**given):
    return load_profile("offline", data="synthetic:100", retriever="bm25s", **given)


def saved(name, store, n=1, **given):
    "A run of a method over its own kind of question."
    entry = find(name)
    printed, module = entry.printed, entry.module.removeprefix("treekit.")
    dataset, _ = SMALL.get(module, ("musique" if "searchr" in module or "arise" in module else "hotpotqa", {}))
    shown = exemplars("hotpotqa", "synthetic:100") if "few-shot" in printed else ()
    chosen = configure(method(name, shown), **FIELDS.get(printed, {}))
    settings = given.pop("settings", {})
    made = run(
        {printed: chosen},
        {dataset: load(dataset, "synthetic:100", n=n)},
        profile(**settings),
        store=store,
        progress=False,
        **given,
    )
    assert made.failures == []
    return open_run(store, made.kept)


def calls(opened, i=0):
    return [k for n in opened.rows[i].trace.nodes for k in n.calls]


@pytest.mark.parametrize("name", [pytest.param(m, marks=pytest.mark.slow) if m in LONG else m for m in METHODS])
def test_each_method_is_replayed_from_the_store(name):
    store = Store()
    opened = saved(name, store)
    again = fork(opened, 0)
    assert same_bytes(opened, 0, again) and again.asked == 0


@pytest.mark.parametrize("role", ["navigator", "router"])
def test_a_profile_s_own_navigator_and_router_are_used_again(role):
    name = "searchr" if role == "navigator" else "rdr2"
    opened = saved(name, Store(), settings=dict(roles=f"{role}=offline"))
    again = fork(opened, 0)
    assert same_bytes(opened, 0, again) and again.asked == 0
    assert opened.kept.models[role] and again.run.kept.models[role] == opened.kept.models[role]


class Scripted(FakeChat):
    "A navigator of somebody's own, which nothing can make again."

    model, endpoint, defaults = "my navigator", "http://nowhere.example/v1", dict(temperature=0.0, max_tokens=300)

    def reply(self, request, sample):
        return json.dumps([request.inputs["question"]])


def model_of(store, key):
    return store.query("SELECT model FROM requests WHERE hash=?", store.requests([key])[key][0])[0][0]


def test_a_model_that_is_gone_answers_from_the_store_and_is_named_when_it_would_be_asked():
    store = Store()
    opened = saved("searchr", store, navigator=Scripted())
    again = fork(opened, 0)
    assert same_bytes(opened, 0, again) and again.asked == 0
    made = switch(opened, "SEARCH-R*", dict(similar=5))
    assert made.rows[0].trace.nodes[0].calls == opened.rows[0].trace.nodes[0].calls, "its reply is in the store"

    path = next(k for k in calls(opened) if model_of(store, k) == "my navigator")
    with store.transaction() as db:
        db.execute("DELETE FROM calls WHERE key=?", (path,))
    with pytest.raises(UsageError, match="the run's navigator 'my navigator'") as said:
        switch(opened, "SEARCH-R*", dict(similar=4))
    assert "\n" not in str(said.value)


def test_a_call_before_the_edit_that_is_not_stored_ends_the_replay():
    "The saved answer's first call is taken out of the store: nobody is asked for it."
    store = Store()
    opened = saved("searchr", store, 2, navigator=Scripted())
    keys = calls(opened, 1)
    path = next(k for k in keys if model_of(store, k) == "my navigator")
    keys = [k for k in keys if k != path]
    [row] = store.query("SELECT * FROM calls WHERE key=?", path)
    with store.transaction() as db:
        db.execute("DELETE FROM calls WHERE key=?", (path,))
    try:
        for edits, when in (
            (Edits(), "without an edit"),
            (Edits(replies=((keys[-1], "FINAL: nobody"),)), "before its edit"),
        ):
            with pytest.raises(UsageError, match=when) as said:
                fork(opened, 1, edits, name=when)
            assert "navigator" in str(said.value) and "\n" not in str(said.value)
        assert store.calls([path]) == {}
        api = ExplorerAPI(store, forks=True)
        api.post(f"fork/{opened.name}/1", dict(replies=[[keys[-1], "FINAL: somebody"]]))
        api.jobs[0].thread.join()
        assert api.get("job/0")["state"] == "failed" and "before its edit" in api.get("job/0")["error"]
    finally:
        with store.transaction() as db:
            db.execute("INSERT INTO calls VALUES (?,?,?,?,?,?,?,?)", row)
