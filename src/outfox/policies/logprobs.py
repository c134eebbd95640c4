# pyright: standard
"""Log-probabilities of given tokens: the one place with the shift by one.

    token_ids  t0 t1 t2 t3     the hidden state at position i predicts token i + 1
    logprobs    0 l1 l2 l3     logprobs[i] = log p(t_i | t_0 .. t_{i-1}), so position 0 is 0

Rows are padded on the right. Attention is causal, so padding never reaches a real token, and no
mask is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from outfox.core.errors import ConfigError

_SCALED_LOGITS = {"final_logit_softcapping": None, "logits_scaling": 1.0, "logit_scale": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenScores:
    """What a model thinks of given tokens."""

    logprobs: Tensor
    """[B, T] float32; zeros at position 0, on padding and outside `where`."""
    entropies: Tensor | None = None
    """[B, T] float32, nats, of the distribution each token was drawn from; zeros likewise."""


def token_logprobs(
    model: PreTrainedModel,
    token_ids: Tensor,
    lengths: Tensor | None = None,
    *,
    where: Tensor | None = None,
    entropies: bool = False,
    temperature: float = 1.0,
    max_logits: int = 1 << 24,
) -> TokenScores:
    """Log-probabilities of `token_ids` [B, T] under `model` at `temperature`, differentiable.

    lengths: [B] real tokens per row; default all T.
    where: [B, T] bool, the tokens that are wanted (a loss mask); the rest costs no logits.
    max_logits: most logits held at once. Beyond it positions are taken in parts, whose logits
    are computed again in the backward pass.
    Raises ConfigError for a model that scales its logits after the head.
    """
    _check_head(model)
    hidden = model.get_decoder()(input_ids=token_ids, use_cache=False).last_hidden_state
    wanted = _wanted(token_ids, lengths, where)
    states, targets = hidden[:, :-1][wanted], token_ids[:, 1:][wanted]
    head = cast(nn.Linear, model.get_output_embeddings())
    size = max(1, max_logits // head.weight.shape[0])
    parts = list(zip(states.split(size), targets.split(size), strict=True))
    scored = [
        checkpoint(_score, head, s, t, temperature, entropies, use_reentrant=False)
        if len(parts) > 1 and torch.is_grad_enabled()
        else _score(head, s, t, temperature, entropies)
        for s, t in parts
    ]
    columns = [_spread(torch.cat(column), wanted) for column in zip(*scored, strict=True)]
    return TokenScores(logprobs=columns[0], entropies=columns[1] if entropies else None)


def _wanted(token_ids: Tensor, lengths: Tensor | None, where: Tensor | None) -> Tensor:
    """[B, T - 1] True where the next token is real and wanted."""
    rows, width = token_ids.shape
    keep = torch.ones(rows, width - 1, dtype=torch.bool, device=token_ids.device)
    if lengths is not None:
        keep &= torch.arange(1, width, device=token_ids.device) < lengths[:, None]
    if where is not None:
        keep &= where[:, 1:]
    return keep


def _score(
    head: nn.Module, states: Tensor, targets: Tensor, temperature: float, entropies: bool
) -> tuple[Tensor, ...]:
    """[N] log-probabilities, and [N] entropies where asked for, of `states` [N, hidden]."""
    logits = head(states).float()
    if temperature != 1.0:
        logits = logits / temperature
    if not entropies:
        return (-functional.cross_entropy(logits, targets, reduction="none"),)
    logp = logits.log_softmax(-1)
    return logp.gather(-1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(-1)


def _spread(values: Tensor, wanted: Tensor) -> Tensor:
    """[N] values of wanted tokens as [B, T], shifted to the tokens that they belong to."""
    full = values.new_zeros(wanted.shape).masked_scatter(wanted, values)
    return functional.pad(full, (1, 0))


def _check_head(model: PreTrainedModel) -> None:
    settings = model.config.to_dict()
    for name, neutral in _SCALED_LOGITS.items():
        if settings.get(name, neutral) != neutral:
            raise ConfigError(
                f"Log-probabilities are computed from the plain output of the head; this model "
                f"sets {name}={settings[name]}. Use a model without it."
            )
