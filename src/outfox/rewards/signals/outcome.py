"""Outcome: is the answer right?"""

from __future__ import annotations

from outfox.core.results import Value
from outfox.core.types import Trajectory
from outfox.rewards.lift import signal
from outfox.rewards.matchers import match


@signal(range=(0, 1), family="outcome")
def typed_match(trajectory: Trajectory) -> Value:
    """1 where the answer matches the reference by its type, else 0; `why` says the reason.

    Lists too are all or nothing. A wrong reference raises, so the row becomes a SignalError.
    """
    task = trajectory.task
    found = match(task.reference, trajectory.answer, row=task.task_id)
    return Value(value=float(found.right), why=found.fault or found.why)


SIGNALS = (typed_match,)
