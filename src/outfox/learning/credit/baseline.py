"""What all group-relative credits share: who is compared with whom, and what carries no signal.

    totals of a group     [1, 0, None, 1]
    scored                 1  0        1      None is out of mean and std, its advantage is 0
    centred               1/3 -2/3    1/3

A group with one scored member, or whose totals are equal up to rounding (.1 + .2 and .3), carries
no signal: exactly 0, never noise divided by noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.core.types import Trajectory

Reals: TypeAlias = NDArray[np.float64]
LeftOut = Literal["unscored", "group_of_one", "equal_totals"]

ROUNDING = 1e-6
"""Totals closer than this, relative to the larger of 1 and their size, are equal."""
WRONG = frozenset({"wrong", "unanswered"})
"""Outcomes of the same value: a group of these differs only by its deductions."""


def totals(group: ScoredGroup) -> Reals:
    """[siblings] totals; NaN where unscored."""
    return np.array([np.nan if s.total is None else s.total for s in group.scores], np.float64)


def scored(values: Reals) -> NDArray[np.bool_]:
    """[siblings] True where there is a total."""
    return ~np.isnan(values)


def all_equal(values: Reals) -> bool:
    """Equal up to rounding?"""
    size = max(1.0, float(np.abs(values).max()))
    return float(values.max() - values.min()) <= ROUNDING * size


def signal_of(values: Reals) -> tuple[LeftOut | None, ...]:
    """Per sibling: why it carries no signal, or None where it does."""
    known = scored(values)
    reason: LeftOut | None = None
    if known.sum() == 1:
        reason = "group_of_one"
    elif known.sum() > 1 and all_equal(values[known]):
        reason = "equal_totals"
    return tuple(reason if one else "unscored" for one in known)


def centre(values: Reals, scale: float = 1.0) -> Reals:
    """[siblings] distance from the mean of the scored, divided by `scale`; 0 where unscored."""
    known = scored(values)
    if not known.any():
        return np.zeros_like(values)
    return np.where(known, (values - values[known].mean()) / scale, 0.0)


def spread(values: Reals) -> float:
    """Sample standard deviation (n - 1) of the scored; 0 for fewer than two."""
    known = values[scored(values)]
    return float(known.std(ddof=1)) if len(known) > 1 else 0.0


def all_wrong(group: ScoredGroup) -> bool:
    """Nobody scored is right or abstained: totals differ by deductions only."""
    outcomes = {score.outcome for score in group.scores if score.total is not None}
    return bool(outcomes) and outcomes <= WRONG


def on_policy_tokens(trajectory: Trajectory, value: float) -> TrajectoryCredit:
    """The same advantage on every policy token, zero elsewhere."""
    return TrajectoryCredit(
        advantages=tuple(
            (ledger.loss_mask * value).astype(np.float32) for ledger in trajectory.ledgers
        )
    )


def no_signal(trajectory: Trajectory, reason: LeftOut) -> TrajectoryCredit:
    """Advantage exactly 0, and why."""
    return TrajectoryCredit(
        advantages=tuple(np.zeros(len(ledger), np.float32) for ledger in trajectory.ledgers),
        left_out=reason,
    )


def credits_of(
    group: ScoredGroup, advantages: Reals, left_out: Sequence[LeftOut | None]
) -> tuple[TrajectoryCredit, ...]:
    """One credit per sibling from one number per sibling."""
    return tuple(
        on_policy_tokens(trajectory, float(own))
        if reason is None
        else no_signal(trajectory, reason)
        for trajectory, own, reason in zip(
            group.group.trajectories, advantages, left_out, strict=True
        )
    )


def part_values(group: ScoredGroup) -> dict[str, Reals]:
    """Per rubric part: [siblings] contributions; NaN where unscored, 0 where the part is absent."""
    found = sorted({name for score in group.scores for name in score.parts})
    return {
        name: np.array(
            [np.nan if s.total is None else s.parts.get(name, 0.0) for s in group.scores],
            np.float64,
        )
        for name in found
    }


def members(groups: Sequence[ScoredGroup]) -> Iterator[tuple[ScoredGroup, int, Trajectory]]:
    """Every trajectory of the batch with its group and place in it."""
    for group in groups:
        for place, trajectory in enumerate(group.group.trajectories):
            yield group, place, trajectory
