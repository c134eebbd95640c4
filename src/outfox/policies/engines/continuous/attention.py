# pyright: standard
"""Attention over a packed step, for any transformers model with pluggable attention.

    tokens    a b c | d d d d e e e | 0 0     one row [1, N]: D sessions that decode one token each,
    sessions  A B C |   D       E   | pad     then sessions that prefill, then padding

Everything but attention works on one token at a time, so a packed step has no padding to speak of.
Only this function knows which token belongs to whom. It gets the step through the model's keyword
arguments, and neither masks nor a transformers cache are made.

What a row computes does not depend on its companions: values are summed over fixed blocks of keys,
prefill attention has only the session's own shape, and N is padded to a multiple of 4 and at least
12 (matrix products change a row's bits at fewer rows).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from outfox.core.errors import ConfigError
from outfox.policies.engines.continuous.cache import Cache

BLOCK = 64
"""Keys per block of a sum over values; caches hold a multiple of it."""
_NAME = "outfox_packed"


def padded(count: int) -> int:
    """Rows of a matrix product whose bits do not depend on how many rows are real."""
    return max(12, -(-count // 4) * 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefill:
    """New tokens [start, stop) of a packed step, which follow `past` tokens of cache row `row`."""

    start: int
    stop: int
    row: int
    past: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """Which token of a step belongs to which cache row and position."""

    cache: Cache
    rows: Tensor
    """[n] cache row of each real token; the first `decode` are rows 0..decode-1."""
    positions: Tensor
    """[n]"""
    decode: int
    prefills: tuple[Prefill, ...]
    width: int
    """Keys that decoding looks at, a multiple of BLOCK."""
    _made: dict[Any, Tensor] = field(default_factory=dict)

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values [heads, N, width]; returns the layer's whole cache."""
        caches = self.cache.layer(layer, key, value)
        heads, count = key.shape[0], len(self.rows)
        index = self._made.get(heads)
        if index is None:
            head = torch.arange(heads, device=key.device)
            index = (self.rows[:, None] * heads + head) * self.cache.capacity
            index = self._made[heads] = (index + self.positions[:, None]).flatten()
        for cached, new in zip(caches, (key, value), strict=True):
            width = new.shape[-1]
            cached.view(-1, width).index_copy_(
                0, index, new[:, :count].transpose(0, 1).reshape(-1, width)
            )
        return caches

    def decode_mask(self, window: int | None, dtype: torch.dtype) -> Tensor:
        """[decode, 1, width]: 0 where a decoding token may look, -inf elsewhere."""
        last = self.positions[: self.decode, None, None]
        return self._mask("decode", last, self.width, window, dtype)

    def prefill_mask(self, part: Prefill, window: int | None, dtype: torch.dtype) -> Tensor:
        """[new tokens, past + new tokens]: 0 where a token may look, -inf elsewhere."""
        last = self.positions[part.start : part.stop, None]
        return self._mask(part.row, last, part.past + part.stop - part.start, window, dtype)

    def _mask(
        self, what: str | int, last: Tensor, width: int, window: int | None, dtype: torch.dtype
    ) -> Tensor:
        """The same for all layers that share a window, so it is made once."""
        made = self._made.get((what, window))
        if made is None:
            key = torch.arange(width, device=last.device)
            hidden = key > last if window is None else (key > last) | (key <= last - window)
            made = torch.zeros(hidden.shape, dtype=dtype, device=last.device)
            made = self._made[(what, window)] = made.masked_fill_(hidden, float("-inf"))
        return made


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
    step, scale = packed_step, scaling or query.shape[-1] ** -0.5
    keys, values = step.write(module.layer_idx, key[0], value[0])
    out = query.new_empty(query.shape[2], query.shape[1], value.shape[-1])
    out[len(step.rows) :] = 0.0
    if step.decode:
        mask = step.decode_mask(sliding_window, query.dtype)
        _decode(query[0, :, : step.decode], keys, values, mask, scale, out[: step.decode])
    for part in step.prefills:
        mask = None
        if part.past or sliding_window is not None:
            mask = step.prefill_mask(part, sliding_window, query.dtype)
        new = slice(part.start, part.stop)
        row = slice(part.row, part.row + 1), slice(None), slice(part.past + part.stop - part.start)
        made = _prefill(query[:, :, new], keys[row], values[row], mask, scale)
        out[new] = made[0].transpose(0, 1)
    return out[None], None


def _decode(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float, out: Tensor
) -> None:
    """One query per row: query [heads, D, head], keys [rows, kv, capacity, head], out [D, heads, .]

    Heads that share keys are the rows of one small matrix product per session.
    """
    heads, count, head = query.shape
    kv, capacity = keys.shape[1:3]
    width = mask.shape[-1]
    batch = count * kv
    q = query.transpose(0, 1).reshape(batch, heads // kv, head)
    k = keys[:count].view(batch, capacity, head)[:, :width]
    v = values[:count].view(batch, capacity, values.shape[-1])
    bias = mask if kv == 1 else mask.repeat_interleave(kv, 0)
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=scale)
    weights = torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
    total = torch.bmm(weights[:, :, :BLOCK], v[:, :BLOCK])
    for start in range(BLOCK, width, BLOCK):
        block = slice(start, start + BLOCK)
        total.baddbmm_(weights[:, :, block], v[:, block])
    out.copy_(total.view(count, heads, -1))


def _prefill(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """New tokens of one session against its own cache row, causally; all [1, heads, ., head]."""
    groups = query.shape[1] // keys.shape[1]
    if keys.shape[1] == 1:
        k, v = (cached.expand(-1, groups, -1, -1) for cached in (keys, values))
    else:
        k, v = (cached.repeat_interleave(groups, 1) for cached in (keys, values))
    return functional.scaled_dot_product_attention(
        query, k, v, mask, is_causal=mask is None, scale=scale
    )


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
