# pyright: standard
"""AdamW and Muon under one schedule, and their state as named tensors (nothing pickled)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from outfox.core.errors import DataError

# What each keeps between steps, per parameter.
_STATE: dict[type[torch.optim.Optimizer], tuple[str, ...]] = {
    torch.optim.AdamW: ("step", "exp_avg", "exp_avg_sq"),
    torch.optim.Muon: ("momentum_buffer",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Learning rate by optimiser step: linear warm-up, then constant, linear or cosine."""

    peak: float
    warmup: int = 0
    shape: Literal["constant", "linear", "cosine"] = "constant"
    steps: int | None = None
    """Optimiser steps after which `linear` and `cosine` have reached `end`."""
    end: float = 0.0
    """Final rate as a share of the peak."""

    def at(self, step: int) -> float:
        """`step` counts from 0."""
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        if self.shape == "constant" or self.steps is None:
            return self.peak
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        fall = done if self.shape == "linear" else (1 - math.cos(math.pi * done)) / 2
        return self.peak * (1 - (1 - self.end) * fall)


class Optimizer:
    """AdamW for all weights, or for what is no hidden matrix, beside Muon for those that are.

    AdamW: Loshchilov & Hutter 2019; weights of two or more dimensions decay, others do not.
    Muon: Jordan et al. 2024, momentum .95, with its own rate; hidden matrices are all but the
    embeddings and the head, and both rates follow one schedule.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        schedule: Schedule,
        betas: tuple[float, float],
        weight_decay: float,
        muon_rate: float | None = None,
    ) -> None:
        self._model = model
        self._schedule = schedule
        matrices = _hidden_matrices(model) if muon_rate is not None else []
        taken = set(map(id, matrices))
        rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
        groups = [
            {"params": [p for p in rest if p.dim() >= 2], "weight_decay": weight_decay},
            {"params": [p for p in rest if p.dim() < 2], "weight_decay": 0.0},
        ]
        self._parts: list[tuple[torch.optim.Optimizer, float]] = []
        if rest:
            filled = [group for group in groups if group["params"]]
            adamw = torch.optim.AdamW(filled, lr=schedule.peak, betas=betas, fused=True)
            self._parts.append((adamw, 1.0))
        if matrices and muon_rate is not None:
            muon = torch.optim.Muon(matrices, lr=muon_rate, weight_decay=weight_decay)
            self._parts.append((muon, muon_rate / schedule.peak))

    def step(self, number: int) -> float:
        """Move the weights at the rates of step `number`, from 0; returns AdamW's rate."""
        rate = self._schedule.at(number)
        for optimizer, ratio in self._parts:
            for group in optimizer.param_groups:
                group["lr"] = rate * ratio
            optimizer.step()
        self.zero_grad()
        return rate

    def zero_grad(self) -> None:
        for optimizer, _ in self._parts:
            optimizer.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """Moments and step counts by parameter name."""
        return {
            f"{key}/{name}": tensor.detach()
            for name, parameter, optimizer in self._named()
            for key, tensor in optimizer.state.get(parameter, {}).items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Raises DataError when the tensors are not those of this model and these settings."""
        expected = {f"{k}/{name}" for name, _, o in self._named() for k in _STATE[type(o)]}
        if unknown := sorted(set(tensors) - expected):
            raise DataError(
                f"optimiser state belongs to another model or optimiser: unknown {unknown[0]}; "
                "load the checkpoint with the settings of its run"
            )
        for optimizer, _ in self._parts:
            optimizer.state.clear()
        for name, parameter, optimizer in self._named():
            keys = _STATE[type(optimizer)]
            if f"{keys[0]}/{name}" in tensors:
                state = {k: tensors[f"{k}/{name}"].to(parameter.device).clone() for k in keys}
                optimizer.state[parameter] = state
                if any(t.dim() and t.shape != parameter.shape for t in state.values()):
                    raise DataError(
                        f"optimiser state of {name} has another shape than the model's "
                        f"{tuple(parameter.shape)}; load the checkpoint of this model"
                    )

    def _named(self) -> Iterator[tuple[str, nn.Parameter, torch.optim.Optimizer]]:
        owner = {
            id(parameter): optimizer
            for optimizer, _ in self._parts
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        for name, parameter in self._model.named_parameters():
            if id(parameter) in owner:
                yield name, parameter, owner[id(parameter)]


def _hidden_matrices(model: PreTrainedModel) -> list[Tensor]:
    """Weights of all linear layers but the head."""
    ends = {id(model.get_input_embeddings().weight)}
    head = model.get_output_embeddings()
    if head is not None:
        ends.add(id(head.weight))
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    return [m.weight for m in layers if m.weight.requires_grad and id(m.weight) not in ends]
