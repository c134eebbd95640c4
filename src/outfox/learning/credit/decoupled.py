"""`normalize_then_sum`: every rubric part is normalised in its group, then they are added up.

    advantage = sum over parts of weight * (part - mean) / (std + eps)

Two parts that cancel in the total still speak here when their weights differ, and a rare large part
does not drown the others (GDPO, Liu et al. 2026; TRL's `multi_objective_aggregation`). A part
whose spread in the group is under the floor is left out: it would be noise at full size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from outfox.core.protocols import CreditNotes
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.learning.credit.baseline import (
    LeftOut,
    Reals,
    all_equal,
    all_wrong,
    centre,
    credits_of,
    part_values,
    scored,
    signal_of,
    spread,
    totals,
)


def _no_weights() -> dict[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoupled:
    """Credit normalised per rubric part."""

    weights: Mapping[str, float] = field(default_factory=_no_weights)
    """By part name; a part that is not named weighs 1."""
    eps: float = 1e-4
    """Added to the divisor."""
    floor: float = 0.05
    """A part with a smaller standard deviation in the group is left out."""
    wrong_floor: float = 1.0
    """Least divisor in a group where every scored outcome is wrong or unanswered."""
    batch_scale: bool = False
    """Divide by the standard deviation of all advantages of the batch, as TRL does."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        sums = [self._sum(group) for group in groups]
        scale = 1.0
        if self.batch_scale and sums:
            known = [
                np.where(scored(totals(g)), own, np.nan)
                for g, own in zip(groups, sums, strict=True)
            ]
            scale = max(spread(np.concatenate(known)), self.floor) + self.eps
        return tuple(
            credits_of(group, own / scale, _reasons(group, own))
            for group, own in zip(groups, sums, strict=True)
        )

    def _sum(self, group: ScoredGroup) -> Reals:
        result = np.zeros(len(group.scores), np.float64)
        least = self.wrong_floor if all_wrong(group) else 0.0
        for name, values in part_values(group).items():
            std = spread(values)
            known = values[scored(values)]
            if std < self.floor or len(known) < 2 or all_equal(known):
                continue
            result += self.weights.get(name, 1.0) * centre(values, max(std, least) + self.eps)
        return result


def _reasons(group: ScoredGroup, sums: Reals) -> tuple[LeftOut | None, ...]:
    """As for totals, except that equal totals are no reason where the parts differ."""
    return signal_of(np.where(scored(totals(group)), sums, np.nan))


part = Decoupled
