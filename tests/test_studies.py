"Studies: the new calls known before, a part replaced in every answer, and a study that is found again."

import pytest

import treekit
from treekit import Study, ablate, load, run
from treekit.config import UsageError
from treekit.experiments.planning import open_store


@pytest.fixture(scope="module", autouse=True)
def own_store(tmp_path_factory):
    "Other tests add calls to the shared one."
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEKIT_STORE", str(tmp_path_factory.mktemp("store") / "own.sqlite"))
        yield


@pytest.fixture(scope="module")
def questions():
    return load("musique", n=3, data="synthetic:100")


@pytest.fixture(scope="module")
def ran(questions):
    return run(["vanilla", "treerare", "toq", "react"], questions)


def calls(run):
    store = open_store(run.opened.kept.profile)
    return store.query("SELECT COUNT(*) FROM calls")[0][0]


TEN = [
    lambda r, qs, **p: ablate("treerare", qs, top_k=[1, 2, 15], **p),
    lambda r, qs, **p: ablate("treerare", qs, tree=["dependency", "none"], retriever=["bm25", "bm25s"], **p),
    lambda r, qs, **p: ablate("arise", qs, iterations=[2, 4], value=["vanilla", "risk"], **p),
    lambda r, qs, **p: ablate("toq", qs, levels=[1, 2], **p),
    lambda r, qs, **p: ablate("vanilla", qs, search_scope=["corpus", "own"], **p),
    lambda r, qs, **p: ablate("sc", qs, samples=[2, 3], **p),
    lambda r, qs, **p: r.edit("TreeRare (DT)", "phrase", reply=["gold", "noise"], **p),
    lambda r, qs, **p: r.edit(
        next(m for m in r.opened.kept.head["methods"] if m.startswith("ToQ")), passages="gold", **p
    ),
    lambda r, qs, **p: r.edit("TreeRare (DT)", query=["noise", "Who wrote it?"], **p),
    lambda r, qs, **p: r.edit("Vanilla", passages=["gold", "noise"], **p),
]


@pytest.mark.parametrize("study", TEN, ids=range(10))
def test_the_new_calls_are_known_before(questions, ran, study):
    "Counted by a preview, which makes none; then made."
    before = calls(ran)
    told = study(ran, questions, preview=True)
    assert calls(ran) == before and told.exact.all()
    made = study(ran, questions)
    assert list(told.calls) == [p.new for p in made.points] and calls(ran) - before == told.calls.sum()
    assert study(ran, questions, preview=True).calls.sum() == 0


def test_a_reply_at_every_node_of_a_kind(ran, questions):
    "Gold where it answers; noise is another question's; a function sees the node."
    name = "TreeRare (DT)"
    gold = ran.edit(name, "answer", reply=["gold", "noise"])
    assert [*gold.table().reply] == ["as it was", "gold", "noise"] and [*gold.table()["mean"]][1:] == [1.0, 0.0]
    assert {*gold.tests()["from"]} == {"as it was", "gold"}  # the control is on the left
    seen = []
    noted = ran.edit(name, "phrase", reply=lambda node, said: (seen.append(node.kind), "Numos.")[1])
    assert {*seen} == {"phrase"} and {r.trace.nodes[0].data["evidence"] for r in noted.runs[1]} == {"Numos."}
    assert [r.trace.nodes[0].data["queries"] for r in noted.runs[1]] != [["Numos."]] * 3  # queries are no sub-answers
    told = ran.edit("Vanilla", passages="gold").runs[1]
    assert all({h["id"] for h in r.trace.nodes[0].data["hits"]} >= {*r.question.supporting} for r in told)


@pytest.mark.parametrize(
    "words, said",
    [
        (dict(node="phrase", reply="gold"), "name one of Vanilla"),
        (dict(i="Vanilla", node="phrases", reply="gold"), "kind of node"),
        (dict(i="Vanila", reply="gold"), "did you mean 'Vanilla'"),
        (dict(i="Vanilla"), "nothing is replaced"),
        (dict(i="Vanilla", reply=3), "reply can't be 3: give a text"),
        (dict(i="Vanilla", query=[None]), "query can't be None"),
        (dict(i="Vanilla", passages=["x"]), "passages can't be 'x': give a list of passages"),
        (dict(i="Vanilla", reply="gold", passages="noise"), "one after the other"),
    ],
)
def test_a_replacement_that_can_not_be_made(ran, words, said):
    with pytest.raises(UsageError, match=said):
        ran.edit(**words)


def test_failed_answers_are_told(ran):
    assert "; 3 answers failed and count as 0, the first with ZeroDivisionError" in repr(
        ran.edit("Vanilla", reply=lambda *_: 1 / 0)
    )


def test_a_study_is_found_again(questions, tmp_path):
    "By its name; by the lines that make it again; as one page with its trees and as CSV. A field that changes nothing is named."
    study = ablate("treerare", questions, top_k=[2, 3], picked_ambiguous=[4, 5])
    again = Study.open(study.name[:8])
    assert again.table().equals(study.table()) and again.tests().equals(study.tests()) and repr(again) == repr(study)
    assert study.without_effect == ["picked_ambiguous"] and "picked_ambiguous changes nothing here" in repr(study)
    code, names = study.code, {}
    exec(code, names)
    assert code.count("\n") == 4 and names["study"].tests().equals(study.tests()) and again.code == code
    head, *lines = study.to_csv(tmp_path / "s.csv").read_text().splitlines()
    assert head.startswith("top_k,picked_ambiguous,n,mean,") and len(lines) == 4
    page = study.to_html(tmp_path / "s.html").read_text()
    assert "<svg" in page and "treekit explorer" in page and "gained" in page
    assert ablate(treekit.TreeRare(), questions, top_k=[2, 3]).code == ""  # objects have no name
    with pytest.raises(UsageError, match="no study is named 'nothing'"):
        Study.open("nothing")
