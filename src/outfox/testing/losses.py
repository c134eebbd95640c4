# pyright: standard
"""A fake Loss, and the conformance check of losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from outfox.core.results import Batch, Sample
from outfox.learning.losses.tokens import (
    Loss,
    LossResult,
    Outputs,
    TrainedTokens,
    mean_of,
    totals_of,
    trained_tokens,
)
from outfox.testing.learning import sample


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearLoss:
    """A Loss: minus advantage times logprob, over the tokens of the step; imitation counts as 1."""

    needs_reference: bool = False

    def __call__(self, tokens: TrainedTokens, outputs: Outputs) -> LossResult:
        pull = tokens.advantages.where(tokens.policy, tokens.advantages.new_ones(()))
        count = tokens.totals.tokens + tokens.totals.imitation_tokens
        loss = -(pull * tokens.weights * outputs.logprobs).sum() / count
        return LossResult(loss=loss, metrics={"logprob": mean_of(outputs.logprobs)})


def check_loss(loss: Loss, *, additive: bool = True) -> None:
    """Raises AssertionError where a Loss breaks its contract.

    A finite scalar with gradient, the same each time; better-than-average and imitated tokens are
    pushed up, worse ones down; inputs untouched; with `additive`, the shares of two micro-batches
    add up to the loss of both in one.
    """
    good, bad = sample("ppaaoob", advantage=0.5), sample("paa", advantage=-1.0, seed=1)
    shown = sample("pae", objective="imitation", weight=0.5, seed=2)
    whole = Batch(micro=((good, bad, shown),))
    cut = Batch(micro=((good, shown), (bad,)))
    value, gradient = _share(loss, whole.micro[0], whole)
    assert math.isfinite(value), "a loss is finite"
    assert all(math.isfinite(g) for g in gradient), "a gradient is finite"
    assert all(g < 0 for g in gradient[:3]), "descending raises what had a positive advantage"
    assert all(g > 0 for g in gradient[3:5]), "and lowers what had a negative one"
    assert all(g < 0 for g in gradient[5:]), "and raises what is imitated"
    assert _share(loss, whole.micro[0], whole) == (value, gradient), "the same each time"
    if additive:
        shares = sum(_share(loss, part, cut)[0] for part in cut.micro)
        assert math.isclose(shares, value, abs_tol=1e-6), "shares add up to the step's loss"


def _share(loss: Loss, samples: tuple[Sample, ...], batch: Batch) -> tuple[float, list[float]]:
    """This micro-batch's loss, and its gradient with respect to the logprobs."""
    reference = [one.rollout_logprobs for one in samples] if loss.needs_reference else None
    tokens = trained_tokens(
        samples,
        totals=totals_of(batch),
        update=0,
        device="cpu",
        ref_logprobs=reference,
    )
    count = len(tokens.rows)
    logprobs: Any = tokens.weights.new_full((count,), -2.0).requires_grad_()
    entropies: Any = tokens.weights.new_full((count,), 0.5).requires_grad_()
    before = tokens.advantages.clone(), tokens.weights.clone()
    result = loss(tokens, Outputs(logprobs=logprobs, entropies=entropies))
    assert result.loss.shape == (), "a loss is a scalar"
    result.loss.backward()
    for name, mean in result.metrics.items():
        assert math.isfinite(mean.total), f"metric {name} is finite"
    for given, left in zip(before, (tokens.advantages, tokens.weights), strict=True):
        assert bool((given == left).all()), "inputs are untouched"
    return result.loss.item(), logprobs.grad.tolist()
