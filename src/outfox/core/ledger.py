"""Tokens and who wrote them. Masks and alignment are derived from ownership, never inferred.

Every token array is full length and indexed like `token_ids`; `logprobs[t]` belongs to
`token_ids[t]`. The shift by one between inputs and targets happens in `policies/logprobs.py` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]
Owner = Literal["prompt", "policy", "environment"]
FinishReason = Literal["stop", "eos", "length"]
"""`stop`: a stop string was completed; `eos`; `length`: the token budget ran out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A named range of tokens, `[start, end)`, relative to what holds it."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """Tokens that an engine sampled, exactly as sampled."""

    token_ids: Ints
    """[T]; includes the EOS or the token that completed a stop string, where there was one."""
    logprobs: Floats
    """[T], under the distribution they were sampled from."""
    policy_version: int
    finish_reason: FinishReason
    stop: str | None = None
    """The stop string that was completed."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """A run of tokens with one owner."""

    owner: Owner
    token_ids: Ints
    """[T]"""
    logprobs: Floats | None = None
    """[T], for policy segments."""
    policy_version: int | None = None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """Append-only record of who wrote which token. Masks and alignment are derived from it.

    A prompt of 2, 3 policy tokens, 2 observation tokens, 2 policy tokens:

        token_ids  p p a a a o o b b
        loss_mask  0 0 1 1 1 0 0 1 1
    """

    agent: str = "policy"
    segments: tuple[Segment, ...] = ()

    def append(self, segment: Segment) -> Ledger:
        return Ledger(agent=self.agent, segments=(*self.segments, segment))

    def __len__(self) -> int:
        return sum([len(segment.token_ids) for segment in self.segments])

    @property
    def token_ids(self) -> Ints:
        """[T]"""
        rows = [segment.token_ids for segment in self.segments]
        return np.concatenate(rows).astype(np.int64, copy=False) if rows else np.zeros(0, np.int64)

    @property
    def loss_mask(self) -> Bools:
        """[T], True on policy tokens, by ownership alone."""
        mask, end = np.zeros(len(self), np.bool_), 0
        for segment in self.segments:
            start, end = end, end + len(segment.token_ids)
            if segment.owner == "policy":
                mask[start:end] = True
        return mask

    @property
    def logprobs(self) -> Floats:
        """[T], zero on tokens that the policy does not own."""
        logprobs, end = np.zeros(len(self), np.float32), 0
        for segment in self.segments:
            start, end = end, end + len(segment.token_ids)
            if segment.logprobs is not None:
                logprobs[start:end] = segment.logprobs
        return logprobs

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans, relative to the ledger's first token."""
        found: list[Span] = []
        offset = 0
        for segment in self.segments:
            found += [
                Span(name=s.name, start=s.start + offset, end=s.end + offset) for s in segment.spans
            ]
            offset += len(segment.token_ids)
        return tuple(found)

    @property
    def policy_version(self) -> int | None:
        """The oldest version that wrote a token."""
        versions = [s.policy_version for s in self.segments if s.policy_version is not None]
        return min(versions, default=None)
