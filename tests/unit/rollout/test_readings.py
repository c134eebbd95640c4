"""The reading `confidence`: the policy's own probability of what it drafted."""

import math

import numpy as np
import pytest

from outfox.core.ledger import Completion, Span
from outfox.rollout.readings import confidence


def completion(*probabilities: float) -> Completion:
    logprobs = np.array([math.log(p) for p in probabilities], np.float32)
    return Completion(
        token_ids=np.zeros(len(logprobs), np.int64),
        logprobs=logprobs,
        policy_version=0,
        finish_reason="stop",
    )


@pytest.mark.parametrize(
    ("probabilities", "reading"),
    [((0.6,), "[sure]"), ((0.4,), "[unsure]"), ((0.8, 0.6), "[unsure]"), ((0.8, 0.7), "[sure]")],
)
def test_it_is_sure_where_the_product_is_over_a_half(probabilities, reading):
    made = completion(0.01, *probabilities, 0.01)
    span = Span(name="draft", start=1, end=1 + len(probabilities))
    assert confidence(made, span) == reading


def test_threshold_and_words_can_be_set():
    span = Span(name="draft", start=0, end=1)
    assert confidence(completion(0.6), span, threshold=0.7, unsure="lo") == "lo"
    assert confidence(completion(0.8), span, threshold=0.7, sure="hi") == "hi"
