"""95 % intervals: Wilson's for shares, a bootstrap over questions for the rest.

Samples of one question depend on each other, so what counts is questions: Wilson takes the number
of questions as n, the bootstrap draws whole questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Statistic = Callable[[Array], Array]
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number, its 95 % interval, and the questions behind it. None where nothing was measured."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


NOT_MEASURED = Estimate(value=None)


def wilson(value: float, n: int) -> tuple[float, float]:
    """Score interval of a share (Wilson 1927); it stays inside [0, 1] and never has width 0."""
    spread = _Z * _Z / n
    centre = (value + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(value * (1 - value) / n + spread / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def share(hits: Array, episodes: Array) -> Estimate:
    """Share of episodes; `hits`, `episodes`: [questions] counts. Wilson on the questions."""
    asked = int((episodes > 0).sum())
    if not asked:
        return NOT_MEASURED
    value = float(hits.sum() / episodes.sum())
    low, high = wilson(value, asked)
    return Estimate(value=value, low=low, high=high, n=asked)


def resamples(questions: int, *, seed: int, draws: int = 1000) -> Array:
    """[draws, questions]: how often each question is drawn when `questions` are, with return."""
    if not questions:
        return np.zeros((draws, 0))
    generator = np.random.default_rng(seed)
    chances = np.full(questions, 1 / questions)
    return generator.multinomial(questions, chances, size=draws).astype(np.float64)


def bootstrap(columns: Array, statistic: Statistic, counts: Array, n: int) -> Estimate:
    """A statistic of summed columns; its interval from whole questions drawn again.

    `columns`: [questions, k] sums per question; `statistic`: [..., k] totals to [...] values, not
    finite where it does not exist (such draws are left out); `counts`: from `resamples`; `n`: the
    questions to report.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(columns.sum(axis=0)))
        values = statistic(counts @ columns)
    if not math.isfinite(value):
        return NOT_MEASURED
    low, high = np.quantile(values[np.isfinite(values)], [0.025, 0.975])
    return Estimate(value=value, low=float(low), high=float(high), n=n)


def ratio(totals: Array) -> Array:
    """The statistic `first column / second`; not finite where the latter is 0."""
    return totals[..., 0] / totals[..., 1]
