# pyright: standard
"""Sessions, the jobs that wait for tokens, and what the next step feeds.

    generate ─▶ waiting ─admit─▶ active ─plan─▶ feeds of one step ─▶ sampled tokens ─▶ done

A session's last token is always pending: sampled, but not yet in the cache. It goes in with
whatever comes next, so history is never fed twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from outfox.core.ledger import Completion
from outfox.policies.engines.continuous.sampling import Rule
from outfox.policies.engines.continuous.stopping import Ending

CHUNK = 2048
"""Most tokens of one session in one step; fixed, so that bits depend on the session alone."""
TAIL = 3
"""A session with at most this many pending tokens joins the decoding ones, token by token."""


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    name: str
    noise_key: int
    tokens: list[int] = field(default_factory=list)
    cached: int = 0
    """How many of `tokens` are in the cache."""
    busy: bool = False
    failed: str | None = None
    full: bool = False
    """Tokens were refused because they did not fit; the session can only end."""

    @property
    def pending(self) -> int:
        return len(self.tokens) - self.cached


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feed:
    """The next `count` pending tokens of a session; `decode` feeds one, beside many others."""

    session: Session
    count: int
    decode: bool

    @property
    def samples(self) -> bool:
        """Whether the step ends with a new token for this session."""
        return self.count == self.session.pending


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """One step: what it feeds, and for whom."""

    jobs: list[Job]
    feeds: list[Feed]
    """One per job."""


class Schedule:
    """First come, first served: at most `max_rows` jobs run, the rest wait."""

    def __init__(self, *, max_rows: int, max_step_tokens: int) -> None:
        self._max_rows = max_rows
        self._max_step_tokens = max_step_tokens
        self.waiting: deque[Job] = deque()
        self.active: list[Job] = []

    def __len__(self) -> int:
        return len(self.waiting) + len(self.active)

    def plan(self) -> Plan:
        """What the next step feeds: every decoding session, and prefills up to the limit."""
        self.active = [job for job in self.active if not job.future.done()]
        while self.waiting and len(self.active) < self._max_rows:
            job = self.waiting.popleft()
            if not job.future.done():
                self.active.append(job)
        plan = Plan(jobs=[], feeds=[])
        room = self._max_step_tokens
        for job in self.active:
            session = job.session
            decode = session.pending <= TAIL
            count = 1 if decode else min(session.pending, CHUNK)
            if decode or room > 0:
                plan.jobs.append(job)
                plan.feeds.append(Feed(session=session, count=count, decode=decode))
                room -= 0 if decode else count
        return plan

    def clear(self) -> Sequence[Job]:
        """Forget all jobs and return them."""
        jobs = [*self.active, *self.waiting]
        self.active = []
        self.waiting.clear()
        return jobs
