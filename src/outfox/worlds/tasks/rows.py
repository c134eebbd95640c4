# pyright: standard
"""Tasks from the rows of a file, JSON lines or Parquet; `formats/` says how rows are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from outfox.core.errors import DataError
from outfox.core.lines import stem_of
from outfox.core.seeding import rng
from outfox.core.text import json_lines
from outfox.core.types import Task
from outfox.worlds.tasks.columns import RowFormat, read_row
from outfox.worlds.tasks.formats.auto import ANY


class RowTasks:
    """A TaskSource without state: item i of the run is item i mod N of epoch i div N.

    Every task comes once per epoch, each epoch in an order of its own.

    Args:
        seed: Of the orders.

    Raises DataError where there is no task, or two share an id.
    """

    def __init__(self, tasks: Sequence[Task], *, seed: int = 0) -> None:
        if not tasks:
            raise DataError("a task source holds at least one task; this one is empty")
        seen: dict[str, int] = {}
        for number, task in enumerate(tasks, start=1):
            first = seen.setdefault(task.task_id, number)
            if first != number:
                raise DataError(f"tasks {first} and {number} share the id {task.task_id!r}")
        self._tasks = tuple(tasks)
        self._seed = seed

    def __len__(self) -> int:
        return len(self._tasks)

    def take(self, step: int, count: int) -> Sequence[Task]:
        return tuple(self.item(step * count + offset) for offset in range(count))

    def item(self, index: int) -> Task:
        """The run's item number `index`, over all epochs."""
        epoch, place = divmod(index, len(self._tasks))
        return self._tasks[epoch_order(len(self._tasks), self._seed, epoch)[place]]


part = RowTasks


@lru_cache(maxsize=64)
def epoch_order(size: int, seed: int, epoch: int) -> tuple[int, ...]:
    """A permutation of `range(size)`, one per epoch."""
    order = list(range(size))
    rng(seed, "epoch", epoch).shuffle(order)
    return tuple(order)


def load_tasks(path: Path, read: RowFormat = ANY) -> tuple[Task, ...]:
    """Tasks of a `.jsonl`, `.jsonl.gz` or `.parquet` file.

    Raises DataError: no such file, no row, a missing column or a gold that no matcher can use; the
    message names the row (from 1) and the column.
    """
    return tuple(load_rows(path, read).values())


def load_rows(path: Path, read: RowFormat = ANY) -> dict[int, Task]:
    """The same by row number: a `.jsonl` file's line, empty ones counted."""
    return _tasks(rows_of(path), stem_of(path), read)


def tasks_from_rows(
    rows: Iterable[Any], *, name: str = "rows", read: RowFormat = ANY
) -> tuple[Task, ...]:
    """Tasks of rows in memory; see `load_tasks`."""
    return tuple(_tasks(enumerate(rows, start=1), name, read).values())


def rows_of(path: Path) -> Iterable[tuple[int, Any]]:
    """Number and values of every row of a file, as it holds them. Raises DataError."""
    if not path.is_file():
        raise DataError(f"tasks are a .jsonl or .parquet file; {path} is none: check tasks.path")
    return _table(path) if path.suffix == ".parquet" else json_lines(path, stem_of(path))


def _tasks(rows: Iterable[tuple[int, Any]], name: str, read: RowFormat) -> dict[int, Task]:
    tasks = {
        number: read(read_row(values, where=f"{name} row {number}", name=f"{name}-{number}"))
        for number, values in rows
    }
    if not tasks:
        raise DataError(f"a task file holds at least one row; {name} holds none")
    return tasks


def _table(path: Path) -> Iterable[tuple[int, Any]]:
    try:
        return enumerate(pq.read_table(path).to_pylist(), start=1)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        # ValueError: text that is no UTF-8, a time that no Python type can hold.
        raise DataError(f"{path} is no Parquet file that can be read: {error}") from error
