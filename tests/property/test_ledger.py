"""Whatever order policy, environment and prompt write in: masks and spans follow from ownership."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.ledger import Ledger, Segment, Span
from outfox.core.protocols import CreditNotes
from outfox.core.results import Score, ScoredGroup
from outfox.core.types import Group, Trajectory
from outfox.learning.batching.samples import samples_from
from outfox.testing.learning import TotalCredit
from outfox.testing.worlds import fake_task

OWNERS = st.sampled_from(["prompt", "policy", "policy", "environment"])


@st.composite
def segments(draw):
    owner = draw(OWNERS)
    ids = draw(st.lists(st.integers(0, 2**40), max_size=6))
    logprobs = draw(st.lists(st.floats(-50, 0, width=32), min_size=len(ids), max_size=len(ids)))
    bounds = draw(
        st.lists(st.tuples(st.integers(0, len(ids)), st.integers(0, len(ids))), max_size=2)
    )
    return Segment(
        owner=owner,
        token_ids=np.asarray(ids, np.int64),
        logprobs=np.asarray(logprobs, np.float32) if owner == "policy" else None,
        policy_version=draw(st.integers(0, 9)) if owner == "policy" else None,
        spans=tuple(Span(name="s", start=min(pair), end=max(pair)) for pair in bounds),
    )


WRITTEN = st.lists(segments(), max_size=8)


def ledger_of(written) -> Ledger:
    ledger = Ledger()
    for segment in written:
        ledger = ledger.append(segment)
    return ledger


@given(WRITTEN)
def test_every_token_is_kept_with_its_owner_and_logprob(written):
    ledger = ledger_of(written)
    ids = [int(token) for segment in written for token in segment.token_ids]
    owners = [segment.owner for segment in written for _ in segment.token_ids]
    assert ledger.token_ids.tolist() == ids
    assert ledger.loss_mask.tolist() == [owner == "policy" for owner in owners]
    assert len(ledger) == len(ids)
    own = [segment.logprobs for segment in written if segment.owner == "policy"]
    np.testing.assert_array_equal(
        ledger.logprobs[ledger.loss_mask], np.concatenate([np.zeros(0, np.float32), *own])
    )
    assert not ledger.logprobs[~ledger.loss_mask].any()
    for array, dtype in ((ledger.token_ids, "int64"), (ledger.logprobs, "float32")):
        assert array.dtype == dtype
    versions = [s.policy_version for s in written if s.policy_version is not None]
    assert ledger.policy_version == min(versions, default=None)


@given(WRITTEN)
def test_a_span_names_the_same_tokens_in_the_ledger(written):
    ledger = ledger_of(written)
    named = [s.token_ids[span.start : span.end].tolist() for s in written for span in s.spans]
    assert [ledger.token_ids[s.start : s.end].tolist() for s in ledger.spans] == named


@given(WRITTEN, segments())
def test_appending_leaves_what_was_there_as_it_was(written, more):
    before = ledger_of(written)
    ids, mask, spans = before.token_ids, before.loss_mask, before.spans
    after = before.append(more)
    assert len(before.segments) == len(written)
    np.testing.assert_array_equal(after.token_ids[: len(before)], ids)
    np.testing.assert_array_equal(after.loss_mask[: len(before)], mask)
    assert after.spans[: len(spans)] == spans


@given(WRITTEN, WRITTEN)
def test_trained_are_the_sampled_ids_and_no_others(first, second):
    """From ledgers to training sequences: a ledger without policy tokens makes none."""
    head = Segment(owner="prompt", token_ids=np.asarray([7], np.int64))  # nothing comes before it
    ledgers = tuple(ledger_of([head, *written]) for written in (first, second))
    trajectories = tuple(
        Trajectory(
            task=fake_task(),
            group_id="0/t",
            sibling=sibling,
            turns=(),
            stop_reason="answer",
            ledgers=ledgers,
        )
        for sibling in range(2)
    )
    scores = tuple(
        Score(total=total, outcome="right", results={}, parts={"x": total}) for total in (1.0, 0.0)
    )
    groups = (ScoredGroup(group=Group(group_id="0/t", trajectories=trajectories), scores=scores),)
    samples = samples_from(groups, TotalCredit()(groups, CreditNotes()))
    written = [ledger for ledger in ledgers * 2 if ledger.loss_mask.any()]
    assert [s.token_ids[s.loss_mask].tolist() for s in samples] == [
        ledger.token_ids[ledger.loss_mask].tolist() for ledger in written
    ]
    for sample, ledger in zip(samples, written, strict=True):
        np.testing.assert_array_equal(sample.loss_mask, ledger.loss_mask[: len(sample)])
        np.testing.assert_array_equal(sample.token_ids, ledger.token_ids[: len(sample)])
        assert not sample.advantages[~sample.loss_mask].any()
