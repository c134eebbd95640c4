"""Samples of one update cut into optimiser steps, and those into right-padded micro-batches.

    lengths  90 40 88 39 91   max_tokens_per_micro 200
    micro    [91 90]  [88]  [40 39]

Samples are sorted by length, so rows of a micro-batch are nearly equally long; a micro-batch ends
where it would hold too many positions, or more padding than `max_waste`. The order is a function of
the samples alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from outfox.core.errors import ContractError
from outfox.core.results import Batch, Sample


def pack(
    samples: Sequence[Sample],
    *,
    max_tokens_per_micro: int,
    minibatches: int = 1,
    max_waste: float = 0.1,
) -> tuple[Batch, ...]:
    """One batch per optimiser step; every sample is in exactly one.

    `max_tokens_per_micro` counts padded positions (rows times longest); a longer sample gets a
    micro-batch of its own. `minibatches`: optimiser steps; lengths are dealt out evenly among them,
    and with fewer samples than minibatches there are fewer batches.
    """
    if max_tokens_per_micro < 1 or minibatches < 1:
        raise ContractError(
            "packing needs at least one token per micro-batch and one minibatch; "
            f"got max_tokens_per_micro={max_tokens_per_micro}, minibatches={minibatches}"
        )
    by_length = sorted(samples, key=len, reverse=True)  # Stable: ties keep the given order.
    dealt = [by_length[k::minibatches] for k in range(minibatches)]
    return tuple(Batch(micro=_cut(part, max_tokens_per_micro, max_waste)) for part in dealt if part)


def _cut(
    by_length: Sequence[Sample], max_tokens: int, max_waste: float
) -> tuple[tuple[Sample, ...], ...]:
    micro: list[tuple[Sample, ...]] = []
    rows: list[Sample] = []
    real = 0
    for sample in by_length:
        if rows:
            padded = (len(rows) + 1) * len(rows[0])
            too_padded = 1 - (real + len(sample)) / padded > max_waste if padded else False
            if padded > max_tokens or too_padded:
                micro.append(tuple(rows))
                rows, real = [], 0
        rows.append(sample)
        real += len(sample)
    if rows:
        micro.append(tuple(rows))
    return tuple(micro)
