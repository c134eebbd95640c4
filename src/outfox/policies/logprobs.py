# pyright: standard
"""Log-probabilities of given tokens: the one place with the shift by one.

    token_ids  t0 t1 t2 t3     the hidden state at position i predicts token i + 1
    logprobs    0 l1 l2 l3     logprobs[i] = log p(t_i | t_0 .. t_{i-1}), so position 0 is 0

Rows are padded on the right. Attention is causal, so padding never reaches a real token, and no
mask is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from outfox.core.errors import ConfigError
from outfox.core.ledger import Bools, Ints
from outfox.policies.scoring.decoder import decode, is_known
from outfox.policies.scoring.head import score
from outfox.policies.scoring.tree import by_length, prefix_tree

MAX_WASTE = 0.1
"""Most padding that a forward pass of the general path makes."""
_SCALED_LOGITS = {"final_logit_softcapping": None, "logits_scaling": 1.0, "logit_scale": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenScores:
    """What a model thinks of given tokens."""

    logprobs: Tensor
    """[B, T] float32; zeros at position 0, on padding and outside `where`."""
    entropies: Tensor | None = None
    """[B, T] float32, nats, of the distribution each token was drawn from; zeros likewise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlatScores:
    """The same of wanted tokens only, sequence after sequence."""

    logprobs: Tensor
    """[M]"""
    entropies: Tensor
    """[M]"""


def sequence_logprobs(
    model: PreTrainedModel,
    sequences: Sequence[Ints],
    wanted: Sequence[Bools],
    *,
    temperature: float = 1.0,
) -> FlatScores:
    """Scores of the wanted tokens of sequences of any length, differentiable.

    `wanted` is as long as its sequence, and False at its first token. What lies behind the last
    wanted token is not computed; where the model is a known one, neither is a beginning that
    another sequence has too. Others are padded, in groups of nearly equal length.
    """
    lengths = [_last(mask) for mask in wanted]
    if not any(lengths):
        nothing = torch.zeros(0, device=model.device)
        return FlatScores(logprobs=nothing, entropies=nothing)
    if not is_known(model):
        return _padded_logprobs(model, sequences, wanted, lengths, temperature)
    tree = prefix_tree([own[:last] for own, last in zip(sequences, lengths, strict=True)])
    before = [path[mask[1 : len(path) + 1]] for path, mask in zip(tree.paths, wanted, strict=True)]
    targets = [own[mask] for own, mask in zip(sequences, wanted, strict=True)]
    ends, row = np.unique(np.concatenate(before), return_inverse=True)
    logprobs, entropies = score(
        decode(model, tree, ends),
        cast(nn.Linear, model.get_output_embeddings()).weight,
        torch.from_numpy(row),
        torch.from_numpy(np.concatenate(targets)),
        temperature=temperature,
    )
    return FlatScores(logprobs=logprobs, entropies=entropies)


def _last(mask: Bools) -> int:
    """Place of the last wanted token; 0 where none is."""
    places = np.flatnonzero(mask)
    return int(places[-1]) if len(places) else 0


def _padded_logprobs(
    model: PreTrainedModel,
    sequences: Sequence[Ints],
    wanted: Sequence[Bools],
    lengths: Sequence[int],
    temperature: float,
) -> FlatScores:
    """The general path: right-padded rows through the model's own forward."""
    logprobs: list[Tensor] = [torch.empty(0)] * len(sequences)
    entropies = list(logprobs)
    for members in by_length(lengths, MAX_WASTE):
        shape = (len(members), lengths[members[0]] + 1)
        token_ids, where = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        for row, k in enumerate(members):
            token_ids[row, : lengths[k] + 1] = sequences[k][: lengths[k] + 1]
            where[row, : lengths[k] + 1] = wanted[k][: lengths[k] + 1]
        mask = torch.from_numpy(where).to(model.device)
        scores = token_logprobs(
            model,
            torch.from_numpy(token_ids).to(model.device),
            where=mask,
            entropies=True,
            temperature=temperature,
        )
        assert scores.entropies is not None
        counts = where.sum(1).tolist()
        for column, found in ((logprobs, scores.logprobs), (entropies, scores.entropies)):
            for k, own in zip(members, found[mask].split(counts), strict=True):
                column[k] = own
    kept = [k for k, length in enumerate(lengths) if length]
    return FlatScores(
        logprobs=torch.cat([logprobs[k] for k in kept]),
        entropies=torch.cat([entropies[k] for k in kept]),
    )


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
    logits = head(states)
    logits = logits if logits.dtype == torch.float64 else logits.float()
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
