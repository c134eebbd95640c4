"""What rows say about how they are answered: by heart, or by which calls.

    {"question": ..., "answer": "9 to 17", "calls": [{"opening_hours": "library"}]}
    {"question": ..., "answer": "Paris", "known": true, "calls": [{"search": "capital of France"}]}

Both columns are optional. Only a cold start needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from outfox.core.errors import DataError, did_you_mean
from outfox.core.types import JSON, Task, ToolCall, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row."""

    task: Task
    where: str
    """How a message names it."""
    answer: str
    """As it is written; the word for unknown where nothing can be asserted."""
    answerable: bool
    readable: bool = True
    """False where the gold has a shape that only a reward function of the user's own can read."""
    known: bool
    calls: tuple[ToolCall, ...]
    """What an honest policy calls, in order; empty where the row does not say."""


def read_row(task: Task, where: str, tools: Sequence[ToolSpec], *, unknown: str) -> Shown:
    """Raises DataError where `known` or `calls` are something else."""
    known = task.metadata.get("known", False)
    if not isinstance(known, bool):
        raise DataError(f"{where}: 'known' is true or false; got {known!r}")
    answer = _answer(task.reference)
    return Shown(
        task=task,
        where=where,
        answer=unknown if answer is None else answer,
        answerable=answer is not None,
        readable=_readable(task.reference),
        known=known and answer is not None,
        calls=_calls(task.metadata.get("calls", []), where, {spec.name: spec for spec in tools}),
    )


def question_of(task: Task) -> str:
    """The question in one line: as the row states it, else the last message."""
    stated = task.metadata.get("question")
    asked = stated if isinstance(stated, str) else task.prompt[-1].content
    return " ".join(asked.split())


def gold_of(task: Task) -> list[str]:
    """Ids of the passages that hold the answer, where the row names them."""
    found = task.metadata.get("gold_evidence")
    return [str(name) for name in cast("list[Any]", found)] if isinstance(found, list) else []


def labelled(rows: Sequence[Shown]) -> tuple[Shown, ...]:
    """With the world's labels in the metadata, where a row says which ones are known.

    `solvable`: as the cold start teaches it; `hops` and `min_calls`: as the row's calls say.
    """
    if not any("known" in row.task.metadata for row in rows):
        return tuple(rows)
    return tuple(replace(row, task=_labelled(row)) for row in rows)


def _labelled(row: Shown) -> Task:
    labels: dict[str, JSON] = {
        "solvable": "solvable" if row.known else "unsolvable",
        "hops": len(row.calls),
        "min_calls": 0 if row.known else len(row.calls),
    }
    return replace(row.task, metadata={**labels, **row.task.metadata})


def _answer(reference: JSON) -> str | None:
    """The gold as an answer is written; None where nothing can be asserted."""
    gold: Any = reference
    if isinstance(gold, Mapping):
        gold = cast("Mapping[str, Any]", gold).get("answer")
    if gold is None:
        return None
    if isinstance(gold, bool):
        return "yes" if gold else "no"
    if isinstance(gold, list | tuple):
        return ", ".join(str(item) for item in cast("Sequence[Any]", gold))
    return " ".join(str(gold).split())


def _readable(reference: JSON) -> bool:
    if isinstance(reference, Mapping):
        return "answer" in reference
    return reference is not None


def _calls(written: Any, where: str, tools: Mapping[str, ToolSpec]) -> tuple[ToolCall, ...]:
    rule = f"{where}: 'calls' is a list of {{tool: argument}}"
    if not isinstance(written, list):
        raise DataError(f"{rule}; got {written!r}")
    calls: list[ToolCall] = []
    for number, item in enumerate(cast("list[Any]", written)):
        entry: Mapping[str, Any] = cast("Any", item) if isinstance(item, Mapping) else {}
        if len(entry) != 1:
            raise DataError(f"{rule}; got {item!r}")
        ((name, argument),) = entry.items()
        if name not in tools:
            raise DataError(f"{where}: no tool is called '{name}'.{did_you_mean(name, tools)}")
        arguments = _arguments(argument, tools[name], where)
        calls.append(ToolCall(id=f"call-{number}", name=name, arguments=arguments))
    return tuple(calls)


def _arguments(written: Any, spec: ToolSpec, where: str) -> dict[str, str]:
    """A bare text fills the one parameter that the tool needs."""
    needed: Sequence[str] = spec.parameters.get("required", ())
    if isinstance(written, Mapping):
        named = {str(name): value for name, value in cast("Mapping[Any, Any]", written).items()}
    elif len(needed) == 1:
        named = {needed[0]: written}
    else:
        raise DataError(
            f"{where}: {spec.name} needs {', '.join(needed) or 'no argument'}; write its arguments "
            "by name, {tool: {parameter: text}}"
        )
    if not named or not all(isinstance(value, str) and value.strip() for value in named.values()):
        raise DataError(f"{where}: what is called with is a text; {spec.name} got {written!r}")
    return named
