"""GRPO's credit: distance from the siblings' mean, in units of a standard deviation.

    advantage = (total - mean of group) / (max(std, floor) + eps)

`scale`: std of the `group` (GRPO, Shao et al. 2024), of the whole `batch`, or `none` (Dr.GRPO, Liu
et al. 2025: only the mean is taken off). The standard deviation has n - 1 in it, like TRL's.

Differs from the paper: a floor lies under the standard deviation, so small differences stay small,
and where everyone is wrong the floor is 1: a deduction is never blown up to the size of an outcome.
With `floor: 0` and `wrong_floor: 0` it is TRL's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from outfox.core.protocols import CreditNotes
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.learning.credit.baseline import (
    all_wrong,
    centre,
    credits_of,
    signal_of,
    spread,
    totals,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMean:
    """Credit by distance from the group's mean."""

    scale: Literal["group", "batch", "none"] = "group"
    """Whose standard deviation the distance is divided by."""
    eps: float = 1e-4
    """Added to the standard deviation, as in TRL."""
    floor: float = 0.1
    """Least standard deviation that is divided by."""
    wrong_floor: float = 1.0
    """The same in a group where every scored outcome is wrong or unanswered."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        values = [totals(group) for group in groups]
        over_all = spread(np.concatenate(values)) if values else 0.0
        return tuple(
            credits_of(
                group, centre(own, self._scale(group, spread(own), over_all)), signal_of(own)
            )
            for group, own in zip(groups, values, strict=True)
        )

    def _scale(self, group: ScoredGroup, of_group: float, of_batch: float) -> float:
        if self.scale == "none":
            return 1.0
        floor = max(self.floor, self.wrong_floor) if all_wrong(group) else self.floor
        return max(of_group if self.scale == "group" else of_batch, floor) + self.eps


part = GroupMean
