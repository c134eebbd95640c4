# pyright: standard
"""LoRA: low-rank adapters beside frozen linear maps, through peft.

    y = W x + alpha / rank * B A x        A is drawn, B is zero: at first nothing is changed

Hu et al. 2021 (arXiv 2106.09685). The own paths of known models ask `weight_of` for the sum of W
and the product; all others call the layers that peft put into the model. Nothing is dropped out.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from outfox.core.errors import ConfigError, DataError, did_you_mean
from outfox.core.extras import install_hint
from outfox.core.recipe import LoraSettings
from outfox.policies.loading import LoadedModel

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
_NAME = "default"
_KIND = ("peft.tuners.lora.layer", "Linear")
_PREFIX = "base_model.model."
"""What peft puts before the name of a tensor in a folder of its own."""


def with_lora(loaded: LoadedModel, settings: LoraSettings | None, *, seed: int) -> LoadedModel:
    """Frozen, with a trained adapter beside its linear maps; as it is where there are no settings.

    Raises ConfigError: peft is missing, or a target is none of the model's linear maps.
    """
    if settings is None:
        return loaded
    model = loaded.model
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ModuleNotFoundError as error:
        raise ConfigError(f"model.lora needs '{error.name}'; {install_hint('peft')}") from error
    if is_adapted(model):
        raise ConfigError("model.lora adds one adapter; this model has one already: load its base")
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # pyright: ignore[reportArgumentType]: a float does, too
        target_modules=_targets(model, settings.targets),
        task_type="CAUSAL_LM",
        base_model_name_or_path=model.name_or_path or None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(config, model)
    model.eval()
    return loaded


def _targets(model: PreTrainedModel, wanted: tuple[str, ...]) -> list[str]:
    """Last names of the decoder's linear maps, or those of them that are wanted."""
    named = model.get_decoder().named_modules()
    found = sorted({n.rpartition(".")[2] for n, module in named if type(module) is nn.Linear})
    for name in wanted:
        if name not in found:
            raise ConfigError(
                f"model.lora.targets: no linear map of this model is called '{name}'."
                f"{did_you_mean(name, found)} It has {', '.join(found)}."
            )
    if not found:
        raise ConfigError(f"model.lora needs linear maps; {type(model).__name__} has none")
    return list(wanted) or found


def is_lora(module: nn.Module) -> bool:
    """A linear map with an adapter."""
    return (type(module).__module__, type(module).__qualname__) == _KIND


def is_adapted(model: nn.Module) -> bool:
    return any(map(is_lora, model.modules()))


def weight_of(linear: Any) -> Tensor:
    """[out, in] what a linear map without bias multiplies by, its adapter included."""
    if not is_lora(linear):
        return linear.weight
    a, b = linear.lora_A[_NAME].weight, linear.lora_B[_NAME].weight
    return torch.addmm(linear.weight, b, a, alpha=linear.scaling[_NAME])


@contextmanager
def merged(model: PreTrainedModel) -> Iterator[PreTrainedModel]:
    """The model without an adapter but with the same function, for a while."""
    adapted: dict[str, Any] = {n: module for n, module in model.named_modules() if is_lora(module)}
    for name, module in adapted.items():
        plain = nn.Linear(module.in_features, module.out_features, bias=False, device="meta")
        plain.weight = nn.Parameter(weight_of(module).detach(), requires_grad=False)
        plain.bias = module.bias
        model.set_submodule(name, plain)
    try:
        yield model
    finally:
        for name, module in adapted.items():
            model.set_submodule(name, module)


# -- folders --------------------------------------------------------------------------------------
def save_adapter(model: PreTrainedModel, folder: Path) -> None:
    """Write what `peft.PeftModel.from_pretrained(base, folder)` loads."""
    config: dict[str, Any] = model.peft_config[_NAME].to_dict()  # pyright: ignore
    plain = {k: sorted(v) if isinstance(v, set) else v for k, v in config.items()}
    (folder / CONFIG).write_text(json.dumps(plain, indent=2, sort_keys=True) + "\n")
    tensors = {name: weight.detach().contiguous() for name, weight in _adapter(model).items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def load_adapter(model: PreTrainedModel, folder: Path) -> None:
    """Raises DataError where the folder holds another adapter than this model's."""
    own, given = _adapter(model), load_file(folder / WEIGHTS)
    shapes, others = _shapes(own), _shapes(given)
    differ = sorted(name for name in {*own, *given} if shapes.get(name) != others.get(name))
    if differ:
        raise DataError(
            f"{folder} holds another adapter: {differ[0]} has shape {others.get(differ[0])} there "
            f"and {shapes.get(differ[0])} here; resume with the settings of the run"
        )
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(given[name])


def base_sum(model: PreTrainedModel) -> int:
    """A checksum of all weights but the adapter's, which an adapter is worth nothing without."""
    total = 0
    for name, weight in sorted(model.named_parameters()):
        if not _of_adapter(name):
            plain = weight.detach().cpu().contiguous().view(-1).view(torch.uint8)
            total = zlib.crc32(plain.numpy().data, total)
    return total


def _adapter(model: PreTrainedModel) -> dict[str, nn.Parameter]:
    """The adapter's weights by the names that peft's folders have."""
    return {
        _PREFIX + name.replace(f".{_NAME}.", "."): weight
        for name, weight in model.named_parameters()
        if _of_adapter(name)
    }


def _of_adapter(name: str) -> bool:
    return f".lora_A.{_NAME}." in name or f".lora_B.{_NAME}." in name


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
