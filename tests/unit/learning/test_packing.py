"""Packing, on lengths small enough to check by eye."""

from __future__ import annotations

import pytest

from outfox.core.errors import ContractError
from outfox.learning.batching.packing import pack
from outfox.testing.learning import sample


def lengths(batch):
    return [[len(row) for row in part] for part in batch.micro]


def of(*lengths):
    return [sample("p" + "a" * (length - 1)) for length in lengths]


def test_rows_of_similar_length_share_a_micro_batch():
    (batch,) = pack(of(40, 90, 39, 88, 91), max_tokens_per_micro=200)
    assert lengths(batch) == [[91, 90], [88], [40, 39]]
    assert batch.padding_waste < 0.01


def test_a_sample_over_the_limit_stands_alone():
    (batch,) = pack(of(30, 10, 10), max_tokens_per_micro=20)
    assert lengths(batch) == [[30], [10, 10]]


def test_minibatches_share_lengths_evenly():
    batches = pack(of(10, 10, 50, 50), max_tokens_per_micro=100, minibatches=2)
    assert [lengths(batch) for batch in batches] == [[[50], [10]], [[50], [10]]]


def test_nothing_packs_to_nothing_and_few_samples_to_few_batches():
    assert pack((), max_tokens_per_micro=10) == ()
    assert len(pack(of(5, 5), max_tokens_per_micro=10, minibatches=3)) == 2


@pytest.mark.parametrize("wrong", [{"max_tokens_per_micro": 0}, {"minibatches": 0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ContractError, match="at least one token per micro-batch"):
        pack(of(5), **{"max_tokens_per_micro": 10, **wrong})
