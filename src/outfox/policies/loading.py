# pyright: standard
"""Loading a language model and its tokenizer: from a local folder, or by name from the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from outfox.core.errors import ConfigError

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadedModel:
    """A causal language model in evaluation mode, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def load(
    source: str | Path, *, dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> LoadedModel:
    """Load a model folder, or a hub name such as `owner/name`.

    Raises ConfigError before any weight is read where `source` is a folder that holds no model,
    and where the hub does not know the name.
    """
    name = str(check_source(source))
    try:
        with without_bars():
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"No causal language model could be loaded from '{name}': {_first_line(error)} Name a "
            "Hugging Face model folder, or a model that the hub offers to you."
        ) from error
    nn.Module.to(model, torch.device(device))
    return LoadedModel(model=model.eval(), tokenizer=tokenizer)


@contextmanager
def without_bars() -> Iterator[None]:
    """Without the bars of transformers over weights; a download from the hub keeps its own."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@contextmanager
def without_notices() -> Iterator[None]:
    """Without what transformers says of kernels that could be installed."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def check_source(source: str | Path) -> str | Path:
    """`source`, or ConfigError where it is a local path that is no model folder."""
    text = str(source)
    folder = Path(text).expanduser()
    if not folder.exists():
        if isinstance(source, Path) or text.startswith((".", "/", "~")) or text.count("/") > 1:
            raise ConfigError(f"A model path must exist; '{text}' does not. Check the path.")
        return text
    if not folder.is_dir():
        raise ConfigError(f"A model is a folder; '{text}' is a file. Name the folder it lies in.")
    present = {item.name for item in folder.iterdir()}
    if "adapter_config.json" in present and "config.json" not in present:
        raise ConfigError(
            f"A model folder holds a whole model; '{text}' holds an adapter. Name the folder "
            "`model` of the run that trained it, where both are merged."
        )
    for what, names in (
        ("config", ("config.json",)),
        ("weights", _WEIGHTS),
        ("tokenizer", _TOKENIZER),
    ):
        if not present.intersection(names):
            remedy = "Name a folder written by save_pretrained, or a run's checkpoint."
            if any(name.endswith(".gguf") for name in present):
                remedy = "It has a GGUF file: convert that first (scripts/gguf_to_hf.py)."
            raise ConfigError(
                f"A model folder holds its {what} ({' or '.join(names)}); '{text}' does not. "
                f"{remedy}"
            )
    return folder


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."
