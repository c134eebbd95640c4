# pyright: standard
"""Attention over a packed step.

    tokens   a b c d d d d | e f g g g g g | 0 0     [N]: shelf by shelf, then padding;
    lanes    A B C    D    | E F     G     | pad     on a shelf, lanes that decode one token first

Everything but attention works on one token at a time, so a packed step has no padding to speak of.
Only this file knows which token belongs to whom. Lanes that decode are computed together, without
a gather; those that take a few tokens are padded to one of `SIZES`; longer ones go one by one.

What a lane computes does not depend on its companions: N is padded to a multiple of 4 and at least
12 (matrix products change a row's bits at fewer rows), and shapes inside of attention depend on the
lane's length and its number of new tokens alone, but for how many lanes there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from outfox.core.errors import ConfigError
from outfox.policies.engines.continuous.cache import Shelf

SIZES = (4, 16, 64)
"""Tokens that lanes of one batch are padded to."""
_NAME = "outfox_packed"


def padded(count: int) -> int:
    """Rows of a matrix product whose bits do not depend on how many rows are real."""
    return max(12, -(-count // 4) * 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """New tokens of one lane: [start, start + count) of a packed step, after `past` cached ones."""

    start: int
    count: int
    row: int
    past: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Lanes that take several tokens, at most `size` each."""

    rows: Tensor
    """[b] rows of the shelf."""
    tokens: Tensor
    """[b * size] where in the step a lane's tokens are; padding repeats the last."""
    places: Tensor
    """[n] where in `tokens` the real ones are."""
    targets: Tensor
    """[n] where in the step they belong."""
    positions: Tensor
    """[b, size]"""
    size: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The tokens [start, stop) of a packed step, whose lanes are on one shelf."""

    shelf: Shelf
    start: int
    stop: int
    rows: Tensor
    """[stop - start] row of each token."""
    positions: Tensor
    """[stop - start]"""
    decode: int
    """The first so many tokens are their lanes' only ones, in the order of rows."""
    span: int
    """Decoding lanes lie in rows 0 to span - 1."""
    batches: tuple[Batch, ...]
    long: tuple[Piece, ...]
    _made: dict[Any, Tensor] = field(default_factory=dict)
    """What all layers use."""

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        out: Tensor,
        scale: float,
        window: int | None,
    ) -> None:
        """Store new keys and values of a whole step, and attend: all [N, heads, head]."""
        keys, values = self._write(layer, key, value)
        if self.decode:
            mine = slice(self.start, self.start + self.decode)
            out[mine] = self._decode(query[mine], keys, values, scale, window)
        for batch in self.batches:
            made = self._batch(batch, query, keys, values, scale, window)
            out[batch.targets] = made[batch.places]
        for piece in self.long:
            mine = slice(piece.start, piece.start + piece.count)
            out[mine] = self._long(piece, query[mine], keys, values, scale, window)

    def convolve(self, layer: int, inputs: Tensor, taps: Tensor, out: Tensor) -> None:
        """Store inputs of a whole step, and sum over the last tokens of each lane: [N, hidden]."""
        kernel, hidden = taps.shape
        held = self._write(layer, inputs[:, None])[0].view(-1, hidden)
        if ("taps", kernel) not in self._made:
            at = self.positions[:, None] + torch.arange(1 - kernel, 1, device=inputs.device)
            before = at < 0
            at = at.clamp_(min=0).add_(self.rows[:, None] * self.shelf.width)
            self._made[("taps", kernel)] = at.flatten()
            self._made[("before", kernel)] = before if bool(before.any()) else before[:0]
        seen = held.index_select(0, self._made[("taps", kernel)]).view(-1, kernel, hidden)
        if len(before := self._made[("before", kernel)]):
            seen.masked_fill_(before[..., None], 0.0)
        torch.sum(seen.mul_(taps), 1, out=out[self.start : self.stop])

    def _write(self, layer: int, *new: Tensor) -> tuple[Tensor, ...]:
        """Store [N, heads, .] of a whole step; returns the shelf's [rows, heads, width, .]."""
        held = self.shelf.layer(layer, *new)
        heads = new[0].shape[1]
        index = self._made.get(heads)
        if index is None:
            head = torch.arange(heads, device=self.rows.device)
            index = (self.rows[:, None] * heads + head) * self.shelf.width
            index = self._made[heads] = (index + self.positions[:, None]).flatten()
        for old, given in zip(held, new, strict=True):
            mine, size = given[self.start : self.stop], given.shape[-1]
            old.view(-1, size).index_copy_(0, index, mine.reshape(-1, size))
        return held

    def _decode(
        self, query: Tensor, keys: Tensor, values: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """One query per lane: query [D, heads, head]; returns [D, heads, .].

        Heads that share keys are the rows of one small matrix product per lane.
        """
        count, heads, head = query.shape
        kv, width = keys.shape[1:3]
        rows, whole = self.rows[:count], count == self.span
        if not whole:
            query = query.new_zeros(self.span, heads, head).index_copy_(0, rows, query)
        batch = self.span * kv
        q = query.reshape(batch, heads // kv, head)
        k = keys[: self.span].view(batch, width, head)
        v = values[: self.span].view(batch, width, values.shape[-1])
        mask = self._decode_mask(kv, window, query.dtype)
        scores = torch.baddbmm(mask, q, k.transpose(1, 2), alpha=scale)
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
        total = torch.bmm(weights, v).view(self.span, heads, -1)
        return total if whole else total.index_select(0, rows)

    def _batch(
        self,
        batch: Batch,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        scale: float,
        window: int | None,
    ) -> Tensor:
        """Several queries per lane; returns [b * size, heads, .]."""
        heads, head = query.shape[1:]
        kv, lanes, size = keys.shape[1], len(batch.rows), batch.size
        q = query.index_select(0, batch.tokens).view(lanes, size, heads, head).transpose(1, 2)
        q = q.reshape(lanes * kv, heads // kv * size, head)
        k, v = (each.index_select(0, batch.rows).flatten(0, 1) for each in (keys, values))
        mask = self._mask(id(batch), batch.positions[:, None, :, None], window, q.dtype)
        scores = torch.bmm(q, k.transpose(1, 2)).mul_(scale)
        scores.view(lanes, heads, size, -1).add_(mask)
        weights = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
        made = torch.bmm(weights, v).view(lanes, heads, size, -1)
        return made.transpose(1, 2).reshape(lanes * size, heads, -1)

    def _long(
        self,
        piece: Piece,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        scale: float,
        window: int | None,
    ) -> Tensor:
        """New tokens of one lane against its own cache row; query [T, heads, head], as returned."""
        mask, seen = None, piece.past + piece.count
        if piece.past or window is not None:
            start = piece.start - self.start
            last = self.positions[start : start + piece.count, None]
            mask = self._mask(("long", start), last, window, query.dtype)[:, :seen]
        groups = query.shape[1] // keys.shape[1]
        k, v = (each[piece.row, :, :seen].repeat_interleave(groups, 0) for each in (keys, values))
        made = functional.scaled_dot_product_attention(
            query.transpose(0, 1)[None], k[None], v[None], mask, is_causal=mask is None, scale=scale
        )
        return made[0].transpose(0, 1)

    def _decode_mask(self, kv: int, window: int | None, dtype: torch.dtype) -> Tensor:
        """[span * kv, 1, width]; a row that does not decode looks at its first key."""
        made = self._made.get(("decode", kv, window))
        if made is None:
            last = self.positions.new_zeros(self.span)
            last[self.rows[: self.decode]] = self.positions[: self.decode]
            mask = self._mask("decode", last[:, None, None], window, dtype)
            made = mask if kv == 1 else mask.repeat_interleave(kv, 0)
            self._made[("decode", kv, window)] = made
        return made

    def _mask(self, what: Any, last: Tensor, window: int | None, dtype: torch.dtype) -> Tensor:
        """0 where a token at position `last` [..., 1] may look, -inf elsewhere: [..., width].

        The same for all layers that share a window, so it is made once.
        """
        made = self._made.get((what, window))
        if made is None:
            key = torch.arange(self.shelf.width, device=last.device)
            hidden = key > last if window is None else (key > last) | (key <= last - window)
            made = torch.zeros(hidden.shape, dtype=dtype, device=last.device)
            made = self._made[(what, window)] = made.masked_fill_(hidden, float("-inf"))
        return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """Which token of a step belongs to which lane."""

    parts: tuple[Part, ...]

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        scale: float,
        window: int | None = None,
    ) -> Tensor:
        """All [N, heads, head]; keys and values are stored."""
        out = query.new_empty(*query.shape[:2], value.shape[-1])
        out[self.parts[-1].stop :] = 0.0
        for part in self.parts:
            part.attend(layer, query, key, value, out, scale, window)
        return out

    def convolve(self, layer: int, inputs: Tensor, taps: Tensor) -> Tensor:
        """A causal convolution of each channel by itself; inputs [N, hidden], which are stored.

        taps: [kernel, hidden]; the last is for the token itself.
        """
        out = torch.zeros_like(inputs)
        for part in self.parts:
            part.convolve(layer, inputs, taps, out)
        return out


def batches(pieces: Sequence[Piece], device: torch.device) -> tuple[list[Batch], list[Piece]]:
    """Pieces of several tokens by size, and those that are too long for a batch."""
    found: dict[int, list[Piece]] = {}
    long: list[Piece] = []
    for piece in pieces:
        size = next((size for size in SIZES if piece.count <= size), None)
        if size is None:
            long.append(piece)
        else:
            found.setdefault(size, []).append(piece)
    return [_batch(group, size, device) for size, group in found.items()], long


def _batch(pieces: Sequence[Piece], size: int, device: torch.device) -> Batch:
    table = torch.tensor([(p.start, p.count, p.row, p.past) for p in pieces], device=device)
    start, count, row, past = table.unsqueeze(1).unbind(2)
    place = torch.arange(size, device=device)
    real = place < count
    place = torch.minimum(place, count - 1)
    tokens = (start + place).flatten()
    places = real.flatten().nonzero()[:, 0]
    return Batch(
        rows=row[:, 0],
        tokens=tokens,
        places=places,
        targets=tokens[places],
        positions=past + place,
        size=size,
    )


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    packed_step: Packed | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls per layer; query [1, heads, N, width]."""
    unknown = [name for name in ("s_aux", "position_bias") if others.get(name) is not None]
    if packed_step is None or unknown or softcap:
        raise ConfigError(
            "The transformers engine needs plain attention that passes keyword arguments on; "
            f"{type(module).__name__} does not (packed={packed_step is not None}, softcap="
            f"{softcap}, other terms={unknown}). Use another engine."
        )
    q, k, v = (each[0].transpose(0, 1) for each in (query, key, value))
    scale = scaling or query.shape[-1] ** -0.5
    out = packed_step.attend(module.layer_idx, q, k, v, scale=scale, window=sliding_window)
    return out[None], None


@contextmanager
def attending(model: PreTrainedModel) -> Iterator[None]:
    """The model attends over packed steps inside, and as before outside."""
    before = model.config._attn_implementation
    model.config._attn_implementation = _NAME
    try:
        yield
    finally:
        model.config._attn_implementation = before


ALL_ATTENTION_FUNCTIONS.register(_NAME, packed_attention)
