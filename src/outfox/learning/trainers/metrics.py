# pyright: standard
"""What an update reports: means that add up over micro-batches, optimiser steps and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from outfox.core.results import Batch
from outfox.learning.losses.tokens import Mean, Outputs, TrainedTokens, mean_of, trained_mask


def add_means(metrics: dict[str, Mean], more: Mapping[str, Mean]) -> None:
    for name, mean in more.items():
        metrics[name] = metrics[name] + mean if name in metrics else mean


def observed(tokens: TrainedTokens, outputs: Outputs, largest: dict[str, float]) -> dict[str, Mean]:
    """Entropies (of policy samples, where there are any) and the gap to the rollout."""
    entropies = outputs.entropies.detach()
    counted = tokens.policy if tokens.totals.tokens else torch.ones_like(tokens.policy)
    found = {"entropy": mean_of(entropies[counted])}
    for name, inside in tokens.spans.items():
        found[f"entropy/{name}"] = mean_of(entropies[counted & inside])
    gap = (outputs.logprobs.detach() - tokens.rollout_logprobs)[tokens.policy].abs()
    if len(gap):
        found["sampling/logp_difference/mean"] = mean_of(gap)
        name = "sampling/logp_difference/max"
        largest[name] = max(largest.get(name, 0.0), gap.max().item())
    return found


def counts(batches: Iterable[Batch]) -> dict[str, float]:
    samples = [sample for batch in batches for sample in batch.samples]
    return {
        "samples": float(len(samples)),
        "tokens": float(sum(map(len, samples))),
        "tokens/trained": float(sum(int(trained_mask(sample).sum()) for sample in samples)),
    }
