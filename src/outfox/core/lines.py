"""Files of lines, plain or gzipped (`.gz`)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from outfox.core.errors import DataError


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line); blank ones are left out. Raises DataError: no whole gzip file."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is no whole gzip file, after line {number}: {error}: get the file anew"
        ) from error


def stem_of(path: Path) -> str:
    """`questions` of `questions.jsonl` and of `questions.jsonl.gz`."""
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem
