"""Closed-book solvability: can the policy answer this task without any tool?

    K tool-free samples of a policy ─share right─▶ p0 ─▶ solvable | undetermined | unsolvable

`Solvability` is the table of measured p0 used in training; `WorldSolvability` reads the world's own
label, frozen before RL, used in the attack and in headline metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

from outfox.core.errors import DataError
from outfox.core.protocols import Solvable
from outfox.core.types import JSON, Task


class SolvabilityLabels(Protocol):
    """What a rubric asks of either table."""

    def of(self, task: Task) -> Solvable: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Which policy was probed, with how many samples, at which step."""

    policy_hash: str
    k: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What K closed-book samples of one task came to."""

    p0: float | None
    """Share right; None where it could not be measured."""
    provenance: Provenance


class Solvability:
    """task_id -> p0, with its provenance. Stateful; a task never probed is undetermined."""

    def __init__(self, *, solvable_from: float = 6 / 8, unsolvable_to: float = 1 / 8) -> None:
        self._solvable_from = solvable_from
        self._unsolvable_to = unsolvable_to
        self._probes: dict[str, Probe] = {}

    def record(self, p0: Mapping[str, float | None], provenance: Provenance) -> None:
        """Take in a probe; later ones replace earlier ones. Raises DataError outside [0, 1]."""
        for task_id, share in p0.items():
            if share is not None and not 0 <= share <= 1:
                raise DataError(f"p0 is a share from 0 to 1; task {task_id} has {share}")
            self._probes[task_id] = Probe(p0=share, provenance=provenance)

    def probe(self, task_id: str) -> Probe | None:
        return self._probes.get(task_id)

    def p0(self, task_id: str) -> float | None:
        probe = self._probes.get(task_id)
        return probe.p0 if probe else None

    def label(self, task_id: str) -> Solvable:
        p0 = self.p0(task_id)
        if p0 is None:
            return "undetermined"
        if p0 >= self._solvable_from:
            return "solvable"
        return "unsolvable" if p0 <= self._unsolvable_to else "undetermined"

    def of(self, task: Task) -> Solvable:
        return self.label(task.task_id)

    def __len__(self) -> int:
        return len(self._probes)

    def state(self) -> JSON:
        return {task_id: asdict(probe) for task_id, probe in self._probes.items()}

    def restore(self, state: JSON) -> None:
        stored = cast("dict[str, dict[str, Any]]", state)
        self._probes = {
            task_id: Probe(p0=probe["p0"], provenance=Provenance(**probe["provenance"]))
            for task_id, probe in stored.items()
        }


@dataclass(frozen=True, slots=True)
class WorldSolvability:
    """The world's own label, `metadata["solvable"]`; undetermined where it has none."""

    def of(self, task: Task) -> Solvable:
        match task.metadata.get("solvable", "undetermined"):
            case "solvable":
                return "solvable"
            case "unsolvable":
                return "unsolvable"
            case "undetermined":
                return "undetermined"
            case other:
                raise DataError(
                    f"task {task.task_id}: metadata `solvable` is solvable, unsolvable or "
                    f"undetermined, not {other!r}"
                )
