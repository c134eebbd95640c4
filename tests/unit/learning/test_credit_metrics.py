"""Metrics of a step's credit."""

from __future__ import annotations

import pytest

from outfox.core.protocols import CreditNotes
from outfox.core.results import NotApplicable, SignalError, Value
from outfox.learning.credit import credit_metrics
from outfox.learning.credit.group_mean import GroupMean
from outfox.testing.learning import scored_group


def test_every_number():
    results = [
        {"match": Value(value=1.0), "cost": NotApplicable()},
        {"match": Value(value=0.0), "cost": Value(value=0.25)},
        {"match": SignalError(why="down")},
    ]
    groups = (
        scored_group([1.0, 0.0, None], results=results),
        scored_group([0.5], group_id="1/q"),
        scored_group([-0.5, -0.5], group_id="2/q"),
        scored_group([None], group_id="3/q"),
    )
    assert credit_metrics(groups, GroupMean()(groups, CreditNotes())) == {
        "left_out/unscored": 2,
        "left_out/group_of_one": 1,
        "left_out/equal_totals": 2,
        "reward": pytest.approx(0.1),
        "reward_std": pytest.approx(2**-0.5 / 3),
        "frac_reward_zero_std": pytest.approx(2 / 3),
        "rewards/cost/mean": 0.25,
        "rewards/match/mean": 0.5,
        "cancelling_groups": 0,
    }


def test_nothing_scored_has_no_reward_and_no_groups_have_no_metrics():
    groups = (scored_group([None, None]),)
    metrics = credit_metrics(groups, GroupMean()(groups, CreditNotes()))
    assert "reward" not in metrics
    assert metrics["left_out/unscored"] == 2
    assert credit_metrics((), ()) == {}
