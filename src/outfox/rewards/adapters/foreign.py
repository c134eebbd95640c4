"""A reward function of another system as a signal, asked once per group of siblings.

    group ─call─▶ what the function returned, one per sibling ─read─▶ Value | NotApplicable | ...

A number inside `range`, or a mapping that holds one under the system's key, becomes a Value between
0 and 1; the mapping's other numbers become its details. Everything else is a typed failure that
names function and row, never a silent 0.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsFloat, TypeAlias, cast

from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.protocols import Family, SignalContext
from outfox.core.results import (
    NotApplicable,
    SignalCrash,
    SignalError,
    SignalResult,
    SignalTimeout,
    Value,
)
from outfox.core.types import Trajectory
from outfox.rewards.lift import row_name

Function: TypeAlias = Callable[..., Any]
Request: TypeAlias = tuple[tuple[object, ...], Mapping[str, Any]]
"""Positional and named arguments of one call."""
Call: TypeAlias = Callable[[Sequence[Trajectory], int], Sequence[object]]
"""(siblings, step) -> what the function returned for each; an exception stands where it raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What a function returned for one sibling, and what it noted beside it."""

    returned: object
    notes: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How what a function returned is read."""

    key: str | None
    """Where a mapping holds the reward; None: a mapping is refused."""
    range: tuple[float, float]
    """Least and highest reward; scaled to 0 and 1."""
    lack: bool = False
    """True: one minus it, so that a deduction takes off what is missing."""
    none_applies: bool = False
    """True: None means that the function has nothing to say here."""

    def read(self, returned: object, row: str) -> SignalResult:
        """`row` names function and trajectory in messages."""
        match returned:
            case TimeoutError():
                return SignalTimeout(why=f"{row}: {returned or 'did not answer in time'}")
            case BaseException():
                kind = SignalCrash if isinstance(returned, MemoryError) else SignalError
                return kind(why=f"{row} raised {type(returned).__name__}: {returned}")
            case Noted():
                return with_details(self.read(returned.returned, row), returned.notes)
            case None if self.none_applies:
                return NotApplicable(why=f"{row} returned None")
            case Mapping():
                return self._mapping(cast("Mapping[Any, object]", returned), row)
            case _:
                return self._number(returned, row)

    def _mapping(self, returned: Mapping[Any, object], row: str) -> SignalResult:
        if self.key is None or self.key not in returned:
            found = ", ".join(map(str, returned)) or "nothing"
            wanted = f"under '{self.key}'" if self.key else "and no mapping"
            return SignalError(why=f"{row} returned a mapping of {found}; return a number {wanted}")
        others = {str(key): value for key, value in returned.items() if key != self.key}
        return with_details(self._number(returned[self.key], row), others)

    def _number(self, returned: object, row: str) -> SignalResult:
        if not isinstance(returned, SupportsFloat):
            kind = type(returned).__name__
            return SignalError(why=f"{row} returned {kind} {returned!r:.60}; return a number")
        try:
            value = float(returned)
        except Exception as error:  # an array of several numbers, for one
            return SignalError(why=f"{row} returned {returned!r:.60}, no one number: {error}")
        low, high = self.range
        if not math.isfinite(value) or not low <= value <= high:
            return SignalError(
                why=f"{row} returned {value:g}, outside its range [{low:g}, {high:g}]; "
                "say `range: [LOW, HIGH]` in its settings"
            )
        share = (value - low) / (high - low)
        return Value(value=1.0 - share if self.lack else share)


def with_details(result: SignalResult, notes: Mapping[str, object]) -> SignalResult:
    """A Value with the finite numbers among the notes as its details, and the rest as its why."""
    if not isinstance(result, Value) or not notes:
        return result
    numbers = {key: number for key, note in notes.items() if (number := _finite(note)) is not None}
    told = [f"{key}: {note!r:.60}" for key, note in notes.items() if key not in numbers]
    return replace(result, details=numbers or None, why="; ".join(told))


def _finite(note: object) -> float | None:
    if not isinstance(note, SupportsFloat):
        return None
    try:
        number = float(note)
    except Exception:  # an array of several numbers, for one
        return None
    return number if math.isfinite(number) else None


class Foreign:
    """A reward function of another system; fits the protocol `Signal`.

    `call` asks it about several siblings at once. Those that failed outside the policy are left
    out. `together`: they are one call of the function, which fails for all of them. Raises
    ConfigError for a range that is none.
    """

    scope: Literal["trajectory"] = "trajectory"
    range = (0.0, 1.0)

    def __init__(
        self, name: str, call: Call, *, reading: Reading, family: Family, together: bool = False
    ) -> None:
        low, high = reading.range
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ConfigError(
                f"rubric.settings.{name}.range: is [low, high], finite and low below high, not "
                f"[{low:g}, {high:g}]"
            )
        self.name = name
        self.family: Family = family
        self.together = together
        self._call = call
        self._reading = reading
        self._due: dict[Trajectory, SignalResult] = {}

    def __call__(self, trajectory: Trajectory, context: SignalContext) -> SignalResult:
        if trajectory not in self._due:
            played = [each for each in context.group.trajectories if each.stop_reason != "error"]
            asked = played if trajectory in played else [trajectory]
            returned = self._call(asked, context.step)
            rows = (f"{self.name} on {row_name(each)}" for each in asked)
            self._due = {
                each: self._reading.read(one, row)
                for each, one, row in zip(asked, returned, rows, strict=True)
            }
        return self._due.pop(trajectory)


# -- calling --------------------------------------------------------------------------------------
def one_by_one(function: Function, requests: Sequence[Request]) -> list[object]:
    """One call per request; those of an async function go together."""
    return _awaited([_called(function, request) for request in requests])


def at_once(function: Function, request: Request, count: int) -> Sequence[object]:
    """One call for `count` siblings; what fails, fails for all of them."""
    (returned,) = _awaited([_called(function, request)])
    return [returned] * count if isinstance(returned, Exception) else _listed(returned, count)


def _listed(returned: object, count: int) -> Sequence[object]:
    """One reward per sibling; an array or a tensor is as good as a list."""
    rewards = None
    if not isinstance(returned, (str, Mapping)):
        with suppress(TypeError):  # not iterable, as an array of no dimension
            rewards = list(cast("Iterable[object]", returned))
    if rewards is not None and len(rewards) == count:
        return rewards
    came = f"{returned!r:.60}" if rewards is None else f"{len(rewards)} rewards"
    fault = ValueError(f"it returned {came}; return a list of {count}, one per completion")
    return [fault] * count


def _called(function: Function, request: Request) -> object:
    batch, named = request
    try:
        return function(*batch, **named)
    except Exception as error:  # anyone's code; it must not end the run
        return error


def _awaited(returned: list[object]) -> list[object]:
    waiting = [each for each in returned if inspect.isawaitable(each)]
    if not waiting:
        return returned
    with ThreadPoolExecutor(1) as pool:  # the thread that scores may have a loop running
        done = iter(pool.submit(asyncio.run, _gathered(waiting)).result())
    return [next(done) if inspect.isawaitable(each) else each for each in returned]


async def _gathered(waiting: Sequence[Awaitable[object]]) -> list[object]:
    return list(await asyncio.gather(*waiting, return_exceptions=True))


# -- signatures -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """What a function takes by name."""

    names: frozenset[str]
    needed: frozenset[str]
    anything: bool
    """It takes `**kwargs`."""
    first: str | None
    """Its first parameter, where that is given by place."""

    def of(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        """The part of what is offered that it takes."""
        return {key: value for key, value in offered.items() if self.anything or key in self.names}


_FIRST = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def takes(
    function: Function, name: str, arguments: Mapping[str, Any], given: Collection[str]
) -> Takes:
    """Checked before anything is trained. `arguments`: the user's own; `given`: the adapter's.

    Raises ConfigError: no function, or an argument that it does not take or is given already.
    """
    where = f"rubric.settings.{name}"
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{where}.adapter: a reward is a function, not {function!r:.60}"
        ) from error
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    found = Takes(
        names=frozenset(p.name for p in named),
        needed=frozenset(p.name for p in named if p.default is p.empty) - {*arguments},
        anything=any(p.kind is p.VAR_KEYWORD for p in parameters),
        first=parameters[0].name if parameters and parameters[0].kind in _FIRST else None,
    )
    for key in arguments:
        if key in given:
            raise ConfigError(f"{where}.arguments.{key}: is given by the adapter; remove it")
        if key not in found.names and not found.anything:
            hint = did_you_mean(key, found.names - {*given})
            raise ConfigError(f"{where}.arguments.{key}: the function has no such parameter.{hint}")
    return found


def check_given(found: Takes, name: str, given: Collection[str]) -> None:
    """Raises ConfigError where the function needs what nobody gives."""
    missing = sorted(found.needed - {*given})
    if missing:
        raise ConfigError(
            f"rubric.settings.{name}.arguments: the function needs {', '.join(missing)}, and the "
            f"adapter gives {', '.join(given)}: write it here"
        )
