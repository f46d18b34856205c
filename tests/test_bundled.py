"treekit.syntax.numpy_stanza: the parses are Stanza's, without torch, and what isn't plain is left to Stanza."

import random, subprocess, sys

import pytest

from treekit.config import root
from treekit.experiments.resources import load, load_corpus
from treekit.syntax.numpy_stanza import plain
from treekit.syntax.parser import StanzaParser

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
