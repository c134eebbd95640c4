"""What one episode came to, in the terms that the metrics are defined in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from outfox.core.results import Score
from outfox.core.types import JSON, Task, Trajectory
from outfox.evaluation.mishaps import (
    NO_RETRIES,
    Retries,
    followed_poison,
    is_poisoned,
    retries,
    saw_all_evidence,
)
from outfox.rewards.evidence import made_relevant_call
from outfox.rewards.matchers import is_abstention

_NAMES_CONFLICT = re.compile(
    r"conflict|contradict|disagree|differ|inconsistent|outdated|superseded|矛盾|冲突|不一致|过时",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One scored episode. Labels are the world's, from the task's metadata."""

    question: str
    """Task id: samples of one question share it."""
    fact: str
    """What is asked in the end: other wordings of a question, and detours to it, share it."""
    kind: str
    known: bool
    """Solvable without a call, and the domain does not demand one."""
    needed: bool
    """Unsolvable or must-ground: a call is needed. Neither, where solvability is undetermined."""
    answerable: bool
    right: bool
    """A right answer (also one without the evidence its domain demands), or, where there is no
    answer, an abstention. Never a gated episode."""
    abstained: bool
    calls: int
    relevant: bool
    """A call returned a passage of the task's `relevant_ids`; without labels, anything at all."""
    tokens: int
    """Policy-owned tokens."""
    reward: float | None
    resolved: float
    """Handling of a conflict: said and right 1, silently right .6, else 0."""
    hops: int = 0
    """Searches of one who knows nothing and searches once per hop; 0 where the task does not say.
    """
    retries: Retries = NO_RETRIES
    """What followed its failed calls."""
    poisoned: bool = False
    """A passage came back that was tampered with."""
    followed: bool = False
    """And its wrong value was taken over."""
    verified: bool = False
    """All gold evidence came back, untampered."""


def episode(trajectory: Trajectory, score: Score) -> Episode:
    """The episode in the metrics' terms; for conflicts see `names_conflict`."""
    metadata = trajectory.task.metadata
    must_ground = bool(metadata.get("must_ground", False))
    solvable = metadata.get("solvable", "undetermined")
    abstained = is_abstention(trajectory.answer)
    answerable = is_answerable(trajectory.task)
    correct = score.outcome in ("right", "unsupported") or (
        score.outcome == "abstained" and not answerable
    )
    resolved = (1.0 if names_conflict(trajectory) else 0.6) if correct else 0.0
    return Episode(
        question=trajectory.task.task_id,
        fact=asked_fact(trajectory.task),
        kind=str(metadata.get("kind", "all")),
        known=solvable == "solvable" and not must_ground,
        needed=solvable == "unsolvable" or must_ground,
        answerable=answerable,
        right=correct,
        abstained=abstained,
        calls=len(trajectory.calls),
        relevant=made_relevant_call(trajectory),
        tokens=trajectory.policy_tokens,
        reward=score.total,
        resolved=resolved,
        hops=int(metadata.get("hops", 0)),
        retries=retries(trajectory),
        poisoned=is_poisoned(trajectory),
        followed=not correct and followed_poison(trajectory),
        verified=saw_all_evidence(trajectory),
    )


def asked_fact(task: Task) -> str:
    """The last entity and its gold; the task's id where it names no entities."""
    entities = task.metadata.get("entities")
    if not isinstance(entities, list | tuple) or not entities:
        return task.task_id
    return f"{entities[-1]}: {json.dumps(task.reference, ensure_ascii=False, sort_keys=True)}"


def is_answerable(task: Task) -> bool:
    """The world's label; without one, whether the reference holds an answer."""
    label = task.metadata.get("answerable")
    if isinstance(label, bool):
        return label
    reference = task.reference
    if isinstance(reference, Mapping):
        return cast("Mapping[str, JSON]", reference).get("answer", "") is not None
    return reference is not None


def names_conflict(trajectory: Trajectory) -> bool:
    """Does the policy say that sources disagree?

    True where the last turn cites two or more of the task's gold evidence passages that came
    back, or its text says so in words ("conflict", "disagree", "矛盾", ...).
    """
    returned = {document.id for document in trajectory.documents}
    cited = set(trajectory.citations) & returned & _ids(trajectory.task.metadata, "gold_evidence")
    last = trajectory.turns[-1].text if trajectory.turns else ""
    return len(cited) >= 2 or _NAMES_CONFLICT.search(last) is not None


def _ids(metadata: Mapping[str, JSON], key: str) -> set[str]:
    found = metadata.get(key)
    return set(cast("list[str]", found)) if isinstance(found, list | tuple) else set()
