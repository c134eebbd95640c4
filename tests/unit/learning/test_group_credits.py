"""GroupMean, LeaveOneOut, BatchScale, Decoupled: numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from outfox.core.protocols import CreditNotes
from outfox.learning.credit.batch_scale import BatchScale
from outfox.learning.credit.decoupled import Decoupled
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.credit.leave_one_out import LeaveOneOut
from outfox.testing.learning import scored_group

NONE = CreditNotes()


def advantages(credit, *groups):
    """One number per trajectory: the advantage of its policy tokens, which must all agree."""
    found = []
    for group, own in zip(groups, credit(groups, NONE), strict=True):
        for trajectory, one in zip(group.group.trajectories, own, strict=True):
            values = one.advantages[0][trajectory.ledgers[0].loss_mask]
            assert len(set(values.tolist())) == 1
            found.append(float(values[0]))
    return found


def test_group_mean_divides_by_the_sample_deviation():
    got = advantages(GroupMean(eps=0), scored_group([1.0, 0.0, 0.0, 1.0]))
    assert got == pytest.approx([0.8660254, -0.8660254, -0.8660254, 0.8660254])


def test_scale_none_only_takes_off_the_mean():
    assert advantages(GroupMean(scale="none"), scored_group([1.0, -0.5])) == [0.75, -0.75]


def test_scale_batch_uses_one_deviation_for_all_groups():
    a, b = scored_group([1.0, 0.0]), scored_group([0.5, 0.0], group_id="1/q")
    std = np.std([1.0, 0.0, 0.5, 0.0], ddof=1)
    got = advantages(GroupMean(scale="batch", eps=0), a, b)
    assert got == pytest.approx([0.5 / std, -0.5 / std, 0.25 / std, -0.25 / std])


def test_a_small_spread_is_divided_by_the_floor():
    got = advantages(GroupMean(eps=0, floor=0.1), scored_group([1.0, 0.98]))
    assert got == pytest.approx([0.1, -0.1])


@pytest.mark.parametrize("credit", [GroupMean(), GroupMean(scale="batch"), BatchScale()], ids=repr)
def test_a_cost_among_the_wrong_stays_a_cost(credit):
    wrong = scored_group([-0.5, -0.8], outcomes=["wrong", "unanswered"])
    right = scored_group([1.0, 0.7], group_id="1/q")
    first, second, third, fourth = advantages(credit, wrong, right)
    assert first == pytest.approx(0.15, rel=1e-3)
    assert second == pytest.approx(-0.15, rel=1e-3)
    assert third > first > second > fourth


def test_a_cost_among_the_wrong_stays_a_cost_when_decoupled():
    parts = [{"outcome": -0.5, "duplicates": 0.0}, {"outcome": -0.5, "duplicates": -0.3}]
    wrong = scored_group([-0.5, -0.8], parts=parts)
    assert advantages(Decoupled(), wrong) == pytest.approx([0.15, -0.15], rel=1e-3)


def test_leave_one_out_compares_with_the_others():
    group = scored_group([1.0, 0.0, -0.5, None])
    assert advantages(LeaveOneOut(), group) == pytest.approx([1.25, -0.25, -1.0, 0.0])


def test_batch_scale_without_groups_compares_across_tasks():
    groups = [scored_group([t], group_id=f"{k}/q") for k, t in enumerate([1.0, 0.0, None, -1.0])]
    got = advantages(BatchScale(baseline="batch", eps=0), *groups)
    assert got == pytest.approx([1.0, 0.0, 0.0, -1.0])


def test_batch_scale_with_groups_divides_by_the_spread_of_differences():
    a, b = scored_group([1.0, 0.0]), scored_group([11.0, 10.5, None], group_id="1/q")
    std = np.std([0.5, -0.5, 0.25, -0.25], ddof=1)
    got = advantages(BatchScale(eps=0), a, b)
    assert got == pytest.approx([0.5 / std, -0.5 / std, 0.25 / std, -0.25 / std, 0.0])


def test_batch_scale_of_nothing_is_nothing():
    assert BatchScale()((), NONE) == ()


def test_decoupled_normalises_each_part_and_leaves_out_the_flat_ones():
    parts = [
        {"outcome": 1.0, "cost": -0.2, "tiny": 0.001},
        {"outcome": 0.0, "cost": 0.0, "tiny": 0.0},
    ]
    group = scored_group([0.801, 0.0], parts=parts)
    unit = 2**-0.5
    got = advantages(Decoupled(eps=0, weights={"cost": 0.5}), group)
    assert got == pytest.approx([unit - 0.5 * unit, -unit + 0.5 * unit])


def test_a_part_that_is_absent_counts_as_zero():
    group = scored_group([1.2, 0.0], parts=[{"bonus": 1.2}, {}])
    assert advantages(Decoupled(eps=0), group) == pytest.approx([2**-0.5, -(2**-0.5)])
