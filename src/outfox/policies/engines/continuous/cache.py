# pyright: standard
"""One key-value cache for all sessions, with the rows that decode kept side by side.

    row       0 1 2 3 | 4 5 6 ...        per layer: keys, values [rows, kv_heads, capacity, head]
    session   decoding | waiting, free   a step reads rows 0..D-1 as one view, without a gather

Rows and capacity grow with need, never to a model's whole context in advance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

_ROWS = 16
_CAPACITY = 128


class Cache:
    """Keys and values of sessions, which are known by name; rows are an inner matter."""

    def __init__(self) -> None:
        self.capacity = 0
        self._used = 0
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}
        self._names: list[str | None] = []
        self._rows: dict[str, int] = {}

    def row(self, name: str) -> int:
        return self._rows[name]

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of one layer; `key` and `value` [heads, N, head] give the shape."""
        if index not in self._layers:
            self._layers[index] = (self._empty(key), self._empty(value))
        return self._layers[index]

    def reserve(self, names: Iterable[str], tokens: int) -> None:
        """Give every name a row (if it has none), and every row room for `tokens`."""
        new = [name for name in names if name not in self._rows]
        free = [row for row, name in enumerate(self._names) if name is None]
        rows = len(self._names)
        if len(new) > len(free):
            needed = rows + len(new) - len(free)
            rows = -(-max(needed, rows * 5 // 4) // _ROWS) * _ROWS
            free += range(len(self._names), rows)
        capacity = max(self.capacity, _CAPACITY)
        while capacity < tokens:
            capacity *= 2
        self._used = max(self._used, tokens) if self._rows else tokens
        self._resize(rows, capacity)
        for name, row in zip(new, free, strict=False):
            self._put(name, row)

    def arrange(self, names: Sequence[str]) -> list[str]:
        """Move these names to rows 0..D-1 and return them in row order.

        Only names outside the range are moved.
        """
        count = len(names)
        outside = [name for name in names if self._rows[name] >= count]
        if outside:
            inside = {self._rows[name] for name in names}
            holes = [row for row in range(count) if row not in inside]
            source = [self._rows[name] for name in outside]
            target = list(holes)
            for name, hole in zip(outside, holes, strict=True):
                row, evicted = self._rows[name], self._names[hole]
                self._put(name, hole)
                self._names[row] = None
                if evicted is not None:
                    self._put(evicted, row)
                    source.append(hole)
                    target.append(row)
            self._move(source, target, self._used)
        return sorted(names, key=self._rows.__getitem__)

    @torch.inference_mode()
    def copy(self, parent: str, child: str, tokens: int) -> None:
        """Give `child` a copy of the parent's first `tokens`."""
        self.reserve([child], tokens)
        self._move([self._rows[parent]], [self._rows[child]], tokens)

    def release(self, name: str) -> None:
        row = self._rows.pop(name, None)
        if row is not None:
            self._names[row] = None

    def _put(self, name: str, row: int) -> None:
        self._names[row] = name
        self._rows[name] = row

    def _move(self, source: list[int], target: list[int], tokens: int) -> None:
        for tensors in self._layers.values():
            for tensor in tensors:
                tensor[target, :, :tokens] = tensor[source, :, :tokens]

    def _resize(self, rows: int, capacity: int) -> None:
        old, self.capacity = (len(self._names), self.capacity), capacity
        self._names += [None] * (rows - len(self._names))
        if old == (rows, capacity):
            return
        for index, tensors in self._layers.items():
            grown = tuple(self._empty(tensor[0]) for tensor in tensors)
            for new, tensor in zip(grown, tensors, strict=True):
                new[: old[0], :, : old[1]] = tensor
            self._layers[index] = (grown[0], grown[1])

    def _empty(self, like: Tensor) -> Tensor:
        """Zeros, since a masked position is still multiplied, by 0."""
        heads, _, width = like.shape
        size = (len(self._names), heads, self.capacity, width)
        return torch.zeros(size, dtype=like.dtype, device=like.device)
