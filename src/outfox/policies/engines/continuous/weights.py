# pyright: standard
"""Copying weights into a model in place."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from outfox.core.errors import ContractError


def copy_weights(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> None:
    """Copy a state dict into `model`; tied weights may be given under one of their names.

    Raises ContractError, before anything is copied, where names or shapes do not fit.
    """
    own = model.state_dict()
    unknown = sorted(set(weights) - set(own))
    given = {own[name].data_ptr() for name in weights if name in own}
    missing = sorted(n for n, t in own.items() if n not in weights and t.data_ptr() not in given)
    shapes = sorted(n for n, t in weights.items() if n in own and t.shape != own[n].shape)
    if unknown or missing or shapes:
        raise ContractError(
            "Weights must be those of the engine's model; unknown: "
            f"{unknown[:3]}, missing: {missing[:3]}, other shape: {shapes[:3]}. Hand over the "
            "state dict of a model with the same config."
        )
    with torch.no_grad():
        for name, tensor in weights.items():
            own[name].copy_(tensor)
