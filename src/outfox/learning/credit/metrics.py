"""What a step's totals and credits say about the signal: its size, and where it was lost."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import get_args

import numpy as np

from outfox.core.results import ScoredGroup, TrajectoryCredit, Value
from outfox.learning.credit.baseline import (
    LeftOut,
    all_equal,
    part_values,
    scored,
    spread,
    totals,
)

_log = logging.getLogger(__name__)


def credit_metrics(
    groups: Sequence[ScoredGroup], credits: Sequence[Sequence[TrajectoryCredit]]
) -> dict[str, float]:
    """Metrics of one step, named as in TRL where it has a name.

    `reward`, `reward_std` (mean of the groups' standard deviations), `frac_reward_zero_std` (share
    of groups), `rewards/<signal>/mean`, `left_out/<reason>` (trajectories), `cancelling_groups`
    (groups whose parts differ while the totals do not; also logged as a warning). A mean over
    nothing is absent, never 0; without groups there are no metrics. A step from which nothing can
    be learned is logged as a warning.
    """
    if not groups:
        return {}
    values = [totals(group) for group in groups]
    known = [own[scored(own)] for own in values]
    metrics = {f"left_out/{reason}": 0.0 for reason in get_args(LeftOut)}
    reasons = Counter(c.left_out for group in credits for c in group if c.left_out)
    metrics |= {f"left_out/{reason}": float(count) for reason, count in reasons.items()}
    count = sum(map(len, credits))
    if count and reasons.total() == count:
        _log.warning(
            "a step teaches nothing and the run goes on: none of %d episodes has a signal (%s); "
            "choose tasks that are neither always nor never solved, or a larger group_size",
            count,
            ", ".join(f"{name} {number}" for name, number in sorted(reasons.items())),
        )
    compared = [own for own in known if len(own)]
    if compared:
        metrics["reward"] = float(np.concatenate(compared).mean())
        metrics["reward_std"] = float(np.mean([spread(own) for own in compared]))
        metrics["frac_reward_zero_std"] = float(np.mean([all_equal(own) for own in compared]))
    metrics |= _signal_means(groups)
    cancelling = cancelling_groups(groups)
    metrics["cancelling_groups"] = float(len(cancelling))
    if cancelling:
        _log.warning(
            "signals cancel in %d of %d groups (first: %s): their parts differ but their totals "
            "are equal, so nothing is learned from them; change weights or use decoupled credit",
            len(cancelling),
            len(groups),
            cancelling[0],
        )
    return metrics


def cancelling_groups(groups: Sequence[ScoredGroup]) -> tuple[str, ...]:
    """Ids of the groups whose totals are equal although a part is not."""
    found: list[str] = []
    for group in groups:
        own = totals(group)
        known = scored(own)
        if known.sum() < 2 or not all_equal(own[known]):
            continue
        if any(not all_equal(values[known]) for values in part_values(group).values()):
            found.append(group.group.group_id)
    return tuple(found)


def _signal_means(groups: Sequence[ScoredGroup]) -> dict[str, float]:
    measured: dict[str, list[float]] = {}
    for group in groups:
        for score in group.scores:
            for name, result in score.results.items():
                if isinstance(result, Value):
                    measured.setdefault(name, []).append(result.value)
    return {f"rewards/{name}/mean": float(np.mean(v)) for name, v in sorted(measured.items())}
