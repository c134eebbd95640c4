# pyright: standard
"""Segmentation of Chinese text. Imported only where Chinese text occurs (`rjieba` is optional)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import rjieba

_NAME_FREQUENCY = 1_000_000
"""High enough that no other cut of a name is more likely."""


def segmenter(words: Iterable[str] = ()) -> Callable[[str], list[str]]:
    """A function from a run of Han characters to its words; `words` are never cut apart."""
    jieba = rjieba.Jieba()
    for word in words:
        jieba.add_word(word, _NAME_FREQUENCY, "n")
    return jieba.cut


def is_word(text: str) -> bool:
    """Does the segmenter's dictionary hold it?"""
    return rjieba.has_word(text)
