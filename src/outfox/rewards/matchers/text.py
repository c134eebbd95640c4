"""Text: the whole answer equals the gold or an alias, in Unicode or in strict SQuAD mode.

Equality of the whole leaves no room for lists, hedges or denials. Gold that is empty after
normalisation ("The" in both modes, "!!!") never matches and is reported as a fault of the row.
"""

from __future__ import annotations

from outfox.rewards.matchers.assertion import assertion_fault, without_lead_in
from outfox.rewards.matchers.gold import Gold, Match
from outfox.rewards.matchers.normalise import squad, unicode


def match_text(gold: Gold, answer: str) -> Match:
    """Equal as text."""
    key = squad if gold.mode == "squad" else unicode
    accepted = {key(str(alternative)) for alternative in gold.alternatives} - {""}
    if not accepted:
        return Match(
            right=False,
            why="gold is empty",
            fault=f"gold {gold.answer!r} is empty after normalisation and can never match",
        )
    given = key(answer)
    if given in accepted or (gold.mode == "unicode" and key(without_lead_in(answer)) in accepted):
        return Match(right=True, why="equal")
    return Match(right=False, why=assertion_fault(answer) or f"{given!r} is not the gold")


part = match_text
