"""Multiple choice: one letter, one choice's text, or both where they agree."""

from __future__ import annotations

import re
from collections.abc import Mapping

from outfox.core.errors import DataError
from outfox.rewards.matchers.assertion import assertion_fault, without_lead_in
from outfox.rewards.matchers.gold import Gold, Match
from outfox.rewards.matchers.normalise import unicode

_LETTER = re.compile(r"^\(?\s*([A-Za-z])\s*(?:[).:、]\s*(.*))?$", re.DOTALL)


def match_multiple_choice(gold: Gold, answer: str) -> Match:
    """The chosen letter is the gold's. Raises DataError where the gold is no choice."""
    choices = gold.choices or {}
    wanted = _letter_of(str(gold.answer), choices)
    if wanted is None:
        raise DataError(
            f"reference: {gold.answer!r} is neither a letter nor a text of the choices "
            f"{', '.join(choices)}"
        )
    given = _chosen(without_lead_in(answer).strip(), choices)
    if given is None:
        fault = assertion_fault(answer)
        return Match(right=False, why=fault or f"{answer!r:.60} names no single choice")
    return Match(right=given == wanted, why=f"chose {given}")


def _letter_of(text: str, choices: Mapping[str, str]) -> str | None:
    key = text.strip().upper()
    if key in choices:
        return key
    same = [letter for letter, choice in choices.items() if unicode(choice) == unicode(text)]
    return same[0] if len(same) == 1 else None


def _chosen(answer: str, choices: Mapping[str, str]) -> str | None:
    whole = _letter_of(answer, choices)
    if whole is not None:
        return whole
    found = _LETTER.match(answer)
    if found is None or found[1].upper() not in choices:
        return None
    letter, rest = found[1].upper(), (found[2] or "").strip()
    return letter if not rest or unicode(rest) == unicode(choices[letter]) else None


part = match_multiple_choice
