"Korean throughout: particles, morphemes, retrieval, the world, answers, the offline reader, figures."
import hashlib
import subprocess
import sys
import unicodedata

import pytest

from treekit.bm25 import BM25, analyzer_for, english, korean
from treekit.data import Passage
from treekit.josa import fit, josa, settle


def nfd(text): return unicodedata.normalize("NFD", text)


# ---------------------------------------------------------------- particles

@pytest.mark.parametrize("word, pair, said", [
    ("영화", "은/는", "영화는"), ("소설", "은/는", "소설은"), ("1974", "이/가", "1974가"), ("3", "을/를", "3을"), ("100", "은/는", "100은"), ("1만", "을/를", "1만을"), ("1,000", "으로/로", "1,000으로"),
    ("서울", "으로/로", "서울로"), ("부산", "으로/로", "부산으로"), ("BMW", "과/와", "BMW와"), ("FBI", "이/가", "FBI가"), ("KBL", "은/는", "KBL은"), ("Seoul", "으로/로", "Seoul로"),
    ("〈등불〉", "은/는", "〈등불〉은"), ("서울(Seoul)", "은/는", "서울(Seoul)은"), ("“영화”", "이다/다", "“영화”다"), ("값", "이/가", "값이"), ("50%", "을/를", "50%를"), ("#1", "은/는", "#1은(는)"),
    ("[ANS_1]", "으로/로", "[ANS_1](으)로"), ("", "은/는", "은(는)")])
def test_particles_follow_the_last_sound(word, pair, said):
    assert josa(word, pair) == said


def test_marks_are_filled_and_open_ones_settled():
    assert fit("소르{은/는} 벨란{을/를} 3{으로/로}") == "소르는 벨란을 3으로" and fit("{S}{은/는}") == "{S}{은/는}"
    assert settle("소르은(는) 서울(으)로, 등불와(과)") == "소르는 서울로, 등불과"


# ---------------------------------------------------------------- terms and retrieval

def test_particles_spacing_and_encoding_make_no_difference():
    assert korean("노르드비크에서는") == korean("노르드비크의") == korean(nfd("노르드비크를"))
    assert "전기차" in korean("전기차를 추천해 주세요") and "bmw" in korean("ＢＭＷ는")
    for odd in ("", " ", "😀", "?!", "\ud800", "ㅋㅋㅋ", "韓國", "a" * 5000): assert isinstance(korean(odd), list)


def test_the_passages_language_chooses_the_analyzer():
    ko, en = Passage("1", "서울", "서울은 대한민국의 수도이며 한강이 흐른다."), Passage("2", "Seoul", "Seoul (서울) is the capital of South Korea.")
    assert analyzer_for([ko, ko, en]) is korean and analyzer_for([en, en, ko]) is english
    assert BM25([ko]).fingerprint.startswith("bm25(k1=0.9,b=0.4,korean)") and BM25([en]).fingerprint.startswith("bm25(k1=0.9,b=0.4,english)")
    assert [h.passage.id for h in BM25([ko, Passage("3", "부산", "부산은 항구 도시이다.")]).search(["항구는 어디에 있습니까?"])[0]] == ["3"]


def test_lucene_ranks_as_memory_does(tmp_path, monkeypatch):
    from treekit.lucene import Lucene
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    passages = [Passage(str(i), t, x) for i, (t, x) in enumerate([("등불", "등불은 소르에서 촬영되었다."), ("소르", "소르는 강가의 도시로 등대가 있다."), ("강", "강은 도시를 지난다.")])]
    queries = ["소르에서 촬영된 것은?", "도시를 지나는 강", "등대가 있는 곳은 어디인가요?", "", "xyz"]
    lucene, memory = Lucene(passages), BM25(passages)
    for a, b in zip(lucene.search(queries), memory.search(queries), strict=True):
        assert [h.passage.id for h in a] == [h.passage.id for h in b]
    assert "korean" in lucene.fingerprint


def test_morphemes_are_the_same_in_every_process():
    code = "from treekit.bm25 import korean\nprint(korean('노르드비크에서 태어난 벨란토 스트란드는 1974년 3월 5일에 무엇을 발표했나요?'))"
    outs = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**__import__("os").environ, "PYTHONHASHSEED": s}).stdout for s in "12"}
    assert len(outs) == 1
