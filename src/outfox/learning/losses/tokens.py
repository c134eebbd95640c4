# pyright: standard
"""What a loss sees: the trained tokens of one micro-batch, flat, and the model's view of them.

    rows of a micro-batch   p a a o b     p a
    loss_mask               0 1 1 0 1     0 1
    flat                      a a   b       a      [N = 4], rows = [0, 0, 0, 1]

Nothing else reaches a loss, so prompt, observation and padding tokens cannot contribute to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from outfox.core.ledger import Bools, Floats
from outfox.core.results import Batch, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over the whole optimiser step, so that micro-batches add up to one mean."""

    sequences: int
    """Policy samples."""
    tokens: int
    """Trained tokens of policy samples."""
    imitation_tokens: int
    micro: int
    """Micro-batches that hold policy tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedTokens:
    """Trained tokens of one micro-batch, row by row."""

    rows: Tensor
    """[N] which row a token is in."""
    policy: Tensor
    """[N] True for the policy objective, False for imitation."""
    advantages: Tensor
    weights: Tensor
    rollout_logprobs: Tensor
    old_logprobs: Tensor | None = None
    """[N], or None when on-policy: then the new ones, detached."""
    ref_logprobs: Tensor | None = None
    spans: Mapping[str, Tensor]
    """[N] True inside the named span."""
    row_count: int
    totals: Totals
    update: int
    """Number of updates before this one; schedules run on it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outputs:
    """The model's view of the trained tokens, with gradient."""

    logprobs: Tensor
    """[N]"""
    entropies: Tensor
    """[N], in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A metric as sum and count, so that micro-batches can be added."""

    total: float
    count: float

    def __add__(self, other: Mean) -> Mean:
        return Mean(total=self.total + other.total, count=self.count + other.count)

    @property
    def value(self) -> float:
        return self.total / self.count


def mean_of(values: Tensor) -> Mean:
    return Mean(total=float(values.detach().sum()), count=float(values.numel()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossResult:
    """This micro-batch's share of the step's loss, and its metrics."""

    loss: Tensor
    """Scalar; shares of all micro-batches add up to the loss of the step."""
    metrics: Mapping[str, Mean]


class Loss(Protocol):
    """Turns logprobs and entropies of trained tokens into a loss."""

    @property
    def needs_reference(self) -> bool:
        """Does it read `ref_logprobs`?"""
        ...

    def __call__(self, tokens: TrainedTokens, outputs: Outputs) -> LossResult: ...


def trained_mask(sample: Sample) -> Bools:
    """[T] True on tokens that contribute: in the mask, and not frozen by a weight of 0."""
    return sample.loss_mask & (sample.weights != 0)


def totals_of(batch: Batch) -> Totals:
    """Counts of one optimiser step."""
    sequences = tokens = imitation = micro = 0
    for part in batch.micro:
        before = tokens
        for sample in part:
            count = int(trained_mask(sample).sum())
            if sample.objective == "policy":
                sequences += count > 0
                tokens += count
            else:
                imitation += count
        micro += tokens > before
    return Totals(sequences=sequences, tokens=tokens, imitation_tokens=imitation, micro=micro)


def trained_tokens(
    samples: Sequence[Sample],
    *,
    totals: Totals,
    update: int,
    device: torch.device | str,
    old_logprobs: Sequence[Floats] | None = None,
    ref_logprobs: Sequence[Floats] | None = None,
) -> TrainedTokens:
    """Flatten a micro-batch. Optional arrays are [T] per sample."""
    masks = [trained_mask(sample) for sample in samples]

    def flat(arrays: Sequence[Floats]) -> Tensor:
        joined = np.concatenate([a[m] for a, m in zip(arrays, masks, strict=True)])
        return torch.from_numpy(joined).to(device)

    counts = [int(mask.sum()) for mask in masks]
    rows = np.repeat(np.arange(len(samples)), counts)
    policy = np.repeat([sample.objective == "policy" for sample in samples], counts)
    return TrainedTokens(
        rows=torch.from_numpy(rows).to(device),
        policy=torch.from_numpy(policy).to(device),
        advantages=flat([sample.advantages for sample in samples]),
        weights=flat([sample.weights for sample in samples]),
        rollout_logprobs=flat([sample.rollout_logprobs for sample in samples]),
        old_logprobs=None if old_logprobs is None else flat(old_logprobs),
        ref_logprobs=None if ref_logprobs is None else flat(ref_logprobs),
        spans=_spans(samples, masks, device),
        row_count=len(samples),
        totals=totals,
        update=update,
    )


def _spans(
    samples: Sequence[Sample], masks: Sequence[Bools], device: torch.device | str
) -> dict[str, Tensor]:
    names = sorted({span.name for sample in samples for span in sample.spans})
    marks = {name: [np.zeros(len(sample), np.bool_) for sample in samples] for name in names}
    for k, sample in enumerate(samples):
        for span in sample.spans:
            marks[span.name][k][span.start : span.end] = True
    return {
        name: torch.from_numpy(
            np.concatenate([row[mask] for row, mask in zip(rows, masks, strict=True)])
        ).to(device)
        for name, rows in marks.items()
    }
