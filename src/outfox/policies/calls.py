"""Call ids: unique in an episode, so that a result can name the call it answers."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from outfox.core.types import Action, ToolCall


def numbered(action: Action, turn: int) -> Action:
    """The action with calls named `call-<turn>-<position>`, both from 0, and its own arguments."""
    if not action.calls:
        return action
    calls = tuple(
        ToolCall(id=f"call-{turn}-{k}", name=call.name, arguments=copy(call.arguments))
        for k, call in enumerate(action.calls)
    )
    return replace(action, calls=calls)
