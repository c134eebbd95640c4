"""Reward functions of TRL (`reward_funcs`).

    reward(prompts, completions, completion_ids, solution, **kwargs) -> [1.0, None, 0.0]

They are called by name: `prompts`, `completions`, `completion_ids`, every column of the row as a
list, `trainer_state` (its `global_step` only), `log_extra`, `log_metric`. Prompts and completions
are text where the row's prompt is text, else chat messages. None means: nothing to say here.
TRL passes a whole batch; here a batch is a group of siblings, all of one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from outfox.core.protocols import Family
from outfox.core.types import JSON, Task, Trajectory
from outfox.rewards.adapters import seen
from outfox.rewards.adapters.foreign import (
    Foreign,
    Function,
    Noted,
    Reading,
    Takes,
    at_once,
    takes,
)

_GIVEN = ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric")
_LEFT_OUT = ("prompt", "completion", "completion_ids")
"""Columns that TRL does not pass on."""


def trl(
    function: Function,
    name: str,
    *,
    range: tuple[float, float] = (0.0, 1.0),
    lack: bool = False,
    family: Family = "outcome",
    sees: seen.Response = "policy",
    arguments: Mapping[str, JSON] | None = None,
) -> Foreign:
    """One of TRL's `reward_funcs`.

    Args:
        range: Lowest and highest value of the signal.
        lack: The signal is 1 less the scaled value, so that a deduction takes off what is missing.
        family: Of the signal.
        sees: Whether completions hold tool messages.
        arguments: Further keyword arguments.

    Raises ConfigError: no function, or an argument that it does not take.
    """
    own = dict(arguments or {})
    found = takes(function, name, own, _GIVEN)
    return Foreign(
        name,
        partial(_ask, function, found, own, sees),
        reading=Reading(key=None, range=range, lack=lack, none_applies=True),
        family=family,
        together=True,
    )


part = trl


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerState:
    """What is known of transformers' TrainerState."""

    global_step: int


def _ask(
    function: Function,
    found: Takes,
    own: Mapping[str, JSON],
    sees: seen.Response,
    siblings: Sequence[Trajectory],
    step: int,
) -> Sequence[object]:
    count, task = len(siblings), siblings[0].task
    notes: list[dict[str, object]] = [{} for _ in siblings]
    offered = {
        **{key: _copies(column, count) for key, column in _columns(task).items()},
        **_said(siblings, sees),
        "trainer_state": TrainerState(global_step=step),
        "log_extra": partial(_log_extra, notes),
        "log_metric": partial(_log_metric, notes),
    }
    missing = sorted(found.needed - offered.keys())
    if missing:
        fault = LookupError(
            f"it takes {', '.join(missing)}, and the row has {', '.join(_columns(task))}: name the "
            "column so, write it under `arguments`, or read the rows with tasks.format=trl"
        )
        return [fault] * count
    returned = at_once(function, ((), found.of(offered) | deepcopy(dict(own))), count)
    return [Noted(returned=one, notes=note) for one, note in zip(returned, notes, strict=True)]


def _columns(task: Task) -> dict[str, JSON]:
    return {key: value for key, value in task.metadata.items() if key not in _LEFT_OUT}


def _copies(value: JSON, count: int) -> list[JSON]:
    """Each sibling's own, so that a function may change it."""
    return [deepcopy(value) for _ in range(count)]


def _said(siblings: Sequence[Trajectory], sees: seen.Response) -> dict[str, Any]:
    task = siblings[0].task
    written = task.metadata.get("prompt", seen.prompt(task))
    says = seen.text if isinstance(written, str) else seen.messages
    said: dict[str, Any] = {
        "prompts": _copies(written, len(siblings)),
        "completions": [says(each, sees) for each in siblings],
    }
    ids = [seen.token_ids(each, sees) for each in siblings]
    return said if None in ids else {**said, "completion_ids": ids}


def _log_extra(notes: list[dict[str, object]], column: str, values: Iterable[object]) -> None:
    for note, value in zip(notes, values, strict=False):
        note[column] = value


def _log_metric(notes: list[dict[str, object]], name: str, value: float) -> None:
    for note in notes:
        note[name] = value
