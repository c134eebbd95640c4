# pyright: standard
"""BM25 (Robertson et al. 1994, Lucene's variant) in memory, over `bm25s`.

    documents ─words─▶ sparse scores ◀─words─ query ─▶ the top_k highest, ties by document order

Deterministic: no stemming, no stop words; NFKC and lower case; Chinese is cut into words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray

from outfox.core.errors import DataError
from outfox.core.types import Document
from outfox.worlds.retrieval.kept import MANY, kept

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]+|\d+(?:\.\d+)*|(?:(?![{_HAN}])[^\W_])+")
_FEW = 16
_IS_HAN = re.compile(rf"[{_HAN}]")


class BM25:
    """A Retriever. Title and text of a document are searched as one.

    Args:
        k1: How soon a word that comes again counts no more.
        b: How much a long document is discounted, from 0 to 1.
        words: Chinese words (names) that the segmenter must not cut apart.
        cache: Folder in which the index of a large corpus is kept.

    Raises DataError for an empty corpus.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        words: Sequence[str] = (),
        cache: Path | None = None,
    ) -> None:
        if not documents:
            raise DataError("a corpus holds at least one document; this one is empty")
        self._documents = tuple(documents)
        self._chinese_words = tuple(unicodedata.normalize("NFKC", word).lower() for word in words)
        self._cut: Callable[[str], list[str]] | None = None
        # Siblings, and later episodes, ask the same.
        self._found = lru_cache(maxsize=1 << 14)(self._find)
        make = partial(self._indexed, k1, b)
        if cache is not None and len(documents) >= MANY:
            own = Path(__file__).read_text(encoding="utf-8")
            self._index = kept(make, documents, cache, own, k1, b, self._chinese_words)
        else:
            self._index = make()
        self._vocabulary: dict[str, int] = self._index.vocab_dict

    def _indexed(self, k1: float, b: float) -> Any:
        vocabulary: dict[str, int] = {}
        rows = [
            [
                vocabulary.setdefault(word, len(vocabulary))
                for word in self.words(_content(document))
            ]
            for document in self._documents
        ]
        index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        index.vocab_dict = vocabulary
        # Documents without a single word are legal; the index wants at least one known id.
        if vocabulary:
            index.index((rows, vocabulary), show_progress=False)
        return index

    def words(self, text: str) -> list[str]:
        """The searchable words of a text, in order, with repeats."""
        found: list[str] = []
        for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
            found += self._segment(word) if _IS_HAN.match(word) else [word]
        return found

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        """Per query at most `top_k` documents, best first; none that shares no word with it."""
        return [[document for document, _ in self.scores(query, top_k)] for query in queries]

    def scores(self, query: str, top_k: int) -> list[tuple[Document, float]]:
        """Like `search` for one query, with BM25 scores (all positive)."""
        return list(self._found(query, top_k))

    def _find(self, query: str, top_k: int) -> list[tuple[Document, float]]:
        ids = [self._vocabulary[word] for word in self.words(query) if word in self._vocabulary]
        if not ids or top_k < 1:
            return []
        scores = self._index.get_scores_from_ids(ids)
        return [(self._documents[i], float(scores[i])) for i in _best(scores, top_k)]

    def _segment(self, run: str) -> list[str]:
        if self._cut is None:
            # The segmenter is an optional dependency: loaded where Chinese text occurs.
            from outfox.worlds.retrieval.chinese import segmenter

            self._cut = segmenter(self._chinese_words)
        return self._cut(run)


part = BM25


def _best(scores: NDArray[Any], top_k: int) -> list[int]:
    """Places of the highest positive scores, ties by place; for few, faster than to sort."""
    if top_k > _FEW:
        hits = np.flatnonzero(scores > 0)
        return [int(i) for i in hits[np.argsort(-scores[hits], kind="stable")][:top_k]]
    left, found = scores.copy(), list[int]()
    for _ in range(min(top_k, len(left))):
        place = int(left.argmax())
        if left[place] <= 0:
            break
        found.append(place)
        left[place] = 0
    return found


def _content(document: Document) -> str:
    return f"{document.title} {document.text}"
