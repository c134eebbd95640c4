"""A plain function becomes a signal; whatever it returns becomes a typed result.

    @signal(range=(0, 1), family="cost")
    def calls_at_night(trajectory, context, *, from_hour: int = 22):
        return ...

`f(trajectory)` and `f(trajectory, context)` are both lifted. Keyword-only parameters are the
signal's settings, validated from their annotations. A number (float, int, bool, numpy scalar) is a
Value; None, text, dicts, NaN, an exception or a value outside the range is a SignalError that names
signal and row, never a silent 0.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args, get_type_hints

import numpy as np

from outfox.core.config import validate
from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.protocols import Family, Signal, SignalContext
from outfox.core.results import (
    NotApplicable,
    SignalCrash,
    SignalError,
    SignalResult,
    SignalTimeout,
    Value,
)
from outfox.core.types import JSON, Trajectory

Plain: TypeAlias = Callable[..., object]
Scope = Literal["trajectory", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One keyword-only parameter of a signal."""

    annotation: Any
    default: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedSignal:
    """A plain function as a signal; fits the protocol `Signal`."""

    name: str
    range: tuple[float, float]
    family: Family
    scope: Scope
    function: Plain
    takes_context: bool
    settings: Mapping[str, Setting]

    def validated(self, settings: Mapping[str, JSON], *, where: str) -> dict[str, JSON]:
        """Settings checked against the annotations. Raises ConfigError with a suggestion."""
        checked: dict[str, JSON] = {}
        for key, value in settings.items():
            if key not in self.settings:
                hint = did_you_mean(key, self.settings) or f" {self.name} has no settings."
                raise ConfigError(f"{where}.{key}: unknown key.{hint}")
            checked[key] = validate(self.settings[key].annotation, value, where=f"{where}.{key}")
        return checked

    def __call__(self, trajectory: Trajectory, context: SignalContext) -> SignalResult:
        arguments = (trajectory, context) if self.takes_context else (trajectory,)
        try:
            returned = self.function(*arguments, **context.settings)
        except Exception as error:  # user code may raise anything; it must not end the run
            return failed(error, self.name, trajectory)
        return typed(returned, self.range, self.name, trajectory)


def called(signal: Signal, trajectory: Trajectory, context: SignalContext) -> SignalResult:
    """A signal of whatever make, its result checked against its range."""
    if isinstance(signal, LiftedSignal):
        return signal(trajectory, context)  # which checks it
    try:
        returned = signal(trajectory, context)
    except Exception as error:  # a signal may be anyone's code; it must not end the run
        return failed(error, signal.name, trajectory)
    return typed(returned, signal.range, signal.name, trajectory)


def row_name(trajectory: Trajectory) -> str:
    """How a message names a trajectory: task, and which sibling."""
    return f"task {trajectory.task.task_id} (sibling {trajectory.sibling})"


def failed(error: BaseException, name: str, trajectory: Trajectory) -> SignalResult:
    """What the signal `name` raised, as a result."""
    row = f"{name} on {row_name(trajectory)}"
    if isinstance(error, TimeoutError):
        return SignalTimeout(why=f"{row}: {error or 'did not answer in time'}")
    kind = SignalCrash if isinstance(error, MemoryError) else SignalError
    return kind(why=f"{row} raised {type(error).__name__}: {error}")


def typed(
    returned: object, bounds: tuple[float, float], name: str, trajectory: Trajectory
) -> SignalResult:
    """Anything that the signal `name` may return, as a result."""
    match returned:
        case NotApplicable() | SignalError() | SignalTimeout() | SignalCrash():
            return returned
        case Value():
            result, fault = returned, _fault(returned.value, bounds)
            if not all(map(math.isfinite, returned.per_turn or ())):
                fault = f"{returned.per_turn}; values per turn are finite"
        case bool() | int() | float() | np.bool_() | np.integer() | np.floating():
            result = Value(value=float(returned))
            fault = _fault(result.value, bounds)
        case _:
            kind = type(returned).__name__
            result, fault = None, f"{kind} {returned!r:.60}; return a number"
    if result is None or fault:
        return SignalError(why=f"{name} on {row_name(trajectory)} returned {fault}")
    return result


def _fault(value: float, bounds: tuple[float, float]) -> str | None:
    low, high = bounds
    if low <= value <= high and not math.isinf(value):
        return None
    if math.isnan(value):
        return "NaN; return a number or NotApplicable"
    return f"{value:g}, outside its range [{low:g}, {high:g}]"


def signal(
    *,
    range: tuple[float, float],
    family: Family,
    scope: Scope = "trajectory",
    name: str | None = None,
) -> Callable[[Plain], LiftedSignal]:
    """Lift a plain function to a signal called `name` (default: the function's own name).

    Raises ConfigError at definition where range, family or signature cannot be a signal's.
    """

    def lift(function: Plain) -> LiftedSignal:
        called = name or function.__name__
        low, high = range
        if not low < high:
            raise ConfigError(f"signal {called}: range is (low, high) with low < high, not {range}")
        if family not in get_args(Family):
            hint = did_you_mean(family, get_args(Family))
            raise ConfigError(f"signal {called}: family '{family}' is unknown.{hint}")
        if inspect.iscoroutinefunction(function):
            raise ConfigError(f"signal {called}: a signal is a plain function; remove `async`")
        return LiftedSignal(
            name=called,
            range=(float(low), float(high)),
            family=family,
            scope=scope,
            function=function,
            takes_context=_takes_context(function, called),
            settings=_settings(function),
        )

    return lift


def _takes_context(function: Plain, called: str) -> bool:
    positional = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(positional) not in (1, 2):
        raise ConfigError(
            f"signal {called}: takes (trajectory) or (trajectory, context), then keyword-only "
            f"settings; it has {len(positional)} positional parameters"
        )
    return len(positional) == 2


def _settings(function: Plain) -> dict[str, Setting]:
    hints = get_type_hints(function)
    return {
        parameter.name: Setting(
            annotation=hints.get(parameter.name, Any), default=parameter.default
        )
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
