"""Reward functions of veRL and Search-R1.

    compute_score(data_source, solution_str, ground_truth, extra_info) -> number or {"score": ...}
    compute_score(data_sources, solution_strs, ground_truths, extra_infos) -> a list of these

They are called by name, with what the signature takes: Search-R1's take two of the four. The second
form is veRL's batch manager; here a batch is a group of siblings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from outfox.core.errors import ConfigError
from outfox.core.protocols import Family
from outfox.core.types import JSON, Trajectory
from outfox.rewards.adapters.foreign import (
    Foreign,
    Function,
    Reading,
    at_once,
    check_given,
    one_by_one,
    takes,
)
from outfox.rewards.adapters.seen import Sees, ground_truth, text

_ONE: tuple[str, ...] = ("data_source", "solution_str", "ground_truth", "extra_info")
_MANY: tuple[str, ...] = ("data_sources", "solution_strs", "ground_truths", "extra_infos")


def verl(
    function: Function,
    name: str,
    *,
    range: tuple[float, float] = (0.0, 1.0),
    lack: bool = False,
    family: Family = "outcome",
    sees: Sees = "policy",
    arguments: Mapping[str, JSON] | None = None,
) -> Foreign:
    """A `compute_score` of veRL.

    Args:
        range: Lowest and highest value of the signal.
        lack: The signal is 1 less the scaled value, so that a deduction takes off what is missing.
        family: Of the signal.
        sees: What `solution_str` holds; Search-R1's own functions want `sequence`.
        arguments: veRL's `custom_reward_function.reward_kwargs`.

    Raises ConfigError for a function of another signature.
    """
    own = dict(arguments or {})
    found = takes(function, name, own, (*_ONE, *_MANY))
    in_batches = "solution_strs" in found.names
    if not in_batches and "solution_str" not in found.names and not found.anything:
        taken = ", ".join(sorted(found.names)) or "nothing"
        raise ConfigError(
            f"rubric.settings.{name}.adapter: a function of veRL takes `solution_str` (or, for a "
            f"batch, `solution_strs`); this one takes {taken}: name another adapter, such as plain"
        )
    check_given(found, name, _MANY if in_batches else _ONE)

    def single(siblings: Sequence[Trajectory], step: int) -> list[object]:
        offered = [dict(zip(_ONE, _seen(each, sees), strict=True)) for each in siblings]
        return one_by_one(function, [((), found.of(each) | deepcopy(own)) for each in offered])

    def batch(siblings: Sequence[Trajectory], step: int) -> Sequence[object]:
        columns = zip(*(_seen(each, sees) for each in siblings), strict=True)
        offered = dict(zip(_MANY, map(list, columns), strict=True))
        return at_once(function, ((), found.of(offered) | deepcopy(own)), len(siblings))

    return Foreign(
        name,
        batch if in_batches else single,
        reading=Reading(key="score", range=range, lack=lack),
        family=family,
        together=in_batches,
    )


part = verl


def _seen(trajectory: Trajectory, sees: Sees) -> tuple[Any, ...]:
    """In the order of `_ONE`."""
    metadata = trajectory.task.metadata
    extra: dict[str, Any] = dict(deepcopy(metadata.get("extra_info")) or {})
    extra |= {"num_turns": len(trajectory.turns), "rollout_reward_scores": {}}
    source = metadata.get("data_source", "")
    return source, text(trajectory, sees), ground_truth(trajectory.task), extra
