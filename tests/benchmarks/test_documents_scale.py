"A dump of 100,000 generated pages into a tree store on one core: documents a second, memory that stays where it is, and how long one tree takes to read; chunks put back into their documents."

import json, os, random, subprocess, sys, time
from pathlib import Path

PAGES = int(os.environ.get("TREEKIT_PAGES", 100_000))
BUILD = """
import os; PAGES = int(os.environ.get("TREEKIT_PAGES", 100_000))
import resource, sys, time, json
from treekit.corpora import tree_store
memory, written = {}, tree_store._write
def write(db, before, at, results):
    written(db, before, at, results)
    write.pages += len(results)
    if write.pages % (PAGES // 10) < len(results): memory[write.pages] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
write.pages, tree_store._write = 0, write
started = time.process_time()
store = tree_store.build(sys.argv[1], sys.argv[2], workers=1, progress=False)
print(json.dumps(dict(counts=store.counts, seconds=time.process_time() - started, memory=list(memory.values()))))
"""


def test_build_and_read(tmp_path):
    "The real size is 5.8 million pages; a real page has about 11 kB of wikitext, a generated one less, so the hours are projected by bytes, too."
    dump, store = tmp_path / "world.xml", tmp_path / "world.trees"
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.insert(0, sys.argv[3]); from pages import write_dump; write_dump(sys.argv[1], int(sys.argv[2]))",
            dump,
            str(PAGES),
            Path(__file__).parents[1],
        ],
        check=True,
    )
    out = json.loads(
        subprocess.run([sys.executable, "-c", BUILD, dump, store], check=True, capture_output=True, text=True).stdout
    )
    rate, megabytes = out["counts"]["documents"] / out["seconds"], dump.stat().st_size / 1e6
    print(
        f"\n{out['counts']['documents']:,} documents, {megabytes:.0f} MB of XML: {out['seconds']:.0f} s of processor time, {rate:.0f} "
        f"documents/s/core, {megabytes / out['seconds']:.1f} MB/s/core"
    )
    print(
        f"5.8 million documents: {5.8e6 / rate / 3600:.1f} core hours of this size, "
        f"{5.8e6 * 0.011 / (megabytes / out['seconds']) / 3600:.1f} at 11 kB a page; "
        f"{store.stat().st_size / out['counts']['documents'] / 1e3:.2f} kB a document in the store"
    )
    print(f"peak memory (MB) after each tenth of the pages: {[round(m) for m in out['memory']]}")
    assert out["counts"]["documents"] == PAGES and rate > 150
    assert out["memory"][-1] < out["memory"][0] * 1.1 + 10

    from treekit.corpora.tree_store import TreeStore

    trees, rng, ids, titles = TreeStore(store), random.Random(0), [], []
    for id, title in trees._db.execute("SELECT id, title FROM documents WHERE number % 97 = 0"):
        ids.append(id)
        titles.append(title)
    for name, read, keys in (("get", trees.get, ids), ("find", trees.find, titles)):
        times = []
        for key in rng.sample(keys, min(1000, len(keys))):
            started = time.perf_counter()
            assert read(key)
            times.append(1e3 * (time.perf_counter() - started))
        times.sort()
        print(
            f"{name}: median {times[len(times) // 2]:.2f} ms, 99 of 100 within {times[len(times) * 99 // 100]:.2f} ms"
        )
        assert times[len(times) // 2] < 2


def test_chunks_found_again():
    "Thousands of chunks a minute, also in a long page and with a tenth of the characters changed."
    from treekit.corpora.chunks import chunks, locate
    from treekit.corpora.documents import build_tree
    from treekit.synthetic.generate import SyntheticWiki

    rng = random.Random(0)
    texts = [p.text for p in SyntheticWiki(articles=400).passages()]
    tree = build_tree(
        "Long",
        [(1 + i % 2, *(("structure", f"Heading {i}") if i % 2 == 0 else ("content", texts[i]))) for i in range(1200)],
        "long",
    )
    cut = rng.sample(chunks(tree), 100)
    for name, change in (
        ("as cut", str),
        (
            "a tenth of the characters changed",
            lambda text: "".join(rng.choice("abcdefgh ") if rng.random() < 0.1 else c for c in text),
        ),
    ):
        asked = [change(c.passage.text) for c in cut]
        started = time.process_time()
        found = [locate(text, tree) for text in asked]
        seconds = time.process_time() - started
        print(f"\n{len(tree.running[0]):,} characters, {name}: {60 * len(cut) / seconds:,.0f} chunks a minute")
        assert (
            sum(f is not None and f.nodes == c.nodes for f, c in zip(found, cut)) >= 98
            and len(cut) / seconds > 1000 / 60
        )
