"""Rows of TRL: `prompt`, and whatever columns the reward functions ask for.

{"prompt": "The capital of France is", "solution": "Paris"}
{"prompt": [{"role": "user", "content": "2 + 3?"}], "solution": "5", "level": 1}

A text prompt means that reward functions see completions as text, chat messages that they see them
as messages; so the prompt is kept as it is, with all other columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from outfox.core.types import JSON, Task
from outfox.worlds.tasks.columns import Row, foreign_gold, read_messages, refuse_media

GOLD = ("solution", "ground_truth", "answer")
"""Columns that hold the gold where no setting says so, by precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrlRows:
    """A RowFormat."""

    answer_key: str | None = None
    """Column of the gold; null: `solution`, `ground_truth` or `answer`. A row without one can be
    scored by a reward function only."""

    def __call__(self, row: Row) -> Task:
        refuse_media(row, "image", "images")
        prompt = read_messages(row.column("prompt"), row, "prompt")
        metadata = dict(row.fields)
        gold = self._gold(row)
        if gold is None:
            metadata.setdefault("answerable", True)
        return Task(
            task_id=row.name,
            prompt=prompt,
            reference=None if gold is None else foreign_gold(gold, row),
            metadata=metadata,
        )

    def _gold(self, row: Row) -> JSON:
        if self.answer_key is not None:
            return row.column(self.answer_key, remedy="set tasks.format.answer_key")
        return next((row.fields[name] for name in GOLD if row.fields.get(name) is not None), None)


part = TrlRows
