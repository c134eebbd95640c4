"""What holds for credits whatever the totals are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outfox.core.protocols import CreditNotes
from outfox.learning.credit.batch_scale import BatchScale
from outfox.learning.credit.gae import GAE
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.credit.leave_one_out import LeaveOneOut
from outfox.testing.learning import scored_group

NONE = CreditNotes()
RELATIVE = [GroupMean(), GroupMean(scale="batch"), GroupMean(scale="none"), LeaveOneOut()]
RELATIVE += [BatchScale()]

total = st.floats(-2, 2).map(lambda x: round(x, 3))
some_totals = st.lists(st.one_of(st.none(), total), min_size=1, max_size=9)
batches = st.lists(some_totals, min_size=1, max_size=4)
shape = st.text("ao", min_size=1, max_size=8).map(lambda tail: "pp" + tail + "a")
patterns = st.lists(shape, min_size=1, max_size=4)
no_deadline = settings(deadline=None, max_examples=60)


def groups_of(batch, shapes=("ppaaoob",)):
    return tuple(
        scored_group(totals, group_id=f"{k}/q", patterns=shapes) for k, totals in enumerate(batch)
    )


def value_of(credit):
    row = credit.advantages[0]
    return float(row[np.abs(row).argmax()])


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
@no_deadline
@given(batches, patterns)
def test_credits_sum_to_zero_over_the_scored_siblings(credit, batch, shapes):
    groups = groups_of(batch, shapes)
    for own in credit(groups, NONE):
        assert sum(map(value_of, own)) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
@no_deadline
@given(batches)
def test_a_better_total_never_has_the_smaller_advantage(credit, batch):
    for totals, own in zip(batch, credit(groups_of(batch), NONE), strict=True):
        pairs = [(t, value_of(c)) for t, c in zip(totals, own, strict=True) if t is not None]
        ordered = [value for _, value in sorted(pairs)]
        assert ordered == sorted(ordered)


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
@no_deadline
@given(some_totals, st.sampled_from([-3.0, 0.5, 7.0]))
def test_adding_a_constant_changes_nothing(credit, totals, shift):
    moved = [None if t is None else t + shift for t in totals]
    outcomes = ["right"] * len(totals)
    a = credit((scored_group(totals, outcomes=outcomes),), NONE)[0]
    b = credit((scored_group(moved, outcomes=outcomes),), NONE)[0]
    for one, two in zip(a, b, strict=True):
        assert value_of(one) == pytest.approx(value_of(two), abs=1e-3)


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
@no_deadline
@given(batches, patterns)
def test_no_advantage_outside_policy_tokens(credit, batch, shapes):
    groups = groups_of(batch, shapes)
    for group, own in zip(groups, credit(groups, NONE), strict=True):
        for trajectory, one in zip(group.group.trajectories, own, strict=True):
            mask = trajectory.ledgers[0].loss_mask
            assert not one.advantages[0][~mask].any()
            assert len(set(one.advantages[0][mask].tolist())) == 1


@no_deadline
@given(
    st.text("ao", min_size=1, max_size=12).map(lambda tail: "p" + tail + "a"),
    total,
    st.floats(0.5, 1),
    st.floats(0, 1),
    st.integers(0, 2**31),
)
def test_gae_never_sees_observation_tokens(pattern, reward, gamma, lam, seed):
    values = np.random.default_rng(seed).normal(size=len(pattern)).astype(np.float32)
    keep = np.array([letter != "o" for letter in pattern])
    credit = GAE(gamma=gamma, lam=lam, whiten=False)
    long = scored_group([reward], patterns=(pattern,))
    short = scored_group([reward], patterns=(pattern.replace("o", ""),))
    a = credit((long,), CreditNotes(values=[[values]]))[0][0]
    b = credit((short,), CreditNotes(values=[[values[keep]]]))[0][0]
    np.testing.assert_array_equal(a.advantages[0][keep], b.advantages[0])
    assert not a.advantages[0][~keep].any()
