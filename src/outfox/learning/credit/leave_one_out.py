"""RLOO's credit: distance from the mean of the *other* siblings (Ahmadian et al. 2024).

advantage = total - mean of the others = n / (n - 1) * (total - mean of all n)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outfox.core.protocols import CreditNotes
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.learning.credit.baseline import centre, credits_of, scored, signal_of, totals


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """Credit by distance from the other siblings' mean; nothing is divided by a spread."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        return tuple(_group(group) for group in groups)


def _group(group: ScoredGroup) -> tuple[TrajectoryCredit, ...]:
    values = totals(group)
    count = int(scored(values).sum())
    # centre / scale with scale (n - 1) / n; a group of one is left out by `signal_of`.
    scale = (count - 1) / count if count > 1 else 1.0
    return credits_of(group, centre(values, scale), signal_of(values))


part = LeaveOneOut
