"""Cost: what did it take? Policy tokens and the policy's own failures only, never tool text."""

from __future__ import annotations

import math

from outfox.core.results import NotApplicable, Value
from outfox.core.types import ToolStatus, Trajectory
from outfox.rewards.lift import signal
from outfox.rewards.matchers.normalise import is_cjk


@signal(range=(0, 1), family="cost")
def failed_calls(
    trajectory: Trajectory, *, statuses: tuple[ToolStatus, ...] = ("refused",)
) -> Value | NotApplicable:
    """Share of attempts that failed by the policy's own doing.

    Attempts are calls and turns that could not be read; failed are the latter and calls whose
    result has one of `statuses`. A dead service (`error`, `timeout`) is not the policy's doing.
    """
    unread = sum(turn.error is not None for turn in trajectory.turns)
    attempts = len(trajectory.calls) + unread
    if not attempts:
        return NotApplicable(why="no call")
    failed = unread + sum(result.status in statuses for result in trajectory.results)
    return Value(value=min(1.0, failed / attempts), why=f"{failed} of {attempts} attempts failed")


@signal(range=(0, 1), family="cost")
def excess_length(trajectory: Trajectory, *, limit: int = 512) -> float:
    """Policy tokens beyond `limit`, as a share of it, at most 1."""
    return min(1.0, max(0, policy_length(trajectory) - limit) / limit)


@signal(range=(0, math.inf), family="cost")
def calls(trajectory: Trajectory) -> int:
    """Number of well-formed calls."""
    return len(trajectory.calls)


@signal(range=(0, math.inf), family="cost")
def tokens(trajectory: Trajectory) -> int:
    """Number of policy tokens."""
    return policy_length(trajectory)


def policy_length(trajectory: Trajectory) -> int:
    """Policy-owned tokens; for a policy without token ids, its words and CJK characters."""
    if trajectory.ledgers:
        return trajectory.policy_tokens
    return len("".join(f" {c} " if is_cjk(c) else c for c in trajectory.policy_text).split())


SIGNALS = (failed_calls, excess_length, calls, tokens)
