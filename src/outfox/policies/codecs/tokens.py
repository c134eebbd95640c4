# pyright: standard
"""Text to ids and back. Where a Hugging Face tokenizer is nothing but a wrapper, past the wrapper,
whose own Python takes longer than the work on texts as short as turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from transformers import PreTrainedTokenizerFast


class Tokenizer(Protocol):
    """What a codec needs of a Hugging Face tokenizer."""

    @property
    def chat_template(self) -> Any: ...
    @property
    def all_special_ids(self) -> list[int]: ...
    @property
    def unk_token_id(self) -> int | None: ...
    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]: ...
    def get_vocab(self) -> Mapping[str, int]: ...
    def __call__(self, text: str, **settings: Any) -> Any: ...
    def decode(self, token_ids: Any, **settings: Any) -> Any: ...
    def apply_chat_template(self, conversation: Any, **settings: Any) -> Any: ...


class Tokens:
    """The ids that `tokenizer` gives, and the texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        # A subclass may do more than wrap.
        self._plain = tokenizer if type(tokenizer) is PreTrainedTokenizerFast else None

    def encode(self, text: str) -> list[int]:
        """Without special tokens around it; those written in it are read as such."""
        if self._plain is not None:
            return self._straight(self._plain, text, self._plain.split_special_tokens)
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]

    def encode_split(self, text: str) -> list[int]:
        """The same, but what is written like a special token is split like any text."""
        if self._plain is not None:
            return self._straight(self._plain, text, True)
        settings = {"add_special_tokens": False, "split_special_tokens": True}
        return self._tokenizer(text, **settings)["input_ids"]

    def encode_chat(self, chat: Sequence[tuple[str, str]]) -> list[int]:
        """(role, content) per item, by the chat template, up to where the assistant begins."""
        items = [{"role": role, "content": content} for role, content in chat]
        chat_of = self._tokenizer.apply_chat_template
        if self._plain is not None:
            return self.encode(chat_of(items, add_generation_prompt=True, tokenize=False))
        return chat_of(items, add_generation_prompt=True, tokenize=True, return_dict=False)

    def decode(self, token_ids: Sequence[int]) -> str:
        if self._plain is not None:
            return self._plain.backend_tokenizer.decode(token_ids, skip_special_tokens=False)
        text = self._tokenizer.decode(
            list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(text)

    def _straight(self, tokenizer: PreTrainedTokenizerFast, text: str, split: bool) -> list[int]:
        backend = tokenizer.backend_tokenizer
        if backend.padding or backend.truncation:  # left there by another caller
            return tokenizer(text, add_special_tokens=False, split_special_tokens=split)[
                "input_ids"
            ]
        if backend.encode_special_tokens != split:
            backend.encode_special_tokens = split
        return backend.encode(text, add_special_tokens=False).ids
