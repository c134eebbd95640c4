"""The shipped signals, one file per family. `find_signal` gives one by name."""

from __future__ import annotations

from outfox.core.errors import ConfigError, did_you_mean
from outfox.rewards.lift import LiftedSignal
from outfox.rewards.signals import cost, evidence, necessity, outcome, safety

SIGNALS = {
    found.name: found
    for family in (outcome, necessity, evidence, cost, safety)
    for found in family.SIGNALS
}
"""Every shipped signal by name."""


def find_signal(name: str) -> LiftedSignal:
    """A shipped signal. Raises ConfigError with a suggestion."""
    if name not in SIGNALS:
        raise ConfigError(f"no shipped signal is called '{name}'.{did_you_mean(name, SIGNALS)}")
    return SIGNALS[name]
