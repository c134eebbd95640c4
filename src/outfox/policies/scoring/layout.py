# pyright: standard
"""Where tokens lie: flat for everything that looks at one token, padded for attention.

    nodes    0 1 2 3 4            [N] no padding, a shared beginning once
    groups   0 1 2 3   0 1 4 _    [rows, width] per group of sequences of nearly equal length

`fan_out` copies queries, keys and values from the nodes to the groups, heads apart; `back` finds
each node's attended values there again, at the first sequence that it is in. A copy that nobody
takes back gets no gradient, and so is without influence, like padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from outfox.policies.scoring.tree import Tree, by_length

MAX_WASTE = 0.15
"""Padding in attention costs less than many small groups do."""
KEPT_ATTENTION = 1 << 26
"""Most attention weights, of all layers together, kept for the backward pass. Beyond it they are
computed again, `BLOCK` queries at a time, and memory grows with the length, not with its square."""
BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Attention heads of a layer; several query heads may share one of keys and values."""

    query: int
    key_value: int
    width: int

    @property
    def parts(self) -> int:
        """Heads of queries, keys and values together."""
        return self.query + 2 * self.key_value

    @property
    def turned(self) -> int:
        """Heads of queries and keys, which know positions."""
        return self.query + self.key_value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """One group's place in the padded arrays."""

    fanned: slice
    """Its rows among queries, keys and values: [3, rows * heads, width]."""
    attended: slice
    """Its rows among attended values: [rows * heads, width]."""
    batch: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    heads: Heads
    groups: tuple[Group, ...]
    fan_out: Tensor
    """Row of [N * parts, head] for each row of the padded queries, keys and values."""
    back: Tensor
    """[N * heads] row of the padded attended values."""
    ends: Tensor
    """[E] nodes whose state is wanted at last."""
    back_ends: Tensor
    """[E * heads] the same as `back`, of those only."""
    ancestors: tuple[Tensor, ...]
    """[N] each: the node before, the one before that, ...; N where there is none."""
    kept: bool
    """True where attention weights are kept for the backward pass."""
    causal: Tensor
    """[block, longest + block] 0 where a query may look, -inf elsewhere; the first of a block looks
    at `longest + 1` keys."""

    def blocks(self, width: int) -> list[tuple[slice, slice, Tensor]]:
        """Queries that attend together, the keys that they see, and what they may look at."""
        size = len(self.causal)
        longest = self.causal.shape[1] - size
        found: list[tuple[slice, slice, Tensor]] = []
        for start in range(0, width, size):
            stop = min(start + size, width)
            mask = self.causal[: stop - start, longest - start : longest - start + stop]
            found.append((slice(start, stop), slice(stop), mask))
        return found


def lay_out(
    tree: Tree, ends: np.ndarray, heads: Heads, *, reach: int, layers: int, dtype: torch.dtype
) -> Layout:
    """`ends` [E] are nodes, each once; `reach`: how far convolutions look back; `layers`: how many
    of the model attend.
    """
    lengths = [len(path) for path in tree.paths]
    back = np.zeros((len(tree.token_ids), heads.query), np.int64)
    groups: list[Group] = []
    fans: list[np.ndarray] = []
    taken = 0
    for members in by_length(lengths, MAX_WASTE):
        width, batch = lengths[members[0]], len(members) * heads.query
        fans.append(_fan_out(tree, members, width, heads))
        _take_back(tree, members, width, taken, back)
        size = batch * width
        groups.append(
            Group(
                fanned=slice(3 * taken, 3 * (taken + size)),
                attended=slice(taken, taken + size),
                batch=batch,
                width=width,
            )
        )
        taken += size
    longest = max(lengths, default=0)
    kept = layers * sum(group.batch * group.width**2 for group in groups) <= KEPT_ATTENTION
    block = longest if kept else BLOCK
    return Layout(
        heads=heads,
        groups=tuple(groups),
        fan_out=torch.from_numpy(np.concatenate(fans)),
        back=torch.from_numpy(back.reshape(-1)),
        ends=torch.from_numpy(ends),
        back_ends=torch.from_numpy(back[ends].reshape(-1)),
        ancestors=tuple(map(torch.from_numpy, tree.ancestors(reach))),
        kept=kept,
        causal=torch.full((block, longest + block), float("-inf"), dtype=dtype).triu_(longest + 1),
    )


def _fan_out(tree: Tree, members: Sequence[int], width: int, heads: Heads) -> np.ndarray:
    """[3 * rows * heads * width] for one group; padding copies node 0."""
    nodes = np.zeros((len(members), 1, width), np.int64)
    for row, k in enumerate(members):
        nodes[row, 0, : len(tree.paths[k])] = tree.paths[k]
    query = np.arange(heads.query)[:, None]
    key = heads.query + query // (heads.query // heads.key_value)
    first = nodes * heads.parts
    return np.stack([first + query, first + key, first + key + heads.key_value]).reshape(-1)


def _take_back(
    tree: Tree, members: Sequence[int], width: int, taken: int, back: np.ndarray
) -> None:
    """Write the rows at which this group holds nodes that no earlier sequence has brought."""
    heads = np.arange(back.shape[1])
    for row, k in enumerate(members):
        own = tree.paths[k][tree.shared[k] :]
        places = np.arange(tree.shared[k], len(tree.paths[k]))
        back[own] = taken + (row * len(heads) + heads) * width + places[:, None]
