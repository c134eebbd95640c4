"""Rows as Outfox writes them.

{"question": "Who wrote Faust?", "answer": ["Goethe", "J. W. von Goethe"], "id": 7, "known": true}

`prompt` (text or chat messages) or `question`; `reference` or `answer` (gold); optionally `id` and
`metadata`. Every other column is kept in the task's metadata. Columns of other names are given
these by `columns`: `{answer: answers, gold_evidence: passages}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from outfox.core.errors import DataError
from outfox.core.types import Task
from outfox.worlds.tasks.columns import Row, check_gold, read_messages

_PROMPT, _GOLD = ("prompt", "question"), ("reference", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRows:
    """A RowFormat."""

    columns: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    """Name here to name in the file; what a row lacks there is looked for under its name here."""

    def __call__(self, row: Row) -> Task:
        row = self._renamed(row)
        prompt = row.column(*_PROMPT)
        extra = row.fields.get("metadata")
        if extra is not None and not isinstance(extra, Mapping):
            raise DataError(f"{row.where}: 'metadata' is an object; found {type(extra).__name__}")
        metadata = row.rest(*_PROMPT, *_GOLD, "id", "metadata")
        metadata |= cast("Mapping[str, Any]", extra or {})
        question = row.fields.get("question")
        if isinstance(question, str):
            metadata.setdefault("question", question)
        identity = row.fields.get("id")
        return Task(
            task_id=row.name if identity is None else str(identity),
            prompt=read_messages(prompt, row, "prompt"),
            reference=check_gold(row.column(*_GOLD), row),
            metadata=metadata,
        )

    def _renamed(self, row: Row) -> Row:
        given = {
            ours: row.fields[theirs]
            for ours, theirs in self.columns.items()
            if theirs in row.fields
        }
        return replace(row, fields={**row.rest(*self.columns.values()), **given})


part = OwnRows
