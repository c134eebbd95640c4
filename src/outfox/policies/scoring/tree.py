"""Sequences as a tree of prefixes, so that what several begin with is computed once.

    sequences   a b c d    a b e       siblings of one question, replays, equal episodes
    nodes       0 1 2 3        4       every distinct prefix is one node
    paths       0 1 2 3    0 1 4       node of each token
    shared      0          2           tokens whose nodes an earlier sequence has brought

In a causal model the state at a token depends on its prefix alone, so this is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outfox.core.ledger import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """Sequences in the order that they were given; nodes in the order that they came up."""

    token_ids: Ints
    """[N] token of each node."""
    depths: Ints
    """[N] position of each node in every sequence it is in."""
    parents: Ints
    """[N + 1] the node before each; N where there is none, and at last."""
    paths: tuple[Ints, ...]
    shared: tuple[int, ...]

    def ancestors(self, count: int) -> list[Ints]:
        """[N] each: the node before, the one before that, ...; N where there is none."""
        found: list[Ints] = []
        for _ in range(count):
            found.append(self.parents[found[-1]] if found else self.parents)
        return [each[:-1] for each in found]


def prefix_tree(sequences: Sequence[Ints]) -> Tree:
    """A tree of token ids; it depends on nothing but the sequences and their order."""
    # Any order in which equal beginnings are neighbours does; that of the bytes is quick.
    order = sorted(range(len(sequences)), key=lambda k: sequences[k].tobytes())
    paths: list[Ints] = [np.zeros(0, np.int64)] * len(sequences)
    shared = [0] * len(sequences)
    tokens: list[Ints] = [np.zeros(0, np.int64)]
    depths: list[Ints] = [np.zeros(0, np.int64)]
    parents: list[Ints] = []
    before: Ints = np.zeros(0, np.int64)
    path: Ints = before
    count = 0
    for k in order:
        own = sequences[k]
        common = common_prefix(before, own)
        path = np.concatenate([path[:common], np.arange(count, count + len(own) - common)])
        tokens.append(own[common:])
        parents.append(np.concatenate([[-1], path[:-1]])[common : len(own)])
        depths.append(np.arange(common, len(own)))
        count += len(own) - common
        paths[k], shared[k], before = path, common, own
    before_each = np.concatenate([*parents, [-1]])
    return Tree(
        token_ids=np.concatenate(tokens),
        depths=np.concatenate(depths),
        parents=np.where(before_each < 0, count, before_each),
        paths=tuple(paths),
        shared=tuple(shared),
    )


def common_prefix(one: Ints, other: Ints) -> int:
    """Tokens that both begin with."""
    length = min(len(one), len(other))
    differ = np.flatnonzero(one[:length] != other[:length])
    return int(differ[0]) if len(differ) else length


def by_length(lengths: Sequence[int], max_waste: float) -> list[list[int]]:
    """Sequences in groups of nearly equal length, longest first, by index; empty ones are left out.

    Padded to its longest, a group is padding to at most `max_waste`.
    """
    groups: list[list[int]] = []
    real = 0
    for k in sorted(range(len(lengths)), key=lambda k: -lengths[k]):
        if not lengths[k]:
            break
        full = (len(groups[-1]) + 1) * lengths[groups[-1][0]] if groups else 0
        if not groups or real + lengths[k] < (1 - max_waste) * full:
            groups.append([])
            real = 0
        groups[-1].append(k)
        real += lengths[k]
    return groups
