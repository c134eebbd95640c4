"""Any function that scores one episode.

    def exact(answer, ground_truth): return answer.strip() == ground_truth

Its parameters say what it wants to see, by these names; `arguments` fill others.

    answer        the final answer, "" where there is none
    text          the episode as one text, as `sees` says
    ground_truth  the row's gold as it was written
    reference     the gold as Outfox reads it
    question      what is asked
    messages      prompt and episode as chat messages
    documents     what came back: {id, title, text, source, date}
    calls         what was called: {name, arguments}
    metadata      all other columns of the row

It returns a number, or a mapping with the number under `score`; None: nothing to say here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from outfox.core.protocols import Family
from outfox.core.types import JSON, Trajectory
from outfox.rewards.adapters import seen
from outfox.rewards.adapters.foreign import (
    Foreign,
    Function,
    Reading,
    check_given,
    one_by_one,
    takes,
)
from outfox.rewards.evidence import question

_GIVEN = (
    "answer",
    "text",
    "ground_truth",
    "reference",
    "question",
    "messages",
    "documents",
    "calls",
    "metadata",
)


def plain(
    function: Function,
    name: str,
    *,
    range: tuple[float, float] = (0.0, 1.0),
    lack: bool = False,
    family: Family = "outcome",
    sees: seen.Sees = "policy",
    arguments: Mapping[str, JSON] | None = None,
) -> Foreign:
    """A function of named things of the episode.

    Args:
        range: Lowest and highest value of the signal.
        lack: The signal is 1 less the scaled value, so that a deduction takes off what is missing.
        family: Of the signal.
        sees: What `text` and `messages` hold: the policy's words, or tool results, too.
        arguments: Further keyword arguments.

    Raises ConfigError where the function needs something else.
    """
    own = dict(arguments or {})
    found = takes(function, name, own, _GIVEN)
    check_given(found, name, _GIVEN)

    def ask(siblings: Sequence[Trajectory], step: int) -> list[object]:
        offered = [_seen(each, sees) for each in siblings]
        return one_by_one(function, [((), found.of(each) | deepcopy(own)) for each in offered])

    return Foreign(
        name,
        ask,
        reading=Reading(key="score", range=range, lack=lack, none_applies=True),
        family=family,
    )


part = plain


def _seen(trajectory: Trajectory, sees: seen.Sees) -> dict[str, Any]:
    task = trajectory.task
    told = "policy" if sees == "policy" else "transcript"
    return {
        "answer": trajectory.answer or "",
        "text": seen.text(trajectory, sees),
        "ground_truth": seen.ground_truth(task),
        "reference": deepcopy(task.reference),
        "question": question(task),
        "messages": [*seen.prompt(task), *seen.messages(trajectory, told)],
        "documents": [
            {"id": d.id, "title": d.title, "text": d.text, "source": d.source, "date": d.date}
            for d in trajectory.documents
        ],
        "calls": [
            {"name": call.name, "arguments": deepcopy(dict(call.arguments))}
            for call in trajectory.calls
        ],
        "metadata": deepcopy(dict(task.metadata)),
    }
