"""Packing, on lengths small enough to check by eye."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.learning.batching.packing import pack, portions
from outfox.testing.learning import sample


def lengths(batch):
    return [[len(row) for row in part] for part in batch.micro]


def of(*lengths):
    return [sample("p" + "a" * (length - 1)) for length in lengths]


def with_ids(*rows):
    return [replace(sample("p" * len(row)), token_ids=np.array(row)) for row in rows]


def texts(micro):
    return [row.token_ids.tolist() for row in micro]


def test_samples_with_the_same_beginning_are_neighbours():
    rows = [1, 2, 3], [9, 9], [1, 2, 4, 4], [5, 5, 5], [1, 2, 3]
    (batch,) = pack(with_ids(*rows), max_tokens_per_micro=10)
    assert [texts(micro) for micro in batch.micro] == [
        [[1, 2, 3], [1, 2, 3], [1, 2, 4, 4]],
        [[5, 5, 5], [9, 9]],
    ]


def test_a_sample_over_the_limit_stands_alone():
    (batch,) = pack(of(30, 10, 10), max_tokens_per_micro=20)
    assert sorted(lengths(batch)) == [[10, 10], [30]]


def test_portions_are_neighbours_with_equally_many_new_tokens():
    (batch,) = pack(
        with_ids([1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 1, 3], [4, 4], [5, 5, 5, 5]),
        max_tokens_per_micro=100,
    )
    first, second = portions(batch.micro[0], 2)
    assert texts(first) == [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 1, 3]]
    assert texts(second) == [[4, 4], [5, 5, 5, 5]]
    assert portions(batch.micro[0], 1) == list(batch.micro)
    assert [len(part) for part in portions(of(3), 3)] == [0, 1, 0]
    assert portions([], 2) == [(), ()]


def test_minibatches_share_lengths_evenly():
    batches = pack(of(10, 10, 50, 50), max_tokens_per_micro=100, minibatches=2)
    assert [lengths(batch) for batch in batches] == [[[10, 50]], [[10, 50]]]


def test_nothing_packs_to_nothing_and_few_samples_to_few_batches():
    assert pack((), max_tokens_per_micro=10) == ()
    assert len(pack(of(5, 5), max_tokens_per_micro=10, minibatches=3)) == 2


@pytest.mark.parametrize("wrong", [{"max_tokens_per_micro": 0}, {"minibatches": 0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ContractError, match="at least one token per micro-batch"):
        pack(of(5), **{"max_tokens_per_micro": 10, **wrong})
