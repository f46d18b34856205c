"An artefact's notebook by batch, from the command line: rounds, one order for each, the same table, and nothing asked twice."

import collections

import pytest

from batch_server import BatchServer
from commands import inside
from test_cli import BODY, PARAMETERS, clone, notebook  # noqa: F401 (a fixture)

TWO = """        step, about = context.trace.add("step", "..."), dict(question=question.question, documents=hits)
        value = await context.ask(ASK, node=step, **about)
        about |= dict(question=f"{question.question} {value['answer']}?")
        value = await context.ask(ASK, node=context.trace.add("answer", "..."), **about)
"""
N = 12


def reproduced(home, server, out, *more):
    words = (
        "reproduce",
        "treerare/table1",
        "--profile",
        "local",
        "--model",
        "gpt-4o-mini",
        "--endpoint",
        server.url,
        "--data",
        "synthetic",
        "--n",
        N,
        "--out",
        out,
        *more,
    )
    code, said, err = inside(*words, cwd=home, TREEKIT_HOME=str(out / "home"))
    assert code == 0, err
    return said + err, {p.name: p.read_bytes() for p in out.glob("treerare/table1.csv")}


@pytest.mark.slow
def test_a_notebook_by_batch(clone, tmp_path):  # noqa: F811
    one = next(line for line in BODY.splitlines(True) if "value = await context.ask" in line)
    notebook(clone / "nbs/reproduce/treerare/table1.ipynb", PARAMETERS, BODY.replace(one, TWO))
    with BatchServer(reply="replies:various", seconds=0.2) as server:
        _, plain = reproduced(clone, server, tmp_path / "plain")
        singles = server.count
        said, table = reproduced(clone, server, tmp_path / "batch", "--set", "batch=true")
        sent = server.batches()
        assert plain and table == plain and server.count == singles == 2 * N
        assert [len(b["ids"]) for b in sent] == [
            N,
            N,
        ]  # two calls that wait for each other: two rounds, and all questions in each
        assert not [i for i, times in collections.Counter(server.paid()).items() if times > 1]
        _, again = reproduced(clone, server, tmp_path / "batch", "--set", "batch=true", "--force")
        assert again == table and len(server.batches()) == 2
