"""Reward functions of EasyR1.

    compute_score(reward_inputs: list[dict], **kwargs) -> list of {"overall": ..., "format": ...}
    compute_score(reward_input: dict, **kwargs) -> {"overall": ...}

A reward input holds `response`, `response_length` and `ground_truth`. Which of the two forms it is
the module says with `REWARD_TYPE`, "batch" where it says nothing, as in EasyR1.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

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
from outfox.rewards.adapters.seen import Response, ground_truth, text

_TYPES = ("batch", "sequential")


def easyr1(
    function: Function,
    name: str,
    *,
    range: tuple[float, float] = (0.0, 1.0),
    lack: bool = False,
    family: Family = "outcome",
    sees: Response = "policy",
    reward_type: Literal["batch", "sequential"] | None = None,
    arguments: Mapping[str, JSON] | None = None,
) -> Foreign:
    """A function of EasyR1's reward inputs.

    Args:
        range: Lowest and highest value of the signal.
        lack: The signal is 1 less the scaled value, so that a deduction takes off what is missing.
        family: Of the signal.
        sees: What the response holds: the policy's words, or tool results, too.
        reward_type: Overrides the module's.
        arguments: EasyR1's `reward_function_kwargs`.

    Raises ConfigError for a function of another signature.
    """
    own = dict(arguments or {})
    found = takes(function, name, own, ())
    if found.first is None:
        raise ConfigError(
            f"rubric.settings.{name}.adapter: a function of EasyR1 takes reward inputs; this one "
            "takes nothing: name another adapter, such as plain"
        )
    check_given(found, name, (found.first,))

    def batch(siblings: Sequence[Trajectory], step: int) -> Sequence[object]:
        inputs = [_input(each, sees) for each in siblings]
        return at_once(function, ((inputs,), deepcopy(own)), len(siblings))

    def sequential(siblings: Sequence[Trajectory], step: int) -> list[object]:
        inputs = [_input(each, sees) for each in siblings]
        return one_by_one(function, [((each,), deepcopy(own)) for each in inputs])

    together = (reward_type or _declared(function, name)) == "batch"
    return Foreign(
        name,
        batch if together else sequential,
        reading=Reading(key="overall", range=range, lack=lack),
        family=family,
        together=together,
    )


part = easyr1


def _declared(function: Function, name: str) -> str:
    module = inspect.getmodule(function)
    declared = vars(module).get("REWARD_TYPE", "batch") if module else "batch"
    if declared not in _TYPES:
        raise ConfigError(
            f"rubric.settings.{name}.reward_type: REWARD_TYPE is batch or sequential, not "
            f"{declared!r}"
        )
    return declared


def _input(trajectory: Trajectory, sees: Response) -> dict[str, Any]:
    """Without a length where the policy has no tokens: it is better missed than 0."""
    length = {"response_length": trajectory.policy_tokens} if trajectory.ledgers else {}
    seen = text(trajectory, sees)
    return {"response": seen, **length, "ground_truth": ground_truth(trajectory.task)}
