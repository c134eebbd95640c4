"""A tokenizer without a library, a codec without tags, and the conformance check of Codec.

check_codec_contract(MyCodec(...))     raises ContractError at a broken rule
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from outfox.core.errors import ConfigError, ContractError
from outfox.core.ledger import Ints, Span
from outfox.core.protocols import Codec, Parsed, Rendered
from outfox.core.types import Action, Message, ParseError, ToolCall, ToolSpec
from outfox.policies.codecs.check import check_codec

START, END = "<|im_start|>", "<|im_end|>"
TAGS = tuple(
    f"<{end}{n}>" for n in ("think", "search", "information", "answer") for end in ("", "/")
)

_HOSTILE = (
    "",
    " \n\u3000\u200b",
    "text without an action",
    "<think>never closed <search>x</search>",
    "</think></search></answer>",
    "<search>open <answer>a</answer>",
    "<<<>>>\x00\ufffd🦊",
    "[sure][unsure]<information>",
)


class FakeTokenizer:
    """Bytes, then control tokens, then `pieces` of several characters (the longest one wins).

    It has what codecs and engines ask of a Hugging Face tokenizer, in its words; its chat template
    is ChatML. Pieces that are no `tags` make other tokenisations of the same text possible.
    """

    def __init__(
        self, *, tags: Sequence[str] = TAGS, pieces: Sequence[str] = (), template: str = "chatml"
    ) -> None:
        self.chat_template = template
        self._texts: tuple[str, ...] = (START, END, *tags, *pieces)
        self._ids = {text: 256 + k for k, text in enumerate(self._texts)}
        self.added_tokens_decoder: Mapping[int, Any] = {
            self._ids[text]: SimpleNamespace(content=text, special=text in (START, END))
            for text in (START, END, *tags)
        }
        self.all_special_ids = [256, 257]
        self.eos_token_id = 257
        self.pad_token_id = 257
        self.unk_token_id: int | None = None
        self._everything = self._pattern(self._texts)
        self._no_control = self._pattern(self._texts[2:])

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def __call__(self, text: str, **settings: Any) -> dict[str, list[int]]:
        split = self._no_control if settings.get("split_special_tokens") else self._everything
        ids: list[int] = []
        for part in split.split(text) if split.pattern else [text]:
            ids += [self._ids[part]] if part in self._ids else list(part.encode())
        return {"input_ids": ids}

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        return self(text)["input_ids"]

    def decode(self, token_ids: Iterable[int], **settings: Any) -> str:
        parts = [bytes([i]) if i < 256 else self._texts[i - 256].encode() for i in token_ids]
        return b"".join(parts).decode(errors="replace")

    def apply_chat_template(self, conversation: Any, **settings: Any) -> list[int]:
        turns = [f"{START}{item['role']}\n{item['content']}{END}\n" for item in conversation]
        return self("".join(turns) + f"{START}assistant\n")["input_ids"]

    @staticmethod
    def _pattern(texts: Sequence[str]) -> re.Pattern[str]:
        longest = sorted(texts, key=len, reverse=True)
        return re.compile("(" + "|".join(map(re.escape, longest)) + ")" if texts else "")


class LineCodec:
    """A Codec in which a line is an action: `search QUERY` or `answer TEXT`; bytes are tokens."""

    stop: tuple[str, ...] = ("\n",)
    calls: tuple[str, ...] = ("search",)

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Rendered:
        lines: list[str] = []
        for message in messages:
            text = message.content
            lines.append(text if message.role == "assistant" else f"{self._line(text)}\n")
        return Rendered(token_ids=self.encode("".join(lines)))

    def extend(self, messages: Sequence[Message], limit: int | None = None) -> Rendered:
        ids = self.encode("".join(f"{self._line(message.content)}\n" for message in messages))
        if limit is None or len(ids) <= limit:
            return Rendered(token_ids=ids)
        if limit < 1:
            raise ConfigError(f"an observation holds at least its line end; got limit {limit}")
        kept = bytes(ids[: limit - 1].tolist()).decode(errors="ignore")
        return Rendered(token_ids=self.encode(kept + "\n"), truncated=True)

    def encode(self, text: str) -> Ints:
        return np.frombuffer(text.encode(), np.uint8).astype(np.int64)

    def decode(self, token_ids: Ints) -> str:
        return bytes(token_ids.tolist()).decode(errors="replace")

    def parse(self, text: str, *, finished: bool = True, after_observation: bool = False) -> Parsed:
        line, ended, _ = text.partition("\n")
        if not (finished or ended):
            return Parsed()
        word, _, rest = line.partition(" ")
        if word == "search" and rest:
            call = ToolCall(id="call", name="search", arguments={"query": rest})
            return Parsed(action=Action(calls=(call,)))
        if word == "answer" and rest:
            said, *cited = rest.split(" #")
            return Parsed(action=Action(answer=said, citations=tuple(cited)))
        return Parsed(error=ParseError(fault="no_action", message="Search or answer."))

    def write(self, action: Action, thought: str = "") -> str:
        if action.answer is not None:
            return " #".join([f"answer {action.answer}", *action.citations]) + "\n"
        return f"search {action.calls[0].arguments['query']}\n"

    def spans(
        self, token_ids: Ints, *, after_observation: bool, continued: bool = False
    ) -> tuple[Span, ...]:
        text = self.decode(token_ids)
        names = {"search": "query", "answer": "answer"}
        word = text.partition(" ")[0]
        if word not in names or len(text) <= len(word) + 1:
            return ()
        return (Span(name=names[word], start=len(word) + 1, end=len(token_ids)),)

    @staticmethod
    def _line(text: str) -> str:
        return "> " + text.replace("\n", " ")


# -- conformance ----------------------------------------------------------------------------------
def check_codec_contract(codec: Codec) -> None:
    """Hold a codec to its protocol, over what `check_codec` tests at start-up.

    Raises ContractError naming the rule that broke.
    """
    try:
        check_codec(codec)
    except ConfigError as broken:
        raise ContractError(str(broken)) from broken
    _require(bool(codec.stop) and all(codec.stop), "a codec has stop strings, none empty")
    for text in _HOSTILE:
        _check_text(codec, text)
    _check_limits(codec)
    for action in (_call("q"), Action(answer="a")):
        _check_spans(codec, codec.encode(codec.write(action, "thought")))


def _check_text(codec: Codec, text: str) -> None:
    parsed = codec.parse(text)
    _require(
        (parsed.action is None) != (parsed.error is None) and parsed.paused is None,
        f"a finished text is an action or an error; {text!r} is {parsed}",
    )
    ids = codec.encode(text)
    _require(ids.dtype == np.int64 and ids.ndim == 1, "token ids are int64 [T]")
    _require(codec.decode(ids) == text, f"text survives encoding; {text!r} did not")
    _check_spans(codec, ids)


def _check_spans(codec: Codec, ids: Ints) -> None:
    for span in codec.spans(ids, after_observation=False):
        _require(0 <= span.start < span.end <= len(ids), f"a span lies in its tokens: {span}")


def _check_limits(codec: Codec) -> None:
    messages = [Message(role="tool", content="多字节 text 🦊 " * 8)]
    whole = codec.extend(messages).token_ids
    smallest = len(codec.extend([Message(role="tool", content="")]).token_ids)
    for limit in range(smallest, len(whole) + 2):
        cut = codec.extend(messages, limit)
        _require(len(cut.token_ids) <= limit, f"an observation keeps its limit of {limit} tokens")
        _require(cut.truncated == (limit < len(whole)), "truncated says whether it was cut")
        _require("\ufffd" not in codec.decode(cut.token_ids), "no code point is cut")


def _call(query: str) -> Action:
    return Action(calls=(ToolCall(id="call", name="search", arguments={"query": query}),))


def _require(kept: bool, rule: str) -> None:
    if not kept:
        raise ContractError(f"{rule}: correct the codec")
