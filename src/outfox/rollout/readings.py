"""Readings: what the environment tells a policy about its own last words.

A policy pauses at the end of a named span; the reading is inserted as an environment-owned segment.
It uses no label, only the logprobs that the policy sampled with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.ledger import Completion, Span

Reading: TypeAlias = Callable[[Completion, Span], str]
"""(completion, the span that just ended) -> the text to insert."""


def confidence(
    completion: Completion,
    span: Span,
    *,
    threshold: float = 0.5,
    sure: str = "[sure]",
    unsure: str = "[unsure]",
) -> str:
    """`sure` where the policy's own probability of the span's tokens is over `threshold`."""
    logprob = float(completion.logprobs[span.start : span.end].sum())
    return sure if math.exp(logprob) > threshold else unsure


READINGS: Mapping[str, Reading] = {"confidence": confidence}
"""By the name that a recipe gives: `readings: {draft: confidence}`."""


def readings_of(names: Mapping[str, str]) -> dict[str, Reading]:
    """Span to reading, from span to name. Raises ConfigError."""
    for span, name in names.items():
        if name not in READINGS:
            raise ConfigError(
                f"readings.{span}: no reading is called '{name}'.{did_you_mean(name, READINGS)}"
            )
    return {span: READINGS[name] for span, name in names.items()}
