"""Codec `tags`: Search-R1's four tags inside one growing assistant turn.

    chat template │ <think>…</think>[sure]<search>q</search> │ <information>…</information> │ …
    prompt        │ policy          env   policy             │ environment                  │ policy

A tool of the user's own has a tag of its name beside `<search>` (`tools`).

Observations are inserted as text; no chat role stands between them. Differs from Search-R1: text of
an environment is escaped and cut in tokens with its tag closed, tags inside thinking are ignored,
and a reading may follow a thought (`pauses`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice

import numpy as np

from outfox.core.errors import ConfigError
from outfox.core.ledger import Ints, Span
from outfox.core.protocols import Parsed, Rendered
from outfox.core.types import Action, Message, ToolSpec
from outfox.policies.codecs import markup
from outfox.policies.codecs.alignment import align
from outfox.policies.codecs.tokens import Tokenizer, Tokens

SEARCH_R1_INSTRUCTIONS = (
    "Answer the given question. You must conduct reasoning inside <think> and </think> first every "
    "time you get new information. After reasoning, if you find you lack some knowledge, you can "
    "call a search engine by <search> query </search> and it will return the top searched results "
    "between <information> and </information>. You can search as many times as your want. If you "
    "find no further external knowledge needed, you can directly provide the answer inside "
    "<answer> and </answer>, without detailed illustrations. For example, "
    "<answer> Beijing </answer>. Question: "
)
"""The prompt of Search-R1 (Jin et al. 2025), for the setting `instructions`."""


_NO_TOOLS: Mapping[str, str] = {}


class Tags:
    """Codec over any Hugging Face tokenizer that has a chat template.

    Args:
        pauses: A thought's end is a pause, where a reading may be inserted.
        spaced: A blank stands after an opening tag, for tokenizers whose words carry their leading
            blank; null: decided by the vocabulary.
        separator: Stands around an observation; null: a blank line as in Search-R1, or nothing
            where the tag is one token.
        instructions: Text before the first user message.
        tools: Tools besides `search` that have a tag, each with the one parameter that it fills.

    Raises ConfigError where the tokenizer has no chat template, or one that opens a thought itself.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        pauses: bool = False,
        spaced: bool | None = None,
        separator: str | None = None,
        instructions: str = "",
        tools: Mapping[str, str] = _NO_TOOLS,
    ) -> None:
        if not tokenizer.chat_template:
            raise ConfigError(
                "codec 'tags' renders the opening with the tokenizer's chat template; this "
                "tokenizer has none: set its chat_template"
            )
        self._tokenizer = tokenizer
        self._tokens = Tokens(tokenizer)
        self._pauses = pauses
        self._instructions = instructions
        self._tools = {**markup.SEARCH, **tools}
        self._control = tuple(str(t.content) for t in tokenizer.added_tokens_decoder.values())
        self._acting = frozenset(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        self._piece = lru_cache(maxsize=1 << 18)(self._decode_after)
        self._encoded = lru_cache(maxsize=1 << 14)(self._encode)
        self._opening = lru_cache(maxsize=1024)(self._encode_opening)
        # Siblings write and find the same often enough: what was read once is not read again.
        self._extended = lru_cache(maxsize=4096)(self._extend)
        self._text = lru_cache(maxsize=1 << 15)(self._tokens.decode)
        self._parsed = lru_cache(maxsize=1 << 15)(self._parse)
        self._located = lru_cache(maxsize=1 << 15)(self._spans)
        ends = (*(f"</{name}>" for name in self._tools), "</answer>")
        self._stop = ("</think>", *ends) if pauses else ends
        self._spaced = self._carries_blanks() if spaced is None else spaced
        single = len(self.encode("<information>")) == 1
        around = ("" if single else "\n\n") if separator is None else separator
        self._before = self.encode(f"{around}<information>")
        self._after = self.encode(f"</information>{around}")
        self._check_template()

    @property
    def spaced(self) -> bool:
        """Whether `write` puts a blank after an opening tag."""
        return self._spaced

    @property
    def stop(self) -> tuple[str, ...]:
        return self._stop

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(f"<{name}>" for name in self._tools)

    # -- messages to tokens ------------------------------------------------------------------------
    def render(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Rendered:
        """The opening by the chat template, exactly as it writes special tokens.

        What follows the last user message (a rewritten history) goes on in the assistant's turn.
        The tags are explained by `instructions`, so `tools` are not written out.
        """
        last = max((i for i, m in enumerate(messages) if m.role in ("user", "system")), default=-1)
        head, tail = messages[: last + 1], messages[last + 1 :]
        parts = [self._opening(tuple(self._chat(head)))]
        for role, run in groupby(tail, key=lambda message: message.role):
            if role == "tool":
                parts.append(self.extend(tuple(run)).token_ids)
            else:
                parts += [self.encode(message.content) for message in run]
        return Rendered(token_ids=np.concatenate(parts))

    def extend(self, messages: Sequence[Message], limit: int | None = None) -> Rendered:
        """One `<information>` block with the messages in order, escaped.

        Raises ConfigError where `limit` does not even hold the tags.
        """
        if not messages:
            return Rendered(token_ids=np.zeros(0, np.int64))
        ids, truncated = self._extended(tuple(message.content for message in messages), limit)
        return Rendered(token_ids=ids.copy(), truncated=truncated)

    def _extend(self, contents: tuple[str, ...], limit: int | None) -> tuple[Ints, bool]:
        body = self._encode_plain(self._body(contents))
        room = len(body)
        if limit is not None:
            room = limit - len(self._before) - len(self._after)
            if room < 0:
                raise ConfigError(
                    f"an observation's limit holds at least its tags, {limit - room} tokens; "
                    f"got {limit}: raise max_observation_tokens"
                )
        truncated = len(body) > room
        if truncated:
            body = body[: self._cut(body, room)]
        return np.concatenate([self._before, body, self._after]), truncated

    def encode(self, text: str) -> Ints:
        return self._encoded(text).copy()

    def decode(self, token_ids: Ints) -> str:
        return self._text(tuple(token_ids.tolist()))

    # -- policy text -------------------------------------------------------------------------------
    def parse(self, text: str, *, finished: bool = True, after_observation: bool = False) -> Parsed:
        return self._parsed(text, finished, after_observation)

    def _parse(self, text: str, finished: bool, after_observation: bool) -> Parsed:
        parsed = markup.parse(text, self._tools)
        if finished or markup.action_end(text, self._tools) is not None:
            return parsed
        paused = self._pause(text, after_observation) if self._pauses else None
        return Parsed(paused=paused, flags=parsed.flags)

    def write(self, action: Action, thought: str = "") -> str:
        return markup.write(action, thought, spaced=self._spaced, tools=self._tools)

    def spans(
        self, token_ids: Ints, *, after_observation: bool, continued: bool = False
    ) -> tuple[Span, ...]:
        """`thought`, `draft` or `note` (its value), `decision`, `query`, `answer`.

        <think> Lyon country : France </think> <search> Lyon </search>
               [       thought       ]         [decision]
                              [draft]                  [query]
        """
        return self._located(tuple(token_ids.tolist()), after_observation, continued)

    def _spans(
        self, token_ids: tuple[int, ...], after_observation: bool, continued: bool
    ) -> tuple[Span, ...]:
        aligned = align(token_ids, self._text, self._piece)
        text = aligned.text
        found: list[Span] = []

        def add(name: str, characters: tuple[int, int] | None) -> None:
            start, end = aligned.tokens(*characters) if characters else (0, 0)
            if start < end:
                found.append(Span(name=name, start=start, end=end))

        follows_thought = continued
        for k, block in enumerate(markup.blocks(text, self._tools)):
            if follows_thought and block.tag != "information":
                add("decision", (block.start, block.inner_start))
            follows_thought = block.tag == "think"
            if not block.closed:
                break
            inner = markup.trimmed(text, block.inner_start, block.inner_end)
            if block.tag == "think":
                add("thought", inner)
                noted = after_observation and not continued and k == 0
                add("note" if noted else "draft", markup.value_range(text, block))
            elif block.tag != "information":
                add("answer" if block.tag == "answer" else "query", inner)
                break
        return tuple(found)

    # -- inside ------------------------------------------------------------------------------------
    def _pause(self, text: str, after_observation: bool) -> str | None:
        found = markup.blocks(text, self._tools)
        if not found or found[-1].tag != "think" or not found[-1].closed:
            return None
        last = found[-1]
        if text[last.end :].strip() or markup.value_range(text, last) is None:
            return None
        return "note" if after_observation and len(found) == 1 else "draft"

    def _decode_after(self, before: int | None, token: int) -> str:
        """What a token adds to the text of the one before it."""
        if before is None:
            return self._text((token,))
        return self._tokens.decode((before, token))[len(self._text((before,))) :]

    def _encode(self, text: str) -> Ints:
        return np.asarray(self._tokens.encode(text), np.int64)

    def _encode_plain(self, text: str) -> Ints:
        """Text that cannot act: no id in it is a control token's."""
        ids = self._tokens.encode_split(text)
        return np.asarray([i for i in ids if i not in self._acting], np.int64)

    def _body(self, contents: Sequence[str]) -> str:
        joiner, lead = (" ", " ") if self._spaced else ("\n", "")
        body = joiner.join(content.strip() for content in contents)
        return lead + markup.escape(body, self._control, self._tools)

    def _cut(self, body: Ints, room: int) -> int:
        """The most tokens, at most `room`, that end with a whole code point."""
        for count in range(room, max(room - 4, 0), -1):
            if not self.decode(body[:count]).endswith("\ufffd"):
                return count
        return 0 if room < 4 else room  # A replacement character that the text itself holds.

    def _chat(self, messages: Sequence[Message]) -> list[tuple[str, str]]:
        """(role, content) per chat item; tool results join the assistant's text before them."""
        chat: list[tuple[str, str]] = []
        instructions = self._instructions
        for message in messages:
            role, content = message.role, message.content
            if role == "user":
                content, instructions = instructions + content, ""
            if role == "tool":
                role = "assistant"
                content = f"<information>{self._body([content])}</information>"
            if role == "assistant" and chat and chat[-1][0] == "assistant":
                chat[-1] = (role, chat[-1][1] + content)
            else:
                chat.append((role, content))
        return chat

    def _encode_opening(self, chat: tuple[tuple[str, str], ...]) -> Ints:
        return np.asarray(self._tokens.encode_chat(chat), np.int64)

    def _check_template(self) -> None:
        text = self.decode(self.render([Message(role="user", content="question")]).token_ids)
        if text.rstrip().endswith("<think>"):
            raise ConfigError(
                "codec 'tags' reads thoughts that the policy opens; this chat template ends with "
                "an open <think>: choose a template (or its setting) that leaves it out"
            )

    def _carries_blanks(self) -> bool:
        """True where every sampled word of the vocabulary costs more without its blank."""
        known = (self._piece(None, token) for token in self._tokenizer.get_vocab().values())
        words = [w for w in islice(known, 4096) if w[:1] == " " and w[1:].isalpha()][:64]
        return bool(words) and all(len(self.encode(w[1:])) > len(self.encode(w)) for w in words)


part = Tags
