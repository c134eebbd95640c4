"""Each token's own text, so that a page can show tokens without the tokenizer.

Concatenated, the pieces of a ledger are its decoded text. A character that several tokens spell
together (byte fallback) belongs to the token that completes it; the others get "".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from outfox.core.ledger import Ints, Ledger

Decode = Callable[[Ints], str]
_TORN = "\ufffd"
_LONGEST = 4
"""Most tokens that spell one character together."""


@lru_cache(maxsize=4)
def pieces_by(decode: Decode) -> Pieces:
    """The Pieces of a tokenizer's `decode`; the same one each time, so that it keeps its memory."""
    return Pieces(decode)


class Pieces:
    """Cuts token ids into pieces of text; remembers pairs, so a long run costs two decodes a pair.

    A piece is what a token adds after the one before it: tokenizers differ in where they put
    spaces, and a token decoded alone may lose or gain one.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._heads: dict[int, str] = {}
        self._pairs: dict[tuple[int, int], str] = {}

    def of(self, ledger: Ledger) -> list[str]:
        """[T] texts."""
        ids = [int(token) for token in ledger.token_ids]
        pieces: list[str] = []
        while len(pieces) < len(ids):
            pieces += self._next(ids, len(pieces))
        return pieces

    def _next(self, ids: list[int], start: int) -> list[str]:
        """Texts of the one token at `start`, or of the several that spell a character together."""
        before = ids[start - 1] if start else -1
        alone = self._pair(before, ids[start])
        if _TORN in alone:
            for stop in range(start + 2, min(len(ids), start + _LONGEST) + 1):
                together = self._after(before, ids[start:stop])
                if _TORN not in together:
                    return [""] * (stop - start - 1) + [together]
        return [alone]

    def _pair(self, before: int, token: int) -> str:
        if (before, token) not in self._pairs:
            self._pairs[before, token] = self._after(before, [token])
        return self._pairs[before, token]

    def _after(self, before: int, tokens: list[int]) -> str:
        if before < 0:
            return self._text(tokens)
        if before not in self._heads:
            self._heads[before] = self._text([before])
        head, both = self._heads[before], self._text([before, *tokens])
        return both.removeprefix(head) if both.startswith(head) else self._text(tokens)

    def _text(self, tokens: list[int]) -> str:
        return self._decode(np.asarray(tokens, np.int64))
