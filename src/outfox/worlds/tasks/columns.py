"""One row of a file, its columns read with care: what is wrong names row, column and remedy."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from outfox.core.errors import DataError
from outfox.core.text import MAX_DEPTH, is_unicode
from outfox.core.types import JSON, Message, Task
from outfox.rewards.matchers import reference_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row, its values as JSON: arrays as lists, structs as mappings, dates as text."""

    fields: Mapping[str, JSON]
    where: str
    """How a message names it: `train row 7`."""
    name: str
    """A task's id where the row brings none of its own: `train-7`."""

    def column(self, *names: str, remedy: str = "") -> JSON:
        """The first of these columns that is there. Raises DataError where none is."""
        for name in names:
            if name in self.fields:
                return self.fields[name]
        wanted = " or ".join(f"'{name}'" for name in names)
        raise DataError(
            f"{self.where}: the column {wanted} is missing; found: "
            f"{', '.join(self.fields) or 'none'}{remedy and f': {remedy}'}"
        )

    def rest(self, *used: str) -> dict[str, JSON]:
        """The other columns."""
        return {key: value for key, value in self.fields.items() if key not in used}


RowFormat: TypeAlias = Callable[[Row], Task]
"""Reads a row as some system writes it. Raises DataError."""


def read_row(values: Any, *, where: str, name: str) -> Row:
    """A row as a file gives it. Raises DataError: not an object, or a column that is no JSON."""
    if not isinstance(values, Mapping):
        raise DataError(f"{where}: every row is a JSON object; found {type(values).__name__}")
    fields = cast("Mapping[Any, Any]", values).items()
    return Row(
        fields={
            str(_plain(str(key), f"{where}: the name of a column")): _plain(
                value, f"{where}: the column '{key}'"
            )
            for key, value in fields
        },
        where=where,
        name=name,
    )


def read_messages(prompt: JSON, row: Row, column: str) -> tuple[Message, ...]:
    """A prompt as chat messages; a text is one of the user's."""
    if isinstance(prompt, str) and prompt.strip():
        return (Message(role="user", content=prompt),)
    if not isinstance(prompt, list) or not prompt:
        raise DataError(
            f"{row.where}: '{column}' is a text or a list of chat messages; got {prompt!r:.80}"
        )
    messages: list[Message] = []
    for item in cast("list[Any]", prompt):
        entry = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        role, content = entry.get("role"), entry.get("content")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(content, str):
            raise DataError(
                f"{row.where}: a chat message has 'role' and text 'content'; got {item!r:.80}"
            )
        messages.append(Message(role=role, content=content))
    return tuple(messages)


def check_gold(gold: JSON, row: Row) -> JSON:
    """A gold that a matcher can use: a text, or `{"type", "answer", ...}`.

    A number becomes `{"type": "number"}`, a boolean `{"type": "boolean"}`, a list of texts an
    answer with aliases. Raises DataError for None (unanswerable is
    `{"type": "text", "answer": null}`), NaN, an empty text or list, nested lists, and an answer
    that is none of its type.
    """
    match gold:
        case str() if gold.strip():
            return gold
        case bool():
            return {"type": "boolean", "answer": gold}
        case int() | float() if math.isfinite(gold):
            return {"type": "number", "answer": str(gold)}
        case [str(), *_] if all(isinstance(item, str) and item.strip() for item in gold):
            return {"type": "text", "answer": gold[0], "aliases": gold[1:]}
        case {"type": str(), "answer": _}:
            return _typed_gold(gold, row)
        case _:
            raise DataError(
                f"{row.where}: the gold is a text, a number, a boolean, a list of texts, or "
                f"{{'type', 'answer'}}; got {gold!r:.80}"
            )


def _typed_gold(gold: JSON, row: Row) -> JSON:
    try:
        fault = reference_fault(gold)
    except DataError as error:
        raise DataError(f"{row.where}: {error}") from error
    if fault:
        raise DataError(f"{row.where}: {fault}: mend the gold, or leave the row out")
    return gold


def foreign_gold(gold: JSON, row: Row) -> JSON:
    """The gold of another system's row.

    `{"target": ...}` holds the accepted answers, as in Search-R1; any other object is kept as it
    is, for a reward function that knows its shape.
    """
    match gold:
        case {"target": target, **others} if not others:
            return check_gold(target, row)
        case dict() if gold:
            return cast("JSON", gold)
        case _:
            return check_gold(gold, row)


def refuse_media(row: Row, *columns: str) -> None:
    """Raises DataError where one of these columns holds something: a policy reads text."""
    for column in columns:
        if row.fields.get(column):
            raise DataError(
                f"{row.where}: a policy reads text, and the column '{column}' holds media: "
                "drop the column, or leave such rows out"
            )


def _plain(value: Any, where: str, depth: int = 0) -> JSON:
    if depth > MAX_DEPTH:
        raise DataError(f"{where} is nested deeper than {MAX_DEPTH} levels: write it flat, as text")
    match value:
        case str() if not is_unicode(value):
            raise DataError(
                f"{where} holds half of a character (a lone surrogate), which no tokenizer reads: "
                "remove it"
            )
        case None | bool() | int() | float() | str():
            return value
        case np.ndarray():
            return _plain(value.tolist(), where, depth)
        case np.generic():
            return _plain(cast("np.generic[Any]", value).item(), where, depth + 1)
        case list() | tuple():
            items = cast("Sequence[Any]", value)
            return [_plain(item, where, depth + 1) for item in items]
        case Mapping():
            pairs = cast("Mapping[Any, Any]", value).items()
            return {
                str(_plain(str(key), where)): _plain(item, where, depth + 1) for key, item in pairs
            }
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal() if value.is_finite() and value.adjusted() < 80:
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes() | bytearray():
            raise DataError(
                f"{where} holds bytes, which are no JSON and no text: drop the column, or decode it"
            )
        case _:
            raise DataError(
                f"{where} holds {type(value).__name__} {value!r:.60}, which is no JSON: "
                "write text, numbers, lists or objects"
            )
