"The explorer without a browser: kept runs, forks of five methods, replays byte for byte, two runs compared, the command."

import json, random, re, socket, subprocess, sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from treekit.config import UsageError, load_profile
from treekit.core.method import configure
from treekit.store.run_store import Store
from treekit.experiments.run_records import find_run, saved_runs, from_record, to_record
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.explorer.diff import align, compare_runs
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.forks import Edits, fork, same_bytes
from treekit.explorer.runs import open_run
from treekit.explorer.server import ServedExplorer
from treekit.papers.registry import method

ROOT = Path(__file__).resolve().parents[1]
FIVE = {  # method -> data set; retrieval in memory and small trees: it is the forks that are tested
    "treerare": ("hotpotqa", {}),
    "toq": ("multihop", dict(levels=2)),
    "arise": ("musique", dict(iterations=8)),
    "searchr": ("musique", dict(informative=0)),
    "rdr2": ("asqa", {}),
}


@pytest.fixture(scope="module")
def done():
    "A store with a run of each method over three questions."
    store, profile, runs = Store(), load_profile("offline", data="synthetic:100", retriever="bm25s"), {}
    for name, (dataset, fields) in FIVE.items():
        asked = {dataset: load(dataset, "synthetic:100", n=3)}
        made = run({name: configure(method(name), **fields)}, asked, profile, store=store, progress=False)
        assert made.failures == []
        runs[name] = made.kept
    return store, runs


def calls(opened, i):
    return [k for n in opened.rows[i].trace.nodes for k in n.calls]


def test_a_run_is_kept_once_and_read_back(done):
    store, runs = done
    assert [r["name"] for r in saved_runs(store)] == list(runs.values())[::-1]
    kept = find_run(store, runs["arise"])
    assert kept.method("arise") == configure(method("arise"), iterations=8)
    asked = load("musique", "synthetic:100", n=3)
    again = list(kept.questions["musique"].values())
    assert again == asked and [q.meta for q in again] == [q.meta for q in asked]


def test_a_record_may_not_name_anything():
    for kind in ("os:system", "subprocess:Popen", "treekit.config:load_profile", "nowhere.at.all:X"):
        with pytest.raises((UsageError, ModuleNotFoundError)):
            from_record(dict(kind=kind, fields={}))
    assert from_record(to_record(Edits(replies=(("a", "b"),)))) == Edits(replies=(("a", "b"),))


@pytest.mark.parametrize("name", FIVE)
def test_a_replay_is_the_same_bytes_and_asks_nothing(done, name):
    store, runs = done
    opened = open_run(store, runs[name])
    for i in range(3):
        again = fork(opened, i)
        assert same_bytes(opened, i, again) and again.asked == 0 and again.dollars == 0


@pytest.mark.parametrize("name", FIVE)
def test_random_forks_ask_only_what_follows(done, name):
    "Another reply at a random call: calls before it come from the store, the original stays, the same fork is found again, and an unedited replay gives the same bytes."
    store, runs = done
    opened, rng = open_run(store, runs[name]), random.Random(f"{name} 3")
    before = [json.dumps(r.trace.to_json()) for r in opened.rows]
    for i in range(3):
        keys = list(dict.fromkeys(k for k in calls(opened, i) if store.calls([k])[k].text))
        key = rng.choice(keys)
        reply = rng.choice(("FINAL: nobody", "I don't know.", "", "[REFUSE]"))
        made = fork(opened, i, Edits(replies=((key, reply),)), name=f"{name} 3 {i}")
        assert made.run.kept.head["about"]["parent"] == [opened.name, i]
        assert not made.row.error
        logged = [r for r in store.usage(by=("method",)) if r["method"] == made.row.method]
        assert (logged[0]["calls"] - logged[0]["hits"] if logged else 0) == made.asked
        known = set(keys)
        assert made.asked <= len([k for k in calls(made.run, 0) if k not in known])
        twice = fork(opened, i, Edits(replies=((key, reply),)), name=f"{name} 3 {i}")
        assert twice.asked == 0 and twice.row.answer == made.row.answer
        assert same_bytes(opened, i, fork(opened, i))
    assert before == [json.dumps(r.trace.to_json()) for r in open_run(store, runs[name]).rows]


def test_other_queries_and_passages(done):
    "What a query finds is changed, and the trace says so."
    store, runs = done
    opened = open_run(store, runs["rdr2"])
    row = opened.rows[0]
    hits = row.trace.nodes[0].data["hits"]
    known, asked = opened.data.passages(row), row.question.question
    made = fork(opened, 0, Edits(passages=((asked, tuple(known(h["id"]) for h in hits[1:])),)))
    assert [h["id"] for h in made.row.trace.nodes[0].data["hits"]] == [h["id"] for h in hits[1:]]
    other = fork(opened, 0, Edits(queries=((asked, "film"),)))
    assert [h["id"] for h in other.row.trace.nodes[0].data["hits"]] != [h["id"] for h in hits]


def test_another_parse(done):
    "A word hung elsewhere makes another tree; a circle is refused."
    store, runs = done
    opened = open_run(store, runs["treerare"])
    asked = opened.rows[0].question.question
    [sentence] = (
        opened.data.library.provide("parser", "hotpotqa", opened.rows[0].question).thing.parse([asked])[0].sentences
    )
    heads = [token.head for token in sentence.tokens]
    heads[9] = 2  # "has" hangs below "kind"
    made = fork(opened, 0, Edits(heads=((asked, 0, tuple(heads)),)))
    assert not made.row.error and [n.text for n in made.row.trace.nodes] != [n.text for n in opened.rows[0].trace.nodes]
    circle = fork(opened, 0, Edits(heads=((asked, 0, (2, 1, 0, *[3] * (len(heads) - 3))),)))
    assert "hang below itself" in circle.row.error


def test_two_runs_side_by_side(done):
    "Flips, partners, and the node at which a fork and its parent part."
    store, runs = done
    opened = open_run(store, runs["treerare"])
    last = opened.rows[0].trace.answer.calls[-1]
    made = fork(opened, 0, Edits(replies=((last, "FINAL: nobody"),)))
    found = compare_runs(opened, made.run)
    assert len(found.pairs) == 1 and len(found.alone) == 2 and found.p == 1.0
    parted = align(opened.rows[0].trace, made.row.trace)
    assert parted["pairs"][parted["parted"]][0] == opened.rows[0].trace.answer.id


def test_the_desk_and_the_page_hold_the_same(done, tmp_path):
    "A saved page holds what the API replies."
    from treekit.explorer.page import in_chunks, paths_of
    import base64, zlib

    store, runs = done
    name = runs["rdr2"]
    api = ExplorerAPI(store, (name,))
    paths, chunks = in_chunks(paths_of(api, [name]))
    held = {}
    for chunk in chunks:
        held |= json.loads(zlib.decompress(base64.b64decode(chunk)))
    assert set(held) == set(paths)
    for path in paths:
        if path != "runs":
            assert held[path] == json.loads(json.dumps(api.get(path))), path
    assert any(held[p].get("document") for p in held if p.startswith("node/")), "RDR²'s documents are there"


@pytest.mark.long
def test_the_command(tmp_path):
    "A list, a file, and one line where there is nothing."
    import os

    env = os.environ | dict(TREEKIT_HOME=str(tmp_path))
    main = "import sys; from treekit.cli.main import main; main(sys.argv[1:])"

    def treekit(*words):
        return subprocess.run([sys.executable, "-c", main, *words], capture_output=True, text=True, env=env)

    nothing = treekit("explore", "--list")
    assert (
        nothing.returncode == 2
        and nothing.stderr.startswith("treekit: nothing was run")
        and nothing.stderr.count("\n") == 1
    )
    with Store(tmp_path / "store" / "offline.sqlite") as store:
        profile = load_profile("offline", data="synthetic:100")
        made = run(
            {"cot": method("cot")},
            {"hotpotqa": load("hotpotqa", "synthetic:100", n=2)},
            profile,
            store=store,
            progress=False,
        )
    listed = treekit("explore", "--list", "--json")
    assert [r["label"] for r in json.loads(listed.stdout)] == ["cot on hotpotqa 2"]
    page = treekit("explore", made.kept[:5], "--html", str(tmp_path / "run.html"))
    assert page.returncode == 0 and (tmp_path / "run.html").stat().st_size > 50_000
    unknown = treekit("explore", "nothing", "--html", str(tmp_path / "x.html"))
    assert unknown.returncode == 2 and "no run is named" in unknown.stderr


def test_the_page_runs_switches_sweeps_and_forks(done):
    "By the API's paths: run, compare; a sweep's points; a router's behaviours; what isn't known is refused; one thing at a time."
    store, runs = done
    api, name = ExplorerAPI(store, forks=True), runs["rdr2"]
    known = api.get(f"fields/{name}/rdr2")
    assert all(f["meaning"] for f in known["settings"])
    assert {f["name"] for f in known["settings"]} == {"retriever", "search_scope"}
    change = dict(method="rdr2", fields=dict(refuse="false"))

    def done(path, body):
        job = api.post(path, body)["job"]
        api.jobs[int(job)].thread.join()
        return api.get(f"job/{job}")

    [made] = done(f"switch/{name}", change)["found"]["points"]
    assert api.get(f"compare/{name}/{made['run']}/rdr2/{quote(made['method'])}")["pairs"]
    swept = done(f"switch/{name}", dict(method="rdr2", field="top_k", values=["1", "5"], n=2))["found"]
    assert [p["value"] for p in swept["points"]] == ["1", "5"]
    assert all(p["low"] <= p["score"] <= p["high"] for p in swept["points"])
    assert api.get(f"run/{swept['points'][0]['run']}")["rows"][0]["method"] == "rdr2, top_k=1"
    routing = next(n for n in api.run(name).rows[0].trace.nodes if n.kind == "routing")
    routed = api.get(f"node/{name}/0/{routing.id}")["routed"]
    assert routed["rows"] and {id for _, id in routed["said"]} <= {r[0] for r in routed["rows"]}
    refused = done(f"fork/{name}/0", dict(routes=[[routed["key"], []]]))["found"]
    assert api.run(refused["run"]).rows[0].trace.nodes[routing.id].data["behaviours"] == []
    with pytest.raises(UsageError, match="behaviour"):
        api.post(f"fork/{name}/0", dict(routes=[[routed["key"], [["RUN", 1, ""]]]]))
    for body in (
        dict(method="rdr2", fields=dict(code="x")),
        dict(method="rdr2", fields=dict(top_k=[1])),
        dict(method="nobody"),
        dict(method="rdr2", settings=dict(endpoint="http://elsewhere.example")),
        dict(method="rdr2", n="many"),
    ):
        assert done(f"switch/{name}", body)["state"] == "failed"
    for path, body in (
        (f"switch/{name}", dict(method="rdr2", code="x")),
        (f"switch/{name}", dict(method="rdr2", field="top_k", values=[])),
        (f"switch/{name}", [1]),
        (f"fork/{name}/0", dict(code=[["a", "b"]])),
        (f"fork/{name}/0", dict(replies=[["a"]])),
        ("stop/99", {}),
        ("shutdown", {}),
    ):
        with pytest.raises(UsageError):
            api.post(path, body)


def test_a_run_can_be_watched_and_stopped(done):
    "A watcher is told how far a run is; what it stops is stored as far as it came, and can be gone on with."
    seen, store = [], Store()
    asked, profile = (
        {"hotpotqa": load("hotpotqa", "synthetic:100", n=3)},
        load_profile("offline", data="synthetic:100", retriever="bm25s"),
    )

    def watch(told):
        seen.append(told)
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run({"arise": method("arise")}, asked, profile, store=store, progress=False, watch=watch)
    made = run({"arise": method("arise")}, asked, profile, store=store, progress=False, watch=seen.append)
    assert seen[-1]["done"] == seen[-1]["total"] == 3 and made.failures == []


@pytest.mark.parametrize(
    "heads, body, codes",
    [
        (
            "Content-Length: 4\r\nTransfer-Encoding: chunked",
            "0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            ["400"],
        ),  # and a second request
        ("Content-Length: 2\r\nContent-Length: 3", "{}x", ["400"]),
        ("Content-Length: +2", "{}", ["400"]),
        ("Content-Length: abc", "{}", ["400"]),
        ("Content-Length: 99999999", "", ["400"]),
        (f"Content-Length: {'9' * 5000}", "", ["400"]),
        ("Transfer-Encoding: chunked", "FFFFFFF\r\naaaa", ["400"]),
    ],
)
def test_an_ambiguous_or_endless_request_gets_one_refusal(heads, body, codes):
    with (
        ServedExplorer(ExplorerAPI(Store())) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=10) as client,
    ):
        start = f"POST /api/fork HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nX-Treekit-Token: {served.token}"
        client.sendall(f"{start}\r\n{heads}\r\n\r\n{body}".encode())
        said = b""
        with suppress(OSError):
            while part := client.recv(9999):
                said += part
    assert re.findall(r"^HTTP/1.1 (\d+)", said.decode(), re.M) == codes, said
