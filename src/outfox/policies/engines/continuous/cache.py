# pyright: standard
"""Keys and values of all lanes, on shelves of lanes that are about as long.

    shelf 32    lanes of up to 32 tokens       per layer: keys, values [rows, kv_heads, 32, head]
    shelf 64    lanes of 33 to 64 tokens       per layer: ...         [rows, kv_heads, 64, head]

Small models are bound by memory here, so a step must not read what is not there: on a shelf, all
rows are read as one view, and little of it is empty. A lane that outgrows its shelf moves to the
next. Which shelf a lane is on depends on its length alone, and so do the bits of its attention.

Moves and copies are collected (`move`, `copy`) and made together (`settle`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from outfox.policies.engines.continuous.lanes import Lane

_ROWS = 16
_WIDTH = 32
_KEPT = 1 << 28
"""Most bytes of shelves without lanes."""


def width_for(tokens: int) -> int:
    """The narrowest shelf for so many tokens: at most a quarter wider, or 32."""
    step = max(_WIDTH, 1 << max(0, tokens.bit_length() - 3))
    return -(-tokens // step) * step


class Shelf:
    """Rows of one width."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lanes: list[Lane | None] = []
        self._layers: dict[int, tuple[Tensor, ...]] = {}

    def layer(self, index: int, *like: Tensor) -> tuple[Tensor, ...]:
        """What one layer keeps, such as keys and values; `like` [N, heads, .] give the shapes."""
        if index not in self._layers:
            self._layers[index] = tuple(map(self._empty, like))
        return self._layers[index]

    @property
    def layers(self) -> dict[int, tuple[Tensor, ...]]:
        return self._layers

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for kept in self._layers.values() for tensor in kept)

    def add(self, lane: Lane) -> None:
        """Put the lane into the lowest free row."""
        if None not in self.lanes:
            rows = len(self.lanes)
            self.lanes += [None] * (-(-max(rows // 2, 1) // _ROWS) * _ROWS)
            self._layers = {
                index: tuple(map(self._grown, kept)) for index, kept in self._layers.items()
            }
        lane.width, lane.row = self.width, self.lanes.index(None)
        self.lanes[lane.row] = lane

    def gather(self, lanes: Sequence[Lane]) -> None:
        """Move lanes so that these lie in the first rows, with gaps of at most a half.

        Only those outside are moved, and only where gaps are more.
        """
        count = len(lanes)
        if max(lane.row for lane in lanes) < count + max(8, count // 2):
            return
        inside = {lane.row for lane in lanes}
        outside = [lane for lane in lanes if lane.row >= count]
        holes = [row for row in range(count) if row not in inside]
        source: list[int] = []
        target: list[int] = []
        for lane, hole in zip(outside, holes, strict=True):
            evicted, row = self.lanes[hole], lane.row
            source += [row] if evicted is None else [row, hole]
            target += [hole] if evicted is None else [hole, row]
            self.lanes[hole], self.lanes[row], lane.row = lane, evicted, hole
            if evicted is not None:
                evicted.row = row
        for kept in self._layers.values():
            for tensor in kept:
                tensor[target] = tensor[source]

    def _grown(self, tensor: Tensor) -> Tensor:
        new = self._empty(tensor[:, :, 0])
        new[: len(tensor)] = tensor
        return new

    def _empty(self, like: Tensor) -> Tensor:
        """Zeros, since a masked position is still multiplied, by 0."""
        size = (len(self.lanes), like.shape[1], self.width, like.shape[2])
        return torch.zeros(size, dtype=like.dtype, device=like.device)


class Cache:
    """All shelves."""

    def __init__(self) -> None:
        self._shelves: dict[int, Shelf] = {}
        self._freed: list[tuple[Shelf, int]] = []
        self._copies: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._left: dict[int, tuple[int, int]] = {}
        """Where a lane that moves still lies, by its id."""

    def shelf(self, width: int) -> Shelf:
        if width not in self._shelves:
            self._shelves[width] = Shelf(width)
        return self._shelves[width]

    def new(self, tokens: int) -> Lane:
        """An empty lane with room for `tokens`."""
        lane = Lane()
        self.shelf(width_for(tokens)).add(lane)
        return lane

    def copy(self, lane: Lane, tokens: int) -> Lane:
        """A new lane with room for `tokens` that begins like this one. `settle` makes the copy."""
        made = self.new(tokens)
        self._copy(*self._left.get(id(lane), (lane.width, lane.row)), made)
        return made

    def move(self, lane: Lane, tokens: int) -> None:
        """Give the lane room for `tokens`. `settle` moves what it holds."""
        width, row = lane.width, lane.row
        if width_for(tokens) == width:
            return
        self.release(lane)
        self._left[id(lane)] = width, row
        self.shelf(width_for(tokens)).add(lane)
        self._copy(width, row, lane)

    def release(self, lane: Lane) -> None:
        """The row is free after the next `settle`: copies that are under way still read it."""
        self._freed.append((self.shelf(lane.width), lane.row))

    def settle(self) -> None:
        """Make all copies, then free the rows that were released."""
        for (source, target), rows in self._copies.items():
            self._transfer(self.shelf(source), self.shelf(target), rows)
        self._copies.clear()
        self._left.clear()
        for shelf, row in self._freed:
            shelf.lanes[row] = None
        self._freed.clear()
        empty = {w: shelf.bytes for w, shelf in self._shelves.items() if not any(shelf.lanes)}
        if sum(empty.values()) > _KEPT:
            for width in empty:
                del self._shelves[width]

    def _copy(self, width: int, row: int, made: Lane) -> None:
        self._copies.setdefault((width, made.width), []).append((row, made.row))

    def _transfer(self, source: Shelf, target: Shelf, rows: Sequence[tuple[int, int]]) -> None:
        width = min(source.width, target.width)
        for index, kept in source.layers.items():
            begin, end = torch.tensor(rows, device=kept[0].device).unbind(1)
            made = target.layer(index, *(tensor[:, :, 0] for tensor in kept))
            for old, new in zip(kept, made, strict=True):
                new[:, :, :width].index_copy_(0, end, old[:, :, :width].index_select(0, begin))
