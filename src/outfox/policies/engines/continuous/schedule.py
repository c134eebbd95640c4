# pyright: standard
"""Sessions, the jobs that wait for tokens, and what the next step feeds.

    generate ─▶ waiting ─admit─▶ active ─plan─▶ feeds of one step ─▶ sampled tokens ─▶ done

A session's last token is always pending: sampled, but not yet in the cache. It goes in with
whatever comes next, so history is never fed twice. Sessions that stand at the same place of the
same lane and go on with the same tokens are fed as one; their draws differ, so they part later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from outfox.core.ledger import Completion
from outfox.policies.engines.continuous.lanes import Lane
from outfox.policies.engines.continuous.sampling import Rule
from outfox.policies.engines.continuous.stopping import Ending

CHUNK = 2048
"""Most tokens of one session in one step; fixed, so that bits depend on the session alone."""


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    name: str
    noise_key: int
    tokens: list[int] = field(default_factory=list)
    lane: Lane | None = None
    cached: int = 0
    """How many of `tokens` are in the cache, as the first of its lane."""
    busy: bool = False
    failed: str | None = None
    full: bool = False
    """Tokens were refused because they did not fit; the session can only end."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """One `generate` call."""

    session: Session
    rule: Rule
    ending: Ending
    budget: int
    future: asyncio.Future[Completion]
    started: float
    sampled: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False)
class Feed:
    """The next pending tokens of sessions that have been the same so far."""

    sessions: list[Session]
    jobs: list[Job]
    """One per session."""
    past: int
    """Tokens that are cached."""
    ids: tuple[int, ...]
    samples: bool
    """Whether the step ends with a new token for these sessions."""


class Schedule:
    """First come, first served: at most `max_rows` jobs run, the rest wait."""

    def __init__(self, *, max_rows: int, max_step_tokens: int) -> None:
        self._max_rows = max_rows
        self._max_step_tokens = max_step_tokens
        self.waiting: deque[Job] = deque()
        self.active: list[Job] = []

    def __len__(self) -> int:
        return len(self.waiting) + len(self.active)

    def plan(self) -> list[Feed]:
        """What the next step feeds: every decoding session, and prefills up to the limit."""
        self.active = [job for job in self.active if not job.future.done()]
        while self.waiting and len(self.active) < self._max_rows:
            job = self.waiting.popleft()
            if not job.future.done():
                self.active.append(job)
        feeds: dict[tuple[int, int, tuple[int, ...]], Feed] = {}
        room = self._max_step_tokens
        for job in self.active:
            session = job.session
            past, end = session.cached, len(session.tokens)
            ids = tuple(session.tokens[past : min(end, past + CHUNK)])
            key = id(session.lane), past, ids
            feed = feeds.get(key)
            if feed is not None:
                feed.sessions.append(session)
                feed.jobs.append(job)
            elif len(ids) == 1 or room > 0:
                samples = past + len(ids) == end
                feeds[key] = Feed(
                    sessions=[session], jobs=[job], past=past, ids=ids, samples=samples
                )
                room -= len(ids) if len(ids) > 1 else 0
        return list(feeds.values())

    def clear(self) -> Sequence[Job]:
        """Forget all jobs and return them."""
        jobs = [*self.active, *self.waiting]
        self.active = []
        self.waiting.clear()
        return jobs
