"""Which tokens wrote which characters: offsets of a decoded text for any tokenizer and any ids.

Sampled ids need not be the canonical tokenisation of their text, so offsets cannot come from
encoding it again. They come from what each token adds to the one before it, where that joins to the
whole text (nearly always); else from decoding prefixes, of short stretches where it can be.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """A decoded text and, per token, the characters that it touches: `[starts[t], ends[t])`.

    Bytes of one character in several tokens touch it together. Both rise.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def tokens(self, start: int, end: int) -> tuple[int, int]:
        """The smallest token range that touches the characters `[start, end)`."""
        first, behind = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return (first, behind) if first < behind else (0, 0)


def align(
    token_ids: Sequence[int],
    decode: Callable[[Sequence[int]], str],
    piece: Callable[[int | None, int], str],
) -> Alignment:
    """Offsets of `decode(token_ids)`; `piece(before, token)` is what a token adds to the one before
    it (None: it is the first), and may be cached."""
    text = decode(token_ids)
    pieces = [piece(*pair) for pair in zip([None, *token_ids], token_ids, strict=False)]
    if "".join(pieces) == text:
        edges = [0, *accumulate(map(len, pieces))]
        return Alignment(text=text, starts=tuple(edges[:-1]), ends=tuple(edges[1:]))
    ids = tuple(token_ids)
    starts, ends = _by_stretches(ids, text, decode) or _by_prefixes(ids, text, decode)
    return Alignment(
        text=text, starts=tuple(accumulate(starts, max)), ends=tuple(accumulate(ends, max))
    )


def _by_stretches(
    ids: tuple[int, ...], text: str, decode: Callable[[Sequence[int]], str]
) -> tuple[list[int], list[int]] | None:
    """By prefixes of stretches that are whole characters; None where the text has no such."""
    starts: list[int] = []
    ends: list[int] = []
    first, base, shown = 0, 0, ""
    before: tuple[int, ...] = ()  # what stands before may decide about a blank
    for count in range(1, len(ids) + 1):
        starts.append(base + _settled(shown, text[base : base + len(shown)]))
        shown = decode(before + ids[first:count])[len(decode(before)) if before else 0 :]
        ends.append(min(base + len(shown), len(text)))
        if shown and not shown.endswith("\ufffd") and text.startswith(shown, base):
            base, before = base + len(shown), ids[first:count]
            ends[first:] = [min(end, base) for end in ends[first:]]
            first, shown = count, ""
    return (starts, ends) if text[base:] == shown else None


def _by_prefixes(
    ids: tuple[int, ...], text: str, decode: Callable[[Sequence[int]], str]
) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    ends: list[int] = []
    prefix = ""
    for count in range(1, len(ids) + 1):
        starts.append(_settled(prefix, text))
        prefix = decode(ids[:count])
        ends.append(min(len(prefix), len(text)))
    return starts, ends


def _settled(prefix: str, text: str) -> int:
    """Characters of a decoded prefix that stay: an unfinished code point is still to change."""
    return next(
        (place for place, (a, b) in enumerate(zip(prefix, text, strict=False)) if a != b),
        min(len(prefix), len(text)),
    )
