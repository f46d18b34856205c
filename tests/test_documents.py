"Documents with headings: wikitext however broken, chunks and where they came from, a store."

import itertools, json, random, threading, time

import pytest
from hypothesis import given, settings, strategies as st
from pages import wikitext

from sample_questions import folder_of
from treekit.corpora.chunks import chunks, locate
from treekit.config import UsageError
from treekit.corpora.documents import tree_of
from treekit.corpora.wikitext import Skipped, from_wikitext
from treekit.corpora.tree_store import TreeStore, build
from treekit.synthetic.generate import SyntheticWiki

ARTICLES = ("real:articles_freshwiki", "real:articles_ambigqa_wiki", "twin:articles_freshwiki")
# ---- real articles


def articles(name):
    source, file = name.split(":")
    return [
        json.loads(line) for line in (folder_of(source, f"{file}.jsonl") / f"{file}.jsonl").read_text().splitlines()
    ]


def corrupted(text, rng, share=0.1, letters="abcdefghijklmnopqrstuvwxyz "):
    return "".join(
        rng.choice((rng.choice(letters), "", c + rng.choice(letters))) if rng.random() < share else c for c in text
    )


@pytest.mark.parametrize("name", ARTICLES)
def test_chunks_of_real_articles_are_found_again(name):
    "At least 98 % of the chunks go back to the very nodes they were cut from, also with a tenth of their characters changed, lost or added."
    trees, rng = [tree_of(r) for r in articles(name)], random.Random(0)
    for change in (lambda text: text, lambda text: corrupted(text, rng)):
        right = [
            (found := locate(change(c.passage.text), t)) is not None
            and [t[i].text for i in found.nodes] == [t[i].text for i in c.nodes]
            for t in trees
            for c in chunks(t)
        ]
        print(f"\n{name}: {sum(right)} of {len(right)} chunks, {sum(right) / len(right):.2%}")
        assert sum(right) >= 0.98 * len(right)


@pytest.mark.parametrize("name", ARTICLES[:2])  # the pages of one world are told in the same sentences
def test_chunks_of_other_articles_are_in_none(name):
    trees = [tree_of(r) for r in articles(name)]
    cut = [(t, c) for t in trees for c in chunks(t)][::9]
    found = [
        locate(c.passage.text, trees[(trees.index(t) + 1) % len(trees)]) for t, c in cut if len(c.passage.text) > 200
    ]
    print(f"\n{name}: {sum(f is not None for f in found)} of {len(found)} chunks found in a page they are not from")
    assert sum(f is not None for f in found) <= 0.01 * len(found)


# ---- markup


def test_the_worlds_articles_in_wikitext():
    for a in itertools.islice(SyntheticWiki(articles=200).articles(), 200):
        assert from_wikitext(wikitext(a), a.title, a.id) == tree_of(a)


def test_what_the_text_keeps():
    "Links whose titles have a colon, measures, foreign words, entities; not files, categories, other languages, and a name's empty brackets."
    text = (
        "'''Raith''' ({{lang-gd|[[rath]]}}; {{IPA|x}}) saw [[CSI: Miami|the series]], [[Re: Zero]], and "
        "[[:Category:Forts|forts]][[fr:Raith]][[zh-yue:Raith]][[Category:Forts]][[file: a.jpg | thumb | [[b]] and [[c|d]]]].<ref "
        "name=x>one<br>two</ref> "
        "It has {{convert|19000|sqft|m2}}&nbsp;– or {{convert|3|to|5|mi|km}} – and {{nowrap|[[United States Dollar|$]]9}}<ref>unclosed "
        "{{cite}} and more.<ref name=y/> {{citation needed}} [http://x.y A page] {{unknown|words}} End ."
    )
    assert (
        from_wikitext(text, "Raith")[1].text
        == "Raith (rath) saw the series, Re: Zero, and forts. It has 19000 sqft – or 3 to 5 mi – and $9unclosed and more. A page End."
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "{{",
                "}}",
                "[[",
                "]]",
                "{|",
                "|}",
                "\n|-\n",
                "\n| ",
                "\n! ",
                "'''",
                "<ref>",
                "</ref>",
                "<ref name=a/>",
                "<!--",
                "-->",
                "\n== A ==\n",
                "\n=== B",
                "\n* ",
                "\n## ",
                "\n; ",
                "word ",
                "File:",
                "|",
                "<table>",
                "<tr>",
                "<li>",
                "<nowiki>",
                "&amp;",
                "&#xd800;",
                "https://a.b ",
                "\n\n",
            ]
        ),
        max_size=40,
    ).map("".join)
)
def test_any_wikitext_gives_a_tree_or_a_reason(text):
    made = from_wikitext(text, "Page")
    assert isinstance(made, Skipped) and made.reason or len(made) > 1


def test_only_whole_headings_are_apparatus():
    '"Natural resources" is not "Sources": the public code drops it with all below it.'
    text = "".join(
        f"== {h} ==\ntext of {h}\n=== below {h} ===\nmore\n"
        for h in ("Natural resources", "Sources", "Banknotes", "See also", "Images of the king", "References")
    )
    assert [from_wikitext(text, "P")[i].text for i in from_wikitext(text, "P").headings[1:]] == [
        "Natural resources",
        "below Natural resources",
        "Banknotes",
        "below Banknotes",
        "Images of the king",
        "below Images of the king",
    ]


@pytest.mark.parametrize(
    "text, title, reason",
    [
        ("#REDIRECT [[B]]", "A", "redirect"),
        ("  #redirect:[[B|c]]", "A", "redirect"),
        ("#넘겨주기 [[나]]", "가", "redirect"),
        ("", "A", "empty"),
        (" \n{{stub}}\n== A ==\n", "A", "empty"),
        ("* [[A]]\n{{disambig}}", "A", "disambiguation"),
        ("* [[A]]\n{{Human name disambiguation}}", "A", "disambiguation"),
        ("text", "A (disambiguation)", "disambiguation"),
        ("* x", "List of A", "list"),
        ("text", "  ", "no title"),
    ],
)
def test_pages_without_a_tree(text, title, reason):
    assert from_wikitext(text, title).reason == reason


# ---- the store


def test_what_is_read_is_what_was_written(tmp_path):
    articles = list(itertools.islice(SyntheticWiki(articles=400).articles(), 400))
    store = build(articles, tmp_path / "a.trees", progress=False)
    assert len(store) == 400 and [t == tree_of(a) for t, a in zip(store, articles)] == [True] * 400
    assert all(store.find(a.title.replace(" ", "_")) == store.get(a.id) for a in articles)
    found, threads = (
        [],
        [
            threading.Thread(target=lambda: found.append(sum(store.get(a.id) is not None for a in articles)))
            for _ in range(4)
        ],
    )
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [400] * 4
    times = []
    for a in articles:
        started = time.process_time()
        store.get(a.id)
        times.append(time.process_time() - started)
    assert sorted(times)[200] < 0.002
    with pytest.raises(UsageError, match="exists already"):
        build(articles, tmp_path / "a.trees")


def test_bad_files(tmp_path):
    records = [dict(title="A", text="b"), dict(title=3), [], "x", dict(title="B")]
    store = build(records, tmp_path / "a.trees", workers=1, progress=False)
    assert store.counts == {"broken record": 3, "documents": 1, "empty": 1}
    (tmp_path / "a.jsonl").write_text('{"title": "A", "text": "b"}\nnot json\n')
    for wrong in (
        lambda: build([], tmp_path / "y"),
        lambda: build(tmp_path / "none.xml", tmp_path / "x"),
        lambda: build(tmp_path, tmp_path / "x"),
        lambda: build(tmp_path / "a.jsonl", tmp_path / "no" / "x"),
        lambda: build(tmp_path / "a.jsonl", tmp_path / "z", workers=1),
        lambda: TreeStore(tmp_path / "a.jsonl"),
        lambda: TreeStore(tmp_path / "none"),
    ):
        with pytest.raises(UsageError):
            wrong()
