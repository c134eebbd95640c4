"""Samples of one update cut into optimiser steps, and those into micro-batches.

    sequences                what is the a · what is the b b · who was c    max_tokens_per_micro 9
    micro-batches            [what is the a, what is the b b]  [who was c]
    portions of two ranks    [what is the a] [what is the b b]

Samples are sorted by their tokens, so that those with the same beginning are neighbours: a trainer
may compute it once. Padding, where a model needs it, is made at the forward pass. The order is a
function of the samples alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise

from outfox.core.errors import ContractError
from outfox.core.results import Batch, Sample
from outfox.policies.scoring.tree import common_prefix


def pack(
    samples: Sequence[Sample], *, max_tokens_per_micro: int, minibatches: int = 1
) -> tuple[Batch, ...]:
    """One batch per optimiser step; every sample is in exactly one.

    `max_tokens_per_micro`: most tokens together; a longer sample gets a micro-batch of its own.
    `minibatches`: optimiser steps; lengths are dealt out evenly among them, and with fewer samples
    than minibatches there are fewer batches.
    """
    if max_tokens_per_micro < 1 or minibatches < 1:
        raise ContractError(
            "packing needs at least one token per micro-batch and one minibatch; "
            f"got max_tokens_per_micro={max_tokens_per_micro}, minibatches={minibatches}"
        )
    by_length = sorted(samples, key=len, reverse=True)  # Stable: ties keep the given order.
    dealt = [by_length[k::minibatches] for k in range(minibatches)]
    return tuple(Batch(micro=_cut(part, max_tokens_per_micro)) for part in dealt if part)


def _cut(samples: Sequence[Sample], max_tokens: int) -> tuple[tuple[Sample, ...], ...]:
    micro: list[tuple[Sample, ...]] = []
    rows: list[Sample] = []
    # Any order in which equal beginnings are neighbours does; that of the bytes is quick.
    for sample in sorted(samples, key=lambda sample: sample.token_ids.tobytes()):
        if rows and sum(map(len, rows)) + len(sample) > max_tokens:
            micro.append(tuple(rows))
            rows = []
        rows.append(sample)
    if rows:
        micro.append(tuple(rows))
    return tuple(micro)


def portions(micro: Sequence[Sample], count: int) -> list[tuple[Sample, ...]]:
    """A micro-batch cut into `count` runs of neighbours that are about equally much to compute."""
    if count == 1:
        return [tuple(micro)]
    ids = [sample.token_ids for sample in micro]
    shared = [0, *(common_prefix(*pair) for pair in pairwise(ids))]
    new = [len(own) - less for own, less in zip(ids, shared, strict=False)]
    middles = [end - own / 2 for end, own in zip(accumulate(new), new, strict=True)]
    cuts = [bisect_left(middles, sum(new) * k / count) for k in range(1, count)]
    return [tuple(micro[a:b]) for a, b in pairwise([0, *cuts, len(micro)])]
