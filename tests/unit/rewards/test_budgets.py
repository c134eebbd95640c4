from __future__ import annotations

import pytest

from outfox.core.results import NotApplicable, SignalError, Value
from outfox.rewards.budgets import Budgets
from outfox.rewards.tree import Budget


def calls(*values: float) -> list[dict[str, Value]]:
    return [{"calls": Value(value=value)} for value in values]


def test_the_price_rises_above_the_limit_and_falls_to_nothing_below() -> None:
    budgets = Budgets({"calls": Budget(limit=1.0, lr=0.1)})
    assert budgets.charge("calls", 3) == 0.0
    budgets.update(calls(2, 4))
    assert budgets.prices == {"calls": pytest.approx(0.2)}
    assert budgets.charge("calls", 3) == pytest.approx(0.6)
    budgets.update(calls(0, 0))
    assert budgets.prices == {"calls": pytest.approx(0.1)}
    for _ in range(5):
        budgets.update(calls(0))
    assert budgets.prices == {"calls": 0.0}


def test_failures_and_empty_batches_move_nothing() -> None:
    budgets = Budgets({"calls": Budget(limit=1.0, initial=0.3)})
    budgets.update([{"calls": NotApplicable()}, {"calls": SignalError(why="x")}, {}])
    budgets.update([])
    assert budgets.prices == {"calls": 0.3}


def test_restore_gives_the_same_next_step() -> None:
    budgets = Budgets({"calls": Budget(limit=1.0)})
    budgets.update(calls(5))
    other = Budgets({"calls": Budget(limit=1.0)})
    other.restore(budgets.state())
    for each in (budgets, other):
        each.update(calls(3))
    assert other.prices == budgets.prices
