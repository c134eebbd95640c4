"""REINFORCE++'s credit: normalised over the whole batch (Hu 2025).

    baseline: group    (total - mean of group) / std of these differences   (REINFORCE++-baseline)
    baseline: batch    (total - mean of batch) / std of batch               (REINFORCE++)

With `batch`, the whole batch is what a trajectory is compared with, so groups may have one member;
a batch of one, or of equal totals, then carries no signal. Differs from the paper: statistics are
over trajectories, not tokens, so long trajectories do not weigh more; no KL inside the reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from outfox.core.protocols import CreditNotes
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.learning.credit.baseline import (
    LeftOut,
    Reals,
    all_wrong,
    centre,
    credits_of,
    signal_of,
    spread,
    totals,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchScale:
    """Credit in units of the batch's standard deviation."""

    baseline: Literal["group", "batch"] = "group"
    """Mean that is subtracted."""
    eps: float = 1e-4
    """Added to the divisor."""
    floor: float = 0.1
    """Least standard deviation that is divided by."""
    wrong_floor: float = 1.0
    """The same for a group that is all wrong, where its own mean is the baseline."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        if not groups:
            return ()
        values = [totals(group) for group in groups]
        centred, left_out = self._centred(values)
        # Unscored members are 0 in `centred`; they must not shrink the spread.
        known = [np.where(np.isnan(own), np.nan, c) for own, c in zip(values, centred, strict=True)]
        std = spread(np.concatenate(known))
        return tuple(
            credits_of(group, c / (max(std, self._floor(group)) + self.eps), reasons)
            for group, c, reasons in zip(groups, centred, left_out, strict=True)
        )

    def _floor(self, group: ScoredGroup) -> float:
        strict = self.baseline == "group" and all_wrong(group)
        return max(self.floor, self.wrong_floor) if strict else self.floor

    def _centred(
        self, values: Sequence[Reals]
    ) -> tuple[list[Reals], list[tuple[LeftOut | None, ...]]]:
        if self.baseline == "group":
            return [centre(own) for own in values], [signal_of(own) for own in values]
        edges = np.cumsum([len(own) for own in values])[:-1]
        whole = np.concatenate(values)
        reasons = signal_of(whole)
        starts = [0, *map(int, edges), len(whole)]
        cut = [reasons[a:b] for a, b in pairwise(starts)]
        return list(np.split(centre(whole), edges)), cut


part = BatchScale
