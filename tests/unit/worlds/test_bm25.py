import time

import pytest

from outfox.core.errors import DataError
from outfox.core.types import Document
from outfox.worlds.retrieval import bm25
from outfox.worlds.retrieval.bm25 import BM25


def documents(*texts: str) -> list[Document]:
    return [Document(id=f"d{n}", text=text) for n, text in enumerate(texts, start=1)]


def ids(retriever: BM25, query: str, top_k: int = 10) -> list[str]:
    return [document.id for document in retriever.search([query], top_k)[0]]


def test_more_shared_words_come_first_and_rarer_ones_weigh_more():
    retriever = BM25(documents("the capital of Peru", "the capital of Chile", "Peru and Chile"))
    assert ids(retriever, "capital Peru") == ["d1", "d3", "d2"]
    assert ids(retriever, "of of Chile")[0] == "d2"


def test_ties_go_to_the_earlier_document_whatever_top_k():
    retriever = BM25(documents(*["the same text"] * 40))
    for top_k in (1, 2, 16, 17, 40):
        assert ids(retriever, "same", top_k) == [f"d{n}" for n in range(1, top_k + 1)]


def test_few_and_many_results_agree():
    texts = [f"w{n % 7} w{n % 11} w{n % 3} common" for n in range(60)]
    retriever = BM25(documents(*texts))
    for query in ("w3 common", "w1 w2 w6", "w10"):
        assert ids(retriever, query, 60)[:9] == ids(retriever, query, 9)


def test_a_document_without_a_shared_word_is_never_returned():
    retriever = BM25(documents("one two", "three four"))
    assert ids(retriever, "one") == ["d1"]
    assert ids(retriever, "five") == []


def test_case_width_and_accent_composition_do_not_matter():
    retriever = BM25(documents("São Paulo", "ＴＯＫＹＯ"))
    assert ids(retriever, "SA\u0303O paulo") == ["d1"]
    assert ids(retriever, "tokyo") == ["d2"]


def test_there_is_no_stemming_and_decimals_are_one_word():
    retriever = BM25(documents("cities", "city", "4.2 million", "4 or 2"))
    assert ids(retriever, "city") == ["d2"]
    assert ids(retriever, "4.2") == ["d3"]


def test_titles_are_searched_too():
    assert ids(BM25([Document(id="d1", title="Lima", text="a city")]), "lima") == ["d1"]


def test_chinese_is_cut_into_words_and_names_are_kept_whole():
    texts = documents("秘鲁的货币是秘鲁索尔。", "智利的货币是智利比索。")
    assert ids(BM25(texts), "秘鲁货币") == ["d1", "d2"]
    assert BM25(texts, words=["秘鲁索尔"]).words("秘鲁索尔") == ["秘鲁索尔"]
    assert ids(BM25(texts, words=["秘鲁索尔"]), "秘鲁索尔") == ["d1"]


def test_an_empty_corpus_is_refused():
    with pytest.raises(DataError, match="at least one document"):
        BM25([])


def test_a_corpus_without_words_finds_nothing():
    assert ids(BM25(documents("🦊", "!")), "fox") == []


def test_scores_agree_with_lucenes_formula():
    retriever = BM25(documents("a b", "a c c"), k1=1.5, b=0.75)
    # idf(c) = ln(1 + (2 - 1 + .5) / (1 + .5)); tf = 2 / (2 + 1.5 * (1 - .75 + .75 * 3 / 2.5))
    [(document, score)] = retriever.scores("c", 5)
    assert document.id == "d2"
    assert score == pytest.approx(0.6931472 * 2 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2.5)), rel=1e-5)


def test_single_queries_are_fast():
    texts = [f"entity{n} relation{n % 5} of value{n % 90}" for n in range(2500)]
    retriever = BM25(documents(*texts))
    best = min(_seconds(retriever) for _ in range(3))
    assert best < 0.5  # 500 queries; a quiet core needs a tenth of it


def _seconds(retriever: BM25) -> float:
    start = time.perf_counter()
    for n in range(500):
        retriever.search([f"entity{n} relation{n % 5}"], 2)
    return time.perf_counter() - start


def test_a_large_index_is_kept_and_answers_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(bm25, "MANY", 3)
    lands = documents("the capital of Peru", "the capital of Chile", "Peru and Chile")
    few = BM25(lands[:2], cache=tmp_path)
    assert not list(tmp_path.iterdir())
    fresh, first = BM25(lands), BM25(lands, cache=tmp_path)
    [place] = (tmp_path / "bm25").iterdir()
    second = BM25(lands, cache=tmp_path)
    for query in ("Peru", "capital of Peru", "nothing like it", ""):
        assert fresh.scores(query, 3) == first.scores(query, 3) == second.scores(query, 3)
    assert few.scores("Peru", 3) != []
    BM25(lands, cache=tmp_path, k1=1.2)
    assert len(list((tmp_path / "bm25").iterdir())) == 2
    (place / "params.index.json").write_text("{")
    assert BM25(lands, cache=tmp_path).scores("Peru", 3) == fresh.scores("Peru", 3)
    assert BM25(lands, cache=tmp_path).scores("Peru", 3) == fresh.scores("Peru", 3)
    assert len(list((tmp_path / "bm25").iterdir())) == 2
