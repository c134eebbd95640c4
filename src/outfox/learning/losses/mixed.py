# pyright: standard
"""The loss that every algorithm preset uses: clipped surrogate, KL, entropy by span, imitation.

    policy samples      surrogate + kl_coef * KL - entropy coefficient * entropy, per token,
                        weighted, then aggregated over the policy tokens of the step
    imitation samples   weight * -logprob, mean over the imitation tokens of the step

Both may be in one batch: replayed demonstrations of weight .1 pull with a tenth of the strength of
one whole imitation step, however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from outfox.core.errors import ConfigError
from outfox.learning.losses.clipped import (
    Aggregation,
    Importance,
    KLEstimator,
    Rows,
    aggregate,
    clipped_surrogate,
    kl_per_token,
)
from outfox.learning.losses.tokens import LossResult, Mean, Outputs, TrainedTokens, mean_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A coefficient that goes linearly from `start` to `end` over `steps` updates, then holds."""

    start: float
    """Coefficient at the first update."""
    end: float = 0.0
    """Coefficient at the last of `steps`, and after."""
    steps: int = 1
    """Updates in between."""
    upto: float | None = None
    """Entropy in nats over which a token earns no more: enough to go on trying, not a fair die."""

    def at(self, update: int) -> float:
        done = min(1.0, update / self.steps) if self.steps > 0 else 1.0
        return self.start + (self.end - self.start) * done


def _no_entropy() -> dict[str, Ramp]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLoss:
    """Settings of the loss; TRL's names and defaults where it has them."""

    clip_low: float = 0.2
    """The ratio of new to old probability counts down to 1 less this."""
    clip_high: float = 0.2
    """And up to 1 plus this."""
    importance: Importance = "token"
    """Ratio per token, or one per sequence."""
    aggregation: Aggregation = "dapo"
    """`dapo`: mean over all tokens of the step; `bnpo`: the same per micro-batch; `grpo`: mean of
    the sequences' means; `dr_grpo`: sum over a fixed length per sequence."""
    fixed_length: int = 256
    """Tokens per sequence that `dr_grpo` divides by."""
    kl: KLEstimator = "k3"
    """Estimator of the KL term."""
    kl_coef: float = 0.0
    """Over 0: a frozen copy of the model at the start is the reference."""
    entropy: Mapping[str, Ramp] = field(default_factory=_no_entropy)
    """Bonus by span name; `all` is every policy token. A span's own takes precedence."""
    imitation_coef: float = 1.0
    """Weight of the loss on demonstrations."""

    def __post_init__(self) -> None:
        if self.clip_low < 0 or self.clip_high < 0 or self.kl_coef < 0 or self.fixed_length < 1:
            raise ConfigError(
                "clip_low, clip_high and kl_coef are at least 0 and fixed_length at least 1; got "
                f"{self.clip_low}, {self.clip_high}, {self.kl_coef}, {self.fixed_length}"
            )

    @property
    def needs_reference(self) -> bool:
        return self.kl_coef > 0

    def __call__(self, tokens: TrainedTokens, outputs: Outputs) -> LossResult:
        loss = outputs.logprobs.sum() * 0
        metrics: dict[str, Mean] = {}
        for result in self._terms(tokens, outputs):
            loss = loss + result.loss
            metrics |= result.metrics
        return LossResult(loss=loss, metrics=metrics)

    def _terms(self, tokens: TrainedTokens, outputs: Outputs) -> list[LossResult]:
        terms: list[LossResult] = []
        count = int(tokens.policy.sum())
        if count:
            pick = slice(None) if count == len(tokens.policy) else tokens.policy
            terms.append(self._policy(tokens, outputs, pick))
        if count < len(tokens.policy):
            terms.append(self._imitation(tokens, outputs, ~tokens.policy))
        return terms

    def _policy(self, tokens: TrainedTokens, outputs: Outputs, pick: Tensor | slice) -> LossResult:
        logprobs = outputs.logprobs[pick]
        rows = Rows.count(tokens.rows[pick], tokens.row_count)
        surrogate = clipped_surrogate(
            logprobs,
            None if tokens.old_logprobs is None else tokens.old_logprobs[pick],
            tokens.advantages[pick],
            rows,
            clip_low=self.clip_low,
            clip_high=self.clip_high,
            importance=self.importance,
        )
        per_token, metrics = surrogate.loss, surrogate.metrics
        if tokens.ref_logprobs is not None:
            divergence = kl_per_token(logprobs, tokens.ref_logprobs[pick], self.kl)
            per_token = per_token + self.kl_coef * divergence
            metrics["kl"] = mean_of(divergence)
        coefficients = self._entropy_coefficients(tokens)
        if coefficients is not None:
            coefficient, most = (values[pick] for values in coefficients)
            per_token = per_token - coefficient * outputs.entropies[pick].minimum(most)
        share = aggregate(
            per_token * tokens.weights[pick],
            rows,
            tokens.totals,
            self.aggregation,
            self.fixed_length,
        )
        return LossResult(loss=share, metrics=metrics)

    def _entropy_coefficients(self, tokens: TrainedTokens) -> tuple[Tensor, Tensor] | None:
        """[N] coefficients and [N] entropies up to which they count; None where no bonus is due."""
        if not self.entropy:
            return None
        coefficients, most = tokens.weights.new_zeros((2, *tokens.weights.shape))
        for name, inside in {"all": torch.ones_like(tokens.policy), **tokens.spans}.items():
            if name in self.entropy:
                ramp = self.entropy[name]
                coefficients[inside] = ramp.at(tokens.update)
                most[inside] = math.inf if ramp.upto is None else ramp.upto
        return coefficients, most

    def _imitation(self, tokens: TrainedTokens, outputs: Outputs, pick: Tensor) -> LossResult:
        nll = -outputs.logprobs[pick]
        share = (nll * tokens.weights[pick]).sum() / tokens.totals.imitation_tokens
        return LossResult(loss=self.imitation_coef * share, metrics={"imitation/nll": mean_of(nll)})


part = MixedLoss
