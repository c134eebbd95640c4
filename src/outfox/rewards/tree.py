"""The rubric tree as it is written in YAML, parsed into frozen dataclasses.

    version: 1
    gates: [forged_observation, ...]          total = lowest reachable total - .5, computed
    outcome: {signal, right, wrong, ...}      one row of the table applies
    if_right: {cap, deduct: {signal: weight}}
    if_not_right: {cap, deduct: {...}}

`load_tree` takes a preset's name, a path or a mapping; `extends: default` in one of them says only
what differs. Unknown keys are refused with a suggestion.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from outfox.core.config import load_yaml, merge, to_data, validate
from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.folders import find
from outfox.core.types import JSON

PRESETS = Path(__file__).parent / "presets"
"""Folder of the shipped rubrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstain:
    """Value of an abstention where the question has an answer."""

    after_call: float = 0.0
    """After a call that brought something relevant."""
    without_call: float = -0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswerable:
    """Values where nothing can be asserted."""

    abstain_after_call: float = 1.0
    abstain_without_call: float = -0.25
    other: float = -0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeNode:
    """The outcome table."""

    signal: str = "typed_match"
    right_from: float = 1.0
    """The outcome signal's least value that counts as right."""
    graded: bool = False
    """True: an episode's value is what the signal measured, and the table below is not read."""
    right: float = 1.0
    wrong: float = -0.5
    """Also the value of an episode that ended without an answer."""
    unsupported: float | None = None
    """Right, must-ground, and nothing retrieved supports it; null: the value of `wrong`."""
    abstain: Abstain = field(default_factory=Abstain)
    unanswerable: Unanswerable = field(default_factory=Unanswerable)
    task_w: tuple[float, float] | None = None
    """Range that `metadata["w"]` of a task may take; its negative values are then scaled to
    -w instead of `wrong`. null: tasks have no say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deductions:
    """What is taken off, by signal, and how much of it counts at most."""

    cap: float = 0.0
    deduct: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A weight's way from 0 at `from_step` to full at `to_step`; then it holds."""

    from_step: int = 0
    to_step: int

    def share(self, step: int) -> float:
        """Share of the full weight at a step, 0 to 1."""
        if step >= self.to_step:
            return 1.0
        if step <= self.from_step:
            return 0.0
        return (step - self.from_step) / (self.to_step - self.from_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit on a signal's batch mean, held by a Lagrangian multiplier (rewards/budgets.py)."""

    limit: float
    lr: float = 0.05
    initial: float = 0.0
    """The multiplier at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A whole rubric."""

    version: Literal[1]
    gates: tuple[str, ...] = ()
    outcome: OutcomeNode = field(default_factory=OutcomeNode)
    if_right: Deductions = field(default_factory=Deductions)
    """Also for a right abstention."""
    if_not_right: Deductions = field(default_factory=Deductions)
    aggregate: Literal["sum_then_normalize", "normalize_then_sum"] = "sum_then_normalize"
    """How credit combines `Score.parts` over a group."""
    schedule: Mapping[str, Ramp] = field(default_factory=lambda: dict[str, Ramp]())
    budgets: Mapping[str, Budget] = field(default_factory=lambda: dict[str, Budget]())
    """Charged under the cap of `if_right`."""
    must_ground: bool = False
    """The domain demands evidence for every question; a task's own metadata may demand it too."""
    settings: Mapping[str, Mapping[str, JSON]] = field(
        default_factory=lambda: dict[str, Mapping[str, JSON]]()
    )
    """Settings by signal, e.g. `needless_calls: {scale: 3}`."""

    @property
    def signals(self) -> tuple[str, ...]:
        """Every signal named, without repeats, gates first."""
        return tuple(
            dict.fromkeys(
                (
                    *self.gates,
                    self.outcome.signal,
                    *self.if_right.deduct,
                    *self.if_not_right.deduct,
                    *self.budgets,
                )
            )
        )

    @property
    def deducted(self) -> frozenset[str]:
        """Signals that are deductions; their range must lie in [0, 1]."""
        return frozenset(self.if_right.deduct) | frozenset(self.if_not_right.deduct)


def load_tree(source: str | Path | Mapping[str, JSON]) -> Tree:
    """A rubric by preset name, path, or as plain data. Raises ConfigError.

    `extends: NAME` at the top merges the rest over another rubric, key by key.
    """
    if isinstance(source, Mapping):
        return parse_tree(_extended(source, "rubric", ()), where="rubric")
    path = _find(str(source))
    return parse_tree(_extended(load_yaml(path), path.name, (path,)), where=path.name)


def tree_of(written: JSON, folders: Sequence[Path]) -> Tree:
    """A recipe's rubric: a preset's name, a path that may lie in one of `folders`, or a tree.

    A tree without `version` and `extends` is an override into the default rubric. Raises
    ConfigError.
    """
    if isinstance(written, dict):
        tree = cast("dict[str, JSON]", written)
        bare = "version" not in tree and "extends" not in tree
        return load_tree({"extends": "default", **tree} if bare else tree)
    name = str(written)
    return load_tree(find(name, folders) if name.endswith((".yaml", ".yml")) else name)


def _extended(data: JSON, where: str, seen: tuple[Path, ...]) -> JSON:
    """The data with the rubrics it extends merged under it."""
    if not isinstance(data, Mapping):
        return data
    own = dict(cast("Mapping[str, JSON]", data))
    if "extends" not in own:
        return own
    base = _find(str(own.pop("extends")))
    if base in seen:
        raise ConfigError(f"{where}: a rubric may not extend itself; remove `extends: {base.stem}`")
    return merge(_extended(load_yaml(base), base.name, (*seen, base)), own)


def parse_tree(data: JSON, *, where: str) -> Tree:
    """Plain data as a tree, keys, types and signs checked. Raises ConfigError."""
    tree = validate(Tree, data, where=where)
    for name, node in (("if_right", tree.if_right), ("if_not_right", tree.if_not_right)):
        _check_not_negative(node.cap, f"{where}.{name}.cap")
        for signal, weight in node.deduct.items():
            _check_not_negative(weight, f"{where}.{name}.deduct.{signal}")
    for signal, budget in tree.budgets.items():
        _check_not_negative(budget.lr, f"{where}.budgets.{signal}.lr")
        _check_not_negative(budget.initial, f"{where}.budgets.{signal}.initial")
    for signal, ramp in tree.schedule.items():
        if signal not in tree.deducted:
            hint = did_you_mean(signal, tree.deducted)
            raise ConfigError(f"{where}.schedule.{signal}: only deductions are scheduled.{hint}")
        if ramp.to_step < ramp.from_step:
            raise ConfigError(f"{where}.schedule.{signal}: to_step must not lie before from_step")
    for signal in tree.settings:
        if signal not in tree.signals:
            hint = did_you_mean(signal, tree.signals)
            raise ConfigError(f"{where}.settings.{signal}: the rubric names no such signal.{hint}")
    _check_outcome(tree.outcome, f"{where}.outcome")
    return tree


def rubric_hash(tree: Tree) -> str:
    """16 hex digits; equal for trees that say the same, however they were written."""
    text = json.dumps(to_data(tree), sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def preset_names() -> tuple[str, ...]:
    """The shipped rubrics."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.yaml")))


def _find(name: str) -> Path:
    if name.endswith((".yaml", ".yml")) or "/" in name or "\\" in name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise ConfigError(f"no rubric file at {path}; check the path")
        return path
    if name not in preset_names():
        raise ConfigError(
            f"no shipped rubric is called '{name}'.{did_you_mean(name, preset_names())}"
        )
    return PRESETS / f"{name}.yaml"


def _check_not_negative(value: float, where: str) -> None:
    if value < 0:
        raise ConfigError(f"{where}: must not be negative, not {value:g}; deductions only take off")


def _check_outcome(outcome: OutcomeNode, where: str) -> None:
    if outcome.right <= outcome.wrong:
        raise ConfigError(
            f"{where}: right ({outcome.right:g}) must be above wrong ({outcome.wrong:g})"
        )
    if outcome.task_w is None:
        return
    if outcome.graded:
        raise ConfigError(f"{where}.task_w: scales the table, which `graded` leaves unread")
    low, high = outcome.task_w
    if not 0 < low <= high:
        raise ConfigError(f"{where}.task_w: must be [low, high] with 0 < low <= high")
    if outcome.wrong >= 0:
        raise ConfigError(f"{where}.task_w: needs a negative `wrong` to scale")
