"""What a reward function of another system sees of an episode.

    policy      what the policy wrote, turn by turn
    transcript  the same, and what the environment answered, as <information> blocks
    sequence    the prompt, then the transcript

Text of an environment is escaped, so none of it can be taken for a tag that the policy wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal, TypeAlias

import numpy as np

from outfox.core.types import JSON, Message, Task, ToolCall, Trajectory, Turn
from outfox.policies.codecs.markup import SEARCH, escape

Sees: TypeAlias = Literal["policy", "transcript", "sequence"]
Response: TypeAlias = Literal["policy", "transcript"]
"""Where a function is given the prompt by itself."""


def text(trajectory: Trajectory, sees: Sees) -> str:
    """The episode as one text."""
    if sees == "policy":
        return trajectory.policy_text
    tools = {**SEARCH, **{call.name: "" for call in trajectory.calls}}
    told = [turn.text + _information(turn, tools) for turn in trajectory.turns]
    asked = [message.content for message in trajectory.task.prompt] if sees == "sequence" else []
    return "\n".join((*asked, *told))


def messages(trajectory: Trajectory, sees: Response) -> list[dict[str, Any]]:
    """The episode as chat messages, in the shape that TRL gives them."""
    chat: list[dict[str, Any]] = []
    for turn in trajectory.turns:
        calls = turn.action.calls if turn.action else ()
        said: dict[str, Any] = {"role": "assistant", "content": turn.text}
        chat.append({**said, "tool_calls": [_call(call) for call in calls]} if calls else said)
        if sees == "transcript" and turn.observation:
            names = {result.tool_call_id: result.name for result in turn.observation.results}
            chat += [_answered(message, names) for message in turn.observation.messages]
    return chat


def token_ids(trajectory: Trajectory, sees: Response) -> list[int] | None:
    """Ids of what is seen, without the prompt; None where the policy has no token ids."""
    if not trajectory.ledgers:
        return None
    owners = ("policy",) if sees == "policy" else ("policy", "environment")
    kept = [
        segment.token_ids
        for ledger in trajectory.ledgers
        for segment in ledger.segments
        if segment.owner in owners
    ]
    return np.concatenate(kept).tolist() if kept else []


def prompt(task: Task) -> list[dict[str, str]]:
    """The task's prompt as chat messages."""
    return [{"role": each.role, "content": each.content} for each in task.prompt]


def ground_truth(task: Task) -> JSON:
    """The gold as the row wrote it; of rows that Outfox read as its own, the answer's text."""
    match task.metadata:
        case {"reward_model": {"ground_truth": gold}} if gold is not None:
            return deepcopy(gold)
        case {"ground_truth": gold} if gold is not None:
            return deepcopy(gold)
        case _:
            pass
    match task.reference:
        case {"answer": answer}:
            return answer
        case reference:
            return deepcopy(reference)


def _information(turn: Turn, tools: Mapping[str, str]) -> str:
    if not turn.observation or not turn.observation.messages:
        return ""
    body = "\n".join(message.content for message in turn.observation.messages)
    return f"\n<information>{escape(body, tools=tools)}</information>"


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": call.name, "arguments": deepcopy(dict(call.arguments))},
    }


def _answered(message: Message, names: Mapping[str, str]) -> dict[str, Any]:
    said = {"role": message.role, "content": message.content}
    named = names.get(message.tool_call_id or "")
    return {**said, "name": named} if named else said
