"What finding a page by its title costs. Processor time, so that a busy machine says the same."

import time

from treekit.core.types import Passage
from treekit.corpora.wiki import CorpusWiki


def test_a_hundred_thousand_titles_are_fast():
    names = [
        f"{a}{b} {c}{d}"
        for a in ("Ba", "Do", "Ki", "Lu", "Me", "No", "Pa", "Re", "Si", "Tu")
        for b in "abcdefghij"
        for c in ("Va", "We", "Xi", "Yo", "Zu") * 2
        for d in range(100)
    ]
    wiki = CorpusWiki([Passage(str(i), n, "x") for i, n in enumerate(names)], "names")
    wiki.similar("Baa Va1"), wiki.page("baa va1")
    began = time.process_time()
    for i in range(100):
        wiki.similar(f"Kih We{i} (painter)"), wiki.page(f"kih we{i}")
    taken = (time.process_time() - began) / 100
    print(f"{len(names):,} titles: {1000 * taken:.1f} ms for a page and its nearest names")
    assert taken < 0.05
