"""Budgets: a signal's batch mean held at a limit by a Lagrangian multiplier.

    price <- max(0, price + lr * (batch mean - limit)),   charge = price * value

Dual ascent on max reward s.t. mean(signal) <= limit (Tessler et al. 2019, "Reward Constrained
Policy Optimization"). It differs from the paper in that the charge lies under the rubric's cap and
only counts when the answer is right, so that a budget never makes a wrong answer the cheaper one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from outfox.core.results import SignalResult, Value
from outfox.core.types import JSON
from outfox.rewards.tree import Budget


class Budgets:
    """The multipliers of a rubric's budgets. Stateful."""

    def __init__(self, budgets: Mapping[str, Budget]) -> None:
        self._budgets = dict(budgets)
        self._prices = {name: budget.initial for name, budget in budgets.items()}

    @property
    def prices(self) -> Mapping[str, float]:
        """Multiplier by signal."""
        return dict(self._prices)

    def charge(self, name: str, value: float) -> float:
        """What a value costs now; never negative."""
        return self._prices[name] * max(0.0, value)

    def update(self, batch: Sequence[Mapping[str, SignalResult]]) -> None:
        """One step of dual ascent on the results of a batch; what failed is left out."""
        for name, budget in self._budgets.items():
            found = [row.get(name) for row in batch]
            values = [result.value for result in found if isinstance(result, Value)]
            if values:
                excess = sum(values) / len(values) - budget.limit
                self._prices[name] = max(0.0, self._prices[name] + budget.lr * excess)

    def state(self) -> JSON:
        return dict(self._prices)

    def restore(self, state: JSON) -> None:
        self._prices = {**self._prices, **cast("dict[str, float]", state)}
