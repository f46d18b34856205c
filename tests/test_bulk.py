"Bulk jobs: partitions that resume, bad rows, deaths of workers and of the driver; the same bytes under both engines."

import json, os, random, sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from bulk_jobs import Squares, content, noted, source_file
from treekit.bulk.output_dir import BulkFolder, locked_folder, journal, results
from treekit.bulk.jobs import ChunkJob, JudgeJob
from treekit.utils.model_files import MINILM
from treekit.bulk.run import Partition, bulk, map_partitions
from treekit.bulk.worker import LETHAL
from treekit.config import UsageError
from treekit.utils.instruction_set import PINNED_INSTRUCTIONS

NUMBERS = [*range(6), "no json", 13, *range(20, 31), '{"n": "two"}', 7]
ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray isn't installed: pip install 'treekit-rag[ray]'")


class Moody:
    "An engine without processes whose workers die as a die falls, and of the row that says `poison`."

    def __init__(self, seed, mood):
        self.random, self.mood = random.Random(seed), mood

    def map(self, function, tasks):
        for number, arguments in tasks:
            if "poison" not in (left := function(*arguments)) and self.random.random() >= self.mood:
                yield number, left


def kept(rows, lethal):
    return [raw for n, raw in rows if n not in lethal]


@pytest.mark.parametrize("seed", range(8))
def test_every_row_once_whoever_dies(seed):
    "Whatever worker dies when: each partition comes back once, with all its rows but the one that kills."
    rows = [(i, "poison" if i in (5, 17) else i) for i in range(23)]
    partitions = [Partition(i, rows[i : i + 4]) for i in range(0, len(rows), 4)]
    made = list(map_partitions(Moody(seed, 0.1), kept, lambda p: (p.rows, p.lethal), partitions))
    assert sorted(number for number, _ in made) == list(range(0, 23, 4))
    there = sorted(x for _, found in made for x in found)
    assert (
        not {5, 17} & {*there} and len(there) == len({*there}) >= 20
    )  # one that dies twice by chance, alone, is left out, too


def test_bad_rows_are_rows(tmp_path):
    "Three of them, each with its number and why; the others are done as if they had never been there."
    done = bulk(Squares(), source_file(tmp_path / "n.jsonl", NUMBERS), out := tmp_path / "out")
    assert {k: done.summary[k] for k in ("parts", "rows", "bad", "lines")} == dict(parts=6, rows=21, bad=3, lines=18)
    assert [r["n"] for r in results(out)] == [*range(6), *range(20, 31), 7]
    bad = {r["row"]: r["error"] for r in results(out, "bad")}
    assert (
        list(bad) == [7, 8, 20]
        and "not JSON" in bad[7]
        and bad[8] == "ValueError: thirteen"
        and "whole number" in bad[20]
    )


@pytest.mark.parametrize("stop", range(0, 6))
def test_interrupted_and_continued(tmp_path, monkeypatch, stop):
    "Stopped after any partition, with one that is half there: the same bytes, and nothing made twice."
    file = source_file(tmp_path / "n.jsonl", [n for n in NUMBERS if n != 13] + [8])
    bulk(Squares(), file, whole := tmp_path / "whole")
    write = BulkFolder.write

    def writing(self, number, part):
        if number >= stop:
            (self.parts / f"{number:06}.jsonl").parent.mkdir(exist_ok=True)
            (self.parts / f"{number:06}.jsonl").write_bytes(b'{"ha')
            raise KeyboardInterrupt
        return write(self, number, part)

    monkeypatch.setattr(BulkFolder, "write", writing)
    with pytest.raises(KeyboardInterrupt):
        bulk(Squares(str(tmp_path / "notes")), file, out := tmp_path / "out")
    monkeypatch.setattr(BulkFolder, "write", write)
    done = bulk(Squares(str(tmp_path / "notes")), file, out)
    assert (done.made, done.found) == (6 - stop, stop) and content(out) == content(whole)
    times = Counter(noted(tmp_path / "notes"))
    assert {n for n, k in times.items() if k > 1} <= {
        r["n"] for r in map(json.loads, (out / f"parts/{stop:06}.jsonl").open())
    }
    assert Counter(e["part"] for e in journal(out) if e["event"] == "written") == dict.fromkeys(range(6), 1)


def test_a_damaged_partition_is_made_again(tmp_path):
    "A byte that a disk turned is found by its hash; a bad file that should not be there goes."
    file = source_file(tmp_path / "n.jsonl", range(12))
    bulk(Squares(), file, out := tmp_path / "out")
    good = content(out)
    (out / "parts/000001.jsonl").write_bytes(good["parts/000001.jsonl"][:-2] + b"x\n")
    (out / "parts/000001.bad").write_text("{}\n")
    (out / "parts/000002.json").write_text("{")
    done = bulk(Squares(), file, out)
    assert (done.made, done.found, done.damaged) == (2, 1, 2) and content(out) == good


def test_what_else_is_asked_is_refused(tmp_path, monkeypatch):
    "In one line, with what differs; nothing is written."
    file = source_file(tmp_path / "n.jsonl", range(12))
    bulk(Squares(), file, out := tmp_path / "out")
    before = content(out)
    (tmp_path / "else").mkdir()
    (tmp_path / "else/mine.txt").write_text("mine")
    (tmp_path / "taken").write_text("a file")
    source_file(other := tmp_path / "other.jsonl", [*range(11), 99])
    for how, said in [
        (dict(rows=5), "rows = 4, and now it is 5"),
        (dict(source=other), "'out' was begun with source."),
        (dict(job=JudgeJob(model=MINILM)), "job = squares, and now it is judge"),
        (dict(job=ChunkJob()), "chunk takes documents, and 'n.jsonl' has records"),
        (dict(out=tmp_path / "else"), "'else' has other files in it"),
        (dict(out=tmp_path / "taken"), "'taken' is a file"),
        (dict(source=tmp_path / "none.jsonl"), "no file at"),
        (dict(source=out), "only those of 'chunk' are passages"),
        (dict(workers=2), "the plain loop is one process"),
        (dict(engine="plain:4"), "only Ray has an address"),
        (dict(engine="processes"), "replaced by 'ray'"),
        (dict(engine="rays"), "did you mean 'ray'"),
    ]:
        with pytest.raises(UsageError, match=said):
            bulk(**dict(job=Squares(), source=file, out=out, progress=False) | how)
    with locked_folder(out), pytest.raises(UsageError, match="another run is writing into 'out'"):
        bulk(Squares(), file, out)
    assert content(out) == before
    file.write_text(file.read_text() + '{"n": 5}\n')
    with pytest.raises(UsageError, match="source.bytes = .*give another folder"):
        bulk(Squares(), file, out)
    monkeypatch.setattr("treekit.bulk.ray_engine.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"Ray isn't installed here: pip install 'treekit-rag\[ray\]'"):
        bulk(Squares(), other, tmp_path / "r", "ray")


class ScriptedJudge:
    batch = 8

    def _read(self, pairs):
        return ["1"] * len(pairs)


def test_the_command_says_what_is_wrong_in_one_line(tmp_path, treekit_, monkeypatch):
    "And counts what it has done; the same command again makes nothing."
    monkeypatch.setattr("treekit.bulk.worker.set_threads", lambda *_: None)  # it would outlast the test
    monkeypatch.setattr("treekit.bulk.ray_engine.find_spec", lambda name: None)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"id": "a", "premise": "Herons fly low.", "claim": "Herons fly."}\n{"premise": 3}\n')
    monkeypatch.setattr("treekit.bulk.jobs._judge", lambda kind, model: ScriptedJudge())
    words = ["bulk", "judge", pairs, "--out", tmp_path / "out", "--set", f"model={MINILM}"]
    code, said = treekit_(*words)
    assert (
        code == 0 and "2 rows, 1 results" in said and "1 partitions made" in said and "1 rows could not be used" in said
    )
    assert [r["verdict"] for r in results(tmp_path / "out")] == [True]
    assert "0 partitions made, 1 were there" in treekit_(*words)[1]
    for more, told in [
        (["--engine", "ray"], "pip install 'treekit-rag[ray]'"),
        (["--set", "judge=spam"], "span"),
        (["--set", "words=9"], "no setting of JudgeJob named 'words'"),
    ]:
        code, said = treekit_(*words, *more)
        assert code == 2 and told in said and said.count("treekit: ") == 1 and "Traceback" not in said, said
    assert "no job named 'judg'; did you mean 'judge'" in treekit_("bulk", "judg", pairs)[1]
    assert "--out DIR" in treekit_("bulk", "judge", pairs)[1]
    assert "needs a model" in treekit_("bulk", "judge", pairs, "--out", tmp_path / "no")[1]
    assert treekit_("bulk", "import", tmp_path)[1] == f"treekit: {tmp_path.name!r} is not the folder of a bulk job\n"


@pytest.fixture
def importable(monkeypatch):
    "Workers find this folder's modules."
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    for name, value in PINNED_INSTRUCTIONS.items():
        monkeypatch.setenv(name, value)


@ray
@pytest.mark.long
def test_the_same_bytes_and_a_row_that_kills(tmp_path, importable):
    "As the plain loop's; a row that kills is found, counted, and costs nobody else's row."
    file = source_file(tmp_path / "n.jsonl", NUMBERS)
    bulk(Squares(), file, plain := tmp_path / "plain")
    for workers in (1, 3):
        bulk(Squares(), file, out := tmp_path / f"ray{workers}", "ray", workers)
        assert content(out) == content(plain)
    file = source_file(tmp_path / "k.jsonl", [1, 2, 3, 4, 5, 666, 7, 8, 9, 10])
    done = bulk(Squares(), file, out := tmp_path / "killed", "ray", 2, rows=5)
    assert (done.summary["rows"], done.summary["bad"]) == (10, 1) and [r["n"] for r in results(out)] == [
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        10,
    ]
    assert list(results(out, "bad")) == [dict(row=6, error=LETHAL, begins='{"n": 666}\n')]
