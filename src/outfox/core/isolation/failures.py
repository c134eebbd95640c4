"""Calls of the user's code that timed out or crashed, kept with the run: on resume they stay so."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from outfox.core.results import ScoredGroup, SignalCrash, SignalTimeout
from outfox.core.types import JSON, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call of a signal or a tool in a run's training."""

    group_id: str
    sibling: int
    part: str
    """The signal, as the rubric names it, or the tool."""
    arguments: str = ""
    """Of the tool, as `told` writes them."""
    number: int = 0
    """How many such calls the episode made before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What became of a call, twice."""

    kind: Literal["timeout", "crashed"]
    why: str
    """As the result says it."""


def told(arguments: JSON) -> str:
    """Arguments as one text, the same for equal ones."""
    return json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)


def failures(groups: Iterable[ScoredGroup]) -> dict[Asked, Failure]:
    """Every call that timed out or crashed."""
    found: dict[Asked, Failure] = {}
    for scored in groups:
        for trajectory, score in zip(scored.group.trajectories, scored.scores, strict=True):
            found |= _of_tools(trajectory)
            for name, result in score.results.items():
                match result:
                    case SignalTimeout(why=why):
                        found[_asked(trajectory, name)] = Failure(kind="timeout", why=why)
                    case SignalCrash(why=why):
                        found[_asked(trajectory, name)] = Failure(kind="crashed", why=why)
                    case _:
                        pass
    return found


def to_row(asked: Asked, failure: Failure) -> dict[str, JSON]:
    return {**asdict(asked), **asdict(failure)}


def from_row(row: Mapping[str, JSON]) -> tuple[Asked, Failure]:
    return (
        Asked(**{key: row[key] for key in Asked.__slots__}),
        Failure(kind=row["kind"], why=row["why"]),
    )


def _of_tools(trajectory: Trajectory) -> dict[Asked, Failure]:
    found: dict[Asked, Failure] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for turn in trajectory.turns:
        calls = turn.action.calls if turn.action else ()
        results = turn.observation.results if turn.observation else ()
        for call, result in zip(calls, results, strict=False):
            question = (call.name, told(call.arguments))
            if result.status in ("timeout", "crashed"):
                asked = _asked(trajectory, *question, number=seen[question])
                found[asked] = Failure(kind=result.status, why=result.content)
            seen[question] += 1
    return found


def _asked(trajectory: Trajectory, part: str, arguments: str = "", number: int = 0) -> Asked:
    return Asked(
        group_id=trajectory.group_id,
        sibling=trajectory.sibling,
        part=part,
        arguments=arguments,
        number=number,
    )
