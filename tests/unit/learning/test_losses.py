"""Losses: hand-computed numbers, and what may not leak."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from outfox.core.errors import ConfigError
from outfox.core.ledger import Span
from outfox.core.results import Batch, Sample
from outfox.learning.losses.clipped import Rows, clipped_surrogate, kl_per_token
from outfox.learning.losses.mixed import MixedLoss, Ramp
from outfox.learning.losses.tokens import Outputs, totals_of, trained_tokens
from outfox.testing.learning import sample

CPU = torch.device("cpu")


def run(loss, *micro, logprob=-1.0, entropy=0.5, update=0, old=None, ref=None):
    """Loss of a step whose every trained token has this logprob and entropy."""
    batch = Batch(micro=micro)
    total, gradients, metrics = 0.0, [], {}
    for part in batch.micro:
        tokens = trained_tokens(
            part,
            totals=totals_of(batch),
            update=update,
            device=CPU,
            old_logprobs=None if old is None else [np.full(len(s), old) for s in part],
            ref_logprobs=None if ref is None else [np.full(len(s), ref) for s in part],
        )
        logprobs = torch.full((len(tokens.rows),), logprob, requires_grad=True)
        entropies = torch.full((len(tokens.rows),), entropy, requires_grad=True)
        result = loss(tokens, Outputs(logprobs=logprobs, entropies=entropies))
        result.loss.backward()
        total += result.loss.item()
        gradients.append((logprobs.grad, entropies.grad))
        metrics |= result.metrics
    return total, gradients, metrics


LONG, SHORT = sample("paaaa", advantage=1.0), sample("paa", advantage=-0.5)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("grpo", (-1.0 + 0.5) / 2),
        ("dr_grpo", (-4.0 + 1.0) / (2 * 8)),
        ("dapo", (-4.0 + 1.0) / 6),
        ("bnpo", (-1.0 + 0.5) / 2),
    ],
)
def test_aggregation_over_two_micro_batches(aggregation, expected):
    loss = MixedLoss(aggregation=aggregation, fixed_length=8)
    assert run(loss, (LONG,), (SHORT,))[0] == pytest.approx(expected)


@pytest.mark.parametrize("aggregation", ["grpo", "dr_grpo", "dapo"])
def test_micro_batches_add_up_to_the_whole(aggregation):
    loss = MixedLoss(aggregation=aggregation)
    whole, _, _ = run(loss, (LONG, SHORT))
    cut, _, _ = run(loss, (LONG,), (SHORT,))
    assert cut == pytest.approx(whole)


def test_on_policy_has_ratio_1_with_the_gradient_of_the_logprobs():
    loss, [(gradient, _)], metrics = run(MixedLoss(aggregation="dapo"), (SHORT,))
    assert loss == 0.5
    assert gradient.tolist() == [0.25, 0.25]
    assert metrics["clip_ratio/region_mean"].value == 0


def test_a_clipped_token_has_no_gradient():
    up = sample("pa", advantage=1.0)
    loss, [(gradient, _)], metrics = run(
        MixedLoss(clip_high=0.28), (up,), logprob=-1.0, old=-1.0 - math.log(1.5)
    )
    assert loss == pytest.approx(-1.28)
    assert gradient.tolist() == [0.0]
    assert metrics["clip_ratio/high_mean"].value == 1
    assert metrics["clip_ratio/low_mean"].value == 0


def test_a_sequence_shares_one_ratio():
    rows = Rows.count(torch.tensor([0, 0, 1]), 2)
    got = clipped_surrogate(
        torch.tensor([-1.0, -2.0, -1.0]),
        torch.tensor([-1.1, -1.9, -1.1]),
        torch.ones(3),
        rows,
        clip_low=1.0,
        clip_high=1.0,
        importance="sequence",
    )
    assert got.loss.tolist() == pytest.approx([-1.0, -1.0, -math.exp(0.1)])


@pytest.mark.parametrize(
    ("estimator", "expected"), [("k1", 2.0), ("k2", 2.0), ("k3", math.exp(-2.0) + 2.0 - 1)]
)
def test_kl_estimators(estimator, expected):
    got = kl_per_token(torch.tensor([-1.0]), torch.tensor([-3.0]), estimator)
    assert got.item() == pytest.approx(expected)


def test_kl_is_added_per_token():
    loss, _, metrics = run(MixedLoss(kl_coef=0.1, kl="k2"), (SHORT,), ref=-3.0)
    assert loss == pytest.approx(0.5 + 0.1 * 2)
    assert metrics["kl"].value == pytest.approx(2)


def with_span(name, start, end):
    plain = sample("paaa", advantage=0.0)
    return Sample(
        token_ids=plain.token_ids,
        loss_mask=plain.loss_mask,
        rollout_logprobs=plain.rollout_logprobs,
        advantages=plain.advantages,
        weights=plain.weights,
        spans=(Span(name=name, start=start, end=end),),
    )


def test_entropy_bonus_falls_on_its_span_alone():
    loss = MixedLoss(aggregation="dapo", entropy={"decision": Ramp(start=0.3, end=0.02, steps=60)})
    total, [(_, gradient)], _ = run(loss, (with_span("decision", 2, 3),))
    assert gradient.tolist() == pytest.approx([0, -0.1, 0])
    assert total == pytest.approx(-0.3 * 0.5 / 3)
    later, _, _ = run(loss, (with_span("decision", 2, 3),), update=30)
    assert later == pytest.approx(-0.16 * 0.5 / 3)
    end, _, _ = run(loss, (with_span("decision", 2, 3),), update=1000)
    assert end == pytest.approx(-0.02 * 0.5 / 3)


@pytest.mark.parametrize(("upto", "earned"), [(0.6, -0.1), (0.4, 0.0)])
def test_entropy_over_its_limit_earns_no_more(upto, earned):
    loss = MixedLoss(aggregation="dapo", entropy={"decision": Ramp(start=0.3, upto=upto)})
    total, [(_, gradient)], _ = run(loss, (with_span("decision", 2, 3),))
    assert gradient.tolist() == pytest.approx([0, earned, 0])
    assert total == pytest.approx(-0.3 * min(0.5, upto) / 3)


def test_a_span_has_precedence_over_all():
    loss = MixedLoss(
        aggregation="dapo", entropy={"decision": Ramp(start=0.3), "all": Ramp(start=0.03)}
    )
    _, [(_, gradient)], _ = run(loss, (with_span("decision", 2, 3),))
    assert gradient.tolist() == pytest.approx([-0.01, -0.1, -0.01])


def test_imitation_is_the_weighted_mean_of_minus_logprobs():
    shown = [sample("paaa", weight=0.5, objective="imitation"), sample("pa", objective="imitation")]
    loss, [(first, _), (second, _)], metrics = run(MixedLoss(), (shown[0],), (shown[1],))
    assert loss == pytest.approx((3 * 0.5 + 1) / 4)
    assert first.tolist() == [-0.125] * 3
    assert second.tolist() == [-0.25]
    assert metrics["imitation/nll"].value == 1


def test_replay_beside_policy_samples_leaves_their_loss_as_it_is():
    alone, [(before, _)], _ = run(MixedLoss(), (SHORT,))
    replayed = sample("paaaaaa", weight=0.1, objective="imitation")
    both, [(after, entropies)], _ = run(
        MixedLoss(entropy={"all": Ramp(start=1)}), (SHORT, replayed)
    )
    assert both == pytest.approx(alone - 0.5 + 0.1)
    assert after[:2].tolist() == before.tolist()
    assert entropies[2:].tolist() == [0] * 6


def test_frozen_tokens_do_not_reach_the_loss():
    frozen = Sample(
        token_ids=np.arange(4),
        loss_mask=np.array([False, True, True, True]),
        rollout_logprobs=np.zeros(4, np.float32),
        advantages=np.array([0, 1, 1, 1], np.float32),
        weights=np.array([1, 0, 0, 1], np.float32),
    )
    loss, [(gradient, _)], _ = run(MixedLoss(aggregation="dapo"), (frozen,))
    assert loss == -1
    assert gradient.tolist() == [-1.0]


def test_impossible_settings_are_refused():
    with pytest.raises(ConfigError, match="at least 0"):
        MixedLoss(clip_low=-0.1)


def test_a_reference_is_needed_with_kl_only():
    assert MixedLoss(kl_coef=0.1).needs_reference
    assert not MixedLoss().needs_reference
