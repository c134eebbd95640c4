# pyright: standard
"""Log-probabilities of given tokens: the one place with the shift by one.

    token_ids  t0 t1 t2 t3     the hidden state at position i predicts token i + 1
    logprobs    0 l1 l2 l3     logprobs[i] = log p(t_i | t_0 .. t_{i-1}), so position 0 is 0

Rows are padded on the right. Attention is causal, so padding never reaches a real token, and no
mask is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import cast
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from outfox.core.errors import ConfigError
from outfox.core.ledger import Bools, Ints
from outfox.policies.loading import without_notices
from outfox.policies.scoring.decoder import again, decode, is_known
from outfox.policies.scoring.head import score
from outfox.policies.scoring.tree import by_length, prefix_tree

MAX_WASTE = 0.1
"""Most padding that a forward pass of the general path makes."""
_BENDING = ("final_logit_softcapping", "logits_scaling", "logit_scale", "lm_head_multiplier")
"""Settings by which models are known to change their logits, for the error."""
_SEEN: WeakSet[nn.Module] = WeakSet()
"""Models whose logits were found to be the plain output of their head."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenScores:
    """What a model thinks of given tokens."""

    logprobs: Tensor
    """[B, T] float32; zeros at position 0, on padding and outside `where`."""
    entropies: Tensor
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
    gradient_checkpointing: bool = False,
) -> FlatScores:
    """Scores of the wanted tokens of sequences of any length, differentiable.

    `wanted` is as long as its sequence, and False at its first token. What lies behind the last
    wanted token is not computed; where the model is a known one, neither is a beginning that
    another sequence has too. Others are padded, in groups of nearly equal length.
    `gradient_checkpointing`: layers keep what goes into them only, and are computed again in the
    backward pass.
    """
    lengths = [_last(mask) for mask in wanted]
    if not any(lengths):
        nothing = torch.zeros(0, device=model.device)
        return FlatScores(logprobs=nothing, entropies=nothing)
    if not is_known(model):
        with _checkpointed(model) if gradient_checkpointing else nullcontext():
            return _padded_logprobs(model, sequences, wanted, lengths, temperature)
    tree = prefix_tree([own[:last] for own, last in zip(sequences, lengths, strict=True)])
    before = [path[mask[1 : len(path) + 1]] for path, mask in zip(tree.paths, wanted, strict=True)]
    targets = [own[mask] for own, mask in zip(sequences, wanted, strict=True)]
    ends, row = np.unique(np.concatenate(before), return_inverse=True)
    logprobs, entropies = score(
        decode(model, tree, ends, gradient_checkpointing=gradient_checkpointing),
        cast(nn.Linear, model.get_output_embeddings()),
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
            temperature=temperature,
        )
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
    temperature: float = 1.0,
) -> TokenScores:
    """Log-probabilities of `token_ids` [B, T] under `model` at `temperature`, differentiable.

    lengths: [B] real tokens per row; default all T.
    where: [B, T] bool, the tokens that are wanted (a loss mask); the rest costs no logits.
    Raises ConfigError for a model whose logits are not the plain output of a linear head.
    """
    head = plain_head(model)
    hidden = model.get_decoder()(input_ids=token_ids, use_cache=False).last_hidden_state
    wanted = _wanted(token_ids, lengths, where)
    states, targets = hidden[:, :-1][wanted], token_ids[:, 1:][wanted]
    rows = torch.arange(len(states), device=states.device)
    logprobs, entropies = score(states, head, rows, targets, temperature=temperature)
    return TokenScores(logprobs=_spread(logprobs, wanted), entropies=_spread(entropies, wanted))


def _wanted(token_ids: Tensor, lengths: Tensor | None, where: Tensor | None) -> Tensor:
    """[B, T - 1] True where the next token is real and wanted."""
    rows, width = token_ids.shape
    keep = torch.ones(rows, width - 1, dtype=torch.bool, device=token_ids.device)
    if lengths is not None:
        keep &= torch.arange(1, width, device=token_ids.device) < lengths[:, None]
    if where is not None:
        keep &= where[:, 1:]
    return keep


def _spread(values: Tensor, wanted: Tensor) -> Tensor:
    """[N] values of wanted tokens as [B, T], shifted to the tokens that they belong to."""
    full = values.new_zeros(wanted.shape).masked_scatter(wanted, values)
    return functional.pad(full, (1, 0))


def checkpointed_layers(model: PreTrainedModel) -> Sequence[nn.Module]:
    """What gradient_checkpointing computes again. Raises ConfigError where there is nothing."""
    layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
    if not layers:
        raise ConfigError(
            f"gradient_checkpointing needs layers that transformers knows how to compute again; "
            f"{type(model).__name__} has none: leave it out"
        )
    return layers


@contextmanager
def _checkpointed(model: PreTrainedModel) -> Iterator[None]:
    """Layers are computed again in the backward pass; transformers' own switch for it would have
    the model in training mode, where layers drop out.
    """
    layers = checkpointed_layers(model)
    for layer in layers:
        layer.forward = partial(again, layer.forward)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


# -- the head -------------------------------------------------------------------------------------
def plain_head(model: PreTrainedModel) -> nn.Linear:
    """The head of a model whose logits are its plain output. Raises ConfigError."""
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        raise ConfigError(
            f"Log-probabilities are computed from a plain linear head; that of "
            f"{type(model).__name__} is a {type(head).__name__}. Use another model."
        )
    if model not in _SEEN:
        _check_logits(model, head)
        _SEEN.add(model)
    return head


def _check_logits(model: PreTrainedModel, head: nn.Linear) -> None:
    """Run a few tokens, with a head that shouts: whatever is done to its output, shows.

    Between the decoder and the logits there may be nothing else (a scale, a soft cap).
    """
    seen: list[Tensor] = []

    def shout(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor:
        seen.extend((given[0], out + torch.linspace(-1000, 1000, out.shape[-1]).to(out)))
        return seen[-1]

    hooks = (
        model.get_decoder().register_forward_hook(
            lambda module, given, out: seen.append(out.last_hidden_state)
        ),
        head.register_forward_hook(shout),
    )
    try:
        with torch.no_grad(), without_notices():
            ids = torch.arange(min(8, len(head.weight)), device=model.device)[None]
            logits = model(input_ids=ids, use_cache=False).logits
    finally:
        for hook in hooks:
            hook.remove()
    states, given, out = seen
    if not (torch.equal(states, given) and torch.equal(out.to(logits.dtype), logits)):
        bent = [name for name in _BENDING if model.config.to_dict().get(name) not in (None, 1.0)]
        raise ConfigError(
            "Log-probabilities are computed from the plain output of the head; "
            f"{type(model).__name__} does more{f' ({bent[0]})' if bent else ''}. Use a model "
            "without it."
        )
