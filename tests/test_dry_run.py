"Dry runs of artefacts under a profile whose server isn't running: nothing is paid, nothing fails. The slow test has the other papers'."

import ast, hashlib, json

import pytest

from commands import warmly
from treekit.config import load_profile, package_dir
from treekit.corpora.bundled_questions import BundledQuestions
from treekit.artefacts.dry_run import DryRun, as_json, matrix, dry_run

SOME = ("treerare/table4", "rdr2/table12")
OTHERS = (
    "arise/table5",
    "treerare/figure2",
    "toq/table4",
    "toq/figure3",
    "arise/case",
    "searchr/table6",
    "searchr/table11",
    "rdr2/table11",
)

SEEN = []  # how many were done, whenever one was


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEKIT_HOME", str(tmp_path_factory.mktemp("home")))
        patch.delenv("OPENAI_API_KEY", raising=False)
        warmly(patch)
        yield {r.artefact: r for r in dry_run(SOME, ("vllm",), seen=lambda so_far: SEEN.append(len(so_far)))}


@pytest.mark.long
def test_they_all_start(made):
    assert list(made) == [*SOME]
    assert [(r.artefact, r.outcome, r.line) for r in made.values() if r.outcome not in ("starts", "lacks")] == []


@pytest.mark.slow
def test_others_start(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = dry_run(OTHERS, ("vllm",))
    assert [r.artefact for r in made] == [*OTHERS]
    assert [(r.artefact, r.outcome, r.line) for r in made if r.outcome not in ("starts", "lacks")] == []
    assert not any("log-probabilities" in line for line in made[0].lacks)  # vLLM has them


def test_what_is_replaced_is_looked_up_when_it_is_called():
    "A function that a module of a paper imports by name is the real one in a kernel that has imported the module before."
    replaced = {"load_documents", "need_documents"}  # in treekit.experiments.resources, by treekit.artefacts.mocks
    bound = {
        p.name: names
        for p in sorted((package_dir() / "papers").rglob("*.py"))
        for node in ast.walk(ast.parse(p.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (names := replaced & {a.name for a in node.names})
    }
    assert bound == {}


@pytest.mark.long
def test_the_page_grows_and_what_was_run_is_not_run_again(made, monkeypatch):
    assert SEEN == sorted(SEEN) and len(SEEN) == SEEN[-1] == len(SOME)
    ran = []
    monkeypatch.setattr(
        "treekit.artefacts.dry_run.run_tasks",
        lambda stages, *rest, **variables: ran.extend(t.name for tasks in stages for t in tasks),
    )
    assert dry_run(SOME, ("vllm",)) == list(made.values()) and ran == []
    assert dry_run(SOME, ("vllm",), few=1) == [] and ran == [f"vllm/{name}" for name in SOME]
    assert dry_run(SOME[:1], ("vllm",), force=True) == [] and len(ran) == 3


@pytest.mark.long
def test_what_is_missing_is_said_in_a_line_each(made):
    said = "\n".join(made["rdr2/table12"].lacks)
    assert (
        "server: nothing answers at http://localhost:8000/v1" in said
        and "documents: " in said
        and "treekit corpus trees" in said
    )
    assert any("gaotianyu1350/roberta-large-squad (1.4 GB)" in line for line in made["treerare/table4"].lacks)
    assert all("\n" not in line for r in made.values() for line in r.lacks)


@pytest.mark.long
def test_how_much_a_real_run_would_be(made):
    table = made["treerare/table4"]
    assert (
        table.n["hotpotqa"] == load_profile("vllm").n and table.calls > 1000 and table.tokens_in > 3 * table.tokens_out
    )
    assert 1024 < table.longest < 8192


@pytest.mark.long
def test_the_matrix(made):
    page = matrix([*made.values(), DryRun("rdr2/table11", "paper", "fails", "KeyError: 'x'")])
    assert "| artefact | vllm | paper |" in page and "✗" in page and "KeyError: 'x'" in page
    assert len(json.loads(as_json(list(made.values())))) == len(SOME)


@pytest.mark.slow
def test_the_questions_of_a_folder_are_compared_with_the_published_ones(tmp_path, monkeypatch):
    "All that a real run scores, by their texts, though a dry run asks two; a folder of the published ones differs in nothing."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    warmly(monkeypatch)

    def passages(q):
        return [dict(id=p.id, title=p.title, text=p.text, is_supporting=p.id in q.supporting) for p in q.paragraphs]

    rows = [
        dict(id=q.id, dataset="musique", question=q.question, answers=list(q.answers), paragraphs=passages(q))
        for q in BundledQuestions().questions("musique")
    ]

    def differs(name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "musique.dev.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        [made] = dry_run(("arise/table5",), ("vllm",), dict(data=str(folder)))
        assert made.outcome in ("starts", "lacks") and made.differs, made
        return [line for line in made.differs if line.startswith("questions=")]

    assert differs("published") == []
    last = max(
        rows, key=lambda r: hashlib.sha256(f"0:{r['id']}".encode()).digest()
    )  # the sample's last, so none of the two
    last["question"] = "In which year was it?"
    assert differs("changed") == [f"questions=1 of {len(rows)} have texts that musique doesn't give"]
