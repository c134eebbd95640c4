"""Which tokens wrote which characters: offsets of a decoded text for any tokenizer and any ids.

Sampled ids need not be the canonical tokenisation of their text, so offsets cannot come from
encoding it again. They come from decoding prefixes; where what each token adds to the one before
it joins to the whole text (nearly always), from those pieces' lengths alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """A decoded text and, per token, the characters that it touches: `[starts[t], ends[t])`.

    Bytes of one character in several tokens touch it together.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def tokens(self, start: int, end: int) -> tuple[int, int]:
        """The smallest token range that touches the characters `[start, end)`."""
        touching = [
            t
            for t, (a, b) in enumerate(zip(self.starts, self.ends, strict=True))
            if a < end and b > start
        ]
        return (touching[0], touching[-1] + 1) if touching else (0, 0)


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
    starts: list[int] = []
    ends: list[int] = []
    prefix = ""
    for count in range(1, len(token_ids) + 1):
        starts.append(_settled(prefix, text))
        prefix = decode(token_ids[:count])
        ends.append(min(len(prefix), len(text)))
    return Alignment(text=text, starts=tuple(starts), ends=tuple(ends))


def _settled(prefix: str, text: str) -> int:
    """Characters of a decoded prefix that stay: an unfinished code point is still to change."""
    settled = min(len(prefix), len(text))
    while settled and prefix[settled - 1] != text[settled - 1]:
        settled -= 1
    return settled
