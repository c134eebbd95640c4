"""A rubric with the user's own signals, and scores of episodes without a run.

score(trajectory, "default")[0].total
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from outfox.core.isolation.isolation import Isolation
from outfox.core.isolation.own_code import own_code
from outfox.core.parts import Parts
from outfox.core.protocols import Rubric, Signal
from outfox.core.results import Score, ScoredGroup
from outfox.core.types import JSON, Group, Trajectory
from outfox.rewards.isolated import IsolatedSignal
from outfox.rewards.own import own_signal
from outfox.rewards.rubric import RubricTree
from outfox.rewards.solvability import SolvabilityLabels, WorldSolvability
from outfox.rewards.tree import Tree, tree_of

Source = str | Path | Mapping[str, JSON] | Tree
"""A preset's name, a path, plain data (without a version: laid over the default), or a tree."""

_WORLDS_OWN = WorldSolvability()
_TOGETHER = 16
"""Groups that workers are asked about at once; what is asked is held in memory."""
RAMPS_DONE = sys.maxsize
"""A step at which every scheduled weight is full."""


def make_rubric(
    source: Source,
    parts: Parts,
    solvability: SolvabilityLabels,
    isolation: Isolation | None = None,
) -> RubricTree:
    """The rubric; its `path.py:name` and `module:name` signals are loaded. Raises ConfigError.

    With `isolation` these signals run in worker processes.
    """
    tree = source if isinstance(source, Tree) else tree_of(source, parts.folders)
    own: dict[str, Signal] = {}
    for name in (name for name in tree.signals if ":" in name):
        settings = tree.settings.get(name, {})
        own[name] = own_signal(name, settings, parts)
        if isolation is not None:
            own[name] = IsolatedSignal(own[name], name, settings, own_code(parts), isolation)
    return RubricTree(tree, solvability=solvability, signals=own)


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


def score_groups(rubric: Rubric, groups: Sequence[Group], *, step: int) -> list[ScoredGroup]:
    """All groups scored, in order; a rubric tree asks worker processes about several at once."""
    scored: list[ScoredGroup] = []
    for start in range(0, len(groups), _TOGETHER):
        some = groups[start : start + _TOGETHER]
        if isinstance(rubric, RubricTree):
            rubric.begin(some, step=step)
        scored += [ScoredGroup(group=each, scores=rubric.score(each, step=step)) for each in some]
    return scored
