"""Parse, tree, chunk, embed and judge jobs on one, two and four Ray workers against the plain loop: speed-up, efficiency, memory, bytes.

    pytest tests/benchmarks/test_bulk.py -s -m "slow or not slow"

Each job is one command in a process of its own, as a user starts it. Time is from the start of the first partition to the last one written,
as the journal has it: without the start of Ray and the loading of modules, which is told beside it. Two cores can do no more
than two workers' work: four are there to show that they do no harm. Where a machine is shared, wall
time says little: `computed` is the processor's time
that the workers took for the same rows, against the plain loop's; it tells what the sharing out itself costs.
"""

import json, os, subprocess, sys, time
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bulk_jobs import content
from fakes import tiny_judge
from treekit.bulk.output_dir import journal, results
from treekit.bulk.worker import LETHAL

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray isn't installed: pip install 'treekit-rag[ray]'")
pytestmark = [pytest.mark.slow, needs_ray]
SIZE = float(os.environ.get("TREEKIT_BULK_SIZE", 1))  # of the jobs; 1: a minute or so each for the plain loop
ENGINES = [("plain", None), ("ray", 1), ("ray", 2), ("ray", 4)]


@pytest.fixture(scope="module")
def cluster():
    "Ray with four workers' cores, started once: its address."
    from treekit.bulk.ray_engine import _start

    folder = _start(4, {})
    import ray

    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
    folder.cleanup()


def engine_words(engine, workers, cluster):
    "The options that say who does it."
    return ["--engine", f"ray:{cluster}", "--workers", workers] if engine == "ray" else ["--engine", engine]


def treekit(*words, home, seconds=1500):
    "A command; what it printed, and how long it took."
    began = time.monotonic()
    env = dict(os.environ, TREEKIT_HOME=str(home))
    done = subprocess.run(
        [sys.executable, "-c", "from treekit.cli.main import main; main()", *map(str, words)],
        env=env,
        text=True,
        capture_output=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, time.monotonic() - began


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    "Passages, articles and pairs of the made wiki, each with three bad rows; a tiny judge with random weights."
    from treekit.experiments.resources import load_corpus

    folder, wiki = tmp_path_factory.mktemp("inputs"), load_corpus("hotpotqa", "synthetic")
    bad = ["no json", '{"title": "only"}', '{"text": 7}']

    def write(name, rows):
        lines = [json.dumps(r) for r in rows]
        for at, line in zip((0, len(lines) // 2, len(lines)), bad):
            lines.insert(at, line)
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
        return folder / name

    passages = [vars(p) for p in wiki]

    def some(n):
        return [passages[i % len(passages)] | dict(id=str(i)) for i in range(int(n * SIZE))]

    pairs = [dict(id=p["id"], premise=p["text"], claim=q["text"][:80]) for p, q in zip(some(6000), some(6001)[1:])]
    articles = [
        dict(id=str(i), title=f"{p['title']} {i}", text="\n".join(q["text"] for q in passages[i % 5000 :][:20]))
        for i, p in enumerate(some(4000))
    ]
    tiny_judge(folder / "judge", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
    return dict(
        parse=write("parse.jsonl", some(2000)),
        embed=write("embed.jsonl", some(2000)),
        judge=write("judge.jsonl", pairs),
        articles=write("articles.jsonl", articles),
        model=folder / "judge",
        home=folder / "home",
    )


def words_of(job, inputs):
    "The command of a job, but for where it goes and who does it."
    return dict(
        parse=["parse", inputs["parse"]],
        embed=["embed", inputs["embed"]],
        judge=["judge", inputs["judge"], "--set", f"model={inputs['model']}"],
    )[job]


def shown(job, rows):
    "A table: what each engine took, against the plain loop."
    names = "wall s", "start s", "speed-up", "efficiency", "computed s", "driver MB", "worker MB"
    print(f"\n{job:<15}" + "".join(f"{name:>12}" for name in names))
    plain = rows[0]
    for r in rows:
        efficiency = plain["wall"] / r["wall"] / min(r["workers"], os.cpu_count())
        found = r["wall"], r["start"], plain["wall"] / r["wall"], efficiency, r["computed"], r["driver"], r["worker"]
        print(f"{r['engine']:<7}{r['workers']:<8}" + "".join(f"{x:>12.2f}" for x in found), flush=True)


@pytest.mark.parametrize("job", ["parse", "embed", "judge"])
def test_one_two_four_workers_against_the_plain_loop(tmp_path, inputs, cluster, job):
    "The same bytes, three bad rows, and what it took."
    rows, whole = [], None
    for engine, workers in ENGINES:
        out = tmp_path / f"{engine}{workers}"
        words = *words_of(job, inputs), "--out", out, *engine_words(engine, workers, cluster)
        said, took = treekit("bulk", *words, home=inputs["home"])
        told, events = json.loads((out / "summary.json").read_text()), journal(out)
        at = {kind: [e["at"] for e in events if e["event"] == kind] for kind in ("begun", "written")}
        first = min(e["at"] - e["seconds"] for e in events if e["event"] == "written")
        wall = at["written"][-1] - first
        assert told["bad"] == 3 and len(at["written"]) == told["parts"]
        rows.append(
            dict(
                engine=engine,
                workers=workers or 1,
                wall=wall,
                start=took - wall,
                driver=events[-1]["driver"],
                worker=events[-1]["worker"],
                computed=sum(e["computed"] for e in events if e["event"] == "written"),
            )
        )
        whole = whole or content(out)
        assert content(out) == whole, f"{engine} with {workers} workers gives other bytes"
    shown(job, rows)
    computed = {r["workers"]: r["computed"] for r in rows[1:]}
    if SIZE >= 1:  # of a small job the loading of the model, once a worker, is the larger part
        assert computed[2] < 1.5 * rows[0]["computed"], (
            "two workers computed much more than the plain loop for the same rows"
        )


def test_trees_and_chunks(tmp_path, inputs, cluster):
    "A tree store has the same bytes by the plain loop and by Ray; so have its chunks. Three bad rows are skips that say why."
    took, stores = {}, {}
    for engine, workers in ENGINES:
        store = tmp_path / f"{engine}{workers}.trees"
        words = inputs["articles"], store, *engine_words(engine, workers, cluster)
        said, took[engine, workers] = treekit("corpus", "trees", *words, home=inputs["home"])
        counts = {what: int(n.replace(",", "")) for n, what in (line.split(maxsplit=1) for line in said.splitlines())}
        assert counts["documents"] == int(4000 * SIZE) and sum(n for k, n in counts.items() if k != "documents") == 3, (
            counts
        )
        stores[engine, workers] = store.read_bytes()
    assert len(set(stores.values())) == 1
    print("\ntrees: " + ", ".join(f"{e} {w or 1}: {s:.1f} s in all" for (e, w), s in took.items()))
    whole = None
    for engine, workers in ENGINES[:3]:
        out = tmp_path / f"chunks-{engine}{workers}"
        words = tmp_path / "plainNone.trees", "--out", out, *engine_words(engine, workers, cluster)
        treekit("bulk", "chunk", *words, home=inputs["home"])
        whole = whole or content(out)
        assert content(out) == whole


def test_kills_on_the_way(tmp_path, inputs):
    "SIGKILL of a worker, then of the driver, and again: the plain loop's bytes, no partition twice, and the lost ones counted."
    import psutil, signal

    treekit("bulk", *words_of("parse", inputs), "--out", plain := tmp_path / "plain", home=inputs["home"])
    out, kills = tmp_path / "out", dict(worker=0, driver=0)
    words = [str(w) for w in ("bulk", *words_of("parse", inputs), "--out", out, "--engine", "ray", "--workers", 2)]

    def written():
        return [e for e in journal(out) if e["event"] == "written"]

    for round in range(20):
        driver = subprocess.Popen(
            [sys.executable, "-c", "from treekit.cli.main import main; main()", *words],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ, TREEKIT_HOME=str(inputs["home"])),
        )
        before = len(written())
        while driver.poll() is None and len(written()) < before + 4:
            time.sleep(0.1)
        if driver.poll() is None and len(written()) > before:
            os.kill(written()[-1]["process"], signal.SIGKILL)
            kills["worker"] += 1
        while driver.poll() is None and len(written()) < before + 8:
            time.sleep(0.1)
        if driver.poll() is not None:
            break
        below = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
        driver.wait()
        kills["driver"] += 1
        assert not psutil.wait_procs(below, timeout=150)[1], (
            "processes outlive their driver"
        )  # two of Ray's own wait a minute
    assert driver.returncode == 0, driver.stderr.read().decode()[-2000:]
    assert content(out) == content(plain)
    parts = [e["part"] for e in written()]
    assert len(parts) == len(set(parts)) == len(list((out / "parts").glob("*.json")))
    print(f"\n{kills} kills: {len(parts)} partitions, {len(parts) - len(set(parts))} written twice")


def test_a_row_that_kills(tmp_path, monkeypatch):
    "It is found among a hundred, and counted; nobody else's row is lost."
    from bulk_jobs import Squares, source_file
    from treekit.bulk.run import bulk

    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    )
    file = source_file(tmp_path / "n.jsonl", [*range(60), 666, *range(60, 99)])
    done = bulk(Squares(), file, out := tmp_path / "out", "ray", 2, rows=50)
    assert (done.summary["rows"], done.summary["bad"]) == (100, 1) and [r["n"] for r in results(out)] == list(range(99))
    assert [(r["row"], r["error"]) for r in results(out, "bad")] == [(61, LETHAL)]
