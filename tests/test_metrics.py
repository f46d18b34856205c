"""Metrics and statistics against public implementations, and on cases that are easy to get wrong."""

import json, random
from pathlib import Path
import numpy as np, pytest
from fakes import tiny_judge
from types import SimpleNamespace
from treekit.scoring import judges, long, metrics, short, statistics as s
from treekit.config import load_profile
from treekit.core.types import QAPair, Question
from treekit.core.method import Usage
from treekit.experiments.metric_judges import judge_for
from treekit.experiments.results import Results, Row

m = SimpleNamespace(**{k: v for module in (short, judges, long, metrics) for k, v in vars(module).items()})
WORDS = "the a red heron Heron, lighthouse 1974 of U.S. (film) keeper's yes no Tessia – glass".split()


def sentences(n, seed=0, most=8):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(0, most))) for _ in range(n)]


# ---- answers


@pytest.mark.parametrize(
    "answer,gold,right",
    [
        ("Yes", "yes", 1),
        ("yes, they are", "yes", 1),
        ("No.", "yes", 0),
        ("Not known", "no", 0),
        ("no idea; yes perhaps", "yes", 0),
        ("", "yes", 0),
        ("noanswer", "noanswer", 1),
        ("Paris, in France", "Paris", 1),
        ("", "Paris", 0),
        ("\n\tPARIS\u00a0", "paris", 1),
        ("サン・パリ", "パリ", 1),
        ("It was 1,000,000", "1000000", 1),
        ("AC/DC", "AC DC", 0),
        ("?", "?", 1),
        ("x", "?", 0),
    ],
)
def test_cover_em(answer, gold, right):
    assert m.cover_em(answer, [gold]) == right


def test_ambigdocs():
    golds = ["24 May 1819", "the river Ilm", "Who"]  # the third: nothing but a stop word
    assert m.answer_recall("Born in May 1819 by the Ilm", golds) == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert m.answer_recall("x", ["x"] * 5 + ["y"]) == 1  # the sixth doesn't count
    titles = ["Essel", "Essel (film)", "Essel (1920 novel)"]
    assert m.entity_recall("the 1920 film", titles, "Essel (disambiguation)") == pytest.approx((0 + 1 + 1 / 2) / 3)
    assert m.entity_recall("the essel film", titles) == pytest.approx((1 + 1 + 0) / 3)


def test_rouge_l_is_rouge_scores():
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeLsum"], use_stemmer=True)
    for answer, one, other in zip(sentences(60, 8, 20), sentences(60, 9, 20), sentences(60, 10, 20)):
        by_line = ["\n".join(x.lower().replace(". ", ".\n").split("\n")) for x in (answer, one, other)]
        expected = max(scorer.score(reference, by_line[0])["rougeLsum"].fmeasure for reference in by_line[1:])
        assert m.rouge_l(answer, [one, other]) == pytest.approx(expected)


def test_lists_as_alce_counts_them():
    groups = [["A One", "a1"], ["B"], ["C"]]
    due = dict(precision=3 / 4, recall=2 / 3, recall5=2 / 3, f1=12 / 17, f1_5=12 / 17, items=4)
    assert m.list_scores("A1, the a one, B, x", groups) == pytest.approx(due)
    many = [[str(i)] for i in range(20)]
    scores = m.list_scores(", ".join(map(str, range(7))) + ".", many)
    assert (scores["recall5"], scores["recall"], scores["f1_5"]) == (1, 7 / 20, 1)
    assert m.list_scores("", many) == dict(precision=0, recall=0, recall5=0, f1=0, f1_5=0, items=0)


def test_disambig_f1_and_its_readers():
    pairs = [("When?", ["1974"]), ("Where?", ["Port Essel", "Essel"])]
    assert m.disambig_f1("x", pairs, lambda questions, text: ["1974", "Essel"]) == 1
    assert m.disambig_f1("x", pairs, lambda questions, text: ["", "Essel town"]) == pytest.approx((0 + 2 / 3) / 2)
    with pytest.raises(ValueError):
        m.disambig_f1("x", pairs, lambda questions, text: ["1974"])  # an answer is missing: not a shorter mean


def tiny_reader(folder):
    "A model with random weights."
    import torch, transformers
    from treekit.utils.model_files import MINILM, model_folder

    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder(MINILM))
    config = transformers.BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        initializer_range=2.0,
    )
    transformers.BertForQuestionAnswering(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.mark.long
def test_judges_read_together_and_remember(tmp_path, monkeypatch):
    "In one batch as alone; what was judged is not read again, by another process' judge neither; other weights are another judge."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    tiny_reader(tmp_path / "tiny")
    reader = m.SpanReader(str(tmp_path / "tiny"))
    texts = [" ".join(f"word{i}" for i in range(n)) for n in (3, 900, 40, 1, 500)]
    asked = [(f"question {i}?", text) for i, text in enumerate(texts)] + [("question 0?", " ")]
    alone = [reader([q], text)[0] for q, text in asked]
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "other"))
    assert reader.together(asked) == alone and any(alone) and alone[-1] == ""
    calls = []
    monkeypatch.setattr(m.SpanReader, "_read", lambda self, some: calls.append(some) or [""] * len(some))
    assert m.SpanReader(str(tmp_path / "tiny")).together(asked) == alone and calls == []
    question = Question(
        "q", "asqa", "When?", qa_pairs=(QAPair("When was it?", ("1974",)), QAPair("And where?", ("Essel",)))
    )
    rows = [Row("a", "asqa", question, f"It was {i}.", "", Usage()) for i in range(4)]
    results = Results(rows, profile=load_profile("offline", judges=f"qa={tmp_path / 'tiny'}"))
    results.score("Dis-F1")
    assert [len(some) for some in calls] == [8], "the readings of all rows are one batch"


# ---- RDR²'s passages, and ALCE's evaluation on cases computed by hand from the description of its code


def test_passage_scores_by_hand():
    golds = [["Ann", "A. Orrin"], ["Bob"]]
    two = m.passage_scores(
        ["It was Bob.", "", "a. orrin, 1974"], golds
    )  # 1/1 * 1/2 + 1/3 * 1/2 over five slots; 3 + 0 + 3 words
    assert two == pytest.approx(dict(em=1, hit=1, score=(1 / 2 + 1 / 6) / 5, len=6 / 5))
    assert m.passage_scores(["It was Bob."], golds, slots=None) == pytest.approx(dict(em=0.5, hit=0, score=0.5, len=3))
    assert m.passage_scores([], golds, slots=None) == dict(em=0, hit=0, score=0, len=0)
    assert (
        m.passage_scores(["An", "n, he said"], [["An n"]])["em"] == 1
    )  # the passages are one text, as the public code joins them
    with pytest.raises(ValueError):
        m.passage_scores(["x"], [])


def test_what_alce_scores_of_an_output():
    "The first line, without citations; every closing bracket goes, also one that closes none."
    cases = [
        ("\n A fact [1][2]. More [3]\nA second line", "A fact. More"),
        ("[12] x] | y", " x y"),
        ("", ""),
        ("a [b] c", "a [b c"),
    ]
    for text, scored in cases:
        assert m.without_citations(text) == scored


def test_f1_of_the_questions_is_what_the_paper_prints():
    "In all of RDR²'s rows F1-5 is below the harmonic mean of the printed R-5 and Pre, and a mean over questions always is at most that; F1 the same."
    from treekit.figures.verdicts import published

    cells = {}
    for c in published("rdr2", "table6"):
        if c["dataset"] == "QAMPARI" and c["value"] is not None:
            cells.setdefault((c["group"], c["method"]), {})[c["metric"]] = c["value"]

    def harmonic(a, b):
        return 2 * a * b / (a + b)

    rows = [v for v in cells.values() if {"F1-5", "R-5", "Pre"} <= set(v)]
    gaps = [harmonic(v["R-5"], v["Pre"]) - v["F1-5"] for v in rows] + [
        harmonic(v["REC"], v["Pre"]) - v["F1"] for v in rows
    ]
    assert len(rows) == 17 and min(gaps) > 0.3
    rng = random.Random(0)
    for _ in range(50):
        groups = [[str(i)] for i in range(rng.randint(1, 12))]
        some = [
            m.list_scores(", ".join(str(rng.randint(0, 20)) for _ in range(rng.randint(0, 9))), groups)
            for _ in range(20)
        ]
        mean = {k: sum(x[k] for x in some) / 20 for k in some[0]}
        if mean["precision"]:
            assert mean["f1_5"] <= harmonic(mean["precision"], mean["recall5"]) + 1e-12
            assert mean["f1"] <= harmonic(mean["precision"], mean["recall"]) + 1e-12


def test_claims_and_their_judges(tmp_path):
    "The judge by name from a folder; where it can't be had, the metric has no value, and a line says why."
    import transformers

    pytest.importorskip("torch")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_judge(tmp_path / "tiny"))
    judge = m.make_judge("Cla", str(tmp_path / "tiny")).judge
    assert m.claim_recall("Herons fly.", ["Herons fly."] * 3, judge) in (0, 1) and judge("a", "b") in (True, False)
    assert judge.name.startswith("tiny (sha256:")
    pairs = [("Herons fly. " * n, f"Claim {n} about herons.") for n in (1, 400, 3)]
    assert judge.together(pairs) == [judge(*pair) for pair in pairs]
    short = m.Entailment(str(tmp_path / "tiny"), longest=40)
    for premise, claim in pairs:
        fitted = short._fitted(premise, claim)
        assert fitted.endswith(f" hypothesis: {claim}") and len(tokenizer(fitted)["input_ids"]) <= 40
        assert fitted.startswith("premise: ") and ("fly" in fitted or "flies" in fitted)
    assert short._fitted(*pairs[0]) == f"premise: {pairs[0][0]} hypothesis: {pairs[0][1]}"
    assert short._fitted("Herons fly.", "long " * 99).count("long") == 99, "a claim is never cut"


@pytest.mark.parametrize("metric,part", [("Dis-F1", "qa"), ("Cla", "nli"), ("MAUVE", "mauve")])
def test_a_judge_that_is_not_here_leaves_its_column_blank(tmp_path, metric, part):
    question = Question("q", "asqa", "When?", qa_pairs=(QAPair("When was it?", ("1974",)),), claims=("It was 1974.",))
    rows = [Row("a", "asqa", question, "It was 1974.", "", Usage())]
    for named, why in [
        ("", f"add {part}=MODEL to judges"),
        (f"{part}={tmp_path / 'none'}", f"no model judges {metric}: "),
    ]:
        profile = load_profile("offline", judges=named)
        assert judge_for(metric, profile).judge is None
        [cell] = Results(rows, profile=profile).score(metric)
        assert cell["value"] is None and cell["reason"].startswith("not applicable: ") and why in cell["reason"]


# ---- the public implementations' own values

SHARED = json.loads(
    Path(__file__).with_name("shared_cases.json").read_text(encoding="utf-8")
)  # `about` says which code gave them


def both(family, **ours):
    "For each shared case, our values beside those that the public code gave for it."
    assert len(SHARED[family]) >= 40
    for case in SHARED[family]:
        for name, value in ours.items():
            assert value(case) == pytest.approx(case[name], abs=1e-9), (name, case)
    for name in ours:
        assert len({case[name] for case in SHARED[family]}) > 1, f"every case has the same {name}"


def test_hotpotqa_official():
    "EM, F1, precision and recall of answers."
    names = ("f1", "precision", "recall")
    by_token = {n: lambda c, i=i: m.token_scores(c["answer"], c["gold"])[i] for i, n in enumerate(names)}
    both("hotpotqa", em=lambda c: m.em(c["answer"], c["gold"]), **by_token)


def test_asqa_official():
    "STR-EM, its hit rate, and Disambig-F1 given what the reader found."
    both(
        "asqa",
        str_em=lambda c: m.str_em(c["text"], c["pairs"]),
        hit=lambda c: m.hit(c["text"], c["pairs"]),
        disambig_f1=lambda c: m.disambig_f1(
            c["text"], [("?", golds) for golds in c["pairs"]], lambda questions, text: c["short"]
        ),
    )


def test_ambigdocs_official():
    def each(c, key):
        return [d[key] for d in c["documents"]]

    both(
        "ambigdocs",
        ar=lambda c: m.answer_recall(c["text"], each(c, "answer")),
        er=lambda c: m.entity_recall(c["text"], each(c, "title"), c["entity"]),
    )


def test_alce_official():
    names = ("precision", "recall", "recall5", "f1", "f1_5")
    both("qampari", **{n: lambda c, n=n: m.list_scores(c["text"], c["groups"])[n] for n in names})


def test_rouge_score_on_long_answers():
    both("rouge", rouge_l=lambda c: m.rouge_l(c["text"], [c["reference"]]))


# ---- statistics


def test_bootstrap_is_close_to_scipys():
    import scipy.stats

    values = np.random.default_rng(0).random(200) ** 2
    mean, low, high = s.bootstrap(values, n=20_000)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    assert mean == values.mean() and abs(low - theirs.low) < 0.003 and abs(high - theirs.high) < 0.003


def test_paired_test_is_close_to_scipys():
    import scipy.stats

    rng = np.random.default_rng(3)
    for shift in (0, 0.03, 0.1):
        a = rng.random(80)
        b = a + shift + 0.2 * rng.standard_normal(80)

        def difference(x, y, axis):
            return np.mean(y - x, axis=axis)

        how = dict(permutation_type="samples", vectorized=True, n_resamples=20_000, rng=1)
        theirs = scipy.stats.permutation_test((a, b), difference, **how).pvalue
        mine = s.paired_test(a, b)
        assert (
            abs(mine.p - theirs) < 0.02
            and mine.difference == pytest.approx((b - a).mean())
            and mine.low < mine.difference < mine.high
        )


def test_paired_test_is_exact_on_few_differences():
    import scipy.stats

    a, b = [0, 0, 0, 1, 0, 1, 0], [1, 1, 1, 0, 1, 1, 1]

    def difference(x, y):
        return np.mean(np.subtract(y, x))

    theirs = scipy.stats.permutation_test((a, b), difference, permutation_type="samples", n_resamples=np.inf).pvalue
    assert s.paired_test(a, b).p == pytest.approx(theirs)
    with pytest.raises(ValueError, match="different numbers"):
        s.paired_test([1], [1, 2])


def test_fleiss_kappa_on_a_published_example():
    "Fleiss (1971) in the form that encyclopaedias print: ten items, fourteen annotators, five categories."
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    found = s.fleiss_kappa([[j for j, count in enumerate(row) for _ in range(count)] for row in table])
    assert (round(found.kappa, 3), round(found.observed, 3), round(found.expected, 3)) == (0.210, 0.378, 0.213)
    irr = pytest.importorskip("statsmodels.stats.inter_rater")
    assert found.kappa == pytest.approx(irr.fleiss_kappa(np.array(table)))


def test_mauve_against_its_authors_package():
    package = pytest.importorskip("mauve")
    rng = np.random.default_rng(5)
    p, q = rng.standard_normal((300, 20)), rng.standard_normal((300, 20)) + 0.5
    theirs = package.compute_mauve(p_features=p, q_features=q, num_buckets=30, verbose=False).mauve
    assert abs(s.mauve(p, q, clusters=30) - theirs) < 0.1
