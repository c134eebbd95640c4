"""`match(reference, answer)`: the matcher of the reference's type, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from outfox.core.errors import DataError
from outfox.core.types import JSON
from outfox.rewards.matchers import boolean, date, entity, multiple_choice, number, text
from outfox.rewards.matchers.assertion import is_abstention
from outfox.rewards.matchers.gold import AnswerType, Gold, Match, parse_reference
from outfox.rewards.matchers.list import ItemMatcher, match_list

_MATCHERS: Mapping[AnswerType, ItemMatcher] = {
    "text": text.part,
    "number": number.part,
    "date": date.part,
    "entity": entity.part,
    "boolean": boolean.part,
    "multiple_choice": multiple_choice.part,
}


def match(reference: JSON, answer: str | None, *, row: str | int | None = None) -> Match:
    """Is the answer right? Raises DataError, naming the row, where the reference is wrong.

    On an unanswerable question (`answer: null`) an abstention is right. No answer is never right.
    """
    gold = parse_reference(reference, row=row)
    if answer is None:
        return Match(right=False, why="no answer")
    if gold.answer is None:
        abstains = is_abstention(answer)
        return Match(right=abstains, why="abstains" if abstains else "asserts what nobody knows")
    try:
        return _match_item(gold, answer)
    except DataError as error:
        raise DataError(str(error) if row is None else f"row {row}: {error}") from error


def reference_fault(reference: JSON, *, row: str | int | None = None) -> str | None:
    """Why no answer can ever match a well-formed reference, or None: the check at load.

    Raises DataError, naming the row, where the reference is wrong.
    """
    gold = parse_reference(reference, row=row)
    golds = cast("tuple[Gold, ...]", gold.answer) if gold.type == "list" else (gold,)
    return next((fault for each in golds or () if (fault := match(each, "", row=row).fault)), None)


def _match_item(gold: Gold, answer: str) -> Match:
    if gold.type == "list":
        return match_list(gold, answer, _match_item)
    return _MATCHERS[gold.type](gold, answer)
