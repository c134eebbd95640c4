"""What an episode did: siblings that did the same are scored once."""

from __future__ import annotations

from collections.abc import Hashable

from outfox.core.types import Action, Observation, Trajectory


def deeds(trajectory: Trajectory) -> Hashable:
    """What an episode did and what came back, without its words and tokens."""
    return trajectory.stop_reason, tuple(
        (turn.error, turn.flags, _acted(turn.action), _came_back(turn.observation))
        for turn in trajectory.turns
    )


def _acted(action: Action | None) -> Hashable:
    if action is None:
        return None
    calls = [(call.id, call.name, str(call.arguments)) for call in action.calls]
    return action.answer, action.citations, tuple(calls)


def _came_back(observation: Observation | None) -> Hashable:
    """But for how long it took. A tool of the user's own may give its documents as a list."""
    return observation and tuple(
        (result.tool_call_id, result.name, result.content, tuple(result.documents), result.status)
        for result in observation.results
    )
