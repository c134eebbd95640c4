"""Tokens go through the model once, however many sessions begin with them.

    session A   a b c d e f          lane 1   a b c d e f     A holds 6 of it, B held 4
    session B   a b c d x            lane 2   a b c d x       copied when B went another way

A lane is a cache row that is only ever written past its end, so what a session holds of it stays
valid. The session that goes on from the end keeps the lane; one that goes another way, or comes
later, takes a copy. What is computed is what each session would compute alone, bit by bit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True, eq=False)
class Lane:
    """One row of the cache."""

    width: int = 0
    """The shelf that it is on."""
    row: int = 0
    length: int = 0
    """Tokens that are in the cache."""
    holders: int = 0
    """Sessions that hold a beginning of it."""
