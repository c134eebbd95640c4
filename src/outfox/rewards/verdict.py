"""Which row of the outcome table a trajectory falls into, before any deduction.

answered? ─ abstains? ─ answerable? ─ right? ─ grounded where it must be? ─▶ Case ─▶ value
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from outfox.core.errors import DataError
from outfox.core.protocols import Solvable
from outfox.core.results import Outcome, SignalResult, Value
from outfox.core.types import Task, Trajectory
from outfox.rewards.evidence import answerable, made_relevant_call, supported
from outfox.rewards.matchers import is_abstention
from outfox.rewards.tree import OutcomeNode

Case = Literal[
    "right",
    "unsupported",
    "abstained_after_call",
    "abstained_without_call",
    "wrong",
    "unanswered",
    "rightly_abstained",
    "unanswerable_abstained_without_call",
    "unanswerable_asserted",
]
CASES: tuple[Case, ...] = get_args(Case)
RIGHT_CASES = frozenset[Case]({"right", "rightly_abstained"})
"""Where `if_right` applies."""

OUTCOMES: Mapping[Case, Outcome] = {
    "right": "right",
    "unsupported": "unsupported",
    "abstained_after_call": "abstained",
    "abstained_without_call": "abstained",
    "wrong": "wrong",
    "unanswered": "unanswered",
    "rightly_abstained": "abstained",
    "unanswerable_abstained_without_call": "abstained",
    "unanswerable_asserted": "wrong",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """First pass over one trajectory."""

    solvable: Solvable
    must_ground: bool
    result: SignalResult
    """The outcome signal's."""
    case: Case | None
    """None where it could not be judged."""
    support: bool | None
    """Does returned text support the answer? A right abstention counts as supported."""

    @property
    def right(self) -> bool | None:
        """Right, as siblings see it; grounding aside."""
        if self.case is None:
            return None
        return self.case in ("right", "unsupported", "rightly_abstained")


def judge(
    trajectory: Trajectory, result: SignalResult, *, node: OutcomeNode, must_ground: bool
) -> tuple[Case | None, bool | None]:
    """The case, and whether the answer is supported. `result` is the outcome signal's."""
    support = _support(trajectory)
    abstains = is_abstention(trajectory.answer)
    if not isinstance(result, Value):
        return None, support
    if trajectory.answer is None and trajectory.stop_reason != "done":
        return "unanswered", support
    if not answerable(trajectory.task):
        if not abstains:
            return "unanswerable_asserted", support
        if made_relevant_call(trajectory, for_abstention=True):
            return "rightly_abstained", True
        return "unanswerable_abstained_without_call", support
    if result.value >= node.right_from:
        return ("unsupported" if must_ground and support is False else "right"), support
    if not abstains:
        return "wrong", support
    if made_relevant_call(trajectory, for_abstention=True):
        return "abstained_after_call", support
    return "abstained_without_call", support


def _support(trajectory: Trajectory) -> bool | None:
    try:
        return supported(trajectory)
    except DataError:  # a reference of the user's own shape: nobody can say
        return None


def case_value(case: Case, node: OutcomeNode) -> float:
    """The table's value."""
    return {
        "right": node.right,
        "unsupported": node.wrong if node.unsupported is None else node.unsupported,
        "abstained_after_call": node.abstain.after_call,
        "abstained_without_call": node.abstain.without_call,
        "wrong": node.wrong,
        "unanswered": node.wrong,
        "rightly_abstained": node.unanswerable.abstain_after_call,
        "unanswerable_abstained_without_call": node.unanswerable.abstain_without_call,
        "unanswerable_asserted": node.unanswerable.other,
    }[case]


def task_scale(task: Task, node: OutcomeNode) -> float:
    """By how much the task's own w scales negative values. Raises DataError outside `task_w`."""
    w = task.metadata.get("w")
    if node.task_w is None or w is None:
        return 1.0
    low, high = node.task_w
    if isinstance(w, bool) or not isinstance(w, (int, float)) or not low <= w <= high:
        raise DataError(
            f"task {task.task_id}: metadata `w` must lie in the rubric's task_w "
            f"[{low:g}, {high:g}], not {w!r}"
        )
    return w / -node.wrong
