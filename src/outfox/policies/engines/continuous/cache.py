# pyright: standard
"""One key-value cache for all lanes, with those that decode kept close together.

    row    0 1 2 3 4 | 5 6 ...        per layer: keys, values [rows, kv_heads, capacity, head]
    lane   decoding  | idle, free     a step reads rows 0..D-1 as one view, without a gather

Rows and capacity grow with need, never to a model's whole context in advance.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from outfox.policies.engines.continuous.lanes import Lane

BLOCK = 64
"""Keys per block of a sum over values; a cache holds a multiple of it."""
_ROWS = 16


class Cache:
    """Keys and values of lanes."""

    def __init__(self) -> None:
        self.capacity = 0
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}
        self._lanes: list[Lane | None] = []

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer; `key` and `value` [N, heads, head] give the shape."""
        if index not in self._layers:
            self._layers[index] = (self._empty(key), self._empty(value))
        return self._layers[index]

    def room(self, tokens: int) -> None:
        """Give every row room for `tokens`."""
        if tokens > self.capacity:
            needed = max(tokens, self.capacity * 3 // 2, 2 * BLOCK)
            self._resize(len(self._lanes), -(-needed // BLOCK) * BLOCK)

    def new(self) -> Lane:
        """An empty lane in the lowest free row."""
        if None not in self._lanes:
            rows = max(len(self._lanes) * 3 // 2, 1)
            self._resize(-(-rows // _ROWS) * _ROWS, self.capacity)
        lane = Lane(row=self._lanes.index(None))
        self._lanes[lane.row] = lane
        return lane

    def copy(self, lane: Lane, tokens: int) -> Lane:
        """A new lane with a copy of the first `tokens`."""
        made = self.new()
        made.length = tokens
        for tensors in self._layers.values():
            for tensor in tensors:
                tensor[made.row, :, :tokens] = tensor[lane.row, :, :tokens]
        return made

    def release(self, lane: Lane) -> None:
        self._lanes[lane.row] = None

    def gather(self, lanes: Sequence[Lane]) -> None:
        """Move lanes so that these lie in the first rows, with gaps of at most a quarter.

        Only those outside are moved, and only where gaps are more.
        """
        span = max((lane.row for lane in lanes), default=-1) + 1
        count = len(lanes)
        if span <= count + max(4, count // 4):
            return
        inside = {lane.row for lane in lanes}
        outside = [lane for lane in lanes if lane.row >= count]
        holes = [row for row in range(count) if row not in inside]
        source: list[int] = []
        target: list[int] = []
        for lane, hole in zip(outside, holes, strict=True):
            evicted, row = self._lanes[hole], lane.row
            source += [row] if evicted is None else [row, hole]
            target += [hole] if evicted is None else [hole, row]
            self._lanes[hole], self._lanes[row], lane.row = lane, evicted, hole
            if evicted is not None:
                evicted.row = row
        used = max((lane.length for lane in self._lanes if lane is not None), default=0)
        for tensors in self._layers.values():
            for tensor in tensors:
                tensor[target, :, :used] = tensor[source, :, :used]

    def _resize(self, rows: int, capacity: int) -> None:
        old, self.capacity = (len(self._lanes), self.capacity), capacity
        self._lanes += [None] * (rows - len(self._lanes))
        for index, tensors in self._layers.items():
            grown = tuple(self._empty(tensor[:, :, 0]) for tensor in tensors)
            for new, tensor in zip(grown, tensors, strict=True):
                new[: old[0], :, : old[1]] = tensor
            self._layers[index] = (grown[0], grown[1])

    def _empty(self, like: Tensor) -> Tensor:
        """Zeros, since a masked position is still multiplied, by 0."""
        _, heads, width = like.shape
        size = (len(self._lanes), heads, self.capacity, width)
        return torch.zeros(size, dtype=like.dtype, device=like.device)
