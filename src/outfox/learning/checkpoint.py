"""A checkpoint: an ordinary Hugging Face folder that training can go on from.

    step-000042/
      config.json, model.safetensors, tokenizer files      loads with `from_pretrained`
      optimizer.safetensors, trainer.json                  written by the trainer
      state.json                                           cursor, part states, sizes of all files

Everything random is derived from counters, so there is no generator state. Nothing is pickled. The
folder is written under another name and renamed: it is there whole, or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from outfox.core.errors import ContractError, DataError
from outfox.core.protocols import Stateful, Trainer
from outfox.core.types import JSON

FORMAT = 1
STATE = "state.json"


class SavesPretrained(Protocol):
    """A tokenizer or a model, as far as this file knows it."""

    def save_pretrained(self, save_directory: str) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """What `state.json` holds besides file sizes."""

    cursor: Mapping[str, JSON]
    """Where the run stands: stage, next step."""
    parts: Mapping[str, JSON]
    """State of every part with memory, by name."""


def save_checkpoint(
    folder: Path,
    *,
    trainer: Trainer,
    tokenizer: SavesPretrained | None,
    cursor: Mapping[str, JSON],
    parts: Mapping[str, Stateful],
) -> None:
    """Write everything that resuming needs; an older folder of that name is replaced.

    Raises ContractError, naming the part, for a state that is not JSON.
    """
    state: dict[str, JSON] = {
        "format": FORMAT,
        "cursor": dict(cursor),
        "parts": {name: _plain(name, part.state()) for name, part in sorted(parts.items())},
    }
    temporary = _emptied(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(str(temporary))
    trainer.save(temporary)
    state["files"] = {file.name: file.stat().st_size for file in sorted(temporary.iterdir())}
    (temporary / STATE).write_text(json.dumps(state, ensure_ascii=False, indent=2) + "\n")
    _replace(temporary, folder)


def export_model(folder: Path, model: SavesPretrained, tokenizer: SavesPretrained) -> None:
    """Write a model folder that `from_pretrained` loads; an older one of that name is replaced."""
    temporary = _emptied(folder)
    for each in (model, tokenizer):
        each.save_pretrained(str(temporary))
    _replace(temporary, folder)


def _emptied(folder: Path) -> Path:
    """An empty folder beside it, to be renamed when it is whole."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    return temporary


def load_checkpoint(
    folder: Path, *, trainer: Trainer, parts: Mapping[str, Stateful]
) -> CheckpointState:
    """Restore trainer and parts; returns the state with its cursor.

    Raises DataError for a folder that is no whole checkpoint, or one of other parts.
    """
    state = read_checkpoint(folder)
    missing, extra = set(parts) - set(state.parts), set(state.parts) - set(parts)
    if missing or extra:
        raise DataError(
            f"{folder} holds the states of {sorted(state.parts)}, this run has parts with memory "
            f"{sorted(parts)}: resume with the settings of the run"
        )
    trainer.load(folder)
    for name, part in parts.items():
        part.restore(state.parts[name])
    return state


def read_checkpoint(folder: Path) -> CheckpointState:
    """Read and validate `state.json` and the sizes of the files beside it. Raises DataError."""
    file = folder / STATE
    if not file.is_file():
        raise DataError(f"a checkpoint folder holds {STATE}; {folder} does not")
    try:
        state = cast("dict[str, Any]", json.loads(file.read_text()))
        found = CheckpointState(cursor=state["cursor"], parts=state["parts"])
        version, files = state["format"], cast("dict[str, int]", state["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} is damaged ({error!r}); use an earlier checkpoint") from error
    if version != FORMAT:
        raise DataError(
            f"checkpoint format {FORMAT} is read here; {folder} has {version}: "
            "use the version of Outfox that wrote it"
        )
    for name, size in files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            raise DataError(
                f"{path} should have {size} bytes; it is damaged or missing: "
                "use an earlier checkpoint"
            )
    return found


def _plain(name: str, state: JSON) -> JSON:
    """The state as it will be read back."""
    try:
        return json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ContractError(
            f"the state of a part is JSON; that of '{name}' is not ({error}): "
            "return numbers, strings, lists and string-keyed dicts"
        ) from error


def _flush(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace(new: Path, folder: Path) -> None:
    """Rename into place; an old folder is set aside first, as folders cannot be overwritten."""
    for file in new.iterdir():
        _flush(file)
    aside = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    if folder.exists():
        folder.rename(aside)
    new.rename(folder)
    _flush(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)
