# pyright: standard
"""Where a completion ends: EOS and stop strings, found on ids.

Sampled ids are never encoded again. A token can complete a stop string only if its own text holds
the string's last character, so most tokens are settled by one look into a set; for the rest the
newly sampled tail is decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from outfox.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ending:
    """What ends one completion."""

    eos: frozenset[int]
    single: dict[int, str]
    """Tokens that are a whole stop string."""
    several: tuple[str, ...]
    """All stop strings, as other tokens may spell them too."""
    longest: int
    """Bytes of the longest of them."""
    candidates: frozenset[int]
    """EOS and every token that may complete a stop string."""


class Stops:
    """Stop strings of one tokenizer; what is worked out for a set of them is kept."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
        self._tokenizer = tokenizer
        self._size = model.config.get_text_config().vocab_size
        self._eos = frozenset(_eos(tokenizer, model))
        self._texts: list[str] = []
        self._endings: dict[tuple[str, ...], Ending] = {}
        self._tail = lru_cache(maxsize=1 << 14)(self._decode)
        self._tokens: dict[str, int] = {}

    def ending(self, stop: Sequence[str]) -> Ending:
        """Raises ConfigError for an empty stop string."""
        key = tuple(stop)
        if key not in self._endings:
            if not all(key):
                raise ConfigError(f"A stop string must hold text; got {list(key)!r}. Remove ''.")
            self._endings[key] = self._make(key)
        return self._endings[key]

    def stopped(self, ending: Ending, sampled: Sequence[int]) -> str | None:
        """The stop string that the last of the sampled tokens completed."""
        if sampled[-1] in ending.single:
            return ending.single[sampled[-1]]
        if not ending.several or sampled[-1] not in ending.candidates:
            return None
        tail = self._tail(tuple(sampled[-ending.longest - 8 :]))
        ends = [(tail.find(s) + len(s), -len(s), s) for s in ending.several if s in tail]
        return min(ends)[2] if ends else None

    def token(self, text: str) -> int:
        """The one token that `text` is. Raises ConfigError where it is none or several."""
        if text not in self._tokens:
            ids = self._encode(text)
            if len(ids) != 1 or self._decode(ids) != text:
                raise ConfigError(
                    f"A forbidden string must be one token of the tokenizer; {text!r} is "
                    f"{len(ids)}. Choose another string or tokenizer."
                )
            self._tokens[text] = ids[0]
        return self._tokens[text]

    def _make(self, stop: tuple[str, ...]) -> Ending:
        if stop and not self._texts:
            self._texts = [self._decode([token]) for token in range(self._size)]
        single: dict[int, str] = {}
        for text in stop:
            ids = self._encode(text)
            if len(ids) == 1 and self._decode(ids) == text:
                single[ids[0]] = text
        # Which of two nested stop strings is complete first, only their text tells.
        nested = {s for s in stop for t in stop if s != t and (s in t or t in s)}
        single = {token: text for token, text in single.items() if text not in nested}
        candidates = set(self._eos)
        for last in {text[-1] for text in stop}:
            candidates |= self._holding(last)
        return Ending(
            eos=self._eos,
            single=single,
            several=stop,
            longest=max((len(text.encode()) for text in stop), default=0),
            candidates=frozenset(candidates),
        )

    def _holding(self, last: str) -> set[int]:
        """Tokens whose text may hold a character; a part of a character may hold any of many."""
        if last.isspace():  # tokenizers drop spaces at the edge of a text
            return set(range(self._size))
        pieces = (last,) if last.isascii() else (last, "\ufffd")
        return {i for i, text in enumerate(self._texts) if any(p in text for p in pieces)}

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    def _decode(self, ids: Sequence[int]) -> str:
        text = self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return cast(str, text)


def _eos(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> set[int]:
    """EOS ids by the tokenizer and by the model's generation settings."""
    found = {tokenizer.eos_token_id} if isinstance(tokenizer.eos_token_id, int) else set()
    settings = model.generation_config
    named = settings.eos_token_id if settings is not None else None
    return found | set(named if isinstance(named, list) else [] if named is None else [named])
