"""What rewards and learning make of trajectories: scores, credits, samples, batches, reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from outfox.core.errors import ContractError
from outfox.core.ledger import Bools, Floats, Ints, Owner, Span
from outfox.core.types import Group, Message, Opening


# -- rewards --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A signal's measurement."""

    value: float
    per_turn: tuple[float, ...] | None = None
    why: str = ""
    details: Mapping[str, float] | None = None
    """What it is made of, by name; measured beside it, without a say in the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The signal says nothing about this trajectory."""

    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalError:
    """The signal failed; the trajectory leaves the baseline, never a silent 0."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTimeout:
    """The signal did not answer in time."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalCrash:
    """The signal ended the process that it ran in, or ran out of memory."""

    why: str


SignalResult: TypeAlias = Value | NotApplicable | SignalError | SignalTimeout | SignalCrash
SIGNAL_FAILED = (SignalError, SignalTimeout, SignalCrash)

Outcome = Literal["right", "wrong", "unsupported", "abstained", "unanswered", "gated", "failed"]
"""`unsupported`: right, but without the evidence its domain demands; `unanswered`: ended without an
answer, valued as wrong; `failed`: a fault outside the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How good a trajectory was."""

    total: float | None
    """None where a fault outside the policy left it unscored: out of the baseline, advantage 0."""
    outcome: Outcome
    results: Mapping[str, SignalResult]
    """By signal name, as measured."""
    parts: Mapping[str, float]
    """Contribution of each rubric part; they sum to `total`."""
    gate: str | None = None
    """The gate that fired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """A group with one score per trajectory, in order. Raises ContractError for another number."""

    group: Group
    scores: tuple[Score, ...]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.group.trajectories):
            raise ContractError(
                f"a group has one score per trajectory; {self.group.group_id} has "
                f"{len(self.group.trajectories)} trajectories and {len(self.scores)} scores"
            )


# -- learning -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One stretch of a demonstration: policy text, an environment reading, or an observation."""

    text: str = ""
    """Policy text, or (`owner` environment) a reading inside the policy's turn."""
    messages: tuple[Message, ...] = ()
    """Observation messages; then `text` is empty."""
    owner: Owner = "policy"
    trained: bool = True
    """False: policy text that is shown but not imitated (a decision by coin, a context)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """Something to imitate, whole or cut off where it should not teach further."""

    name: str
    """What it teaches: `closed_book`, `reading`, `episode`, ..."""
    opening: Opening
    events: tuple[Event, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrajectoryCredit:
    """Advantages of one trajectory."""

    advantages: tuple[Floats, ...]
    """One [T] per ledger, zero outside policy tokens."""
    left_out: str | None = None
    """Why it carries no signal: `unscored`, `group_of_one`, `equal_totals`."""
    returns: tuple[Floats, ...] | None = None
    """One [T] per ledger; targets of a value head."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One training sequence. All arrays are [T]."""

    token_ids: Ints
    loss_mask: Bools
    """True on trained tokens."""
    rollout_logprobs: Floats
    advantages: Floats
    weights: Floats
    """Per-token weight of the loss; 1 normally."""
    objective: Literal["policy", "imitation"] = "policy"
    spans: tuple[Span, ...] = ()
    policy_version: int | None = None
    group_id: str = ""
    returns: Floats | None = None

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Samples of one optimiser step, cut into micro-batches."""

    micro: tuple[tuple[Sample, ...], ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(sample for part in self.micro for sample in part)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Annotations:
    """What a trainer computed for samples, one [T] each, where it was asked for."""

    samples: tuple[Sample, ...] = ()
    """The samples, in order; packing may deal them out in another."""
    old_logprobs: tuple[Floats, ...] | None = None
    ref_logprobs: tuple[Floats, ...] | None = None
    values: tuple[Floats, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What an update did. Metric names follow TRL where it has one."""

    policy_version: int
    optimizer_step: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepResult:
    """All that one step of `loop.train` made."""

    step: int
    stage: str
    groups: tuple[ScoredGroup, ...]
    credits: tuple[tuple[TrajectoryCredit, ...], ...]
    report: UpdateReport
    metrics: Mapping[str, float]
    """Free of clock readings."""
    timings: Mapping[str, float]
    """Seconds by part of the step."""
