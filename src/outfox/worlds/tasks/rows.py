# pyright: standard
"""Tasks from rows of a JSON-lines or Parquet file.

Required columns: `prompt` (text or chat messages) or `question`; `answer` or `reference` (gold).
Optional: `id`, `metadata`. Every other column is kept in `metadata`, so rewards see the whole row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq

from outfox.core.errors import DataError
from outfox.core.seeding import rng
from outfox.core.types import JSON, Message, Task

_PROMPT, _GOLD = ("prompt", "question"), ("reference", "answer")


class RowTasks:
    """A TaskSource without state: item i of the run is item i mod N of epoch i div N.

    Every task comes once per epoch, each epoch in an order of its own, drawn from `seed`.
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


def load_tasks(path: Path) -> tuple[Task, ...]:
    """Tasks of a `.jsonl` or `.parquet` file.

    Raises DataError: no such file, no row, a missing column or a gold that no matcher can use; the
    message names the row (from 1) and the column.
    """
    return tuple(load_rows(path).values())


def load_rows(path: Path) -> dict[int, Task]:
    """The same by row number: a `.jsonl` file's line, empty ones counted."""
    if not path.is_file():
        raise DataError(f"tasks are a .jsonl or .parquet file; {path} is none: check tasks.path")
    if path.suffix == ".parquet":
        table: Iterable[Any] = pq.read_table(path).to_pylist()
        return _tasks(enumerate(table, start=1), path.stem)
    return _tasks(_json_lines(path), path.stem)


def tasks_from_rows(rows: Iterable[Any], *, name: str = "rows") -> tuple[Task, ...]:
    """Tasks of rows in memory; see `load_tasks`."""
    return tuple(_tasks(enumerate(rows, start=1), name).values())


def _tasks(rows: Iterable[tuple[int, Any]], name: str) -> dict[int, Task]:
    tasks = {number: _task(row, f"{name} row {number}", f"{name}-{number}") for number, row in rows}
    if not tasks:
        raise DataError(f"a task file holds at least one row; {name} holds none")
    return tasks


def _json_lines(path: Path) -> Iterable[tuple[int, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                where = f"{path.stem} row {number}"
                raise DataError(
                    f"{where}: every row is a JSON object; {error.msg} at character {error.pos + 1}"
                ) from error


def _task(row: Any, where: str, fallback_id: str) -> Task:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: every row is a JSON object; found {type(row).__name__}")
    fields = {str(key): value for key, value in cast(Mapping[Any, Any], row).items()}
    prompt = _column(fields, _PROMPT, where)
    extra = fields.get("metadata")
    if extra is not None and not isinstance(extra, Mapping):
        raise DataError(f"{where}: 'metadata' is an object; found {type(extra).__name__}")
    used = {*_PROMPT, *_GOLD, "id", "metadata"}
    metadata: dict[str, JSON] = {k: _plain(v) for k, v in fields.items() if k not in used}
    metadata |= {str(k): _plain(v) for k, v in cast(Mapping[Any, Any], extra or {}).items()}
    if isinstance(fields.get("question"), str):
        metadata.setdefault("question", fields["question"])
    identity = fields.get("id")
    return Task(
        task_id=fallback_id if identity is None else str(identity),
        prompt=_messages(prompt, where),
        reference=check_gold(_column(fields, _GOLD, where), where),
        metadata=metadata,
    )


def _column(fields: Mapping[str, Any], names: tuple[str, str], where: str) -> Any:
    for name in names:
        if name in fields:
            return fields[name]
    found = ", ".join(fields) or "none"
    raise DataError(f"{where}: the column '{names[0]}' or '{names[1]}' is missing; found: {found}")


def _messages(prompt: Any, where: str) -> tuple[Message, ...]:
    if isinstance(prompt, str) and prompt.strip():
        return (Message(role="user", content=prompt),)
    items = _plain(prompt)
    if not isinstance(items, list) or not items:
        raise DataError(f"{where}: 'prompt' is a text or a list of chat messages; got {prompt!r}")
    messages: list[Message] = []
    for item in cast(list[Any], items):
        entry = cast(dict[str, Any], item) if isinstance(item, dict) else {}
        role, content = entry.get("role"), entry.get("content")
        if role not in ("system", "user", "assistant", "tool") or not isinstance(content, str):
            raise DataError(f"{where}: a chat message has 'role' and text 'content'; got {item!r}")
        messages.append(Message(role=role, content=content))
    return tuple(messages)


def check_gold(gold: Any, where: str) -> JSON:
    """A gold that a matcher can use: a text, or `{"type", "answer", ...}`.

    A number becomes `{"type": "number"}`, a boolean `{"type": "boolean"}`, a list of texts (also a
    numpy array, as Parquet gives) an answer with aliases. Raises DataError for None (unanswerable
    is `{"type": "text", "answer": null}`), NaN, an empty text or list, and nested lists.
    """
    value = _plain(gold)
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, bool):
        return {"type": "boolean", "answer": value}
    if isinstance(value, int | float) and math.isfinite(value):
        return {"type": "number", "answer": str(value)}
    if isinstance(value, list):
        items = cast(list[Any], value)
        if items and all(isinstance(item, str) and item.strip() for item in items):
            return {"type": "text", "answer": items[0], "aliases": items[1:]}
    if isinstance(value, dict):
        entry = cast(dict[str, Any], value)
        if isinstance(entry.get("type"), str) and "answer" in entry:
            return entry
    raise DataError(
        f"{where}: the gold is a text, a number, a boolean, a list of texts, or "
        f"{{'type', 'answer'}}; got {gold!r}"
    )


def _plain(value: Any) -> JSON:
    """numpy values as JSON."""
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in cast(list[Any], value.tolist())]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast(Sequence[Any], value)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in cast(Mapping[Any, Any], value).items()}
    return value
