"""Populations as a person says them: two significant digits, at most two words.

67_890_000 ─▶ `68 million`, 6800万        4_180_000 ─▶ `4.2 million`, 420万
"""

from __future__ import annotations

_ENGLISH = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"))
_CHINESE = ((10**8, "亿"), (10**4, "万"))


def quantity(value: int, language: str) -> tuple[str, ...]:
    """The number's words: a figure and, where it is large enough, its unit of counting."""
    digits = len(str(value)) - 2
    rounded = round(value, -digits) if digits > 0 else value
    for size, word in _CHINESE if language == "zh" else _ENGLISH:
        if rounded >= size:
            figure, rest = divmod(rounded, size)
            return (f"{rounded / size:.1f}" if rest and figure < 10 else str(figure), word)
    return (str(rounded),)
