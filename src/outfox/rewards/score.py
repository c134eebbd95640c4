"""A rubric with the user's own signals, and scores of episodes without a run.

score(trajectory, "default")[0].total
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from inspect import isfunction
from pathlib import Path
from typing import Any

from outfox.core.config import Part
from outfox.core.errors import ConfigError
from outfox.core.folders import find
from outfox.core.parts import Parts
from outfox.core.protocols import Signal
from outfox.core.results import Score
from outfox.core.types import JSON, Group, Trajectory
from outfox.rewards.lift import LiftedSignal
from outfox.rewards.rubric import RubricTree
from outfox.rewards.solvability import SolvabilityLabels, WorldSolvability
from outfox.rewards.tree import Tree, load_tree

Source = str | Path | Mapping[str, JSON] | Tree
"""A preset's name, a path, plain data (without a version: laid over the default), or a tree."""

_WORLDS_OWN = WorldSolvability()
RAMPS_DONE = sys.maxsize
"""A step at which every scheduled weight is full."""


def make_rubric(source: Source, parts: Parts, solvability: SolvabilityLabels) -> RubricTree:
    """The rubric; its `path.py:name` and `module:name` signals are loaded. Raises ConfigError."""
    tree = source if isinstance(source, Tree) else load_tree(_found(source, parts.folders))
    own = {
        name: _own(name, tree.settings.get(name, {}), parts) for name in tree.signals if ":" in name
    }
    return RubricTree(tree, solvability=solvability, signals=own)


def _found(source: str | Path | Mapping[str, JSON], folders: Sequence[Path]) -> Any:
    if isinstance(source, Mapping):
        bare = "version" not in source and "extends" not in source
        return {"extends": "default", **source} if bare else source
    is_file = str(source).endswith((".yaml", ".yml"))
    return find(source, folders) if is_file else source


def _own(name: str, settings: Mapping[str, JSON], parts: Parts) -> Signal:
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


def score(
    played: Trajectory | Group,
    rubric: Source = "default",
    *,
    solvability: SolvabilityLabels = _WORLDS_OWN,
    step: int = RAMPS_DONE,
    allow_user_code: bool = True,
) -> tuple[Score, ...]:
    """One score per sibling, in order; a trajectory by itself is a group of one.

    `solvability`: closed-book labels, by default the tasks' own; `step` places scheduled weights
    on their ramps, by default at their ends. Raises ConfigError for a rubric that is none.
    """
    if isinstance(played, Trajectory):
        played = Group(group_id=played.group_id, trajectories=(played,))
    parts = Parts(allow_user_code=allow_user_code)
    return make_rubric(rubric, parts, solvability).score(played, step=step)
