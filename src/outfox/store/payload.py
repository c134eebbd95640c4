"""Core dataclasses as JSON and back, exactly; arrays travel in columns of their own (shards.py).

What is written follows from the fields and type hints of `core`, so a field added there is stored
without a change here, and a shard from before it takes the field's default.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from outfox.core import text as outside
from outfox.core.errors import DataError

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Dataclasses become objects, tuples lists; fields at their default are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_json(item)
            for field in dataclasses.fields(value)
            if (item := getattr(value, field.name)) != field.default
        }
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in cast("Sequence[Any]", value)]
    return value


def from_json(kind: type[T], data: Any) -> T:
    """The value that `to_json` wrote."""
    return _revive(kind, data)


def dumps(value: Any) -> str:
    """Compact JSON text. Raises DataError for what is no JSON, e.g. a numpy scalar in metadata.

    Readable characters stay readable; text with a lone surrogate (which UTF-8 cannot hold) is
    written in escapes instead.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DataError(
            "trajectories and scores hold JSON values (str, int, float, bool, None, lists, "
            f"objects); {error}: convert it in the part that made it"
        ) from error
    return text if outside.is_unicode(text) else json.dumps(value, separators=(",", ":"))


def readable(text: str | None) -> str | None:
    """The text as a plain column can hold it: lone surrogates become question marks."""
    return None if text is None else outside.readable(text)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _revive(hint: Any, data: Any) -> Any:
    if data is None:
        return None
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [option for option in get_args(hint) if option is not type(None)]
        return _revive(inner[0], data) if len(inner) == 1 else data
    if origin is tuple:
        return tuple(_revive(get_args(hint)[0], item) for item in data)
    if not isinstance(hint, type) or not dataclasses.is_dataclass(hint):
        return data
    hints = _hints(hint)
    return hint(**{name: _revive(hints[name], item) for name, item in data.items()})
