"""A policy that samples tokens: an engine, and a codec that says what they mean.

opening ─render─▶ prompt │ generate ─▶ policy │ observation ─extend─▶ environment │ generate …
                         └── ids are kept as sampled; text is only read, never encoded again
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from outfox.core.errors import ConfigError, EngineError
from outfox.core.ledger import Completion, Ints, Ledger, Segment
from outfox.core.protocols import Codec, Engine, Parsed, Sampling
from outfox.core.seeding import derive
from outfox.core.types import Draft, EpisodeKey, Message, Opening, Task, ToolSpec
from outfox.policies.calls import numbered

_sessions = itertools.count()
"""Makes session names unique among policies that share an engine; no draw depends on it."""


@dataclass(frozen=True, slots=True, eq=False)
class EnginePolicy:
    """Policy over an Engine and a Codec. `sampling.max_tokens` yields to the rollout's limits."""

    engine: Engine
    codec: Codec
    sampling: Sampling = field(default_factory=Sampling, kw_only=True)

    @property
    def trainable(self) -> bool:
        """True where the engine gives token ids with their logprobs."""
        return self.engine.capabilities.token_ids and self.engine.capabilities.logprobs

    @property
    def context_length(self) -> int | None:
        return self.engine.context_length

    def begin(self, key: EpisodeKey, task: Task, opening: Opening) -> EngineConversation:
        return EngineConversation(self, key, opening)


def closed_book(policy: EnginePolicy) -> EnginePolicy:
    """The same policy, unable to call a tool: what begins a call is never sampled."""
    return _forbid(policy, policy.codec.calls)


def greedy(policy: EnginePolicy) -> EnginePolicy:
    """The same policy at temperature 0."""
    return replace(policy, sampling=replace(policy.sampling, temperature=0.0))


def _forbid(policy: EnginePolicy, texts: Sequence[str]) -> EnginePolicy:
    for text in texts:
        if (tokens := len(policy.codec.encode(text))) != 1:
            raise ConfigError(
                f"a closed-book policy samples no call; {text!r} is {tokens} tokens of this "
                "tokenizer, and only one token can be forbidden: add it to the tokenizer, or set "
                "solvability.source=world"
            )
    forbidden = (*policy.sampling.forbidden, *texts)
    return replace(policy, sampling=replace(policy.sampling, forbidden=forbidden))


class EngineConversation:
    """Conversation of an EnginePolicy: one engine session and one ledger, until a rewrite."""

    def __init__(self, policy: EnginePolicy, key: EpisodeKey, opening: Opening) -> None:
        self._policy = policy
        self._key = key
        self._tools: Sequence[ToolSpec] = opening.tools
        self._ledgers: tuple[Ledger, ...] = ()
        self._session: str | None = None
        self._pending: list[Ints] = []
        self._turn_ids: list[Ints] = []
        self._turn = 0
        self._after_observation = False
        self._start(opening.messages)

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        return self._ledgers

    async def act(self, *, max_new_tokens: int) -> Draft:
        """Sample until an action, an error, a pause or the budget.

        A stop string that ended nothing (one inside a thought) does not end the turn.
        """
        made = last = await self._generate(max_new_tokens)
        while True:
            spent = len(made.token_ids)
            halted = last.finish_reason != "stop" or not len(last.token_ids)
            finished = halted or spent >= max_new_tokens
            text = self._text(made)
            parsed = self._policy.codec.parse(
                text, finished=finished, after_observation=self._after_observation
            )
            if finished or parsed.action or parsed.error or parsed.paused:
                return self._draft(made, text, parsed)
            last = await self._generate(max_new_tokens - spent)
            made = _joined(made, last)

    def observe(self, messages: Sequence[Message], *, limit: int | None) -> bool:
        rendered = self._policy.codec.extend(messages, limit)
        self._append(Segment(owner="environment", token_ids=rendered.token_ids))
        self._turn += 1
        self._turn_ids = []
        self._after_observation = True
        return rendered.truncated

    def insert(self, text: str) -> None:
        ids = self._policy.codec.encode(text)
        self._append(Segment(owner="environment", token_ids=ids))

    def rewrite(self, messages: Sequence[Message]) -> None:
        self._start(messages)
        self._turn += 1
        self._turn_ids = []
        self._after_observation = bool(messages) and messages[-1].role == "tool"

    async def close(self) -> None:
        self._end()

    # -- inside ------------------------------------------------------------------------------------
    def _start(self, messages: Sequence[Message]) -> None:
        opening = self._policy.codec.render(messages, self._tools)
        self._end()
        key, part = self._key, len(self._ledgers)
        names = (key.seed, key.step, key.group_id, key.sibling)
        session = "/".join(map(str, (*names, part, next(_sessions))))
        self._policy.engine.open(session, noise_key=derive("noise", *names, part))
        self._session = session
        self._ledgers = (*self._ledgers, Ledger())
        self._pending = []
        self._append(Segment(owner="prompt", token_ids=opening.token_ids))

    def _end(self) -> None:
        if self._session is not None:
            self._policy.engine.end(self._session)
            self._session = None

    def _append(self, segment: Segment) -> None:
        if not len(segment.token_ids):
            return
        self._ledgers = (*self._ledgers[:-1], self._ledgers[-1].append(segment))
        if segment.owner != "policy":
            self._pending.append(segment.token_ids)

    async def _generate(self, budget: int) -> Completion:
        if self._session is None:
            raise EngineError("a conversation ends with close; begin a new one")
        ids = np.concatenate(self._pending) if self._pending else np.zeros(0, np.int64)
        self._pending = []
        policy = self._policy
        sampling = _within(policy.sampling, budget)
        return await policy.engine.generate(
            self._session, ids, sampling=sampling, stop=policy.codec.stop
        )

    def _text(self, made: Completion) -> str:
        """The turn's policy text; an EOS is trained but is no text."""
        ids = made.token_ids[:-1] if made.finish_reason == "eos" else made.token_ids
        if self._turn_ids:
            ids = np.concatenate([*self._turn_ids, ids])
        return self._policy.codec.decode(ids)

    def _draft(self, completion: Completion, text: str, parsed: Parsed) -> Draft:
        spans = self._policy.codec.spans(
            completion.token_ids,
            after_observation=self._after_observation,
            continued=bool(self._turn_ids),
        )
        self._turn_ids.append(completion.token_ids)
        self._append(
            Segment(
                owner="policy",
                token_ids=completion.token_ids,
                logprobs=completion.logprobs,
                policy_version=completion.policy_version,
                spans=spans,
            )
        )
        return Draft(
            text=text,
            completion=completion,
            action=parsed.action and numbered(parsed.action, self._turn),
            error=parsed.error,
            paused=parsed.paused,
            spans=spans,
            flags=parsed.flags,
        )


def _joined(made: Completion, last: Completion) -> Completion:
    """Completions that followed each other directly, as one."""
    return replace(
        last,
        token_ids=np.concatenate([made.token_ids, last.token_ids]),
        logprobs=np.concatenate([made.logprobs, last.logprobs]),
        policy_version=min(made.policy_version, last.policy_version),
        seconds=made.seconds + last.seconds,
    )


@lru_cache(maxsize=1024)  # every turn begins with the same budget
def _within(sampling: Sampling, budget: int) -> Sampling:
    return replace(sampling, max_tokens=budget)
