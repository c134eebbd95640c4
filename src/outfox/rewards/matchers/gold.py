"""What an answer is compared with, checked before anything is scored.

A reference is `{"type": ..., "answer": ..., "aliases": [...], ...}`; text, a number or a boolean
alone means a reference of that type; a flat list (or array) of these means alternatives, as the
`golden_answers` column of public question sets. `answer: null` marks an unanswerable question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from outfox.core.errors import DataError, did_you_mean
from outfox.core.types import JSON

AnswerType = Literal["text", "number", "date", "entity", "list", "boolean", "multiple_choice"]
TYPES: tuple[str, ...] = get_args(AnswerType)
Scalar: TypeAlias = str | int | float | bool

_OPTIONS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"mode"}),
    "number": frozenset({"unit", "tolerance"}),
    "list": frozenset({"item_type"}),
    "multiple_choice": frozenset({"choices"}),
}
"""Keys that a type knows beside `type`, `answer` and `aliases`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What a comparison came to."""

    right: bool
    why: str = ""
    precision: float | None = None
    """Lists: share of the answer's items that are gold."""
    recall: float | None = None
    """Lists: share of gold items that the answer holds."""
    fault: str | None = None
    """Why the gold can never match; the row is to be reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """A checked reference."""

    type: AnswerType
    answer: JSON
    """Text, number or boolean; a list of Gold for lists; None where nothing can be asserted."""
    aliases: tuple[Scalar, ...] = ()
    unit: str | None = None
    """Named by the question, so that an answer may leave it out; a unit inside `answer` may not."""
    tolerance: float = 0.0
    """Relative difference that still counts as equal."""
    mode: Literal["unicode", "squad"] = "unicode"
    choices: Mapping[str, str] | None = None

    @property
    def alternatives(self) -> tuple[Scalar, ...]:
        """The answer and its aliases."""
        return (self.answer, *self.aliases)


def parse_reference(reference: JSON, *, row: str | int | None = None) -> Gold:
    """A reference as Gold. Raises DataError that names the row."""
    where = "reference" if row is None else f"row {row}: reference"
    if isinstance(reference, Gold):
        return reference
    plain = _plain(reference)
    if plain is None:
        raise DataError(
            f"{where} is missing (null); an unanswerable question is written "
            '{"type": "text", "answer": null}'
        )
    if isinstance(plain, dict):
        return _from_mapping(cast("dict[str, JSON]", plain), where)
    if isinstance(plain, list):
        return _from_alternatives(cast("list[JSON]", plain), where)
    return Gold(type=_type_of(plain, where), answer=_scalar(plain, where))


def _plain(value: Any) -> JSON:
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value).tolist()
    if isinstance(value, np.generic):
        return cast("np.generic[Any]", value).item()
    if isinstance(value, tuple):
        return list(cast("tuple[JSON, ...]", value))
    return value


def _from_mapping(data: dict[str, JSON], where: str) -> Gold:
    kind = data.get("type", "text")
    if kind not in TYPES:
        raise DataError(f"{where}: type {kind!r} is unknown.{did_you_mean(str(kind), TYPES)}")
    known = {"type", "answer", "aliases", *_OPTIONS.get(kind, frozenset())}
    for key in data:
        if key not in known:
            raise DataError(f"{where}: type {kind} knows no key {key!r}.{did_you_mean(key, known)}")
    if "answer" not in data:
        raise DataError(f"{where} has no `answer`; write null where nothing can be asserted")
    answer, aliases = _plain(data["answer"]), _aliases(data.get("aliases"), where)
    if kind == "list" and answer is not None:
        answer = _items(answer, str(data.get("item_type", "entity")), where)
    elif answer is not None:
        answer = _scalar(answer, where)
        if kind == "boolean" and not isinstance(answer, (bool, str)):
            raise DataError(f"{where}: a boolean answer is true, false, yes or no, not {answer!r}")
    return Gold(
        type=kind,
        answer=answer,
        aliases=aliases,
        unit=_text_option(data, "unit", where),
        tolerance=_tolerance(data, where),
        mode=_mode(data, where),
        choices=_choices(data, where) if kind == "multiple_choice" else None,
    )


def _from_alternatives(values: list[JSON], where: str) -> Gold:
    if not values:
        raise DataError(f"{where} is an empty list; give at least one accepted answer")
    first, *others = [_scalar(_plain(value), where) for value in values]
    return Gold(type=_type_of(first, where), answer=first, aliases=tuple(others))


def _items(values: JSON, item_type: str, where: str) -> tuple[Gold, ...]:
    if not isinstance(values, list) or not values:
        raise DataError(f"{where}: the answer of type list is a list that is not empty")
    if item_type not in TYPES or item_type == "list":
        raise DataError(
            f"{where}: item_type {item_type!r} is unknown.{did_you_mean(item_type, TYPES)}"
        )
    items: list[Gold] = []
    for value in cast("list[JSON]", values):
        item = _plain(value)
        if isinstance(item, dict):
            items.append(_from_mapping({"type": item_type, **cast("dict[str, JSON]", item)}, where))
        else:
            items.append(_from_mapping({"type": item_type, "answer": _scalar(item, where)}, where))
    if any(item.answer is None or item.type == "list" for item in items):
        raise DataError(f"{where}: items of a list are answers, neither null nor lists")
    return tuple(items)


def _type_of(value: Scalar, where: str) -> AnswerType:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case _:
            return "text"


def _scalar(value: JSON, where: str) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where}: {value} is no answer; numbers are finite")
    if isinstance(value, (str, bool, int, float)):
        return value
    raise DataError(
        f"{where}: an accepted answer is text, a number or a boolean, not "
        f"{type(value).__name__} {value!r:.60}; nested lists are refused, use type list"
    )


def _aliases(value: Any, where: str) -> tuple[Scalar, ...]:
    plain = _plain(value)
    if plain is None:
        return ()
    if isinstance(plain, str) or not isinstance(plain, list):
        raise DataError(f"{where}: aliases is a list of accepted answers, not {plain!r:.60}")
    return tuple(_scalar(_plain(item), where) for item in cast("list[JSON]", plain))


def _text_option(data: Mapping[str, JSON], key: str, where: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise DataError(f"{where}: {key} is text, not {value!r}")
    return value


def _tolerance(data: Mapping[str, JSON], where: str) -> float:
    value = data.get("tolerance", 0.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise DataError(f"{where}: tolerance is relative, from 0 to below 1, not {value!r}")
    return float(value)


def _mode(data: Mapping[str, JSON], where: str) -> Literal["unicode", "squad"]:
    match data.get("mode", "unicode"):
        case "unicode":
            return "unicode"
        case "squad":
            return "squad"
        case other:
            raise DataError(f"{where}: mode is unicode or squad, not {other!r}")


def _choices(data: Mapping[str, JSON], where: str) -> dict[str, str]:
    value = _plain(data.get("choices"))
    if isinstance(value, list):
        listed = cast("list[JSON]", value)
        value = {chr(ord("A") + index): text for index, text in enumerate(listed)}
    if not isinstance(value, dict) or not value:
        raise DataError(f"{where}: multiple_choice needs `choices`, a list or a mapping of letters")
    named = cast("dict[str, JSON]", value)
    return {str(key).strip().upper(): str(text) for key, text in named.items()}
