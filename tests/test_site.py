"The site: pages have their CSVs' words, links lead somewhere, data files work, bad input is told; its libraries come with treekit[site]."
import csv, json, re, shutil
from pathlib import Path

import pytest

from commands import inside
from treekit.config import UsageError

pytest.importorskip("mdit_py_plugins", reason="treekit[site] isn't installed")
pytest.importorskip("latex2mathml", reason="treekit[site] isn't installed")

from treekit.site.build import build_site
from treekit.site.checks import PageReader, data_in, dead_links, page_sizes, site_differences

ROOT = Path(__file__).resolve().parents[1]
SOME = ("treerare/table1.csv", "treerare/table1.md", "treerare/table3.csv", "treerare/claims.csv", "treerare/claims_order.csv",
        "treerare/inconsistencies.csv", "treerare/inconsistencies_method.csv", "treerare/figure4.csv", "treerare/figure4.png",
        "across/table1.csv", "across/table2.csv", "across/table2.md", "searchr/prompts.csv", "toq/votes_simulated.csv", "rdr2/table1.csv")


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    "A few of the committed results."
    folder = tmp_path_factory.mktemp("figures")
    for name in SOME:
        (folder / "offline" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "figures" / "offline" / name, folder / "offline" / name)
    return folder


@pytest.fixture(scope="module")
def site(figures, tmp_path_factory): return build_site(tmp_path_factory.mktemp("built") / "site", figures, only=("results",)).folder


def rows(figures, name):
    with open(figures / "offline" / name, encoding="utf-8", newline="") as f: return list(csv.DictReader(f))


def test_pages_and_csvs_agree(site, figures):
    assert site_differences(site, figures) == []
    own = PageReader((site / "results/offline/treerare/table1.html").read_text(encoding="utf-8")).sheets["table1"]
    assert len(own["ours"]) == sum(bool(r["reproduced"]) for r in rows(figures, "treerare/table1.csv")) > 50


@pytest.mark.parametrize("page, old, new, told", [
    ("treerare/table1.html", r'(data-l="\d+">)0', r"\g<1>9", "in the page"),
    ("treerare/table1.html", r'(data-p="\d+">)0', r"\g<1>9", "as printed"),
    ("treerare/figure4.html", r"(<td class=num>)0", r"\g<1>9", "in the page"),
    ("treerare/table1.csv", "zero-shot", "zero-shut", "the copy differs"),
    ("treerare/table1.js", "zero-shot", "zero-shut", "the data file differs"),
])
def test_one_changed_word_is_told(site, figures, tmp_path, page, old, new, told):
    shutil.copytree(site, tmp_path / "site")
    path = tmp_path / "site/results/offline" / page
    path.write_text(re.sub(old, new, path.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    [line] = site_differences(tmp_path / "site", figures)
    assert told in line and "treerare" in line


def test_no_link_is_dead_and_one_that_is_is_told(site, tmp_path):
    dead, followed = dead_links(site)
    assert dead == [] and followed > 200
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site/claims.html").write_text(
        '<a href="gone.html"></a><a href="ledger.html#gone"></a><img src="https://elsewhere.net/x.png">'
    )
    assert len([d for d in dead_links(tmp_path / "site")[0] if d.startswith("claims.html")]) == 3


def test_a_first_table_is_small(site):
    sizes = page_sizes(site)
    assert sizes["first_page"] < 100 and 0 < sizes["first_table"] < 300


def test_a_data_file_has_the_command_the_csv_and_latex(site, figures):
    data = data_in(site / "results/offline/treerare/table1.js")
    assert (
        data["command"] == "treekit reproduce treerare/table1"
        and data["csv"].encode() == (figures / "offline/treerare/table1.csv").read_bytes()
    )
    assert data["tex"].startswith("\\begin{table}") and data["tex"].count("\\\\") > 10


def test_the_ledger_has_a_computation_for_every_entry(site, figures):
    page = (site / "ledger.html").read_text(encoding="utf-8")
    assert "Not traced" not in page and page.count("<details class=\"computation\">") > 5
    for entry in rows(figures, "treerare/inconsistencies.csv"): assert entry["claim"].replace("'", "&#x27;") in page


def test_the_leader_is_the_best_of_the_csv(site, figures):
    own = [r for r in rows(figures, "across/table1.csv") if r["dataset"] == "MuSiQue" and r["value"]]
    best = max(own, key=lambda r: float(r["value"]))
    [line] = re.findall(r'<tr><th scope="row">MuSiQue .*?</tr>', (site / "results/index.html").read_text(encoding="utf-8"))
    assert best["method"] in line and best["value"] in line and f'[{best["low"]}, {best["high"]}]' in line
    assert ("not sure" in line) == any(r["place"] == "as good" for r in own)


def test_claims_stand_with_their_verdicts(site, figures):
    page = (site / "claims.html").read_text(encoding="utf-8")
    for c in rows(figures, "treerare/claims.csv"): assert re.search(rf'<tr id="{c["id"]}" data-verdict="{c["outcome"]}"', page)


def test_diagrams_are_drawings_and_no_word_of_theirs_is_obeyed():
    from treekit.site.notebooks import diagram_html
    two = 'flowchart LR\n  a["<b>x</b> & <img src=x onerror=alert(1)>"] -- says --> b\n'
    for text in (two, "sequenceDiagram\n  a->>b: <script>alert(1)</script>\n", "no diagram <script>\n"):
        made = diagram_html(text)
        assert "<script" not in made and "<img" not in made
    pytest.importorskip("merm")
    assert diagram_html(two).count("<svg") == 1 and "#333" not in diagram_html(two) and " style=" not in diagram_html(two)
    wide = "flowchart LR\n" + " --> ".join(f"step_number_{i}" for i in range(12)) + "\n"
    assert float(re.search(r'width="([\d.]+)"', diagram_html(wide))[1]) < 900


def test_a_failed_question_is_shown(figures, tmp_path):
    shutil.copytree(figures, tmp_path / "figures")
    path = tmp_path / "figures/offline/rdr2/table1.csv"
    lines = rows(figures, "rdr2/table1.csv")
    i = next(i for i, r in enumerate(lines) if r["reproduced"])
    lines[i]["failures"] = "3"
    with open(path, "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, lines[0], lineterminator="\n")
        out.writeheader()
        out.writerows(lines)
    built = build_site(tmp_path / "site", tmp_path / "figures", only=("results",)).folder
    assert "3 failed questions" in (built / "results/offline/rdr2/table1.html").read_text(encoding="utf-8")
    assert "3 failed questions" in (built / "results/offline/index.html").read_text(encoding="utf-8")


def test_a_models_words_are_data(figures, tmp_path):
    "What stands in a table is escaped in pages, in data files and in the search."
    shutil.copytree(figures, tmp_path / "figures")
    evil = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
    for name, column in (("rdr2/table1.csv", "method"), ("searchr/prompts.csv", "prompt")):
        lines = rows(figures, name)
        for line in lines[:40]:
            line[column] = evil
        with open(tmp_path / "figures/offline" / name, "w", encoding="utf-8", newline="") as f:
            out = csv.DictWriter(f, lines[0], lineterminator="\n")
            out.writeheader()
            out.writerows(lines)
    built = build_site(tmp_path / "site", tmp_path / "figures", only=("results",)).folder
    assert site_differences(built, tmp_path / "figures") == []
    for path in built.rglob("*.html"):
        assert "<script>alert" not in path.read_text(encoding="utf-8") and 'onerror="' not in path.read_text(encoding="utf-8")
    for path in built.rglob("*.js"):
        assert "</script" not in path.read_text(encoding="utf-8").replace("static/site.js", "") or path.name == "search.js"


@pytest.mark.slow
def test_questions_and_trees_of_a_kept_run(tmp_path, monkeypatch):
    "A table that was made here: its cells have questions, answers and trees; a run with other answers isn't taken for it."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    words = "reproduce", "treerare/table3", "--n", "3", "--out", str(tmp_path / "figures" / "mine")
    code, _, errors = inside(*words, TREEKIT_HOME=str(tmp_path / "home"))
    assert code == 0, errors
    built = build_site(tmp_path / "site", tmp_path / "figures", trees=1, only=("results",)).folder
    data, page = data_in(built / "results/mine/treerare/table3.q.js"), data_in(built / "results/mine/treerare/table3.js")
    assert page["behind"] and page["command"] == "treekit reproduce treerare/table3 --n 3 --out figures/mine" and page["facts"]["run on"]
    [run] = data["trees"]
    assert (built / "trees" / f"{run}.html").exists()
    answered = [said for by in data["answers"].values() for own in by.values() for said in own.values()]
    assert answered and {said[2] for said in answered} == {run} and {said[3] for said in answered} >= {-1, 0}
    table = tmp_path / "figures/mine/treerare/table3_scores.jsonl"
    first, *lines = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["scores"] = [[k, [1 - v for v in own]] for k, own in line["scores"]] if "scores" in line else line.get("scores")
    table.write_text(
        "\n".join(json.dumps({k: v for k, v in line.items() if v is not None}) for line in [first, *lines]) + "\n", encoding="utf-8"
    )
    other = build_site(tmp_path / "other", tmp_path / "figures", trees=1, only=("results",)).folder
    assert data_in(other / "results/mine/treerare/table3.q.js")["answers"] == {} and not (other / "trees").exists()


def test_only_a_site_is_made_anew(figures, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is no site"): build_site(tmp_path / "mine", figures, only=("results",))
    assert (tmp_path / "mine/thesis.txt").exists()
    with pytest.raises(UsageError, match="no results"): build_site(tmp_path / "site", tmp_path / "mine", only=("results",))


def test_the_command_refuses_what_is_not_there():
    code, _, errors = inside("site", "--figures", "nowhere-at-all")
    assert code == 2 and "no folder at" in errors
