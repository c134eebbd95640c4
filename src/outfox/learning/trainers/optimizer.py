# pyright: standard
"""AdamW with a learning-rate schedule, and its state as named tensors (nothing pickled)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from outfox.core.errors import DataError

_MOMENTS = ("exp_avg", "exp_avg_sq")


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


def adamw(
    model: nn.Module, *, learning_rate: float, betas: tuple[float, float], weight_decay: float
) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019); weights of two or more dimensions decay, others do not."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=learning_rate, betas=betas, fused=True
    )


def optimizer_tensors(optimizer: torch.optim.AdamW, model: nn.Module) -> dict[str, Tensor]:
    """Moments and step counts by parameter name."""
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter)
        if state:
            found |= {f"{key}/{name}": state[key].detach() for key in ("step", *_MOMENTS)}
    return found


def restore_optimizer(
    optimizer: torch.optim.AdamW, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Raises DataError when the tensors are not those of this model."""
    expected = {
        f"{key}/{name}" for name, _ in model.named_parameters() for key in ("step", *_MOMENTS)
    }
    if tensors and set(tensors) - expected:
        raise DataError(
            "optimiser state belongs to another model: unknown "
            f"{sorted(set(tensors) - expected)[0]}; load the checkpoint of this model"
        )
    optimizer.state.clear()
    for name, parameter in model.named_parameters():
        if f"step/{name}" not in tensors:
            continue
        moments = {key: tensors[f"{key}/{name}"].to(parameter.device) for key in _MOMENTS}
        if any(moment.shape != parameter.shape for moment in moments.values()):
            raise DataError(
                f"optimiser state of {name} has another shape than the model's "
                f"{tuple(parameter.shape)}; load the checkpoint of this model"
            )
        optimizer.state[parameter] = {
            "step": tensors[f"step/{name}"].to(parameter.device),
            **{key: moment.clone() for key, moment in moments.items()},
        }
