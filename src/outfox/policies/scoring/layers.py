# pyright: standard
"""Layers of small decoders, forward and backward by hand, in few passes over memory.

    x ─norm─▶ queries, keys, values ─(norm)─turn─▶ attention ─▶ matrix ─▶ + x      `attend`
    x ─norm─▶ B, C, v ─▶ C * conv(B * v)                     ─▶ matrix ─▶ + x      `convolve`
    x ─norm─▶ gate, up ─▶ SiLU(gate) * up                    ─▶ matrix ─▶ + x      `feed`

Nodes lie flat [N, hidden]; `Layout` knows who sees whom. The weight of a norm is multiplied into
the matrix behind it beforehand. `ends` keeps the rows of these nodes only: of a last layer nothing
else is wanted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable
from torch.nn import functional

from outfox.policies.scoring.layout import Layout

_aten: Any = torch.ops.aten


# -- norm -----------------------------------------------------------------------------------------
def _normed(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x over its root mean square, and one over that."""
    mean = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1])
    r = mean.add_(eps).rsqrt_()
    return x * r, r


def _unnormed(dh: Tensor, h: Tensor, r: Tensor) -> Tensor:
    """The gradient at x of h = x r; written into `dh`."""
    along = (dh * h).sum(-1, keepdim=True).div_(-h.shape[-1])
    return dh.addcmul_(h, along).mul_(r)


def _kept(x: Tensor, ends: Tensor | None) -> Tensor:
    return x if ends is None else x.index_select(0, ends)


def _added(dx: Tensor, dy: Tensor, ends: Tensor | None) -> Tensor:
    """The gradient of what goes past a layer, added in place."""
    return dx.add_(dy) if ends is None else dx.index_add_(0, ends, dy)


def _matrix(ctx: Any, argument: int, dy: Tensor, x: Tensor) -> Tensor | None:
    """The gradient at a matrix, of y = x Wt; None where nobody wants it."""
    return dy.t() @ x if ctx.needs_input_grad[argument] else None


# -- attention ------------------------------------------------------------------------------------
class Attend(Function):
    """looking [parts * head, hidden]: queries and keys in pairs that are turned together, values;
    scales [query + key heads, head]: weights of a norm of each, or None; turn [N, 1, head / 2].
    """

    @staticmethod
    def forward(ctx, x, looking, scales, out, turn, layout: Layout, eps, ends):
        heads = layout.heads
        h, r = _normed(x, eps)
        mixed = h @ looking.t()
        pairs = mixed.view(len(h), heads.parts, heads.width)[:, : heads.turned]
        sights = None
        if scales is not None:
            sights = _normed(pairs, eps)
            torch.mul(sights[0], scales, out=pairs)
        _turn(pairs, turn)
        fanned = mixed.view(-1, heads.width).index_select(0, layout.fan_out)
        attended, chances = _attention(fanned, layout)
        back = layout.back if ends is None else layout.back_ends
        o = attended.index_select(0, back).view(-1, heads.query * heads.width)
        ctx.save_for_backward(
            h, r, *(sights or (None, None)), fanned, o, turn, looking, scales, out, *chances
        )
        ctx.layout, ctx.ends = layout, ends
        return torch.addmm(_kept(x, ends), o, out.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore
        (dy,) = grad_outputs
        h, r, seen, seen_r, fanned, o, turn, looking, scales, out, *chances = ctx.saved_tensors
        layout, heads, d_scales = ctx.layout, ctx.layout.heads, None
        back = layout.back if ctx.ends is None else layout.back_ends
        d_attended = fanned.new_zeros(len(fanned) // 3, heads.width)
        d_attended.index_add_(0, back, (dy @ out).view(-1, heads.width))
        d_fanned = _attention_backward(d_attended, fanned, chances, layout)
        d_mixed = h.new_zeros(len(h) * heads.parts, heads.width)
        d_mixed = d_mixed.index_add_(0, layout.fan_out, d_fanned).view(len(h), -1)
        d_pairs = d_mixed.view(len(h), heads.parts, heads.width)[:, : heads.turned]
        _turn(d_pairs, turn.conj())
        if scales is not None:
            d_scales = (d_pairs * seen).sum(0)
            _unnormed(d_pairs.mul_(scales), seen, seen_r)
        dx = _added(_unnormed(d_mixed @ looking, h, r), dy, ctx.ends)
        d_looking, d_out = _matrix(ctx, 1, d_mixed, h), _matrix(ctx, 3, dy, o)
        return dx, d_looking, d_scales, d_out, None, None, None, None


def _turn(pairs: Tensor, turn: Tensor) -> None:
    """Rotate pairs of numbers [N, heads, head], in place."""
    torch.view_as_complex(pairs.unflatten(-1, (-1, 2))).mul_(turn)


def _attention(fanned: Tensor, layout: Layout) -> tuple[Tensor, list[Tensor]]:
    """Attended values, and each group's attention [batch, width, width] where it is kept."""
    scale = layout.heads.width**-0.5
    attended = fanned.new_empty(len(fanned) // 3, layout.heads.width)
    chances: list[Tensor] = []
    for group in layout.groups:
        query, key, value = fanned[group.fanned].view(3, group.batch, group.width, -1)
        out = attended[group.attended].view(value.shape)
        for rows, seen, mask in layout.blocks(group.width):
            chance = _chance(query[:, rows], key[:, seen], mask, scale)
            torch.bmm(chance, value[:, seen], out=out[:, rows])
            if layout.kept:
                chances.append(chance)
    return attended, chances


def _attention_backward(
    d_attended: Tensor, fanned: Tensor, chances: list[Tensor], layout: Layout
) -> Tensor:
    scale = layout.heads.width**-0.5
    d_fanned = torch.empty_like(fanned)
    for k, group in enumerate(layout.groups):
        query, key, value = fanned[group.fanned].view(3, group.batch, group.width, -1)
        d_query, d_key, d_value = d_fanned[group.fanned].view(3, group.batch, group.width, -1)
        d_out = d_attended[group.attended].view(value.shape)
        for rows, seen, mask in reversed(layout.blocks(group.width)):  # The first sees all keys.
            new = 0 if seen.stop == group.width else 1
            own = query[:, rows], key[:, seen]
            chance = chances[k] if layout.kept else _chance(*own, mask, scale)
            d_value[:, seen].baddbmm_(chance.transpose(1, 2), d_out[:, rows], beta=new)
            d_chance = torch.bmm(d_out[:, rows], value[:, seen].transpose(1, 2))
            d_scores = _aten._softmax_backward_data(d_chance, chance, -1, chance.dtype).mul_(scale)
            torch.bmm(d_scores, own[1], out=d_query[:, rows])
            d_key[:, seen].baddbmm_(d_scores.transpose(1, 2), own[0], beta=new)
    return d_fanned


def _chance(query: Tensor, key: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.baddbmm(mask, query, key.transpose(1, 2), alpha=scale).softmax(-1)


# -- gated short convolution ----------------------------------------------------------------------
class Convolve(Function):
    """entering [3 * hidden, hidden]; taps [length, hidden], the last one of the token itself."""

    @staticmethod
    def forward(ctx, x, entering, taps, out, layout: Layout, eps, ends):
        h, r = _normed(x, eps)
        mixed = h @ entering.t()
        b, c, v = mixed.chunk(3, -1)
        gated = x.new_empty(len(x) + 1, x.shape[-1])
        torch.mul(b, v, out=gated[:-1])
        gated[-1] = 0
        blurred = gated[:-1] * taps[-1]
        for back, tap in zip(layout.ancestors, taps[:-1].flip(0), strict=True):
            blurred.addcmul_(gated.index_select(0, back), tap)
        o = _kept(c * blurred, ends)
        ctx.save_for_backward(h, r, mixed, gated, blurred, o, entering, taps, out)
        ctx.layout, ctx.ends = layout, ends
        return torch.addmm(_kept(x, ends), o, out.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore
        (dy,) = grad_outputs
        h, r, mixed, gated, blurred, o, entering, taps, out = ctx.saved_tensors
        b, c, v = mixed.chunk(3, -1)
        d_mixed, d_taps = torch.empty_like(mixed), torch.empty_like(taps)
        d_b, d_c, d_v = d_mixed.chunk(3, -1)
        d_o = dy @ out
        if ctx.ends is not None:
            d_o = torch.zeros_like(h).index_add_(0, ctx.ends, d_o)
        torch.mul(d_o, blurred, out=d_c)
        d_blurred = d_o.mul_(c)
        d_gated = torch.zeros_like(gated)
        torch.mul(d_blurred, taps[-1], out=d_gated[:-1])
        torch.sum(d_blurred * gated[:-1], 0, out=d_taps[-1])
        for k, back in enumerate(ctx.layout.ancestors, 2):
            torch.sum(gated.index_select(0, back).mul_(d_blurred), 0, out=d_taps[-k])
            d_gated.index_add_(0, back, d_blurred * taps[-k])
        torch.mul(d_gated[:-1], v, out=d_b)
        torch.mul(d_gated[:-1], b, out=d_v)
        dx = _added(_unnormed(d_mixed @ entering, h, r), dy, ctx.ends)
        d_entering, d_out = _matrix(ctx, 1, d_mixed, h), _matrix(ctx, 3, dy, o)
        return dx, d_entering, d_taps, d_out, None, None, None


# -- feed-forward ---------------------------------------------------------------------------------
class Feed(Function):
    """gating [2 * inner, hidden]: of gate and up; down [hidden, inner]."""

    @staticmethod
    def forward(ctx, x, gating, down, eps):
        h, r = _normed(x, eps)
        wide = h @ gating.t()
        gate, up = wide.chunk(2, -1)
        silu = functional.silu(gate)
        ctx.save_for_backward(h, r, wide, silu, gating, down)
        return torch.addmm(x, silu * up, down.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore
        (dy,) = grad_outputs
        h, r, wide, silu, gating, down = ctx.saved_tensors
        gate, up = wide.chunk(2, -1)
        d_down = _matrix(ctx, 2, dy, silu * up)
        d_wide = torch.empty_like(wide)
        d_gate, d_up = d_wide.chunk(2, -1)
        d_product = dy @ down
        torch.mul(d_product, silu, out=d_up)
        _aten.silu_backward.grad_input(d_product.mul_(up), gate, grad_input=d_gate)
        dx = _unnormed(d_wide @ gating, h, r).add_(dy)
        return dx, _matrix(ctx, 1, d_wide, h), d_down, None
