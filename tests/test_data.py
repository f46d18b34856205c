"""Loading: every format, wrong files, samples, corpora, exemplars; on the real files beside the clone where there are some."""

import json

import pytest
from sample_questions import CORPORA, REAL, SOURCES, folder_of
from treekit.config import UsageError
from treekit.core.types import Passage
from treekit.corpora.formats import DataError
from treekit.experiments.resources import datasets, exemplars, load, load_corpus
from treekit.corpora.load import read_corpus

real = pytest.mark.skipif(not REAL.is_dir(), reason="no real questions beside the clone")

GOOD = {"id": "a", "question": "Who mends clocks?", "answers": ["Otto Venn"]}


@pytest.fixture
def put(tmp_path):
    def write(name, *rows):
        (tmp_path / name).write_text(
            "\n".join(r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in rows), encoding="utf-8"
        )
        return tmp_path / name

    write.folder = tmp_path
    return write


# -- formats (made up; the shapes are the datasets')

SHAPES = {
    "hotpotqa": {
        "_id": "h",
        "question": "Q?",
        "answer": "Venn",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["A &amp; B", 1]],
        "context": [["A &amp; B", ["One. ", " Two Venn."]], ["C", ["Three."]]],
    },
    "2wiki": {
        "_id": "w",
        "question": "Q?",
        "answer": "Venn",
        "type": "bridge_comparison",
        "supporting_facts": [["A", 0]],
        "evidences": [["A", "father", "Venn"]],
        "context": [["A", ["Venn."]]],
    },
    "musique": {
        "id": "3hop1__1_2_3",
        "question": "Q?",
        "answer": "Venn",
        "answer_aliases": ["O. Venn"],
        "answerable": True,
        "paragraphs": [{"idx": 0, "title": "A", "paragraph_text": "Venn.", "is_supporting": True}],
        "question_decomposition": [
            {"id": 1, "question": "A >> founder", "answer": "Venn", "paragraph_support_idx": 0},
            {"id": 2, "question": "#1 >> born", "answer": "X", "paragraph_support_idx": None},
        ],
    },
    "ambigdocs": {
        "question": "Q?",
        "disambig_entity": ["Osk (town)", "Osk (ship)"],
        "gold_answers": ["12", "1931"],
        "wrong_answers": ["13"],
        "documents": [
            {"text": "Osk has 12.", "type": "correct", "answer": "12"},
            {"text": "Noise.", "type": "noise", "answer": "unknown"},
        ],
    },
    "asqa": {
        "ambiguous_question": "Q?",
        "qa_pairs": [
            {
                "context": "No context provided",
                "question": "Q, the town?",
                "short_answers": ["12", "twelve"],
                "wikipage": "Osk",
            }
        ],
        "wikipages": [{"title": "Osk", "url": "u"}],
        "annotations": [{"knowledge": [{"content": "Osk has 12.", "wikipage": "Osk"}], "long_answer": "Osk has 12."}],
    },
    "qampari": {"id": "1__simple__dev", "question": "Q?", "answers": [["A", "Aa"], ["B"]], "answer": "A, B"},
    "eli5": {"question": "Why?", "question_ctx": "", "answer": "Because.", "claims": ["One.", "Two.", "Three."]},
    "strategyqa": {
        "qid": "s",
        "term": "Osk",
        "description": "town",
        "question": "Is it?",
        "answer": False,
        "facts": ["f"],
        "decomposition": ["d?", "Is #1?"],
        "evidence": [],
    },
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("as_list", [True, False])
def test_original_formats(put, name, as_list):
    row = SHAPES[name]
    put(f"{name}.json" if as_list else f"{name}.dev.jsonl", json.dumps([row]) if as_list else row)
    (q,) = load(name, put.folder)
    assert q.dataset == name and q.id and q.question == row.get("question", "Q?")
    if name == "hotpotqa":
        assert q.paragraphs[0].title == "A & B"
        assert q.paragraphs[0].text == "One. Two Venn."
        assert q.facts == (("A & B", 1),)
        assert q.supporting == (q.paragraphs[0].id,)
        assert q.paragraphs[0].text[slice(*q.meta["sent_ends"][q.paragraphs[0].id])].strip() == "Two Venn."
    if name == "2wiki":
        assert q.triples == (("A", "father", "Venn"),) and q.hops == 4
    if name == "musique":
        assert q.answers == ("Venn", "O. Venn")
        assert q.type == "3hop1"
        assert [s.support_id for s in q.decomposition] == [q.paragraphs[0].id, ""]
    if name == "ambigdocs":
        assert q.meta["variant"] == "ramdocs"
        assert [p.wikipage for p in q.qa_pairs] == ["Osk (town)", "Osk (ship)"]
        assert len(q.supporting) == 1
    if name == "asqa":
        assert q.qa_pairs[0].answers == ("12", "twelve") and q.long_answers == ("Osk has 12.",) and q.supporting
    if name == "qampari":
        assert q.answer_groups == (("A", "Aa"), ("B",)) and q.answers == ("A", "B")
    if name == "eli5":
        assert q.claims == ("One.", "Two.", "Three.") and q.long_answers == ("Because.",)
    if name == "strategyqa":
        assert q.answers == ("no",) and q.hops == 2


def test_ambigdocs_own_format(put):
    documents = [
        {"title": "Osk (town)", "text": "t", "pid": 1, "answer": "12"},
        {"title": "Osk (ship)", "text": "s", "pid": 2, "answer": "1931"},
    ]
    put(
        "ambigdocs_dev.json",
        json.dumps([{"qid": 7, "ambiguous_entity": "Osk", "question": "Q?", "documents": documents}]),
    )
    (q,) = load("ambigdocs", put.folder)
    assert q.id == "ambigdocs-7" and q.answers == ("12", "1931") and len(q.supporting) == 2


def test_korquad(put):
    asked = {"id": "k", "question": "누가 고치나?", "answers": [{"text": "오토", "answer_start": 0}]}
    page = {"title": "시_계", "paragraphs": [{"context": "오토가 시계를 고친다.", "qas": [asked]}]}
    put("KorQuAD_v1.0_dev.json", json.dumps({"version": "v", "data": [page]}))
    (q,) = load("korquad", put.folder)
    assert q.lang == "ko" and q.answers == ("오토",) and q.paragraphs[0].title == "시 계"


# -- wrong files


@pytest.mark.parametrize(
    "rows, message",
    [
        (
            [{**GOOD, "answers": {"a": "Otto"}}],
            "line 1: field 'answers' should be a string or a list of strings, not an object",
        ),
        ([GOOD, GOOD], "line 2: field 'id' is 'a', which line 1 has already"),
        ([GOOD, "", {"id": "b", "question": "", "answers": ["x"]}], "line 3: field 'question' is empty"),
        ([{"id": "b", "answers": ["x"]}], "line 1: field 'question' is missing"),
        ([{"id": "b", "question": "Q?", "answers": []}], "line 1: field 'answers' is empty"),
        ([{"id": "b", "question": "Q?", "answers": [""]}], "line 1: field 'answers' is empty"),
        (
            [{"id": "b", "question": "Q?", "answers": [None]}],
            "field 'answers[0]' should be a string or a list of strings, not null",
        ),
        ([{"id": 3.5, "question": "Q?", "answers": ["x"]}], "field 'id' should be a string"),
        ([GOOD, '{"id": "b", "question"'], "line 2: not JSON"),
        ([GOOD, "[1, 2]"], "line 2: the record should be an object, not a list"),
        ([{**GOOD, "paragraphs": [{"id": "p", "title": "t"}]}], "line 1, paragraphs[0]: field 'text' is missing"),
        ([{**GOOD, "hops": "two"}], "field 'hops' should be a whole number, not a string"),
        ([], "no questions in it"),
    ],
)
def test_malformed_files(put, rows, message):
    put("toy.dev.jsonl", *rows)
    with pytest.raises(DataError) as e:
        load("toy", put.folder)
    assert "toy.dev.jsonl" in str(e.value) and message in str(e.value)
    assert str(put.folder) not in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("name", ["hotpotqa", "musique", "ambigdocs", "asqa", "qampari", "eli5", "strategyqa"])
def test_any_field_may_be_missing_or_wrong(put, name):
    "Whatever is broken in a record, the error is ours."
    for field in SHAPES[name]:
        for value in (None, 3, "x", [], [3], {}, [[]], [{}]):
            row = {**SHAPES[name], field: value}
            put(f"{name}.dev.jsonl", row)
            try:
                load(name, put.folder)
            except UsageError as e:
                assert "\n" not in str(e)


def test_what_does_not_exist(put):
    put("musique.dev.jsonl", SHAPES["musique"])
    for wrong, message in (
        (lambda: load("musiqe", put.folder), "did you mean 'musique'"),
        (lambda: load("musique", put.folder / "no"), "no folder at '.*/no'"),
        (lambda: load("musique", put.folder, "train"), "no train questions of 'musique'"),
        (lambda: load("musique", put.folder, n=0), "at least 1"),
        (lambda: load("musique", put.folder, "tset"), "did you mean 'test'"),
    ):
        with pytest.raises(UsageError, match=message):
            wrong()


def test_hub_without_a_network(monkeypatch):
    hf = pytest.importorskip("datasets")

    def refuse(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setattr(hf, "load_dataset", refuse)
    with pytest.raises(UsageError, match="--data DIR"):
        load("hotpotqa", "hub")
    with pytest.raises(UsageError, match="no dataset on the hub"):
        load("hotpot", "hub")


LONG = {
    "input": "Who wrote Grey Harbour?",
    "context": "Passage 1:\nGrey Harbour\nGrey Harbour is a novel.\n\nIt is by Ida Roth.\n\nPassage 2:\nTarn\n"
    + "Tarn is a town of fog. " * 48,
    "answers": ["Ida Roth", "Roth"],
    "length": 300,
    "dataset": "musique",
    "language": "en",
    "all_classes": None,
    "_id": "lb1",
}


@pytest.mark.parametrize(
    "change, said",
    [
        (dict(context=None), "field 'context' is missing"),
        (dict(context="Passage 1:\n\nPassage 2:\n"), "field 'context' is empty"),
        (dict(context=["a"]), "field 'context' should be a string, not a list"),
        (dict(answers=None), "field 'answers' is empty"),
        (dict(answers=[]), "field 'answers' is empty"),
        (dict(answers=[{}]), "should be a string"),
        (dict(input=None), "field 'input' is missing"),
        (dict(input=" "), "field 'question' is empty"),
    ],
)
def test_a_bad_record_of_chainrag_is_said_in_one_line(put, change, said):
    put("musique.jsonl", LONG, {**LONG, **change, "_id": "lb2"})
    with pytest.raises(DataError, match="^musique.jsonl, line 2: ") as e:
        load("musique", put.folder)
    assert said in str(e.value)


# -- samples


# -- corpora and exemplars


def test_corpora(put):
    path = put("x_corpus.jsonl", {"id": "p", "title": "Osk", "text": "A town."}, "", {"text": "It rained."})
    first, second = read_corpus(path)
    assert (
        first == Passage("p", "Osk", "A town.") and first.contents == "Osk\nA town." and second.contents == "It rained."
    )
    assert second.id == list(read_corpus(path))[1].id
    for rows, message in (
        ([{"title": "Osk"}], "line 1: field 'text' is missing"),
        ([{"text": " "}], "field 'text' is empty"),
        (["{"], "line 1: not JSON"),
        ([], "no passages in it"),
    ):
        with pytest.raises(UsageError, match=message):
            list(read_corpus(put("bad.jsonl", *rows)))
    with pytest.raises(UsageError, match="no file 'nowhere.jsonl'"):
        list(read_corpus(put.folder / "nowhere.jsonl"))


# -- the real files

SIZES = dict(
    real=dict(
        hotpotqa=375,
        musique=135,
        ambigdocs=339,
        asqa=681,
        qampari=670,
        eli5=662,
        strategyqa=148,
        musique_questions=1626,
    )
    | {"2wiki": 471, "2wiki_hippo": 273},
    twin={name: 40 for name in CORPORA},
)


@pytest.mark.parametrize("source", SOURCES)
def test_a_folder_of_questions(source):
    folder = folder_of(source)
    assert set(SIZES[source]) <= set(datasets(folder))
    for name, n in SIZES[source].items():
        found = load(name, folder)
        assert len(found) == n
        assert all(q.question.strip() for q in found)
    for name in ("hotpotqa", "musique", "2wiki"):
        corpus = {p.id for p in load_corpus(name, folder)}
        for q in load(name, folder, n=50):
            assert q.supporting and set(q.supporting) <= {p.id for p in q.paragraphs} <= corpus


@real
def test_the_real_passages_of_asqa():
    assert len(load_corpus("asqa", REAL)) == 9572


@real
@pytest.mark.slow
def test_real_originals_give_the_same_questions():
    "A question in the dataset's own format and in the keyed copy is one and the same, down to the passages' ids."
    for name in ("hotpotqa", "musique"):
        own, keyed = ({q.id: q for q in load(name, source, "train")} for source in (REAL / "original", REAL))
        assert own.keys() & keyed.keys()
        for i in own.keys() & keyed.keys():
            a, b = own[i], keyed[i]
            assert (a.question, a.answers, a.paragraphs, a.supporting, a.decomposition, a.facts) == (
                b.question,
                b.answers,
                b.paragraphs,
                b.supporting,
                b.decomposition,
                b.facts,
            )
    assert len(load("2wiki", REAL / "original")) == 50 and len(load("korquad", REAL / "original")) == 5774


@pytest.mark.parametrize("source", SOURCES)
def test_exemplars_are_none_of_the_questions(source):
    folder = folder_of(source)
    for name in (*CORPORA, *(("qampari", "eli5") if source == "real" else ())):
        shots = exemplars(name, folder, k=3)
        assert len(shots) == 3
        assert not {q.id for q in shots} & {q.id for q in load(name, folder)}
