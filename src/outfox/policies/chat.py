"""A policy behind a chat interface: no token ids, so evaluation and demonstrations only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from outfox.core.ledger import Ledger
from outfox.core.protocols import Codec
from outfox.core.text import read_json
from outfox.core.types import (
    Action,
    Draft,
    EpisodeKey,
    Message,
    Opening,
    ParseError,
    Task,
    ToolCall,
    ToolSpec,
)
from outfox.policies.calls import numbered
from outfox.policies.codecs.markup import blank, split_citations


class ChatServer(Protocol):
    """What answers a chat: a Message, or a ParseError for calls that it could not read."""

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> Message | ParseError: ...


@dataclass(frozen=True, slots=True, eq=False)
class ChatPolicy:
    """Policy over a ChatServer. Native tool calls are the action, content without calls is the
    answer; given a codec, the content is read by it and tools are not sent."""

    server: ChatServer
    codec: Codec | None = field(default=None, kw_only=True)

    @property
    def trainable(self) -> bool:
        return False

    @property
    def context_length(self) -> int | None:
        return None

    def begin(self, key: EpisodeKey, task: Task, opening: Opening) -> ChatConversation:
        return ChatConversation(self, opening)


class ChatConversation:
    """Conversation of a ChatPolicy; it keeps messages of its own and no ledger."""

    def __init__(self, policy: ChatPolicy, opening: Opening) -> None:
        self._server, self._codec = policy.server, policy.codec
        self._tools = opening.tools
        self._messages = tuple(opening.messages)
        self._turn = 0

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        return ()

    async def act(self, *, max_new_tokens: int) -> Draft:
        """One reply; its length is the server's affair."""
        reply = await self._server.complete(self._messages, () if self._codec else self._tools)
        if isinstance(reply, ParseError):
            self._messages = (*self._messages, Message(role="assistant", content=""))
            return Draft(text="", error=reply)
        self._messages = (*self._messages, reply)
        if self._codec is not None:
            parsed = self._codec.parse(reply.content)
            action = parsed.action and numbered(parsed.action, self._turn)
            return Draft(text=reply.content, action=action, error=parsed.error, flags=parsed.flags)
        if reply.tool_calls:
            return Draft(text=reply.content, action=Action(calls=reply.tool_calls))
        answer, citations = split_citations(reply.content)
        if blank(answer):
            error = ParseError(fault="no_action", message="The reply is empty. Call or answer.")
            return Draft(text=reply.content, error=error)
        return Draft(text=reply.content, action=Action(answer=answer, citations=citations))

    def observe(self, messages: Sequence[Message], *, limit: int | None) -> bool:
        """`limit` is in tokens, which this policy does not have."""
        self._messages = (*self._messages, *messages)
        self._turn += 1
        return False

    def insert(self, text: str) -> None:
        """Never called: a chat does not pause."""

    def rewrite(self, messages: Sequence[Message]) -> None:
        self._messages = tuple(messages)
        self._turn += 1

    async def close(self) -> None:
        self._messages = ()


def read_message(raw: Mapping[str, Any]) -> Message | ParseError:
    """An OpenAI-style assistant message, with `arguments` as JSON text.

    Arguments that are no JSON object, and a call of another shape, give a ParseError that is shown
    to the policy.
    """
    calls: list[ToolCall] = []
    written: Any = raw.get("tool_calls") or ()
    if not isinstance(written, list | tuple):
        return _malformed("Tool calls are a list", written)
    for item in cast("Sequence[Any]", written):
        match item:
            case {"id": str(call_id), "function": {"name": str(name), "arguments": text}}:
                pass
            case _:
                return _malformed("A call has an id, and a function's name and arguments", item)
        rule = f"Arguments of {name} are a JSON object"
        if not isinstance(text, str):
            return _malformed(rule, text)
        try:
            arguments = read_json(text)
        except ValueError as error:
            return ParseError(fault="malformed_call", message=f"{rule}; got no JSON: {error}.")
        if not isinstance(arguments, dict):
            return _malformed(rule, arguments)
        calls.append(ToolCall(id=call_id, name=name, arguments=cast("dict[str, Any]", arguments)))
    content = raw.get("content")
    return Message(
        role="assistant",
        content=content if isinstance(content, str) else "",
        tool_calls=tuple(calls),
    )


def _malformed(rule: str, got: object) -> ParseError:
    return ParseError(fault="malformed_call", message=f"{rule}; got {got!r:.80}.")
