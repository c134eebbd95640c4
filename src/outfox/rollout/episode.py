"""One episode: a policy acts in an environment until it answers, a limit ends it, or it fails.

reset ─▶ begin ─▶ ┌ act ⇄ reading ─▶ action ─▶ step ─▶ observe ┐ ─▶ Trajectory
                  └────────────────── turn by turn ────────────┘
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from outfox.core.deadline import within
from outfox.core.errors import ConfigError, ContractError, DataError
from outfox.core.ledger import Completion, Ledger, Span
from outfox.core.playing import PLAYING
from outfox.core.protocols import Conversation, Environment, EnvironmentFactory, Policy
from outfox.core.seeding import derive
from outfox.core.types import (
    JSON,
    Draft,
    EpisodeKey,
    Message,
    Observation,
    ParseError,
    StopReason,
    Task,
    Trajectory,
    Turn,
)
from outfox.rollout.limits import Limits
from outfox.rollout.readings import Reading

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class _Record:
    """What has happened so far; it outlives a failure."""

    turns: list[Turn] = field(default_factory=lambda: list[Turn]())
    ledgers: tuple[Ledger, ...] = ()
    final_state: JSON = None
    error: str | None = None


async def run_episode(
    task: Task,
    key: EpisodeKey,
    *,
    policy: Policy,
    environment: EnvironmentFactory,
    limits: Limits,
    readings: Mapping[str, Reading] | None = None,
) -> Trajectory:
    """Play one episode to its end; environment and conversation are closed whatever happens.

    Any exception of engine or environment ends it with `stop_reason` error, its turns kept; a
    ConfigError or ContractError is a fault of the run and is raised.
    """
    record, readings = _Record(), readings or {}
    token = PLAYING.set(key)
    try:
        world = environment(task, environment_seed(key))
        try:
            stop = await _played(task, key, policy, world, limits, readings, record)
        finally:
            await _close(world.close, "environment", task)
    except (ConfigError, ContractError):
        raise
    except Exception as fault:
        stop, record.error = "error", f"{type(fault).__name__}: {fault}"
        log.warning("episode %s/%d: %s", key.group_id, key.sibling, record.error)
    finally:
        PLAYING.reset(token)
    return Trajectory(
        task=task,
        group_id=key.group_id,
        sibling=key.sibling,
        turns=tuple(record.turns),
        stop_reason=stop,
        ledgers=record.ledgers,
        final_state=record.final_state,
        error=record.error,
    )


async def _played(
    task: Task,
    key: EpisodeKey,
    policy: Policy,
    world: Environment,
    limits: Limits,
    readings: Mapping[str, Reading],
    record: _Record,
) -> StopReason:
    name = f"environment.reset of {task.task_id}"
    opening = await within(limits.step_seconds, name, world.reset())
    conversation = policy.begin(key, task, opening)
    try:
        stop = await _Play(
            task_id=task.task_id,
            world=world,
            conversation=conversation,
            limits=limits,
            window=min(limits.max_tokens, policy.context_length or limits.max_tokens),
            readings=readings,
            record=record,
        ).run()
        record.final_state = world.final()
        return stop
    finally:
        await _close(conversation.close, "conversation", task)


def environment_seed(key: EpisodeKey) -> int:
    """The same for all siblings: they are compared with each other, so they face the same world."""
    return derive("environment", key.seed, key.step, key.group_id)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Play:
    """The turns of one episode."""

    task_id: str
    world: Environment
    conversation: Conversation
    limits: Limits
    window: int
    """Most tokens of a ledger."""
    readings: Mapping[str, Reading]
    record: _Record

    async def run(self) -> StopReason:
        record, talk, malformed = self.record, self.conversation, 0
        record.ledgers = talk.ledgers
        if self._room() <= 0:
            raise DataError(
                f"an opening fits into max_tokens; that of task {self.task_id} has "
                f"{len(talk.ledgers[-1])} of {self.window}: raise rollout.max_tokens or shorten it"
            )
        for number in range(1, self.limits.max_turns + 1):
            turn = await self._act()
            record.turns.append(turn)
            record.ledgers = talk.ledgers
            if turn.error is not None:
                malformed += 1
                if self._room() <= 0:
                    return "max_tokens"
                if malformed > self.limits.max_parse_errors:
                    return "malformed"
            observation = await self._step(turn)
            record.turns[-1] = replace(turn, observation=observation)
            if turn.action is not None and turn.action.answer is not None:
                return "answer"
            if observation.done:
                return "done"
            if number == self.limits.max_turns:
                break
            if self._observe(observation) and not observation.truncated:
                observation = replace(observation, truncated=True)
                record.turns[-1] = replace(turn, observation=observation)
            if self._room() <= 0:
                return "max_tokens"  # The ledgers on record end before what does not fit.
            record.ledgers = talk.ledgers
        return "max_turns"

    async def _act(self) -> Turn:
        """One policy message; a reading splits it into several completions."""
        completions: list[Completion] = []
        marks: list[str] = []
        draft = await self._draft(self.limits.max_new_tokens)
        while True:
            if draft.completion is not None:
                completions.append(draft.completion)
            if draft.paused is None:
                break
            marks += self._read(draft, draft.paused)
            spent = sum(len(completion.token_ids) for completion in completions)
            if spent >= self.limits.max_new_tokens or self._room() <= 0:
                draft = replace(draft, error=_too_long(), paused=None)
                break
            draft = await self._draft(self.limits.max_new_tokens - spent)
        if draft.action is None and draft.error is None:
            raise ContractError(
                "a finished turn is an action or a parse error; "
                f"{draft.text!r} is neither: correct the codec's parse"
            )
        return Turn(
            text=draft.text,
            completions=tuple(completions),
            action=draft.action,
            error=draft.error,
            readings=tuple(marks),
            flags=draft.flags,
        )

    async def _draft(self, budget: int) -> Draft:
        return await within(
            self.limits.act_seconds,
            f"policy.act of {self.task_id}",
            self.conversation.act(max_new_tokens=min(budget, self._room())),
        )

    def _read(self, draft: Draft, name: str) -> list[str]:
        """Insert the reading of the span that just ended, if one is asked for."""
        reading = self.readings.get(name)
        spans = [span for span in draft.spans if span.name == name]
        if reading is None or draft.completion is None or not spans:
            return []
        mark = reading(draft.completion, _last(spans))
        self.conversation.insert(mark)
        return [mark]

    async def _step(self, turn: Turn) -> Observation:
        """What comes back: the environment's answer, or what was wrong with the message."""
        if turn.action is None:
            told = turn.error.message if turn.error else ""
            return Observation(messages=(Message(role="user", content=told),))
        answer = turn.action.answer
        message = Message(
            role="assistant",
            content=turn.text if answer is None else answer,
            tool_calls=turn.action.calls,
        )
        name = f"environment.step of {self.task_id}, turn {len(self.record.turns)}"
        return await within(self.limits.step_seconds, name, self.world.step(message))

    def _observe(self, observation: Observation) -> bool:
        if observation.history is not None:
            self.conversation.rewrite(observation.history)
        if not observation.messages:
            return False
        limit = self.limits.max_observation_tokens
        return self.conversation.observe(observation.messages, limit=limit)

    def _room(self) -> int:
        """Tokens that the current ledger still takes."""
        ledgers = self.conversation.ledgers
        return self.window - len(ledgers[-1]) if ledgers else self.window


def _last(spans: list[Span]) -> Span:
    return max(spans, key=lambda span: span.end)


def _too_long() -> ParseError:
    return ParseError(fault="no_action", message="The turn was too long. Write an action sooner.")


async def _close(close: Callable[[], Awaitable[None]], part: str, task: Task) -> None:
    """Close a part; a failure is logged, for the episode is over and stands."""
    name = f"{part}.close of {task.task_id}"
    try:
        await within(CLOSE_SECONDS, name, close())
    except Exception as fault:
        log.warning("%s failed: %s: %s", name, type(fault).__name__, fault)


CLOSE_SECONDS = 30.0
"""Longest wait for a part to close."""
