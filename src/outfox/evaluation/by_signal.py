"""What each signal of the rubric measured, on average over the episodes that it applies to.

Details of a signal's value stand beside it as `signal/detail`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from outfox.core.results import Score, ScoredGroup, Value
from outfox.evaluation.intervals import Estimate, bootstrap, ratio, resamples


def signal_means(groups: Sequence[ScoredGroup], *, seed: int = 0) -> dict[str, Estimate]:
    """Mean by signal name, bootstrapped over questions; a signal that never applies is absent."""
    sums: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for group in groups:
        question = group.group.trajectories[0].task.task_id
        for score in group.scores:
            for name, value in measured(score):
                held = sums[name].setdefault(question, [0.0, 0.0])
                held[0] += value
                held[1] += 1
    found: dict[str, Estimate] = {}
    for name, by_question in sums.items():
        columns = np.asarray(list(by_question.values()), np.float64)
        count = len(columns)
        found[name] = bootstrap(columns, ratio, resamples(count, seed=seed), count)
    return found


def measured(score: Score) -> Iterator[tuple[str, float]]:
    """Every value by signal name, then its details."""
    for name, result in score.results.items():
        if isinstance(result, Value):
            yield name, result.value
    yield from details(score)


def details(score: Score) -> Iterator[tuple[str, float]]:
    """What the values are made of, as `signal/detail`."""
    for name, result in score.results.items():
        if isinstance(result, Value):
            for detail, value in (result.details or {}).items():
                yield f"{name}/{detail}", value
