"""Packing loses nothing and repeats nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.results import Sample
from outfox.learning.batching.packing import pack, portions


def of_length(length):
    row = np.zeros(length, np.float32)
    return Sample(
        token_ids=np.zeros(length, np.int64),
        loss_mask=np.arange(length) > 0,
        rollout_logprobs=row,
        advantages=row,
        weights=row + 1,
    )


lengths = st.lists(st.integers(2, 400), min_size=1, max_size=60)
realistic = st.lists(
    st.integers(0, 3).flatmap(lambda turns: st.integers(20 + 55 * turns, 50 + 80 * turns)),
    min_size=64,
    max_size=192,
)


def ids(batches):
    return [id(row) for batch in batches for row in batch.samples]


@given(lengths, st.integers(1, 2000), st.integers(1, 4))
def test_every_sample_is_in_exactly_one_micro_batch(lengths, most, minibatches):
    samples = [of_length(n) for n in lengths]
    batches = pack(samples, max_tokens_per_micro=most, minibatches=minibatches)
    assert sorted(ids(batches)) == sorted(map(id, samples))
    assert len(batches) == min(minibatches, len(samples))


@given(lengths, st.integers(1, 2000))
def test_no_micro_batch_exceeds_its_limit_but_a_single_long_row(lengths, most):
    (batch,) = pack([of_length(n) for n in lengths], max_tokens_per_micro=most)
    for part in batch.micro:
        assert len(part) == 1 or sum(map(len, part)) <= most


@given(lengths, st.integers(1, 2000), st.integers(1, 4))
def test_packing_is_a_function_of_the_samples(lengths, most, minibatches):
    samples = [of_length(n) for n in lengths]
    kwargs = {"max_tokens_per_micro": most, "minibatches": minibatches}
    assert ids(pack(samples, **kwargs)) == ids(pack(samples, **kwargs))


@given(lengths, st.integers(1, 4))
def test_portions_hold_every_sample_once_and_in_order(lengths, count):
    samples = [of_length(n) for n in lengths]
    found = portions(samples, count)
    assert len(found) == count
    assert [id(row) for part in found for row in part] == list(map(id, samples))


@given(realistic)
def test_realistic_lengths_pack_into_few_micro_batches(lengths):
    (batch,) = pack([of_length(n) for n in lengths], max_tokens_per_micro=4096)
    assert len(batch.micro) <= sum(lengths) / 4096 * 1.1 + 1
