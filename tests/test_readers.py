"""Files of questions, passages and dumps as the field keeps them: forms, encodings, dialects, duplicates, linear time, advice."""

import bz2, gzip, json, lzma, re
from pathlib import Path

import pytest

from treekit.config import UsageError
from treekit.core.types import Passage
from treekit.corpora.formats import DataError
from treekit.corpora.load import Files, read_corpus
from treekit.corpora.passage_store import PassageStore, import_passages
from treekit.corpora.tree_store import build

CASES = Path(__file__).parents[2] / "shared" / "cases"
QUESTION = dict(id="q1", question="Who directed Velmora?", answers=["Olin Tarsk"])


@pytest.fixture
def put(tmp_path):
    def write(name, *rows, pack=bytes, encoding="utf-8"):
        text = "\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows)
        (tmp_path / name).write_bytes(pack(text.encode(encoding)))
        return tmp_path / name

    write.folder = tmp_path
    return write


# -- one reader behind every door

PASSAGES = [
    dict(id="a", title="Velmora", text="Velmora is a film."),
    dict(id="b", title="Tarn", text="Tarn is a lake."),
]
LINES = [json.dumps(p) for p in PASSAGES]
TABLE = ["title\ttext\tid", "Velmora\tVelmora is a film.\ta", "Tarn\tTarn is a lake.\tb"]
FORMS = {
    "x.jsonl": LINES,
    "list.jsonl": [json.dumps(PASSAGES)],
    "x.json": [json.dumps(PASSAGES, indent=1)],
    "lines.json": LINES,
    "X.JSONL": LINES,
    "x.ndjson": LINES,
    "crlf.jsonl": [line + "\r" for line in LINES],
    "blank.jsonl": ["", LINES[0], "  ", LINES[1], ""],
    "x.tsv": TABLE,
    "X.TSV": TABLE,
    "x.csv": [t.replace("\t", ",") for t in TABLE],
    "excel.csv": [t.replace("\t", ";") for t in TABLE],
    "by_id.json": [json.dumps({p["id"]: dict(title=p["title"], text=p["text"]) for p in PASSAGES})],
    "nan.jsonl": [LINES[0][:-1] + ', "score": NaN}', LINES[1]],
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_forms_of_passages(put, name, pack):
    "The same passages by every door, whatever the compression and the encoding are, and whether or not the name says so."
    wanted = [Passage(**p) for p in PASSAGES]
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        path = put(name, *FORMS[name], pack=pack, encoding=encoding)
        assert list(read_corpus(path)) == wanted
    assert list(import_passages(path, put.folder / "x.passages", progress=False)) == wanted
    put("mine.dev.jsonl", QUESTION)
    path.rename(
        put.folder / f"mine_corpus{'.csv' if '.csv' in name else path.suffix}.{'gz' if pack is gzip.compress else 'xz'}"
    )
    assert Files(put.folder).passages("mine") == wanted


def test_parquet(put):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [dict(qid="q1", query="Who directed Velmora?", generation_gt=["Olin Tarsk"], retrieval_gt=[["d1"]])]
    pq.write_table(pa.Table.from_pylist(rows), put.folder / "mine.dev.parquet")
    passages = [dict(doc_id="d1", contents="Velmora is by Olin Tarsk.", metadata=dict(title="Velmora"))]
    pq.write_table(pa.Table.from_pylist(passages), put.folder / "mine_corpus.parquet")
    [q], [p] = Files(put.folder).questions("mine"), Files(put.folder).passages("mine")
    assert (q.answers, q.supporting, p) == (
        ("Olin Tarsk",),
        ("d1",),
        Passage("d1", "Velmora", "Velmora is by Olin Tarsk."),
    )
    ids = pa.table(dict(id=pa.array([7.0, None]), text=["Lyon.", "Ribe."]))  # as pandas has a column with an empty cell
    pq.write_table(ids, put.folder / "few.parquet")
    assert next(iter(read_corpus(put.folder / "few.parquet"))).id == "7"
    (put.folder / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="bad.parquet: not Parquet"):
        list(read_corpus(put.folder / "bad.parquet"))


PASSAGE_DIALECTS = [
    (
        dict(id="0", contents='"Velmora"\nVelmora is a film.'),
        ("0", "Velmora", "Velmora is a film."),
    ),  # Pyserini, Search-R1
    (dict(_id="d7", title="Velmora", text="A film.", metadata={}), ("d7", "Velmora", "A film.")),  # BEIR
    (dict(docid=7, body="A film."), ("7", "", "A film.")),
    (dict(passage_id=1, passage_text="A film."), ("1", "", "A film.")),
    (dict(document_id="x", document="A film."), ("x", "", "A film.")),
    (dict(id=3, title="Velmora", text=["A film.", " It is long."]), ("3", "Velmora", "A film. It is long.")),
    (dict(pid=0, passage='He said "no".\nAnd left.'), ("0", "", 'He said "no".\nAnd left.')),
    (dict(page_content="A film.", metadata=dict(title="Velmora"), id="l"), ("l", "Velmora", "A film.")),  # LangChain
    (dict(id=None, title=None, text="A film."), (None, "", "A film.")),
]


@pytest.mark.parametrize("row, wanted", PASSAGE_DIALECTS)
def test_dialects_of_passages(put, row, wanted):
    [p] = read_corpus(put("x.jsonl", row))
    assert (p.id if wanted[0] else None, p.title, p.text) == wanted


REFUSED = [
    ("x.jsonl", b"7z\xbc\xaf\x27\x1c rest", "7z archive"),
    ("x.jsonl", b"PK\x03\x04 rest", "zip archive"),
    ("x.jsonl", b'{"text": "\xff"}', "not UTF-8"),
    ("x.jsonl", '{"text": "a"}'.encode("utf-16-le"), "not JSON"),
    ("x.jsonl", gzip.compress(b'{"text": "a"}' * 99, mtime=0)[:-20], "cut off or damaged"),
    ("x.jsonl", b"", "no passages in it"),
    ("x.jsonl", lzma.compress(b'{"text": "a"}' * 99)[:-20], "cut off or damaged"),
    ("x.json", b"[]", "no passages in it"),
    ("x.jsonl", b'{"question": "Who?", "answer": "A"}', "the record is a question"),
    ("x.json", b"3", "should be an object"),
    ("x.jsonl", b'{"title": "A", "abstract": "B"}', "the record has title, abstract"),
    ("x.jsonl", b'["a"]', "should be an object"),
    ("x.csv", b"a,b\n1,2\n", "should name the columns"),
    ("x.tsv", b"id\ttext\n1\ta\tb\n", "3 fields, not 2"),
    ("x.jsonl", b'{"text": {"a": 1}}', "should be a string"),
    ("x.jsonl", b'{"id": [1], "text": "a"}', "field 'id' should be a string"),
    ("x.csv", b"id,text,Text\n1,a,b\n", "two columns are named text"),
    ("x.jsonl", b"\n<!DOCTYPE html><html>Log in", "a web page, not the file"),
    ("x.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:a\n", "a pointer of Git LFS"),
]


@pytest.mark.parametrize("name, content, said", REFUSED)
def test_what_is_refused_is_refused_in_a_line(put, name, content, said):
    (put.folder / name).write_bytes(content)
    for read in (
        lambda: list(read_corpus(put.folder / name)),
        lambda: import_passages(put.folder / name, put.folder / "x.passages"),
    ):
        with pytest.raises(UsageError, match=said) as e:
            read()
        assert "\n" not in str(e.value) and name in str(e.value)


# -- duplicates


def test_equal_passages_are_one_and_different_ones_with_one_id_are_an_error(put, capsys):
    same, other = (
        [dict(title="A", text="One.")] * 2 + [dict(text="Two.")],
        [dict(id="a", text="One."), "", dict(id="a", text="Two.")],
    )
    path = put("mine_corpus.jsonl", *same)
    put("mine.dev.jsonl", QUESTION)
    store = import_passages(path, put.folder / "x.passages", progress=False)
    assert [p.text for p in store] == ["One.", "Two."]
    assert Files(put.folder).passages("mine") == list(read_corpus(path)) == list(store)
    assert "mine_corpus.jsonl: 1 repeated passages are left out" in capsys.readouterr().err
    path = put("mine_corpus.jsonl", *other)
    said = r"mine_corpus.jsonl, line 3: the id 'a' is that of another passage \(mine_corpus.jsonl, line 1\)"
    for read in (
        lambda: list(read_corpus(path)),
        lambda: Files(put.folder).passages("mine"),
    ):
        with pytest.raises(DataError, match=said):
            read()
    with pytest.raises(DataError, match="line 3: the id 'a' is that of another passage"):
        import_passages(path, put.folder / "y.passages", progress=False)
    paragraphs = [QUESTION | dict(id=i, paragraphs=[dict(id="0", text=f"Text {i}.")]) for i in ("q1", "q2")]
    with pytest.raises(DataError, match="question 'q2': the id '0'.*question 'q1'"):
        Files(put("own.jsonl", *paragraphs)).passages("own")


# -- dialects of questions

CONTEXT = [["Velmora", ["Velmora is by Olin Tarsk."]], ["Other", ["Other text."]]]
OFFICIAL = dict(
    _id="h",
    question="Who directed Velmora?",
    answer="Olin Tarsk",
    type="bridge",
    supporting_facts=[["Velmora", 0]],
    context=CONTEXT,
)
AS_COLUMNS = dict(
    context=dict(title=["Velmora", "Other"], sentences=[s for _, s in CONTEXT]),
    supporting_facts=dict(title=["Velmora"], sent_id=[0]),
)
ASKED = dict(id="m", question="Who directed Velmora?", answerable=True)
PARAGRAPHS = [dict(idx=0, title="Velmora", paragraph_text="Velmora is by Olin Tarsk.", is_supporting=True)]
SQUAD = dict(id="s", question="Who directed Velmora?", context="Velmora is by Olin Tarsk.", title="Velmora")
DIALECTS = {  # name -> record, dialect, number of paragraphs, number of supporting ones
    "HotpotQA": (OFFICIAL, "HotpotQA, 2WikiMultihopQA", 2, 1),
    "HotpotQA on the hub": (OFFICIAL | AS_COLUMNS, "HotpotQA, 2WikiMultihopQA", 2, 1),
    "2Wiki with JSON as text": (
        OFFICIAL | {k: json.dumps(OFFICIAL[k]) for k in ("context", "supporting_facts")} | dict(evidences="[]"),
        "HotpotQA, 2WikiMultihopQA",
        2,
        1,
    ),
    "MuSiQue": (ASKED | dict(answer="Olin Tarsk", paragraphs=PARAGRAPHS), "MuSiQue", 1, 1),
    "HippoRAG's sample": (
        ASKED | dict(answer=["Olin Tarsk"], paragraphs=[dict(title="Velmora", text="A film.", is_supporting=True)]),
        "MuSiQue",
        1,
        1,
    ),
    "SQuAD on the hub": (SQUAD | dict(answers=dict(text=["Olin Tarsk"], answer_start=[0])), "SQuAD, KorQuAD", 1, 1),
    "SQuAD without title": (
        {k: v for k, v in SQUAD.items() if k != "title"} | dict(answers=dict(text=["Olin Tarsk"], answer_start=[0])),
        "SQuAD, KorQuAD",
        1,
        1,
    ),
    "FlashRAG": (
        dict(id=0, question="Who directed Velmora?", golden_answers=["Olin Tarsk"], metadata={}),
        "FlashRAG",
        0,
        0,
    ),
    "FlashRAG's HotpotQA": (
        dict(
            id="f",
            question="Who directed Velmora?",
            golden_answers=["Olin Tarsk"],
            metadata=dict(type="bridge") | AS_COLUMNS,
        ),
        "FlashRAG",
        2,
        1,
    ),
    "AutoRAG": (
        dict(qid="a", query="Who directed Velmora?", retrieval_gt=[["d1"], ["d2"]], generation_gt=["Olin Tarsk"]),
        "AutoRAG",
        0,
        2,
    ),
    "LongBench": (
        dict(
            _id="l",
            input="Who directed Velmora?",
            context="Passage 1:\nVelmora\nIt is by Olin Tarsk.",
            answers=["Olin Tarsk"],
        ),
        "LongBench, ChainRAG",
        1,
        0,
    ),
    "one answer": (dict(id=7, question="Who directed Velmora?", answer="Olin Tarsk"), "treekit", 0, 0),
    "TriviaQA": (
        dict(question_id="t", question="Who directed Velmora?", answer=dict(value="Olin Tarsk", aliases=["Tarsk"])),
        "treekit",
        0,
        0,
    ),
    "PopQA": (
        dict(id=4, question="Who directed Velmora?", possible_answers='["Olin Tarsk", "Tarsk"]'),
        "treekit",
        0,
        0,
    ),
    "lists as text": (dict(id=4, question="Who directed Velmora?", answer='["Olin Tarsk", "Tarsk"]'), "treekit", 0, 0),
    "a list of objects": (QUESTION | dict(answers=[dict(text="Olin Tarsk")]), "treekit", 0, 0),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects_of_questions(put, name):
    record, dialect, paragraphs, supporting = DIALECTS[name]
    for file, content in (("x.dev.jsonl", record), ("x.dev.json", json.dumps([record]))):
        [q] = Files(put(file, content)).questions("x")
        assert (q.question, q.answers[0]) == ("Who directed Velmora?", "Olin Tarsk") and isinstance(q.id, str)
        assert (len(q.paragraphs), len(q.supporting)) == (paragraphs, supporting)
        (put.folder / file).unlink()


def test_a_number_is_an_answer(put):
    path = put("x.jsonl", dict(id=1, question="When?", answer=1899), dict(id=2, question="Is it?", answers=[True, 2.5]))
    assert [(q.id, q.answers) for q in Files(path).questions("x")] == [("1", ("1899",)), ("2", ("yes", "2.5"))]


@pytest.mark.parametrize(
    "record, said",
    [
        (dict(id="a", question="Q?", gold="A"), "field 'answers' is missing; the record has id, question, gold"),
        (dict(id="a", question="Q?", golden_answers=[]), "field 'golden_answers' is empty"),
        (dict(id="a", question="Q?", answers=None), "is empty"),
        (
            dict(id="a", question="Q?", answer="A", context="[['Velmora', ['Text.']]]"),
            "a list written as text, but not as JSON",
        ),
        (dict(id="a", question="Q?", answers="['A', 'B']"), "field 'answers' is a list written as text, but not as"),
        (dict(_id="a", text="Q?"), "field 'question' is missing; the record has _id, text"),
        (dict(id={"a": 1}, question="Q?", answer="A"), "field 'id' should be a string"),
        ({k: v for k, v in OFFICIAL.items() if k != "answer"}, "field 'answers' is missing"),
    ],
)
def test_an_error_names_what_is_there(put, record, said):
    with pytest.raises(DataError, match=re.escape(said)):
        Files(put("x.dev.jsonl", record)).questions("x")


def test_questions_that_no_answer_can_be_scored_of(put, capsys):
    "MuSiQue-Full's pairs and SQuAD 2.0 leave the unanswerable ones out, and say so; a test file has no answers."
    full = [
        ASKED | dict(answer="A", paragraphs=PARAGRAPHS),
        ASKED | dict(answer="A", paragraphs=PARAGRAPHS, answerable=False),
    ]
    assert len(Files(put("musique_full_v1.0_dev.jsonl", *full)).questions("musique")) == 1
    qas = [
        dict(id="1", question="Q?", answers=[dict(text="A")]),
        dict(id="2", question="Q?", answers=[], is_impossible=True),
    ]
    pages = dict(data=[dict(title="T", paragraphs=[dict(context="A.", qas=qas)])])
    assert len(Files(put("squad.json", json.dumps(pages))).questions("squad")) == 1
    assert capsys.readouterr().err.count("1 unanswerable questions are left out") == 2
    with pytest.raises(DataError, match="no questions in it with an answer"):
        Files(put("all_dev.jsonl", full[1])).questions("musique")
    for blank in ({}, dict(answer=""), dict(answer=None)):
        record = {k: v for k, v in OFFICIAL.items() if k != "answer"} | blank
        assert Files(put("hotpot_test_fullwiki_v1.json", json.dumps([record]))).questions("hotpotqa")[0].answers == ()


# -- check


PAGE = (
    "<mediawiki><page><title>Velmora</title><ns>0</ns><id>1</id><revision><model>wikitext</model><text>A film.\n\n== Plot ==\nLong."
    "</text></revision></page>{}</mediawiki>"
)


def test_dumps(put):
    "One line, several pages in a line, every compression; what isn't read is an error and not an empty store."
    second = PAGE[11 : -len("{}</mediawiki>")].replace("Velmora", "Tarn").replace("<id>1", "<id>2")
    for n, (name, pack) in enumerate(
        ((".xml", bytes), (".xml.xz", lzma.compress), (".xml.gz", gzip.compress), (".xml.bz2", bz2.compress))
    ):
        dump = put(f"dump{n}{name}", PAGE.format(second).replace("\n", " "), pack=pack)
        assert build(dump, put.folder / f"{n}.trees", 1, progress=False).counts == {"documents": 2}
    for content, said in (
        (b"7z\xbc\xaf\x27\x1c", "7z archive"),
        (b"<mediawiki></mediawiki>", "no document"),
        (b"", "no XML"),
        (PAGE.replace("<ns>0", "<ns>1").format("").encode(), "'namespace': 1"),
        (PAGE[:90].encode(), "cut off"),
    ):
        (put.folder / "bad.xml").write_bytes(content)
        with pytest.raises(UsageError, match=said):
            build(put.folder / "bad.xml", put.folder / "bad.trees", 1, progress=False)
    (put.folder / "bad.xml").write_text(PAGE.format(""))
    assert len(build(put.folder / "bad.xml", put.folder / "bad.trees", 1, progress=False)) == 1


# -- advice is followed


def test_advice_leads_somewhere(put):
    "Each error's advice, taken from its text and followed."
    for part in ("distractor", "fullwiki"):
        put(f"hotpot_dev_{part}_v1.json", json.dumps([OFFICIAL]))
    with pytest.raises(UsageError, match="name one file instead") as e:
        Files(put.folder).questions("hotpotqa")
    for name in re.findall(r"'(hotpot\S+?json)'", str(e.value)):
        one = Files(put.folder / name)
        assert (
            one.datasets() == ["hotpotqa"]
            and len(one.questions("hotpotqa")) == 1
            and len(one.passages("hotpotqa")) == 2
        )
    path, store = put("a.jsonl", dict(id=1)), put.folder / "x.passages"
    with pytest.raises(DataError, match="field 'text' is missing"):
        import_passages(path, store, progress=False)
    assert len(import_passages(put("a.jsonl", PASSAGES[0]), store, progress=False)) == 1  # the mended file
    with pytest.raises(UsageError, match="or delete it") as e:
        import_passages(put("a.jsonl", *PASSAGES), store, progress=False)
    store.unlink()
    assert len(import_passages(put.folder / "a.jsonl", store, progress=False)) == 2 == len(PassageStore(store))
    with pytest.raises(DataError, match="except in a file named \\*test\\*"):
        Files(put("x.jsonl", QUESTION | dict(answers=[]))).questions("x")
    assert len(Files(put("x.test.jsonl", QUESTION | dict(answers=[]))).questions("x")) == 1
    with pytest.raises(DataError, match="name the columns, such as id, title, text"):
        list(read_corpus(put("x.csv", "1,A,One.")))
    assert list(read_corpus(put("x.csv", "id,title,text", "1,A,One."))) == [Passage("1", "A", "One.")]


@pytest.mark.skipif(not CASES.is_dir(), reason="no shared cases beside the clone")
def test_the_reviews_cases():
    def questions(place, name):
        return Files(CASES / place).questions(name)

    [q] = questions("02-2wiki-json-strings", "2wiki")
    assert len(q.paragraphs) == 2 and len(q.supporting) == 1
    assert len(questions("16-musique-full", "musique")) == len(questions("18-field-formats/hf", "hotpotqa")) == 1
    assert (
        questions("18-field-formats/flashrag", "nq")[0].answers
        == questions("18-field-formats/answer", "mine")[0].answers
    )
    with pytest.raises(DataError, match="line 2.*line 1"):
        Files(CASES / "13-corpus-ids-dropped").passages("mine")
