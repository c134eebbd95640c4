"""Signals of the user's own: found by name, and called as their system calls them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isfunction
from typing import Any

from outfox.core.config import Part
from outfox.core.errors import ConfigError
from outfox.core.parts import Parts
from outfox.core.protocols import Signal
from outfox.core.types import JSON
from outfox.rewards.lift import LiftedSignal


def own_signal(name: str, settings: Mapping[str, JSON], parts: Parts) -> Signal:
    """The signal that a rubric names `path.py:attr` or `module:attr`. Raises ConfigError."""
    found: Any = parts.load("signal", name, where="rubric")
    if "adapter" in settings and not isinstance(found, LiftedSignal):
        return _adapted(found, name, dict(settings), parts)
    if isfunction(found):
        raise ConfigError(
            f"rubric: a signal says its range and family; '{name}' is a plain function: write "
            "@outfox.signal(range=(0, 1), family=...) above it, or say how it is called: "
            f"settings: {{'{name}': {{adapter: plain}}}}"
        )
    return found


def _adapted(function: Any, name: str, settings: dict[str, JSON], parts: Parts) -> Signal:
    """A reward function of another system, called as that system calls it."""
    part = Part(type=str(settings.pop("adapter")), settings=settings)
    return parts.make("adapter", part, function, name, where=f"rubric.settings.{name}")
