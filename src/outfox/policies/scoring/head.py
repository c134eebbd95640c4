# pyright: standard
"""Log-probabilities and entropies from last hidden states, a few rows of logits at a time.

With z the logits of a state, p = softmax(z) and H its entropy, the gradient at z is
g (onehot - p) for a log-probability, and -g p (log p + H) for the entropy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

_ROWS = 192
"""Rows of logits at a time, so that they stay in the cache while they are worked on."""
KEPT_LOGITS = 1 << 24
"""Most logits kept for the backward pass; beyond it they are computed again."""


def score(
    states: Tensor, weight: Tensor, ends: Tensor, targets: Tensor, *, temperature: float
) -> tuple[Tensor, Tensor]:
    """[M] log-probabilities of `targets` after the states `ends`, and [M] entropies there.

    states [E, hidden]; weight [vocabulary, hidden] of a head without bias; ends [M] row of states.
    """
    return _Score.apply(states / temperature if temperature != 1 else states, weight, ends, targets)


class _Score(Function):
    @staticmethod
    def forward(ctx, states, weight, ends, targets):
        kept = len(states) * len(weight) <= KEPT_LOGITS
        logprobs, entropies = states.new_empty(len(ends)), states.new_empty(len(states))
        parts: list[Tensor] = []
        for rows, found, own in _parts(states, ends):
            logp = (states[rows] @ weight.t()).log_softmax(-1)
            logprobs[found] = logp[own, targets[found]]
            entropies[rows] = -torch.linalg.vecdot(logp, logp.exp())
            if kept:
                parts.append(logp)
        ctx.save_for_backward(states, weight, ends, targets, entropies, *parts)
        ctx.set_materialize_grads(False)
        return logprobs, entropies[ends]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore
        d_logprobs, d_entropies = grad_outputs
        states, weight, ends, targets, entropies, *parts = ctx.saved_tensors
        d_states, d_weight = torch.empty_like(states), torch.zeros_like(weight)
        bonus = None
        if d_logprobs is None:
            d_logprobs = states.new_zeros(len(ends))
        if d_entropies is not None:
            bonus = states.new_zeros(len(states), 1).index_add_(0, ends, d_entropies[:, None])
        for k, (rows, found, own) in enumerate(_parts(states, ends)):
            logp = parts[k] if parts else (states[rows] @ weight.t()).log_softmax(-1)
            given = d_logprobs[found]
            whole = states.new_zeros(len(logp), 1).index_add_(0, own, given[:, None])
            if bonus is None:
                d_logits = logp.exp().mul_(-whole)
            else:
                whole.addcmul_(bonus[rows], entropies[rows, None])
                d_logits = torch.addcmul(-whole, logp, bonus[rows], value=-1).mul_(logp.exp())
            d_logits.index_put_((own, targets[found]), given, accumulate=True)
            torch.mm(d_logits, weight, out=d_states[rows])
            d_weight.addmm_(d_logits.t(), states[rows])
        return d_states, d_weight, None, None


def _parts(states: Tensor, ends: Tensor) -> list[tuple[slice, Tensor, Tensor]]:
    """Rows of states, the tokens that they predict, and the row of each among these."""
    found: list[tuple[slice, Tensor, Tensor]] = []
    for start in range(0, len(states), _ROWS):
        stop = min(start + _ROWS, len(states))
        tokens = torch.nonzero((ends >= start) & (ends < stop))[:, 0]
        found.append((slice(start, stop), tokens, ends[tokens] - start))
    return found
