"Workers: `--workers`, `--share`, and the scripts for clusters, with processes of this machine in the place of nodes."
import os, stat, subprocess, sys, time
from pathlib import Path

import pytest

import commands, share_worker
from openai_server import Server
from treekit.config import RunOptions, UsageError
from treekit.store.store_merge import merge_stores
from treekit.store.run_store import Store
from treekit.experiments.sharding import ELSEWHERE, Shard, shard_of
from treekit.experiments.planning import store_path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ("toq/table4", "--n", "6")


def calls(store):
    with Store(store) as s: return s.query("SELECT key, json_extract(completion, '$.text') FROM calls ORDER BY key")


def tables(folder): return {p.relative_to(folder): p.read_bytes() for p in sorted(Path(folder).rglob("*.*")) if p.name != "README.md"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    "What one process makes: its tables, and its calls."
    home = tmp_path_factory.mktemp("plain")
    code, _, err = commands.shell("reproduce", *TABLE, "--out", home / "out", TREEKIT_HOME=str(home))
    assert code == 0, err
    return tables(home / "out"), calls(home / "store/offline.sqlite")


def test_a_share_has_its_own_store_and_a_part_of_the_limit():
    options = RunOptions(share="2/3", store_file=Path("x/openai.sqlite"))
    assert shard_of(options) == Shard(2, 3) and store_path(None, options) == Path("x/openai.2of3.sqlite")
    assert ELSEWHERE in "dealt to another worker"
    with pytest.raises(UsageError): shard_of(RunOptions(share="4/3"))


def test_words_that_go_not_together():
    code, _, err = commands.shell("reproduce", "toq/table4", "--workers", "2", "--share", "1/2")
    assert code == 2 and "not both" in err


@pytest.mark.slow
def test_workers_make_the_same_tables(plain, tmp_path):
    code, _, err = commands.shell("reproduce", *TABLE, "--workers", "3", "--out", tmp_path / "out", TREEKIT_HOME=str(tmp_path))
    assert code == 0 and "worker" not in err.replace("3 workers", ""), err
    assert (tables(tmp_path / "out"), calls(tmp_path / "store/offline.sqlite")) == plain
    parts = [calls(tmp_path / f"store/offline.{i}of3.sqlite") for i in (1, 2, 3)]
    assert all(parts) and max(map(len, parts)) < len(plain[1])  # each asked a part


def started(server, tmp_path, budget=""):
    "Two workers on a model that costs something, with one pot."
    env = os.environ | RunOptions(command_dir=tmp_path).for_child(tmp_path) | dict(SHARE_MODEL="gpt-4o-mini", SHARE_BUDGET=budget)
    words = [[sys.executable, share_worker.__file__, server.url, tmp_path / f"all.{i}of2.sqlite", 60, 8, f"{i}/2"] for i in (1, 2)]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    workers = [subprocess.Popen([*map(str, w)], **pipes, text=True, env=env) for w in words]
    for w in workers: assert w.stdout.readline() == "ready\n"
    for w in workers: w.stdin.write("\n"), w.stdin.flush()
    return workers


def ended(workers):
    said = [w.communicate(timeout=120) for w in workers]
    return [w.returncode for w in workers], said


def doubled(server):
    "How often a request was answered again."
    texts = [r["text"] for r in server.requests if "answered" in r]
    return len(texts) - len(set(texts))


@pytest.mark.slow
def test_one_budget_for_all_workers_and_nothing_is_paid_twice(tmp_path):
    "The budget ends both; with a larger one they go on, and nothing is asked again."
    with Server(latency=0.02) as server:
        codes, said = ended(started(server, tmp_path, "0.0008"))
        assert all(codes) and all("BudgetExceeded" in err for _, err in said), said
        made = merge_stores(tmp_path / "all.sqlite", [tmp_path / f"all.{i}of2.sqlite" for i in (1, 2)])
        with Store(tmp_path / "all.sqlite") as s: [used] = s.usage(())
        assert 0.0004 < used["cost_now"] <= 0.0008 and made.calls == used["calls"] - used["hits"] == server.count, used
        (tmp_path / "budget.sqlite").unlink()  # a command has its own
        codes, said = ended(started(server, tmp_path, "5"))
        assert codes == [0, 0] and (doubled(server), server.count) == (0, 180), said


@pytest.mark.slow
def test_killed_and_started_again(tmp_path):
    "SIGKILL for both workers: the same again ends it, and only what was in flight is asked again."
    with Server(latency=0.2) as server:
        workers = started(server, tmp_path)
        while server.count < 40: time.sleep(0.02)
        for w in workers: w.kill()
        ended(workers)
        codes, said = ended(started(server, tmp_path))
        assert codes == [0, 0] and doubled(server) <= 8, said  # the limit on calls in flight, over both
        parts = [tmp_path / f"all.{i}of2.sqlite" for i in (1, 2)]
        made = merge_stores(tmp_path / "all.sqlite", parts)
        assert (made.calls, made.predictions) == (180, 120) and not merge_stores(tmp_path / "all.sqlite", parts).calls
        for part in parts:
            with Store(part) as s: assert s.query("SELECT COUNT(*) FROM leases") == [(0,)]


@pytest.mark.slow
def test_shares_in_folders_of_their_own(plain, tmp_path):
    "Two machines without a folder in common: their stores are carried to a third, and a plain run asks for nothing new."
    for i in (1, 2):
        code, _, err = commands.shell("reproduce", *TABLE, "--share", f"{i}/2", TREEKIT_HOME=str(tmp_path / f"node{i}"))
        assert code == 0, err
    home = tmp_path / "home"
    parts = [tmp_path / f"node{i}/store/offline.{i}of2.sqlite" for i in (1, 2)]
    for _ in range(2):
        code, out, err = commands.shell("store", "merge", home / "store/offline.sqlite", *parts)
        assert code == 0, err
    assert out.startswith("0 calls, 0 answers, 0 rows")
    assert calls(home / "store/offline.sqlite") == plain[1]
    code, _, err = commands.shell("reproduce", *TABLE, "--out", home / "out", TREEKIT_HOME=str(home))
    assert code == 0 and tables(home / "out") == plain[0]
    assert calls(home / "store/offline.sqlite") == plain[1]


@pytest.fixture
def cluster(tmp_path):
    "A PATH with an `ssh` and an `srun` that start processes here."
    place = tmp_path / "bin"
    place.mkdir()
    main = 'from treekit.cli.main import main; main()'
    tools = dict(
        treekit=f'exec {sys.executable} -c "{main}" "$@"',
        ssh='echo "$1" >> "$CLUSTER_LOG"; shift; exec env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" CLUSTER_LOG="$CLUSTER_LOG" HOME="$HOME" '
            'bash -c "$*"',
        srun='for ((p = 0; p < SLURM_NTASKS; p++)); do SLURM_PROCID=$p "$@" & done; '
             'code=0; for job in $(jobs -p); do wait $job || code=$?; done; exit $code')
    for name, text in tools.items():
        (place / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (place / name).chmod(stat.S_IRWXU)
    return dict(os.environ, PATH=f"{place}:{os.environ['PATH']}", PYTHONPATH=str(ROOT), CLUSTER_LOG=str(tmp_path / "hosts"))


def script(name, *words, env, **more):
    done = subprocess.run(["bash", f"data/cluster/{name}", *map(str, words)], cwd=ROOT, env=env | more, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_start_script_for_machines(plain, tmp_path, cluster):
    "Two hosts, each with a home of its own and a folder that both see."
    code, said = script("run.sh", "gpu1 gpu2", *TABLE, "--out", tmp_path / "out", env=cluster, TREEKIT_HOME=str(tmp_path / "home"))
    assert code == 0, said
    assert sorted((tmp_path / "hosts").read_text().split()) == ["gpu1", "gpu2"]
    assert (tables(tmp_path / "out"), calls(tmp_path / "home/store/offline.sqlite")) == plain


@pytest.mark.slow
def test_the_script_for_slurm(plain, tmp_path, cluster):
    "Three tasks; what they pay for is brought to a folder that all see."
    homes = dict(TREEKIT_HOME=str(tmp_path / "home"), ALL=str(tmp_path / "all"), SLURM_NTASKS="2")
    (tmp_path / "all").mkdir()
    code, said = script("slurm.sh", *TABLE, "--out", tmp_path / "out", env=cluster, **homes)
    assert code == 0, said
    assert sorted(p.name for p in (tmp_path / "all").glob("*.sqlite")) == ["offline.1of2.sqlite", "offline.2of2.sqlite"]
    assert (tables(tmp_path / "out"), calls(tmp_path / "home/store/offline.sqlite")) == plain
