"Readers and loops held to what real models wrote: the committed cassette always, all recorded replies where ../shared has them."

import json, time

import pytest

import recorded_replies, replays
from speed import enough

from treekit.corpora.recorded_replies import load_replies

CASSETTE = [
    json.loads(line)
    for line in (recorded_replies.JUDGED.parent / "cassette.jsonl").read_text(encoding="utf-8").splitlines()
]
ALL = pytest.mark.skipif(not recorded_replies.recorded(), reason="../shared/recorded isn't here")


def rightly(counts):
    total = sum((c for c in counts.values()), recorded_replies.Counter())
    return total["rightly"] / sum(total.values()), total


def test_the_cassette_is_read_as_a_careful_person_reads_it():
    share, total = rightly(recorded_replies.table(CASSETTE))
    assert share >= 0.97 and not total["wrongly"] and not total["exception"], recorded_replies.shown(
        recorded_replies.table(CASSETTE)
    )


def test_the_cassette_is_small_licensed_and_loaded_by_one_function():
    assert {r["licence"] for r in CASSETTE} == {"MIT", "Apache-2.0"} and all(
        recorded_replies.key(r["reply"]) == r["id"] for r in CASSETTE
    )
    assert (recorded_replies.JUDGED.parent / "cassette.jsonl").stat().st_size < 500_000
    sources = (recorded_replies.JUDGED.parent / "SOURCES.md").read_text(encoding="utf-8")
    assert all(r["source"].split("@")[0] in sources for r in CASSETTE)
    assert len(load_replies()) == len(CASSETTE) and {r.kind for r in load_replies("react")} == {"react"}
    turns = load_replies(trajectory=next(r["trajectory"] for r in CASSETTE if r.get("trajectory")))
    assert len(turns) > 1 and [r.turn for r in turns] == sorted(r.turn for r in turns)


@ALL
def test_judged_replies_are_read_rightly():
    counts = recorded_replies.table()
    share, total = rightly(counts)
    assert len(recorded_replies.judged()) >= 600 and share >= 0.97
    assert not total["wrongly"] and not total["exception"], recorded_replies.shown(counts)


@ALL
def test_no_reply_is_misread_in_silence():
    counts, silent = recorded_replies.unlike_oracle()
    assert not silent and sum(counts.values()) > 1600
    assert sum(n for (_, how), n in counts.items() if how == "as kept") >= 0.98 * sum(counts.values())


@pytest.mark.long
@ALL
def test_no_reader_fails_on_any_recorded_reply_or_takes_long():
    began = time.perf_counter()
    for name in recorded_replies.every_reader():
        for row in recorded_replies.recorded()[::7]:
            recorded_replies.read(name, row["reply"])
    enough(240 / (time.perf_counter() - began), 1)


@ALL
@pytest.mark.parametrize(
    "replay", [replays.replay_react, replays.replay_tree, replays.replay_search, replays.replay_asking]
)
def test_recorded_turns_are_taken_as_recorded(replay):
    counts, ends = replay()
    for source, c in counts.items():
        explained = sum(n for how, n in c.items() if how == "as recorded" or how.startswith("otherwise, "))
        assert explained >= 0.98 * sum(c.values()), replays.shown(counts)
    assert ends["same end"] >= 0.95 * sum(ends.values())
