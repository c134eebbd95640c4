"""faults.md, "Advantages and losses": every line is a test that is named after it."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from outfox.core.errors import ContractError
from outfox.core.protocols import CreditNotes
from outfox.core.results import Batch, ScoredGroup
from outfox.core.types import Group, Message, Task, Trajectory
from outfox.learning.batching.samples import samples_from
from outfox.learning.credit import credit_metrics
from outfox.learning.credit.decoupled import Decoupled
from outfox.learning.credit.gae import GAE
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.credit.leave_one_out import LeaveOneOut
from outfox.learning.losses.mixed import MixedLoss
from outfox.learning.losses.tokens import Outputs, totals_of, trained_tokens
from outfox.testing.learning import TotalCredit, episode, scored_group

NONE = CreditNotes()
RELATIVE = [GroupMean(), GroupMean(scale="none"), GroupMean(scale="batch"), LeaveOneOut()]


def values(credits):
    """One advantage per trajectory."""
    return [[float(np.abs(one.advantages[0]).max()) for one in own] for own in credits]


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
def test_a_group_of_one_with_reward_1_gets_0_and_is_counted(credit):
    groups = (scored_group([1.0]), scored_group([1.0, -0.5], group_id="1/q"))
    credits = credit(groups, NONE)
    assert values(credits)[0] == [0.0]
    assert credits[0][0].left_out == "group_of_one"
    assert credit_metrics(groups, credits)["left_out/group_of_one"] == 1
    assert len(samples_from(groups, credits)) == 2


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
@pytest.mark.parametrize("totals", [[1.0, 1.0, 1.0], [0.1 + 0.2, 0.3, 0.3], [-7.0, -7.0]], ids=str)
def test_all_rewards_equal_up_to_rounding_give_exactly_0_and_are_counted(credit, totals):
    groups = (scored_group(totals),)
    credits = credit(groups, NONE)
    assert values(credits) == [[0.0] * len(totals)]
    metrics = credit_metrics(groups, credits)
    assert metrics["left_out/equal_totals"] == len(totals)
    assert metrics["frac_reward_zero_std"] == 1
    assert samples_from(groups, credits) == ()


def test_row_7_of_a_and_row_7_of_b_are_two_groups_and_the_size_is_asserted():
    a = scored_group([1.0, 0.0], group_id="3/a-7")
    b = scored_group([11.0, 10.0], group_id="3/b-7")
    apart = GroupMean(scale="none")((a, b), NONE)
    assert values(apart) == [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ContractError, match="siblings share group and task"):
        Group(group_id="3/a-7", trajectories=(*a.group.trajectories, *b.group.trajectories))
    with pytest.raises(ContractError, match="one score per trajectory"):
        ScoredGroup(group=a.group, scores=a.scores[:1])


def test_a_group_with_different_problems_in_it_is_refused():
    first = episode("ppaa")
    other = Trajectory(
        task=Task(task_id="another", prompt=(Message(role="user", content="?"),), reference="y"),
        group_id=first.group_id,
        sibling=1,
        turns=(),
        stop_reason="answer",
    )
    with pytest.raises(ContractError, match="siblings share group and task"):
        Group(group_id=first.group_id, trajectories=(first, other))


@pytest.mark.parametrize("whiten", [False, True])
def test_gae_equals_the_result_with_observation_tokens_deleted(whiten):
    with_tools = scored_group([1.0, -0.5], patterns=("ppaaoooobb", "ppaoa"))
    without = scored_group([1.0, -0.5], patterns=("ppaabb", "ppaa"))
    draw = np.random.default_rng(0)

    def notes(group, noise):
        rows = []
        for trajectory in group.group.trajectories:
            mask = trajectory.ledgers[0].loss_mask
            row = np.full(len(mask), noise, np.float32)
            row[mask] = np.linspace(-1, 1, int(mask.sum()))
            rows.append([row])
        return CreditNotes(values=rows)

    credit = GAE(gamma=0.9, lam=0.8, whiten=whiten)
    long = credit((with_tools,), notes(with_tools, float(draw.normal() * 100)))[0]
    short = credit((without,), notes(without, 0.0))[0]
    for a, b, g, h in zip(
        long, short, with_tools.group.trajectories, without.group.trajectories, strict=True
    ):
        mask, plain = g.ledgers[0].loss_mask, h.ledgers[0].loss_mask
        np.testing.assert_array_equal(a.advantages[0][mask], b.advantages[0][plain])
        np.testing.assert_array_equal(a.returns[0][mask], b.returns[0][plain])
        assert not a.advantages[0][~mask].any()


@pytest.mark.parametrize("credit", RELATIVE, ids=repr)
def test_rewards_none_and_three_times_minus_1_leave_none_out(credit):
    groups = (scored_group([None, -1.0, -1.0, -1.0]),)
    credits = credit(groups, NONE)
    assert values(credits) == [[0.0] * 4]
    assert [one.left_out for one in credits[0]] == ["unscored"] + ["equal_totals"] * 3
    assert credit_metrics(groups, credits)["reward"] == -1
    mixed = credit((scored_group([None, -1.0, -1.0, 1.0]),), NONE)[0]
    alone = credit((scored_group([-1.0, -1.0, 1.0]),), NONE)[0]
    assert not mixed[0].advantages[0].any()
    for a, b in zip(mixed[1:], alone, strict=True):
        np.testing.assert_array_equal(a.advantages[0], b.advantages[0])


def test_signals_1_0_and_0_1_warn_and_normalize_then_sum_gives_a_signal(caplog):
    group = scored_group(
        [1.0, 1.0], parts=[{"right": 1.0, "short": 0.0}, {"right": 0.0, "short": 1.0}]
    )
    credits = GroupMean()((group,), NONE)
    assert values(credits) == [[0.0, 0.0]]
    with caplog.at_level(logging.WARNING):
        metrics = credit_metrics((group,), credits)
    assert metrics["cancelling_groups"] == 1
    assert "signals cancel in 1 of 1 groups" in caplog.text
    told = Decoupled(weights={"short": 0.5})((group,), NONE)[0]
    assert told[0].left_out is None
    assert told[0].advantages[0].max() == pytest.approx(0.5 * 2**-0.5, rel=1e-3)
    assert told[1].advantages[0].min() == pytest.approx(-0.5 * 2**-0.5, rel=1e-3)


def _loss_of(patterns, *, kl_coef=0.0, aggregation="grpo"):
    """Loss of a group whose logprobs are -1 on policy tokens; the reference says -3."""
    group = scored_group([1.0, -0.5], patterns=patterns)
    samples = samples_from((group,), TotalCredit()((group,), NONE))
    batch = Batch(micro=(samples,))
    loss = MixedLoss(kl_coef=kl_coef, aggregation=aggregation)
    tokens = trained_tokens(
        samples,
        totals=totals_of(batch),
        update=0,
        device=torch.device("cpu"),
        ref_logprobs=[np.full(len(sample), -3.0, np.float32) for sample in samples],
    )
    logprobs = torch.full((len(tokens.rows),), -1.0, requires_grad=True)
    result = loss(tokens, Outputs(logprobs=logprobs, entropies=torch.ones(len(tokens.rows))))
    return result.loss.item(), result.metrics["kl"]


def test_kl_of_tool_tokens_is_not_counted():
    with_tools, kl = _loss_of(("ppaa" + "o" * 50 + "bb", "ppaaaa"), kl_coef=0.1)
    without, same = _loss_of(("ppaabb", "ppaaaa"), kl_coef=0.1)
    assert with_tools == pytest.approx(without, rel=1e-6) != 0
    assert kl.count == same.count == 8
    assert kl.value == pytest.approx(np.exp(-2.0) + 2 - 1, rel=1e-6)


@pytest.mark.parametrize("aggregation", ["grpo", "dr_grpo", "dapo", "bnpo"])
def test_10_policy_and_500_tool_tokens_are_10_tokens(aggregation):
    long = "pp" + "a" * 5 + "o" * 500 + "b" * 5
    assert episode(long).policy_tokens == 10
    with_tools, _ = _loss_of((long, "ppaa"), aggregation=aggregation)
    without, _ = _loss_of(("pp" + "a" * 5 + "b" * 5, "ppaa"), aggregation=aggregation)
    assert with_tools == pytest.approx(without, rel=1e-6) != 0
