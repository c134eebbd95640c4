"""Counter-based randomness: every draw is a pure function of what it is for.

A generator that is advanced by each caller would make a draw depend on who drew before it; here a
64-bit key is derived from names (seed, step, task, sibling); a draw is a hash of key and counter.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def derive(*parts: int | str) -> int:
    """A 64-bit key from names; parts of different type or split never collide by concatenation."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def rng(*parts: int | str) -> random.Random:
    """A Python generator of its own for the named purpose."""
    return random.Random(derive(*parts))


def uniforms(keys: Sequence[int], counters: Sequence[int]) -> NDArray[np.float64]:
    """[N] draws in [0, 1), one per (key, counter) pair, by splitmix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        count = np.asarray(counters, dtype=np.uint64) + np.uint64(1)
        state = np.asarray(keys, dtype=np.uint64) + count * _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * _MIX_1
        state = (state ^ (state >> np.uint64(27))) * _MIX_2
        state = state ^ (state >> np.uint64(31))
    return (state >> np.uint64(11)).astype(np.float64) * (1.0 / (1 << 53))
