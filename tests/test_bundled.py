"treekit.syntax.numpy_stanza: the parses are Stanza's, without torch, and what isn't plain is left to Stanza."

import random, subprocess, sys

import pytest

from treekit.config import root
from treekit.experiments.resources import load, load_corpus
from treekit.syntax import numpy_stanza, parser
from treekit.syntax.numpy_stanza import LONGEST_LINE, plain
from treekit.syntax.parser import ParseCache, StanzaParser

BUNDLED = root() / "data" / "parser"


def texts(each, several):
    "Questions of all styles, paragraphs, paragraphs under their titles."
    draw, passages = random.Random(0), load_corpus("hotpotqa", "synthetic")
    asked = [
        q.question
        for style in ("hotpotqa", "musique", "2wiki", "ambigdocs", "asqa")
        for q in load(style, "synthetic", n=each)
    ]
    drawn = draw.sample(list(passages), several)
    odd = [
        "Stop.",
        "Really?!",
        "a",
        "Who, in 1961, wrote “Grey Harbour” — and why?",
        "Is it so??",
        "1 2 3 4",
        "Yes . No . Maybe .",
    ]
    return [
        *dict.fromkeys(asked),
        *(p.text for p in drawn[::2]),
        *(f"{p.title}\n\n{p.text}" for p in drawn[1::2]),
        *odd,
    ]


@pytest.mark.long
@pytest.mark.parametrize("each, several", [(5, 14), pytest.param(12, 30, marks=pytest.mark.slow)])
def test_the_parses_are_stanzas(each, several):
    reader, given = StanzaParser(BUNDLED), texts(each, several)
    assert all(map(plain, given))
    mine = reader.parse_uncached(given)
    assert reader._pipeline is None  # nothing was left to Stanza
    assert mine == reader._by_stanza(given, True)
    without = reader.parse_uncached(given[-20:], phrases=False)
    assert [[s.tokens for s in p.sentences] for p in without] == [[s.tokens for s in p.sentences] for p in mine[-20:]]
    assert all(s.tree is None for p in without for s in p.sentences)


def test_no_torch(tmp_path):
    code = (
        "import sys; from treekit.syntax.parser import StanzaParser; StanzaParser().parse(['Who founded it?']); "
        "sys.exit('torch' in sys.modules or 'stanza' in sys.modules)"
    )
    env = dict(TREEKIT_HOME=str(tmp_path), PYTHONPATH=str(root()), PATH="")
    assert subprocess.run([sys.executable, "-c", code], env=env).returncode == 0


@pytest.mark.parametrize(
    "text", ["", " a", "a  b", "a\nb", "a\n\n\nb", "a\x85b", "see www.here.org", "mail me@here.it"]
)
def test_what_is_not_plain(text):
    assert not plain(text)


def test_a_long_line_is_not_plain():
    assert plain("a" * LONGEST_LINE) and not plain("a" * (LONGEST_LINE + 1))


@pytest.mark.long
def test_plain_and_other_texts_in_one_batch(tmp_path):
    reader, given = (
        StanzaParser(BUNDLED, cache=ParseCache(tmp_path / "p.sqlite")),
        ["Who is it?", "Who\nis it?", "", "Who is it?"],
    )
    parses = reader.parse(given)
    assert [p.text for p in parses] == given and parses[0] is not None
    assert [[t.text for t in s.tokens] for p in parses[:2] for s in p.sentences] == [["Who", "is", "it", "?"]] * 2


def test_another_kind_of_model_is_left_to_stanza(monkeypatch):
    assert parser._models.__wrapped__(str(BUNDLED), ()).known
    monkeypatch.setitem(numpy_stanza._KIND["con"], "transition_scheme", "TOP_DOWN")
    assert parser._models.__wrapped__(str(BUNDLED), ()) is None


@pytest.mark.long
def test_the_best_tree_is_stanzas():
    "Where the best heads alone make a ring: Stanza's own search, and for short sentences every tree there is."
    from itertools import product
    import numpy as np
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds_one_root

    rng, rings = np.random.default_rng(1), 0
    while rings < 300:
        n = int(rng.integers(3, 6 if rings < 100 else 40))
        scores = rng.normal(size=(n, n)).astype(np.float32) * rng.choice([0.1, 1, 5])
        np.fill_diagonal(scores, -np.inf)
        scores -= np.logaddexp.reduce(scores, 1, keepdims=True)
        if numpy_stanza._is_tree(scores[1:].argmax(1).tolist()):
            continue
        rings += 1
        found = numpy_stanza._best_heads(scores)
        assert numpy_stanza._is_tree(found) and found == chuliu_edmonds_one_root(scores)[1:].tolist()
        if n > 5:
            continue
        worth = lambda heads: sum(scores[i, h] for i, h in enumerate(heads, 1))
        assert np.isclose(
            worth(found), max(worth(h) for h in product(range(n), repeat=n - 1) if numpy_stanza._is_tree(list(h)))
        )
