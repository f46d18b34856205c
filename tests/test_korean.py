"Korean throughout: particles, morphemes, retrieval, the world, answers, the offline reader, figures."

import hashlib
import re
import subprocess
import sys
import unicodedata

import pytest

from treekit.retrieval.bm25 import BM25, analyzer_for, english
from treekit.language.morphemes import korean
from treekit.core.types import Passage
from treekit.language.particles import fit, particle, resolve_particles
from treekit.language.morphemes import morpheme_terms


def nfd(text):
    return unicodedata.normalize("NFD", text)


# ---------------------------------------------------------------- particles


@pytest.mark.parametrize(
    "word, pair, said",
    [
        ("영화", "은/는", "영화는"),
        ("소설", "은/는", "소설은"),
        ("1974", "이/가", "1974가"),
        ("3", "을/를", "3을"),
        ("100", "은/는", "100은"),
        ("1만", "을/를", "1만을"),
        ("1,000", "으로/로", "1,000으로"),
        ("서울", "으로/로", "서울로"),
        ("부산", "으로/로", "부산으로"),
        ("BMW", "과/와", "BMW와"),
        ("FBI", "이/가", "FBI가"),
        ("KBL", "은/는", "KBL은"),
        ("Seoul", "으로/로", "Seoul로"),
        ("〈등불〉", "은/는", "〈등불〉은"),
        ("서울(Seoul)", "은/는", "서울(Seoul)은"),
        ("“영화”", "이다/다", "“영화”다"),
        ("값", "이/가", "값이"),
        ("50%", "을/를", "50%를"),
        ("#1", "은/는", "#1은(는)"),
        ("[ANS_1]", "으로/로", "[ANS_1](으)로"),
        ("", "은/는", "은(는)"),
    ],
)
def test_particles_follow_the_last_sound(word, pair, said):
    assert word + particle(word, pair) == said


def test_marks_are_filled_and_open_ones_settled():
    assert fit("소르{은/는} 벨란{을/를} 3{으로/로}") == "소르는 벨란을 3으로" and fit("{S}{은/는}") == "{S}{은/는}"
    assert resolve_particles("소르은(는) 서울(으)로, 등불와(과)") == "소르는 서울로, 등불과"


# ---------------------------------------------------------------- terms and retrieval


@pytest.mark.long
def test_particles_spacing_and_encoding_make_no_difference():
    assert morpheme_terms("노르드비크에서는") == morpheme_terms("노르드비크의") == morpheme_terms(nfd("노르드비크를"))
    assert "전기차" in korean("전기차를 추천해 주세요") and "bmw" in korean("ＢＭＷ는")
    for odd in ("", " ", "😀", "?!", "\ud800", "ㅋㅋㅋ", "韓國", "a" * 5000):
        assert isinstance(korean(odd), list)


def test_the_passages_language_chooses_the_analyzer():
    ko, en = (
        Passage("1", "서울", "서울은 대한민국의 수도이며 한강이 흐른다."),
        Passage("2", "Seoul", "Seoul (서울) is the capital of South Korea."),
    )
    assert analyzer_for([ko, ko, en]) is korean and analyzer_for([en, en, ko]) is english
    assert BM25([ko]).fingerprint.startswith("bm25(k1=0.9,b=0.4,korean)")
    assert BM25([en]).fingerprint.startswith("bm25(k1=0.9,b=0.4,english)")
    assert [
        h.passage.id
        for h in BM25([ko, Passage("3", "부산", "부산은 항구 도시이다.")]).search(["항구는 어디에 있습니까?"])[0]
    ] == ["3"]


@pytest.mark.long
def test_lucene_ranks_as_memory_does(tmp_path, monkeypatch):
    from treekit.retrieval.lucene import Lucene

    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    passages = [
        Passage(str(i), t, x)
        for i, (t, x) in enumerate(
            [
                ("등불", "등불은 소르에서 촬영되었다."),
                ("소르", "소르는 강가의 도시로 등대가 있다."),
                ("강", "강은 도시를 지난다."),
            ]
        )
    ]
    queries = ["소르에서 촬영된 것은?", "도시를 지나는 강", "등대가 있는 곳은 어디인가요?", "", "xyz"]
    lucene, memory = Lucene(passages), BM25(passages)
    for a, b in zip(lucene.search(queries), memory.search(queries), strict=True):
        assert [h.passage.id for h in a] == [h.passage.id for h in b]
    assert "korean" in lucene.fingerprint


# ---------------------------------------------------------------- the world


@pytest.fixture(scope="module")
def world():
    from treekit.synthetic.generate import SyntheticWiki

    return SyntheticWiki(lang="ko")


def digest(items):
    return hashlib.sha256("\n".join(items).encode()).hexdigest()[:16]


def test_english_is_the_same_bytes():
    "The Korean side changes nothing of the English one."
    from treekit.synthetic.generate import SyntheticWiki

    w = SyntheticWiki()
    assert digest(f"{p.id}|{p.title}|{p.text}" for p in w.passages()) == "6b76d73cf322eba0"
    said = {
        name: digest(
            f"{q.id}|{q.question}|{q.answers}|{q.supporting}|{[(s.question, s.answer) for s in q.decomposition]}"
            f"|{q.triples}|{[p.id for p in q.paragraphs]}"
            for q in w.dataset(name, 40)
        )
        for name in ("hotpotqa", "musique", "2wiki", "ambigdocs", "asqa", "qampari", "eli5")
    }
    assert said == {
        "hotpotqa": "d0dfe359ed854ec7",
        "musique": "3c32b2a891580dbc",
        "2wiki": "cb4da6b0cf048f41",
        "ambigdocs": "e0c9b5e1a45020ad",
        "asqa": "d3f003d98c03cd31",
        "qampari": "ce8cc476f4bd9df7",
        "eli5": "4add404310163d7a",
    }


def test_every_particle_fits(world):
    "Behind every name, in articles and questions: the particle that its last sound asks for."
    from treekit.synthetic.facts import make_block

    texts = [p.text for p in world.passages()] + [
        q.question for k in ("single", "bridge", "comparison", "list", "compositional") for q in world.questions(k, 40)
    ]
    names = sorted({world.w.name(e) for b in range(4) for e in make_block(0, b)}, key=len, reverse=True)
    pairs = {p: pair for pair in ("은/는", "을/를", "과/와", "으로/로", "이다/다") for p in pair.split("/")}
    behind = re.compile("(" + "|".join(map(re.escape, names)) + ")(〉?)(은|는|을|를|과|와|으로|로|이다|다)(?=[ ,.])")
    seen = 0
    for text in texts:
        assert (
            "{" not in text
            and "}" not in text
            and "(를)" not in text
            and "  " not in text
            and unicodedata.is_normalized("NFC", text)
        ), text
        for name, close, said in behind.findall(text):
            seen += 1
            assert particle(name, pairs[said]) == said, text
    assert seen > 1000


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    "answer, gold",
    [
        ("노르드비크", "노르드비크"),
        (nfd("노르드비크"), "노르드비크"),
        ("노르드비크에서", "노르드비크"),
        ("노르드비크입니다.", "노르드비크"),
        ("노르드비크예요!", "노르드비크"),
        ("노르드비크였다", "노르드비크"),
        ("노르드비크(Nordvik)", "노르드비크"),
        ("한국(韓國)", "한국"),
        ("〈빌려온 등불〉", "빌려 온 등불"),
        ("빌려온  등불 😀", "빌려 온 등불"),
        ("６１２００", "61,200명"),
        ("6만 1,200명", "61,200명"),
        ("육만천이백 명", "61,200명"),
        ("61200명이다", "61,200명"),
        ("349만", "3,490,000명"),
        ("3억 5천만 원", "350,000,000원"),
        ("1974. 3. 5.", "1974년 3월 5일"),
        ("1974-03-05", "1974년 3월 5일"),
        ("1974년 3월 5일이다", "1974년 3월 5일"),
        ("1974", "1974년"),
        ("1974년에", "1974년"),
        ("743km", "743킬로미터"),
        ("743 킬로미터", "743km"),
        ("세 명", "3명"),
        ("이천십오 년", "2015년"),
        ("50%", "50퍼센트"),
        ("BMW입니다", "BMW"),
        ("Seoul에서", "Seoul"),
    ],
)
def test_the_same_korean_answer(answer, gold):
    from treekit.scoring.short import cover_em, em, f1

    assert em(answer, gold) == f1(answer, gold) == cover_em(answer, gold) == 1


@pytest.mark.parametrize(
    "answer, gold",
    [
        ("노르드비크강", "노르드비크"),
        ("3월", "3년"),
        ("612명", "12명"),
        ("1975년", "1974년"),
        ("아니요", "예"),
        ("", "노르드비크"),
        ("韓國", "한국"),
        ("😀", "예"),
        ("6만", "61,200명"),
    ],
)
def test_another_korean_answer(answer, gold):
    from treekit.scoring.short import em, f1

    assert em(answer, gold) == 0 and f1(answer, gold) < 1


def test_korean_answers_in_longer_texts():
    from treekit.scoring.short import cover_em, f1, list_scores

    assert (
        cover_em("그 도시에는 6만 1,200명이 살며, 1974년에 특허장을 받았다.", ["61,200명"]) == 1
        and cover_em("612명이 산다.", "12명") == 0
    )
    assert (
        cover_em("네, 두 사람은 같은 도시에서 태어났습니다.", "예") == 1
        and cover_em("예술가입니다", "예") == 0
        and cover_em("아니오, 다릅니다.", "아니요") == 1
    )
    assert 0 < f1("노르드비크 항구", "노르드비크") < 1 and f1("BMW i5", "BMW i5") == 1
    assert list_scores("〈푸른 섬〉, 늦은 연과 황금 탑", [["푸른 섬"], ["늦은 연"], ["황금 탑"]])["f1"] == 1


# ---------------------------------------------------------------- figures


@pytest.mark.slow
def test_figures_show_hangul(tmp_path):
    "No box where a syllable should be: matplotlib warns of every glyph that it lacks; and the two files repeat."
    code = """
import warnings, sys
warnings.simplefilter("error")
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt
from treekit.figures.plots import house_style, save_figure
house_style()
fig, ax = plt.subplots()
ax.barh(["나무 질문", "생각의 사슬", "Direct 생성"], [1, 2, 1.5]); ax.set_title("응답 타당도 (%) — 노르드비크, 쉬네키, 궨켈")
save_figure(fig, sys.argv[1], "hangul")
"""
    files = []
    for n in "12":
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / n / "mine")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-600:]
        files.append([(tmp_path / n / "mine" / f"hangul.{kind}").read_bytes() for kind in ("png", "svg")])
    assert files[0] == files[1]
