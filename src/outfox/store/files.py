"""Files that a crash cannot spoil: whole files appear at once, lines are appended whole."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from safetensors import SafetensorError

from outfox.core.errors import ConfigError, DataError, OutfoxError
from outfox.core.text import read_json
from outfox.core.types import JSON

_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up"}
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_OS_ERROR = re.compile(r"os error (\d+)")


@contextmanager
def writable(folder: Path) -> Generator[None]:
    """Around all that writes a run folder: what the system refuses becomes one clear error.

    Raises ConfigError where the folder may not be written, OutfoxError where the disk is full.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        found = _OS_ERROR.search(str(error))  # of safetensors, which writes by itself
        number = error.errno if isinstance(error, OSError) else int(found[1]) if found else 0
        if number in _CLOSED:
            raise ConfigError(
                f"a run writes its folder and the cache; the system says: {error}: change the "
                f"permissions, or choose another run.dir (now {folder}) or cache.dir"
            ) from error
        if number in _FULL:
            raise OutfoxError(
                f"{_FULL[number]}: {error}; what was finished is kept: make room, then go on with "
                f"outfox train --resume {folder}"
            ) from error
        raise


def write_whole(path: Path, data: bytes | str) -> None:
    """Write under a temporary name, flush to disk, rename: readers see the old file or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def write_json(path: Path, value: JSON) -> None:
    write_whole(path, json.dumps(finite(value), ensure_ascii=False, indent=2) + "\n")


def append_line(path: Path, row: Mapping[str, JSON]) -> None:
    """Append one JSON line and flush it to disk; a torn line before it is dropped first."""
    append_lines(path, [row])


def append_lines(path: Path, rows: Sequence[Mapping[str, JSON]]) -> None:
    """Append one JSON line per row, flushed together."""
    lines = [json.dumps(finite(row), ensure_ascii=False) + "\n" for row in rows]
    with path.open("ab+") as file:
        _drop_torn_end(file)
        file.write("".join(lines).encode())
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict[str, JSON]]:
    """All whole lines; a torn last line is what a crash leaves and is passed over.

    Raises DataError, naming the line, where a whole line is not a JSON object.
    """
    if not path.exists():
        return []
    whole, newline, _ = path.read_bytes().rpartition(b"\n")
    rows: list[dict[str, JSON]] = []
    for number, line in enumerate(whole.split(b"\n") if newline else [], 1):
        try:
            row = read_json(line)
            if not isinstance(row, dict):
                raise ValueError(f"got {type(row).__name__}")
        except ValueError as error:
            raise DataError(
                f"every line is a JSON object; {path}:{number} is not ({error}): repair the line "
                "or remove it"
            ) from error
        rows.append(cast("dict[str, JSON]", row))
    return rows


def keep_lines(path: Path, keep: Callable[[Mapping[str, JSON]], bool]) -> None:
    """Rewrite the file with the rows that `keep` accepts."""
    rows = read_lines(path)
    kept = [row for row in rows if keep(row)]
    if path.exists():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in kept]
        write_whole(path, "".join(lines))


def finite(value: JSON) -> JSON:
    """The same JSON with None for NaN and infinities, which JSON cannot hold."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in cast("Mapping[str, JSON]", value).items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in cast("Sequence[JSON]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _drop_torn_end(file: Any) -> None:
    """Cut the file back to its last newline."""
    end = file.seek(0, os.SEEK_END)
    start = end
    while start > 0:
        block = min(4096, start)
        file.seek(start - block)
        found = file.read(block).rfind(b"\n")
        if found >= 0:
            start = start - block + found + 1
            break
        start -= block
    if start < end:
        file.truncate(start)
    file.seek(0, os.SEEK_END)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
