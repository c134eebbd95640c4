"""Generalised advantage estimation over policy tokens (Schulman et al. 2016), for a value head.

    delta[t] = reward[t] + gamma * value[t + 1] - value[t]
    advantage[t] = delta[t] + gamma * lam * advantage[t + 1]
    return[t] = advantage[t] + value[t]

`t` counts policy tokens only: observation tokens are skipped, as if they were deleted, and the
total is the reward of the last policy token. All ledgers of a trajectory form one sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outfox.core.errors import ContractError
from outfox.core.ledger import Floats
from outfox.core.protocols import CreditNotes
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.core.types import Trajectory
from outfox.learning.credit.baseline import Reals, members, no_signal


@dataclass(frozen=True, slots=True, kw_only=True)
class GAE:
    """Credit by temporal differences of a value head. Needs `notes.values`."""

    gamma: float = 1.0
    """Discount of later values."""
    lam: float = 0.95
    """Between one step (0) and the whole episode (1)."""
    whiten: bool = True
    """Centre and scale advantages over all policy tokens of the batch."""
    eps: float = 1e-8
    """Added to the divisor."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        count = sum(len(group.scores) for group in groups)
        if len(notes.values) != count:
            raise ContractError(
                "GAE needs value estimates for every trajectory: "
                f"{count} trajectories, {len(notes.values)} with values; train with a value head"
            )
        found: list[tuple[Trajectory, Reals, Reals] | None] = []
        for (group, place, trajectory), values in zip(members(groups), notes.values, strict=True):
            total = group.scores[place].total
            found.append(None if total is None else self._estimate(trajectory, values, total))
        mean, scale = self._moments([one[1] for one in found if one is not None])
        flat = iter(found)
        return tuple(
            tuple(_credit(t, next(flat), mean, scale) for t in group.group.trajectories)
            for group in groups
        )

    def _estimate(
        self, trajectory: Trajectory, values: Sequence[Floats], total: float
    ) -> tuple[Trajectory, Reals, Reals]:
        """Advantages and returns over the trajectory's policy tokens."""
        value = np.concatenate(
            [v[led.loss_mask] for v, led in zip(values, trajectory.ledgers, strict=True)]
            or [np.zeros(0, np.float32)]
        ).astype(np.float64)
        advantages = np.zeros_like(value)
        following, after = 0.0, 0.0
        for t in reversed(range(len(value))):
            reward = total if t == len(value) - 1 else 0.0
            delta = reward + self.gamma * following - value[t]
            after = delta + self.gamma * self.lam * after
            advantages[t], following = after, float(value[t])
        return trajectory, advantages, advantages + value

    def _moments(self, advantages: Sequence[Reals]) -> tuple[float, float]:
        tokens = np.concatenate(advantages) if advantages else np.zeros(0)
        if not self.whiten or len(tokens) < 2:
            return 0.0, 1.0
        return float(tokens.mean()), float(tokens.std(ddof=1)) + self.eps


def _credit(
    trajectory: Trajectory,
    estimate: tuple[Trajectory, Reals, Reals] | None,
    mean: float,
    scale: float,
) -> TrajectoryCredit:
    if estimate is None:
        return no_signal(trajectory, "unscored")
    _, advantages, returns = estimate
    return TrajectoryCredit(
        advantages=_place(trajectory, (advantages - mean) / scale),
        returns=_place(trajectory, returns),
    )


def _place(trajectory: Trajectory, values: Reals) -> tuple[Floats, ...]:
    """Policy-token values back into full-length rows, one per ledger."""
    rows: list[Floats] = []
    start = 0
    for ledger in trajectory.ledgers:
        mask = ledger.loss_mask
        row = np.zeros(len(mask), np.float32)
        end = start + int(mask.sum())
        row[mask] = values[start:end]
        rows.append(row)
        start = end
    return tuple(rows)


part = GAE
