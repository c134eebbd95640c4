"""A policy that is a function: exploits, honest references, demonstrations, tests."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from outfox.core.errors import ContractError
from outfox.core.ledger import Completion, Ledger, Segment
from outfox.core.protocols import Codec, Parsed
from outfox.core.types import Action, Draft, EpisodeKey, Message, Opening, Task
from outfox.policies.calls import numbered
from outfox.policies.codecs import markup

Script = Callable[[Task, tuple[Message, ...]], str | Action | Awaitable[str | Action]]
"""(task, messages so far) -> the turn, as text or as an action."""


@dataclass(frozen=True, slots=True, eq=False)
class ScriptedPolicy:
    """Policy over a function `fn(task, messages) -> str | Action`, sync or async.

    Text is read by the codec, without one in the grammar of `tags`. With a codec the conversation
    keeps ledgers (logprobs zero) and pauses for readings as a sampled one does; it is never
    trained. An Action is written by the codec, with an empty thought.
    """

    fn: Script
    codec: Codec | None = field(default=None, kw_only=True)

    @property
    def trainable(self) -> bool:
        return False

    @property
    def context_length(self) -> int | None:
        return None

    def begin(self, key: EpisodeKey, task: Task, opening: Opening) -> ScriptedConversation:
        return ScriptedConversation(self, task, opening)


class ScriptedConversation:
    """Conversation of a ScriptedPolicy."""

    def __init__(self, policy: ScriptedPolicy, task: Task, opening: Opening) -> None:
        self._fn, self._codec = policy.fn, policy.codec
        self._task = task
        self._tools = opening.tools
        self._messages: tuple[Message, ...] = ()
        self._ledgers: tuple[Ledger, ...] = ()
        self._script = ""
        """The turn's whole text, of which `_played` characters were acted."""
        self._played = 0
        self._action: Action | None = None
        self._turn = 0
        self._after_observation = False
        self._start(opening.messages)

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        return self._ledgers

    async def act(self, *, max_new_tokens: int) -> Draft:
        """The next stretch of the script; the token budget does not bind a script."""
        continued = self._played > 0
        if not continued:
            await self._write()
        paused = self._next_pause()
        begun, self._played = self._played, paused[0] if paused else len(self._script)
        text = self._script[: self._played]
        completion = self._record(self._script[begun : self._played], continued)
        if paused:
            return Draft(text=text, completion=completion, paused=paused[1], spans=self._last_spans)
        parsed = self._parse(text)
        action = self._action or (parsed.action and numbered(parsed.action, self._turn))
        self._messages = (
            *self._messages,
            Message(role="assistant", content=text, tool_calls=action.calls if action else ()),
        )
        return Draft(
            text=text,
            completion=completion,
            action=action,
            error=None if action else parsed.error,
            spans=self._last_spans,
            flags=parsed.flags,
        )

    def observe(self, messages: Sequence[Message], *, limit: int | None) -> bool:
        self._messages = (*self._messages, *messages)
        self._next_turn(after_observation=True)
        if self._codec is None:
            return False
        rendered = self._codec.extend(messages, limit)
        self._append(Segment(owner="environment", token_ids=rendered.token_ids))
        return rendered.truncated

    def insert(self, text: str) -> None:
        if self._codec is not None:
            self._append(Segment(owner="environment", token_ids=self._codec.encode(text)))

    def rewrite(self, messages: Sequence[Message]) -> None:
        self._next_turn(after_observation=bool(messages) and messages[-1].role == "tool")
        self._start(messages)

    async def close(self) -> None:
        self._script = ""

    # -- inside ------------------------------------------------------------------------------------
    def _start(self, messages: Sequence[Message]) -> None:
        self._messages = tuple(messages)
        if self._codec is not None:
            opening = self._codec.render(messages, self._tools)
            self._ledgers = (*self._ledgers, Ledger())
            self._append(Segment(owner="prompt", token_ids=opening.token_ids))

    def _next_turn(self, *, after_observation: bool) -> None:
        self._turn += 1
        self._script, self._played, self._action = "", 0, None
        self._after_observation = after_observation

    async def _write(self) -> None:
        said = self._fn(self._task, self._messages)
        if inspect.isawaitable(said):
            said = await said
        if isinstance(said, Action):
            self._action = numbered(said, self._turn)
            self._script = self._codec.write(said) if self._codec else written(said)
        else:
            self._script = self._cut(said)

    def _parse(self, text: str) -> Parsed:
        if self._codec is None:
            return markup.parse(text)
        return self._codec.parse(text, after_observation=self._after_observation)

    def _cut(self, text: str) -> str:
        """The text up to the end of its first action: the tail is no part of the turn."""
        if self._parse(text).action is None:
            return text
        for end in self._ends(text, self._codec.stop if self._codec else markup.ACTION_ENDS):
            if self._parse(text[:end]).action is not None:
                return text[:end]
        return text

    def _next_pause(self) -> tuple[int, str] | None:
        """(end, span name) of the next pause that is due in the script."""
        if self._codec is None or self._played >= len(self._script):
            return None
        for end in self._ends(self._script, self._codec.stop):
            if end <= self._played:
                continue
            parsed = self._codec.parse(
                self._script[:end], finished=False, after_observation=self._after_observation
            )
            if parsed.action or parsed.error:
                return None
            if parsed.paused:
                return end, parsed.paused
        return None

    @staticmethod
    def _ends(text: str, stops: Sequence[str]) -> list[int]:
        """Where stop strings end in a text, in order."""
        return sorted(
            start + len(stop)
            for stop in stops
            for start in range(len(text))
            if text.startswith(stop, start)
        )

    def _record(self, text: str, continued: bool) -> Completion | None:
        self._last_spans = ()
        if self._codec is None:
            return None
        ids = self._codec.encode(text)
        self._last_spans = self._codec.spans(
            ids, after_observation=self._after_observation, continued=continued
        )
        zeros = np.zeros(len(ids), np.float32)
        self._append(
            Segment(
                owner="policy",
                token_ids=ids,
                logprobs=zeros,
                policy_version=0,
                spans=self._last_spans,
            )
        )
        return Completion(token_ids=ids, logprobs=zeros, policy_version=0, finish_reason="stop")

    def _append(self, segment: Segment) -> None:
        if not len(segment.token_ids):
            return
        self._ledgers = (*self._ledgers[:-1], self._ledgers[-1].append(segment))


def written(action: Action) -> str:
    """An action as text, in tags where they can say it, else calls as `name({...})`."""
    try:
        return markup.write(action)
    except ContractError:
        calls = [
            f"{call.name}({json.dumps(dict(call.arguments), ensure_ascii=False, sort_keys=True)})"
            for call in action.calls
        ]
        return "\n".join([*calls, *([] if action.answer is None else [action.answer])])
