"""Two ways to make texts comparable, and how a normalised text is found in another.

`squad` is the normalisation of SQuAD's evaluation script (Rajpurkar et al. 2016), as the papers
report it; it deletes signs, decimal points and articles, so "2.4%" equals "-2.4%" there. `unicode`
deletes nothing that changes a value: NFKC and casefold; prose punctuation of any script becomes a
space, but signs, decimal points, ranges and symbols stay; a leading article goes; CJK loses spaces.
"""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache

_APOSTROPHES = re.compile(r"['‘’ʼ`´]")
_DASHES = re.compile(r"[\u2010-\u2015\u2212\uFE58\uFE63]")
_MEANT = frozenset("%‰#&@")
"""Punctuation to Unicode, but part of what is said."""
_LEADING_ARTICLE = re.compile(r"^\s*(?:[Tt][Hh][Ee]|an?)(?=\s|$)")
"""`The` in any case, `a` only in lower case: "A shares" are not "shares"."""
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_BESIDE_CJK = re.compile(rf"(?<=[{_CJK}])\s+|\s+(?=[{_CJK}])")
_IS_CJK = re.compile(rf"[{_CJK}]")
_POSSESSIVE = re.compile(r"['’]s\b")

_SQUAD_ARTICLES = re.compile(r"\b(a|an|the)\b")
_SQUAD_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad(text: str) -> str:
    """Lower case, no ASCII punctuation, no English articles, single spaces."""
    kept = text.lower().translate(_SQUAD_PUNCTUATION)
    return " ".join(_SQUAD_ARTICLES.sub(" ", kept).split())


def compatible(text: str) -> str:
    """NFKC: full-width forms, ligatures and composed accents as their plain equivalents."""
    return unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=65536)
def unicode(text: str) -> str:
    """The key by which two texts of any script say the same; empty where nothing is said."""
    folded = _DASHES.sub("-", compatible(text))
    folded = _LEADING_ARTICLE.sub("", folded).casefold()
    folded = compatible(_APOSTROPHES.sub("", folded))
    folded = _GROUPED.sub(_without_commas, folded)
    spaced = "".join(
        " " if _is_prose(character) and not _stays(folded, index, character) else character
        for index, character in enumerate(folded)
    )
    return _BESIDE_CJK.sub("", " ".join(spaced.split()))


def _without_commas(found: re.Match[str]) -> str:
    return found.group().replace(",", "")


@lru_cache(maxsize=65536)
def _is_prose(character: str) -> bool:
    """Is it punctuation, in any script?"""
    return unicodedata.category(character).startswith("P") and character not in _MEANT


def _stays(text: str, index: int, character: str) -> bool:
    """Prose punctuation goes; between or before digits it is a sign, a point or a range."""
    before = text[index - 1] if index else " "
    after = text[index + 1] if index + 1 < len(text) else " "
    match character:
        case "-":
            return after.isdigit() and (before.isdigit() or before.isspace())
        case "." | "," | ":" | "/":
            return after.isdigit() and (before.isdigit() or (character == "." and before in " -"))
        case _:
            return False


def is_cjk(character: str) -> bool:
    """Chinese, Japanese or Korean writing."""
    return _IS_CJK.match(character) is not None


@lru_cache(maxsize=65536)  # siblings read the same passages
def contains(text: str, form: str) -> bool:
    """Does `text` mention `form`, as a whole word (any stretch in CJK)? Both raw.

    An empty form is mentioned nowhere.
    """
    key = unicode(form)
    if not key:
        return False
    return _holds(unicode(text), key) or _holds(unicode(_POSSESSIVE.sub("", text)), key)


def _holds(text: str, key: str) -> bool:
    start = text.find(key)
    while start >= 0:
        end = start + len(key)
        before = text[start - 1] if start else " "
        after = text[end] if end < len(text) else " "
        if not (_joined(before, key[0]) or _joined(key[-1], after)):
            return True
        start = text.find(key, start + 1)
    return False


def _joined(left: str, right: str) -> bool:
    """Do two neighbours belong to one word?"""
    if is_cjk(left) or is_cjk(right):
        return False
    return (left.isalnum() or left in "-.%") and (right.isalnum() or right in "%")
