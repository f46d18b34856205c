"treekit.syntax.parser: the bundled models, their manifest, the cache; what crosses processes."

import json, shutil, sys
import pytest
from treekit.config import UsageError, load_profile, missing_library, root
from treekit.syntax.parser import FILES, LONGEST_SENTENCE, ParseCache, StanzaParser, check_models, parser_for

BUNDLED = root() / "data" / "parser"
QUESTIONS = [
    "Who is the paternal grandfather of Osric Velan, 3rd Prince of Morvia?",
    "Which film has the director who was born first, Silent Harbour or The Glass Orchard?",
    "In which country is the club where Tomas Reller played located?",
    "Are Velmor Falls and Ostra Bridge both located in the same country?",
    "Where was the place of burial of Ilka Marren's father?",
    "When did the composer of the song Northern Lanterns die?",
]


@pytest.fixture(scope="session")
def parser(tmp_path_factory):
    return StanzaParser(BUNDLED, cache=ParseCache(tmp_path_factory.mktemp("parses") / "p.sqlite"))


@pytest.fixture(scope="session")
def parses(parser):
    return parser.parse(QUESTIONS)


def phrases(parse):
    return {parse.sentences[0].text(c.start, c.end) for c in parse.sentences[0].tree.walk() if c.children}


def test_every_question_is_one_sentence_and_one_tree(parses):
    for p in parses:
        (sentence,) = p.sentences
        assert sum(t.head == 0 for t in sentence.tokens) == 1
        assert all(p.text[t.start : t.end] == t.text for t in sentence.tokens)
        assert sentence.subtree(sentence.root.id) == [t.id for t in sentence.tokens]
        assert (sentence.tree.start, sentence.tree.end) == (0, len(sentence.tokens))
        for c in sentence.tree.walk():
            if c.children:
                assert [x.end for x in c.children[:-1]] == [x.start for x in c.children[1:]] and c.children[
                    -1
                ].end == c.end


def test_roots(parses):
    assert [p.sentences[0].root.text for p in parses] == ["Who", "has", "located", "located", "Where", "die"]


def test_phrases(parses):
    assert "the paternal grandfather of Osric Velan, 3rd Prince of Morvia" in phrases(parses[0])
    assert {"the director who was born first", "Silent Harbour or The Glass Orchard"} <= phrases(parses[1])
    assert {"the club where Tomas Reller played", "where Tomas Reller played"} <= phrases(parses[2])
    assert "Velmor Falls and Ostra Bridge" in phrases(parses[3])
    assert "the composer of the song Northern Lanterns" in phrases(parses[5])
    assert parses[0].sentences[0].tree.label == "SBARQ" and parses[3].sentences[0].tree.label == "SQ"


def test_entities(parses):
    names = {(e.text, e.type) for e in parses[2].sentences[0].entities}
    assert ("Tomas Reller", "PERSON") in names
    for p in parses:
        for e in p.sentences[0].entities:
            assert p.text[e.start : e.end] == e.text


def test_a_parse_does_not_depend_on_its_batch(parses, tmp_path):
    alone = StanzaParser(BUNDLED, cache=ParseCache(tmp_path / "alone.sqlite"))
    assert [alone.parse([q])[0] for q in QUESTIONS] == parses


def test_a_parse_without_phrases_has_the_same_words_and_is_not_stored(parses, tmp_path):
    some = StanzaParser(BUNDLED, cache=ParseCache(tmp_path / "some.sqlite"))
    for p, whole in zip(some.parse(QUESTIONS, phrases=False), parses, strict=True):
        [a], [b] = p.sentences, whole.sentences
        assert (a.tokens, a.entities, a.tree) == (b.tokens, b.entities, None)
    assert some.cache.get(some.fingerprint, QUESTIONS) == {}


def test_other_texts_than_sentences_have_all_their_words(parser):
    odd = [
        "a",
        "Stop.",
        "Is it so??",
        "a  b",
        "Title\n\nIts text. More.",
        "a\n\n\nb",
        "see www.here.org",
        "word " * 400,
    ]
    for text, parse in zip(odd, parser.parse_uncached(odd), strict=True):
        tokens = [t for s in parse.sentences for t in s.tokens]
        assert "".join(t.text for t in tokens) == "".join(text.split())
        assert all(text[t.start : t.end] == t.text for t in tokens)
        assert all(len(s.tokens) <= LONGEST_SENTENCE and s.root and s.tree for s in parse.sentences)


def test_new_texts_of_the_small_install_are_told_what_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "stanza", None)
    some = StanzaParser(BUNDLED, cache=ParseCache(tmp_path / "some.sqlite"))
    with pytest.raises(ModuleNotFoundError) as e:
        some.parse(["Who won?"])
    assert missing_library(e.value.name or "stanza") == "stanza isn't installed here: pip install 'treekit-rag[parser]'"


def copy_models(folder):
    shutil.copytree(BUNDLED, folder)
    return folder


def test_a_truncated_model_is_named(tmp_path):
    folder = copy_models(tmp_path / "models")
    check_models(folder)
    (folder / "dep.pt").write_bytes((BUNDLED / "dep.pt").read_bytes()[:1000])
    with pytest.raises(UsageError, match="dep.pt is not the one in manifest.json"):
        check_models(folder)
    parser = StanzaParser(folder, cache=ParseCache(tmp_path / "c.sqlite"))
    with pytest.raises(UsageError, match="dep.pt is not the one"):
        parser.parse(["Who won?"])
    (folder / "dep.pt").unlink()
    with pytest.raises(UsageError, match="dep.pt is missing"):
        check_models(folder)


def test_the_manifest_is_that_of_the_models():
    files = json.loads((BUNDLED / "manifest.json").read_text())["files"]
    assert set(files) == set(FILES)
    check_models(BUNDLED)
    assert sum(f.stat().st_size for f in BUNDLED.iterdir()) < 20e6


def test_parser_for_a_profile(monkeypatch, tmp_path):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    monkeypatch.delenv("TREEKIT_PARSER_DIR", raising=False)
    assert parser_for(load_profile("offline")).folder == BUNDLED
    monkeypatch.setenv("TREEKIT_PARSER_DIR", str(BUNDLED.parent))
    assert parser_for(load_profile("offline")).folder == BUNDLED.parent
    other = parser_for(load_profile("offline", parser="default_accurate"))
    assert other.folder is None and "default_accurate" in other.fingerprint
