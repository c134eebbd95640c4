"""What each signal of the rubric measured, on average over the episodes that it applies to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from outfox.core.results import ScoredGroup, Value
from outfox.evaluation.intervals import Estimate, bootstrap, ratio, resamples


def signal_means(groups: Sequence[ScoredGroup], *, seed: int = 0) -> dict[str, Estimate]:
    """Mean by signal name, bootstrapped over questions; a signal that never applies is absent."""
    sums: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for group in groups:
        question = group.group.trajectories[0].task.task_id
        for score in group.scores:
            for name, result in score.results.items():
                if isinstance(result, Value):
                    held = sums[name].setdefault(question, [0.0, 0.0])
                    held[0] += result.value
                    held[1] += 1
    found: dict[str, Estimate] = {}
    for name, by_question in sums.items():
        columns = np.asarray(list(by_question.values()), np.float64)
        count = len(columns)
        found[name] = bootstrap(columns, ratio, resamples(count, seed=seed), count)
    return found
