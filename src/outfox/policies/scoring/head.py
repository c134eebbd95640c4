# pyright: standard
"""Log-probabilities and entropies from last hidden states, a few rows of logits at a time.

With z the logits of a state, p = softmax(z) and H its entropy, the gradient at z is
g (onehot - p) for a log-probability, and -g p (log p + H) for the entropy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

_ROWS = 192
"""Rows of logits at a time: neither they nor their gradients are ever there as a whole."""
KEPT_LOGITS = 1 << 24
"""Most logits kept for the backward pass; beyond it they are computed again."""


def score(
    states: Tensor,
    head: nn.Linear,
    ends: Tensor,
    targets: Tensor,
    *,
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """[M] log-probabilities of `targets` after the states `ends`, and [M] entropies there.

    states [E, hidden]; ends [M] row of states. Float32, or float64 where the states are.
    """
    weight, bias = head.weight, head.bias
    if temperature != 1:
        states, bias = states / temperature, None if bias is None else bias / temperature
    return _Score.apply(states, weight, bias, ends, targets)


class _Score(Function):
    @staticmethod
    def forward(ctx, states, weight, bias, ends, targets):
        kept = len(states) * len(weight) <= KEPT_LOGITS
        exact = states.dtype if states.dtype == torch.float64 else torch.float32
        logprobs = states.new_empty(len(ends), dtype=exact)
        entropies = states.new_empty(len(states), dtype=exact)
        parts: list[Tensor] = []
        for rows, found, own in _parts(states, ends):
            logp = _logp(states[rows], weight, bias)
            logprobs[found] = logp[own, targets[found]]
            entropies[rows] = -torch.linalg.vecdot(logp, logp.exp())
            if kept:
                parts.append(logp)
        ctx.save_for_backward(states, weight, bias, ends, targets, entropies, *parts)
        ctx.set_materialize_grads(False)
        return logprobs, entropies[ends]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore
        d_logprobs, d_entropies = grad_outputs
        states, weight, bias, ends, targets, entropies, *parts = ctx.saved_tensors
        _, moves_weight, moves_bias, *_ = ctx.needs_input_grad
        exact = entropies.dtype
        d_states, bonus = torch.empty_like(states), None
        d_weight = torch.zeros_like(weight, dtype=exact) if moves_weight else None
        d_bias = torch.zeros_like(bias, dtype=exact) if moves_bias else None
        if d_logprobs is None:
            d_logprobs = entropies.new_zeros(len(ends))
        if d_entropies is not None:
            bonus = entropies.new_zeros(len(states), 1).index_add_(0, ends, d_entropies[:, None])
        for k, (rows, found, own) in enumerate(_parts(states, ends)):
            logp = parts[k] if parts else _logp(states[rows], weight, bias)
            given = d_logprobs[found]
            whole = entropies.new_zeros(len(logp), 1).index_add_(0, own, given[:, None])
            if bonus is None:
                d_logits = logp.exp().mul_(-whole)
            else:
                whole.addcmul_(bonus[rows], entropies[rows, None])
                d_logits = torch.addcmul(-whole, logp, bonus[rows], value=-1).mul_(logp.exp())
            d_logits.index_put_((own, targets[found]), given, accumulate=True)
            torch.mm(d_logits.to(weight.dtype), weight, out=d_states[rows])
            if d_weight is not None:
                d_weight.addmm_(d_logits.t(), states[rows].to(exact))
            if d_bias is not None:
                d_bias += d_logits.sum(0)
        return d_states, _like(d_weight, weight), _like(d_bias, bias), None, None


def _logp(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    logits = states @ weight.t()
    if logits.dtype != torch.float64:
        logits = logits.float()
    return (logits if bias is None else logits + bias).log_softmax(-1)


def _like(gradient: Tensor | None, own: Tensor | None) -> Tensor | None:
    return gradient if gradient is None or own is None else gradient.to(own.dtype)


def _parts(states: Tensor, ends: Tensor) -> list[tuple[slice, Tensor, Tensor]]:
    """Rows of states, the tokens that they predict, and the row of each among these."""
    found: list[tuple[slice, Tensor, Tensor]] = []
    for start in range(0, len(states), _ROWS):
        stop = min(start + _ROWS, len(states))
        tokens = torch.nonzero((ends >= start) & (ends < stop))[:, 0]
        found.append((slice(start, stop), tokens, ends[tokens] - start))
    return found
