# pyright: standard
"""The clipped surrogate per token, and how tokens become one number.

    ratio = exp(new logprob - old logprob)                 of a token, or of its sequence (GSPO)
    loss  = -min(ratio * A, clamp(ratio, 1 - clip_low, 1 + clip_high) * A)

Sources: PPO (Schulman et al. 2017), GRPO (Shao et al. 2024), DAPO (Yu et al. 2025: clip-higher,
token mean), Dr.GRPO (Liu et al. 2025: fixed length), GSPO (Zheng et al. 2025). Values and gradients
equal TRL 1.16's for `loss_type` grpo, bnpo, dr_grpo and dapo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from outfox.learning.losses.tokens import Mean, Totals, mean_of

Importance = Literal["token", "sequence"]
Aggregation = Literal["grpo", "dr_grpo", "dapo", "bnpo"]
"""`grpo`: mean over sequences of their token means; `dr_grpo`: sum over a fixed length per
sequence; `dapo`: mean over all tokens of the optimiser step; `bnpo`: the same within each
micro-batch."""
KLEstimator = Literal["k1", "k2", "k3"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Which policy tokens belong together."""

    of: Tensor
    """[N] row of each token."""
    lengths: Tensor
    """[rows] trained policy tokens per row, at least 1."""

    @staticmethod
    def count(rows: Tensor, row_count: int) -> Rows:
        return Rows(of=rows, lengths=torch.bincount(rows, minlength=row_count).clamp(min=1))

    def means(self, values: Tensor) -> Tensor:
        """[rows] mean per row."""
        sums = torch.zeros(len(self.lengths), dtype=values.dtype, device=values.device)
        return sums.index_add(0, self.of, values) / self.lengths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surrogate:
    """Per-token loss [N] and which tokens were clipped."""

    loss: Tensor
    metrics: dict[str, Mean]


def clipped_surrogate(
    logprobs: Tensor,
    old_logprobs: Tensor | None,
    advantages: Tensor,
    rows: Rows,
    *,
    clip_low: float,
    clip_high: float,
    importance: Importance,
) -> Surrogate:
    """[N] each. `old_logprobs` None: on-policy, ratio 1 with the gradient of the logprobs."""
    log_ratio = logprobs - (logprobs.detach() if old_logprobs is None else old_logprobs)
    if importance == "sequence":
        log_ratio = rows.means(log_ratio)[rows.of]
    ratio = log_ratio.exp()
    clamped = ratio.clamp(1 - clip_low, 1 + clip_high)
    loss = -torch.minimum(ratio * advantages, clamped * advantages)
    low = (ratio < 1 - clip_low) & (advantages < 0)
    high = (ratio > 1 + clip_high) & (advantages > 0)
    return Surrogate(
        loss=loss,
        metrics={
            "clip_ratio/low_mean": mean_of(low),
            "clip_ratio/high_mean": mean_of(high),
            "clip_ratio/region_mean": mean_of(low | high),
        },
    )


def kl_per_token(logprobs: Tensor, ref_logprobs: Tensor, estimator: KLEstimator) -> Tensor:
    """[N] estimate of KL(policy || reference) (Schulman 2020, "Approximating KL divergence").

    `k1` is unbiased as a value, but as a loss its expected gradient is zero: use it for reporting;
    `k2` has the right gradient; `k3` is unbiased and never negative (GRPO, TRL).
    """
    log_ratio = ref_logprobs - logprobs
    if estimator == "k1":
        return -log_ratio
    if estimator == "k2":
        return log_ratio.square() / 2
    return log_ratio.exp() - log_ratio - 1


def aggregate(
    per_token: Tensor, rows: Rows, totals: Totals, how: Aggregation, fixed_length: int
) -> Tensor:
    """This micro-batch's share of the step's loss, from [N] per-token losses."""
    if how == "grpo":
        return (per_token / rows.lengths[rows.of]).sum() / totals.sequences
    if how == "dr_grpo":
        return per_token.sum() / (totals.sequences * fixed_length)
    if how == "dapo":
        return per_token.sum() / totals.tokens
    return per_token.mean() / totals.micro
