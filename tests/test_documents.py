"Documents with headings: the text form and its inverse, real articles, every markup however broken, chunks and where they came from, a store that survives kills."

import bz2, itertools, json, os, random, sqlite3, subprocess, sys, threading, time
from contextlib import closing

import pytest
from hypothesis import given, settings, strategies as st
from pages import page, wikitext, write_dump

from sample_questions import folder_of
from treekit.corpora.chunks import best_window, chunks, locate
from treekit.config import UsageError
from treekit.corpora.documents import from_text, build_tree, add_introduction, tree_of
from treekit.corpora.blocks import Skipped
from treekit.corpora.html import from_html
from treekit.corpora.markdown import from_markdown
from treekit.corpora.wikitext import from_wikitext
from treekit.corpora.tree_store import TreeStore, build
from treekit.synthetic.generate import SyntheticWiki

ARTICLES = ("real:articles_freshwiki", "real:articles_ambigqa_wiki", "twin:articles_freshwiki")
hard = st.text(max_size=40) | st.sampled_from(
    [
        "3: three",
        "\t4: four\n\t\t5: five",
        "==A==",
        "===",
        "= =",
        "\\n",
        "\\",
        "\\\\n=",
        "* item",
        "0: 0",
        "a\r\nb\x0b\x85c\u2028d",
        "[ANSWER] 3: x",
        " ",
        "",
    ]
)
rows = st.lists(st.tuples(st.integers(1, 9), st.sampled_from(("structure", "content")), hard), max_size=30)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(hard, rows)
def test_from_tree_to_text_and_back(title, rows):
    tree = build_tree(title, rows, "d")
    assert from_text(tree.to_text(), "d") == tree
    assert [n.id for n in tree.nodes] == list(range(len(tree))) and all(
        tree[c].parent == n.id for n in tree.nodes for c in n.children
    )
    for n in tree.nodes:
        assert n.type == "structure" or n.text and n.parent is not None
        if n.type == "structure":
            assert all(tree[a].type == "structure" for a in tree.ancestors(n.id))


@settings(max_examples=100, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_a_part_keeps_its_ids(rows, rng):
    "What a router sees: all headings, and some content with the content above it."
    tree = build_tree("A title", rows)
    shown = {
        i
        for n in tree.nodes
        if n.type == "content" and rng.random() < 0.5
        for i in (n.id, *(a for a in tree.ancestors(n.id) if tree[a].type == "content"))
    }
    part = from_text(tree.to_text(shown))
    assert [n.id for n in part.nodes] == [n.id for n in tree.nodes if n.type == "structure" or n.id in shown]
    assert all((n.text, n.type, n.parent) == (tree[n.id].text, tree[n.id].type, tree[n.id].parent) for n in part.nodes)


def test_the_introduction_gets_a_heading_as_in_table_12():
    for tree in map(tree_of, itertools.islice(SyntheticWiki(articles=100).articles(), 50)):
        under = add_introduction(tree)
        assert under[1].text == "Introduction" and [under[i].text for i in under.content(1)] == [
            tree[i].text for i in tree.content(0)
        ]
        assert under.running[0] == tree.running[0] and add_introduction(under) == under


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
def test_real_articles_there_and_back(name):
    for record in articles(name):
        tree = tree_of(record)
        assert from_text(tree.to_text(), tree.id) == tree and len(tree) > 1


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


@settings(max_examples=60, deadline=None)
@given(st.text("ab c", min_size=1, max_size=150), st.text("ab c", min_size=1, max_size=40))
def test_the_best_window_is_the_best_of_all(text, wanted):
    from rapidfuzz.distance import Levenshtein

    at, d = best_window(text, wanted)
    assert (
        d
        == Levenshtein.distance(text[at : at + len(wanted)], wanted)
        == min(
            Levenshtein.distance(text[s : s + len(wanted)], wanted) for s in range(max(1, len(text) - len(wanted) + 1))
        )
    )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text("abc ", max_size=60), min_size=1, max_size=5),
    st.integers(0, 200),
    st.integers(1, 80),
    st.text("abcx “", max_size=3),
    st.text("abcx “", max_size=3),
)
def test_what_is_found_stands_somewhere(texts, at, length, before, after):
    "A piece of the running text, also over its end, with a few letters too many: it is found, in at least one node, in the document's order."
    tree = build_tree("A", [(1, "content", t) for t in texts])
    whole = tree.running[0]
    piece = f"{whole} {whole}"[at % max(1, len(whole)) :][: min(length, len(whole))]
    found = locate(before + piece + after, tree)
    if not piece.strip():
        return
    if 4 * len(before + after) < len(piece.strip()) and len(before + piece + after) < len(whole):
        assert found
    assert (
        not found
        or found.nodes
        and list(found.nodes) == sorted(set(found.nodes))
        and set(found.nodes) <= set(tree.running[2])
    )


def test_a_chunk_over_the_end_of_the_page():
    "DPR's last chunk of a page goes on with the page's beginning: both ends are its place."
    tree = build_tree(
        "A",
        [
            (1, "content", "The first paragraph speaks of tall rides in the north."),
            (1, "structure", "B"),
            (2, "content", "The middle is about opening hours, and about what they were in other years."),
            (2, "content", "The last one tells who owned the park."),
        ],
    )
    assert locate("The last one tells who owned the park. The first paragraph speaks of", tree).nodes == (1, 4)
    assert locate("  tells who\nowned the park. ", tree).nodes == (4,) and locate("x" * 500, tree) is None


# ---- markup


def test_the_worlds_articles_in_every_markup():
    for a in itertools.islice(SyntheticWiki(articles=200).articles(), 200):
        tree = tree_of(a)
        html = "".join(
            f"<h{line.index(' ')}>{line.lstrip('# ')}</h{line.index(' ')}>"
            if line.startswith("#")
            else f"<p>{line}</p>"
            for line in a.text.split("\n\n")
        )
        assert (
            from_markdown(a.text, id=a.id)
            == from_html(html, id=a.id)
            == from_wikitext(wikitext(a), a.title, a.id)
            == tree
        )


BROKEN = {
    "levels that jump": "Lead.\n== A ==\n===== B =====\ntext\n=== C ===\ntext\n= D =\ntext",
    "no headings": "Only text.",
    "an unclosed template": "{{Infobox\n| a = b\nThe text.\n== A ==\ntext",
    "an unclosed reference": "Text <ref>and more.\n== A ==\ntext",
    "a reference with a slash": "Text.<ref name=\"a/b\" group='x/y'>leak</ref> More.<ref name=x/> End.",
    "an unclosed table": "Text\n{|\n! a\n|-\n| b\n== A ==\ntext",
    "unclosed links and quotes": "'''Bold [[link|text and [[File:x.jpg|thumb\n== A ==\n''text",
    "an unclosed comment": "Text <!-- hidden\n== A ==\nhidden",
    "a heading without its end": "Text\n== A\n== B ==\ntext",
    "tags that cross": "<b><i>x</b></i><div>\ny</span>\n== A ==\nz",
    "braces": "Text {{{{{{a}}}} }} {{b}} [[[[x]]]]",
    "lists without end": "".join("*" * i + " item\n" for i in range(1, 60)),
    "deep nesting": "Text.\n\n" + "[[" * 300 + "{{" * 300 + "text" + "}}" * 300,
    "control characters": "Text\x01\x02 with \x00 marks.\n\x03*",
    "a list before all": "# not a redirect\n# two",
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_wikitext_gives_a_tree(what):
    tree = from_wikitext(BROKEN[what], "Page")
    assert not isinstance(tree, Skipped) and from_text(tree.to_text()) == tree
    assert "leak" not in tree.to_text() and "hidden" not in tree.to_text() and "Infobox" not in tree.to_text()


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


@pytest.mark.long
def test_no_page_takes_forever():
    "Markup that makes a careless pattern try for ever."
    for text in (
        "<ref " + "\"'" * 4000,
        "<ref>x" * 8000,
        "<!--" * 8000,
        "[[" * 4000 + "a|b",
        "{{" * 4000,
        "(,;" * 8000,
        "{|" * 500 + "|-" * 500,
        "<a" * 8000,
        "''" * 4000,
        "\n*" * 8000 + "x",
        "== " * 4000,
        "! " * 8000,
    ):
        started = time.process_time()
        from_wikitext("Text. " + text, "Page")
        from_markdown(text, "Page")
        from_html(text, "Page")
        assert time.process_time() - started < 10, text[:10]


def test_headings_that_jump():
    tree = from_wikitext(BROKEN["levels that jump"], "Page")
    assert [(tree.depth(i), tree[i].text) for i in tree.headings] == [
        (0, "Page"),
        (1, "A"),
        (2, "B"),
        (2, "C"),
        (1, "D"),
    ]


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
    assert isinstance(made, Skipped) and made.reason or from_text(made.to_text()) == made


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<h2>",
                "</h2>",
                "<h5>A",
                "<ul>",
                "</ul>",
                "<li>",
                "<table>",
                "</table>",
                "<tr>",
                "<td>",
                "<th>",
                "<caption>",
                "<!--",
                "-->",
                "word ",
                "<br>",
                "<script>",
                "</script>",
                "&amp;",
                "<div class='navbox'>",
                "</div>",
                "<",
                ">",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_any_html_and_markdown_gives_a_tree_or_a_reason(text):
    for made in (from_html(text, "Page"), from_markdown(text, "Page")):
        assert isinstance(made, Skipped) or from_text(made.to_text()) == made


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
    if reason in ("disambiguation", "list"):
        assert not isinstance(from_wikitext(text, title, keep=(reason,)), Skipped)


@pytest.mark.long
def test_twenty_thousand_headings():
    flat = from_wikitext("".join(f"== H{i} ==\nT{i}\n" for i in range(20_000)), "Many")
    deep = tree_of(json.loads(json.dumps({"title": "Deep"})) | {"sections": [deepest := {"title": "0", "text": "x"}]})
    record = deepest
    for i in range(20_000):
        record = {"title": str(i), "sections": [record]}
    tree = tree_of(record)
    assert len(flat) == 40_001 and from_text(flat.to_text()) == flat and len(deep) == 3
    assert len(tree) == 20_002
    assert tree.depth(20_001) == 20_001
    assert len(tree.descendants(0)) == 20_001
    assert locate("x", tree).nodes == (20_001,)
    assert (
        len(chunks(flat)) == 200
        and len(from_html("".join(f"<h2>H{i}</h2><p>T{i}" for i in range(2_000)), "Many")) == 4_001
    )


# ---- the store


def run(*words):
    return subprocess.Popen(
        [sys.executable, "-c", "from treekit.cli.main import main; main()", "corpus", "trees", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def rows_of(path):
    "How many documents a store has that is being written."
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=10)) as db:
        try:
            return db.execute("SELECT COUNT(*) FROM documents").fetchone()[0]
        except sqlite3.OperationalError:
            return 0  # killed before its first write


@pytest.mark.slow
def test_killed_again_and_again(tmp_path):
    "SIGKILL at random moments: the next run goes on, no worker is left behind, and the store equals one built in one go."
    write_dump(dump := tmp_path / "world.xml.bz2", 1500, bz2.open)
    whole, rng, path, have = (
        build(dump, tmp_path / "whole.trees", workers=1, progress=False),
        random.Random(3),
        tmp_path / "killed.trees",
        [],
    )
    for _ in range(6):
        have.append(rows_of(path))
        process, after = run(dump, path, "--workers", 2), have[-1] + rng.randrange(0, 250)
        while process.poll() is None and rows_of(path) < after:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        assert process.returncode == -9
        until = time.monotonic() + 20
        while time.monotonic() < until:  # its session: the workers that are still there
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.02)
        else:
            pytest.fail("workers outlive the process that started them")
        if rows_of(path) == 1500:
            break  # on a busy machine it may be through before the kill comes
        if rows_of(path):
            with pytest.raises(UsageError, match="run the same build again"):
                TreeStore(path)
    out, err = run(dump, path, "--workers", 2).communicate()
    killed = TreeStore(path)
    assert have == sorted(have) and 0 < have[-1] < 1500 and "1,500 documents" in out
    assert killed.fingerprint == whole.fingerprint
    assert (
        killed.counts
        == whole.counts
        == {"documents": 1500, "disambiguation": 15, "empty": 15, "list": 15, "namespace": 15, "redirect": 150}
    )


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
    assert build(articles, tmp_path / "a.trees").fingerprint == store.fingerprint  # finished: nothing is done again


def test_a_dump_with_everything_in_it(tmp_path):
    pages = [
        page("Titan", 1, "A moon."),
        page("Titan", 2, "A god."),
        page("titan (ride)", 3, "A ride."),
        page("The moon Titan", 4, "#REDIRECT [[Titan]]", redirect="Titan"),
        page("Café", 5, "A &amp; B < C"),
        page("Again", 1, "x"),
        page("Loop", 6, "", redirect="Loop"),
        page("Module:X", 7, "return", 828),
        page("Huge", 8, "word " * 400_000),
        "  <page>\n    <title>Odd & broken</title>\n  </page>\n",
    ]
    (tmp_path / "d.xml").write_text("<mediawiki>\n" + "".join(pages))
    store = build(tmp_path / "d.xml", tmp_path / "d.trees", workers=1, progress=False)
    assert store.counts == {"documents": 5, "broken XML": 1, "duplicate id": 1, "namespace": 1, "redirect": 2}
    assert (
        store.find("Titan").id,
        store.get("2").title,
        store.find("The_moon_Titan").id,
        store.find("Loop"),
        store.find("Cafe\u0301").id,
        store.find("nothing"),
    ) == ("1", "Titan", "1", None, "5", None)
    assert store.get("5")[1].text == "A & B < C"


def test_bad_files(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"title": "A", "text": "b"}\n\nnot json\n{"title": 3}\n[]\n"x"\n' + "[" * 100_000 + "\n"
    )
    store = build(tmp_path / "a.jsonl", tmp_path / "a.trees", workers=1, progress=False)
    assert store.counts["documents"] == 1 and sum(store.counts.values()) == 6 and len(list(store.skips())) == 5
    (tmp_path / "empty.trees").touch()  # killed before its first write
    assert len(build([dict(title="A", text="b")], tmp_path / "empty.trees", progress=False)) == 1
    for wrong in (
        lambda: build([tmp_path / "a.jsonl"], tmp_path / "y"),
        lambda: build(tmp_path / "none.xml", tmp_path / "x"),
        lambda: build(tmp_path, tmp_path / "x"),
        lambda: build(tmp_path / "a.jsonl", tmp_path / "no" / "x"),
        lambda: build(tmp_path / "a.jsonl", tmp_path / "empty.trees"),
        lambda: TreeStore(tmp_path / "a.jsonl"),
        lambda: TreeStore(tmp_path / "none"),
    ):
        with pytest.raises(UsageError):
            wrong()
