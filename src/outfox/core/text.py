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
    match value:
        case float() if math.isnan(value):
            return f"{path}: must be a number, not NaN"
        case str() if "\0" in value or not is_unicode(value):
            return f"{path}: must be text; {value!a:.60} holds characters that are none"
        case dict():
            items = cast("dict[str, JSON]", value).items()
            inside = [("", key) for key in map(str, cast("dict[str, JSON]", value))]
            inside += [(str(key), item) for key, item in items]
        case list():
            inside = [(str(k), item) for k, item in enumerate(cast("list[JSON]", value))]
        case _:
            return None
    faults = (unusable(item, ".".join(filter(None, (path, key)))) for key, item in inside)
    return next(filter(None, faults), None)


def readable(text: str) -> str:
    """The text as UTF-8 can hold it: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()
