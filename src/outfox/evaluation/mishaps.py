"""What an episode made of calls that went wrong and of sources that disagree.

Read from calls, tool results and the answer; what the policy says about them does not enter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from outfox.core.errors import DataError
from outfox.core.types import CALL_FAILED, JSON, ToolCall, Trajectory
from outfox.rewards.evidence import call_text, labels
from outfox.rewards.matchers import Gold, match
from outfox.rewards.matchers.gold import AnswerType
from outfox.rewards.matchers.normalise import contains

_PLAIN: tuple[AnswerType, ...] = ("entity", "number", "date")
"""Types whose gold is one value; a poisoned value of any other is compared as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Counts of an episode's calls."""

    failed: int = 0
    """Calls with status `error`, `timeout` or `crashed`."""
    followed_up: int = 0
    """Those after which the policy called again in a later turn."""
    changed: int = 0
    """Those of the latter whose query is not repeated in the next turn with calls."""


NO_RETRIES = Retries()


def retries(trajectory: Trajectory) -> Retries:
    """What followed failed calls. Queries are compared without case and spacing."""
    calling = [
        (t.action.calls, t.observation) for t in trajectory.turns if t.action and t.action.calls
    ]
    failed = followed_up = changed = 0
    for place, (calls, observation) in enumerate(calling):
        results = observation.results if observation else ()
        missed = [c for c, r in zip(calls, results, strict=False) if r.status in CALL_FAILED]
        failed += len(missed)
        if place + 1 < len(calling):
            again = {_asked(call) for call in calling[place + 1][0]}
            followed_up += len(missed)
            changed += sum(_asked(call) not in again for call in missed)
    return Retries(failed=failed, followed_up=followed_up, changed=changed)


def is_poisoned(trajectory: Trajectory) -> bool:
    """Did a passage come back that asserts a wrong value on purpose?"""
    return any(document.poison is not None for document in trajectory.documents)


def followed_poison(trajectory: Trajectory) -> bool:
    """Is a poisoned value the answer, or, on the way to it, what a later call asks about?

    The latter only where the question has several hops, for else it may be a check.
    """
    several = len(labels(trajectory.task, "entities")) > 1
    shown: set[str] = set()
    for turn in trajectory.turns:
        calls = turn.action.calls if turn.action else ()
        asked = [call_text(call.arguments) for call in calls]
        if several and any(contains(text, value) for text in asked for value in shown):
            return True
        results = turn.observation.results if turn.observation else ()
        shown |= {d.poison for r in results for d in r.documents if d.poison is not None}
    answer = trajectory.answer
    return answer is not None and any(_says(trajectory, answer, value) for value in shown)


def saw_all_evidence(trajectory: Trajectory) -> bool:
    """Did every gold passage come back, untampered? Of a conflict: the one that settles it."""
    gold = set(labels(trajectory.task, "gold_evidence"))
    returned = {document.id for document in trajectory.documents if document.poison is None}
    return bool(gold) and gold <= returned


def _says(trajectory: Trajectory, answer: str, value: str) -> bool:
    reference = trajectory.task.reference
    named = (
        cast("Mapping[str, JSON]", reference).get("type") if isinstance(reference, Mapping) else ""
    )
    if named in _PLAIN:
        try:
            return match(Gold(type=named, answer=value), answer).right
        except DataError:
            pass  # Poison on another hop has another type.
    return match(Gold(type="text", answer=value), answer).right


def _asked(call: ToolCall) -> tuple[str, str]:
    return call.name, " ".join(call_text(call.arguments).casefold().split())
