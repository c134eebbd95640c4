"""The arithmetic of a rubric, on numbers and on ranges by the same code.

A number is an interval of width zero. Rounding is that of float64: a bound is exact up to the last
bits, and a comparison against it should allow 1e-9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `low` to `high`."""

    low: float
    high: float

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def times(self, weight: Interval) -> Interval:
        """Product with a weight that is never negative."""
        return Interval(
            min(self.low * weight.low, self.low * weight.high),
            max(self.high * weight.low, self.high * weight.high),
        )

    def at_most(self, limit: float) -> Interval:
        return Interval(min(self.low, limit), min(self.high, limit))

    def __contains__(self, value: float) -> bool:
        return self.low - 1e-9 <= value <= self.high + 1e-9


ZERO = Interval(0.0, 0.0)


def point(value: float) -> Interval:
    """A number."""
    return Interval(value, value)


def hull(parts: Iterable[Interval]) -> Interval:
    """The smallest interval around all of them."""
    found = list(parts)
    return Interval(min(part.low for part in found), max(part.high for part in found))


def summed(parts: Iterable[Interval]) -> Interval:
    total = ZERO
    for part in parts:
        total = total + part
    return total


def total(outcome: Interval, charges: Mapping[str, Interval], cap: float) -> Interval:
    """Outcome less the charges, of which at most `cap` counts."""
    return outcome - summed(charges.values()).at_most(cap)
