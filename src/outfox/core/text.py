"""Text that came from outside: JSON as anyone may have written it, characters that are none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from outfox.core.errors import DataError
from outfox.core.lines import lines_of
from outfox.core.types import JSON

MAX_DEPTH = 64
"""Most lists and mappings inside each other, in what is read from outside."""


def read_json(text: str | bytes) -> JSON:
    """What a JSON text says. Raises ValueError, also where it is nested too deep to be read."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def json_lines(path: Path, name: str) -> Iterator[tuple[int, JSON]]:
    """Number, from 1, and content of every line that is not empty.

    Raises DataError, naming the row as `name row 7`.
    """
    for number, line in lines_of(path):
        where = f"{name} row {number}"
        try:
            yield number, read_json(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{where}: every row is a JSON object; {error.msg} at character {error.pos + 1}"
            ) from error
        except UnicodeDecodeError as error:
            raise DataError(
                f"{where}: JSON lines are UTF-8; {error.reason} at byte {error.start + 1}: "
                "save the file as UTF-8"
            ) from error
        except ValueError as error:
            raise DataError(f"{where}: every row is a JSON object; {error}") from error


def is_unicode(text: str) -> bool:
    """False where UTF-8, and so a tokenizer or a file, cannot hold it: it has a lone surrogate."""
    return text.isascii() or readable(text) == text


def unusable(value: JSON, path: str = "") -> str | None:
    """`path: why` of the first value that no setting can have: NaN, or a text with NUL or half a
    character; None where there is none."""
    items: list[tuple[str, JSON]]
    match value:
        case dict():
            held = cast("dict[JSON, JSON]", value)
            if not all(is_unicode(str(key)) for key in held):
                return f"{path}: keys must be text; {list(held)!a:.60} holds half of a character"
            items = [(f"{path}.{key}" if path else str(key), item) for key, item in held.items()]
        case list():
            held = cast("list[JSON]", value)
            items = [(f"{path}.{index}", item) for index, item in enumerate(held)]
        case float() if math.isnan(value):
            return f"{path}: must be a number, not NaN"
        case str() if "\0" in value or not is_unicode(value):
            return f"{path}: must be text; {value!a:.60} holds characters that are none"
        case _:
            return None
    return next((fault for key, item in items if (fault := unusable(item, key))), None)


def readable(text: str) -> str:
    """The text as UTF-8 can hold it: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()
