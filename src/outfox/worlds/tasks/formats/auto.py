"""Whose rows these are, by their columns.

    reward_model                                  verl
    prompt or question, answer or reference       rows
    prompt, solution or ground_truth              trl

Nothing else is guessed. EasyR1 names its columns in a setting, so it is never chosen here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from outfox.core.errors import DataError
from outfox.core.types import Task
from outfox.worlds.tasks.columns import Row, RowFormat
from outfox.worlds.tasks.formats.rows import OwnRows
from outfox.worlds.tasks.formats.trl import TrlRows
from outfox.worlds.tasks.formats.verl import VerlRows

_FORMATS: dict[str, RowFormat] = {"rows": OwnRows(), "trl": TrlRows(), "verl": VerlRows()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyRows:
    """A RowFormat. Raises DataError where the columns are no system's."""

    def __call__(self, row: Row) -> Task:
        name = whose(row.fields)
        if name is None:
            raise DataError(
                f"{row.where}: {_missing(row.fields)}; found: {', '.join(row.fields) or 'none'}: "
                "rename a column, or set tasks.format to verl, trl, {type: rows, columns: "
                "{answer: ...}} or {type: easyr1, prompt_key: ..., answer_key: ...}"
            )
        return _FORMATS[name](row)


part = AnyRows

ANY: RowFormat = AnyRows()
"""What reads rows where no setting says whose they are."""


def whose(columns: Collection[str]) -> str | None:
    """The format that these columns belong to; None where nobody can say."""
    asked, gold = {"prompt", "question"} & {*columns}, {"reference", "answer"} & {*columns}
    if "reward_model" in columns:
        return "verl"
    if asked and gold:
        return "rows"
    if "prompt" in columns and {"solution", "ground_truth"} & {*columns}:
        return "trl"
    return None


def _missing(columns: Collection[str]) -> str:
    if {"prompt", "question"} & {*columns}:
        return "the column 'reference' or 'answer' is missing"
    return "the column 'prompt' or 'question' is missing"
