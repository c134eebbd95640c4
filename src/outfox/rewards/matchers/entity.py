"""Entity: a name equals the gold's name or an alias; also without a title in round brackets.

"Hepatitis" is not "Hepatitis A", "Class shares" are not "Class A shares": nothing inside a name is
deleted.
"""

from __future__ import annotations

import re
from dataclasses import replace

from outfox.rewards.matchers.gold import Gold, Match
from outfox.rewards.matchers.normalise import compatible
from outfox.rewards.matchers.text import match_text

_BRACKETED_ALIAS = re.compile(r"^(?P<name>[^()]+)\((?P<alias>[^()]+)\)$")


def match_entity(gold: Gold, answer: str) -> Match:
    """Equal to one of the entity's names; `Name (other name)` where both are its names."""
    named = gold if gold.mode == "unicode" else replace(gold, mode="unicode")
    whole = match_text(named, answer)
    bracketed = _BRACKETED_ALIAS.match(compatible(answer).strip())
    if whole.right or whole.fault or bracketed is None:
        return whole
    names = (match_text(named, bracketed["name"]), match_text(named, bracketed["alias"]))
    if all(name.right for name in names):
        return Match(right=True, why="name and alias")
    return whole


part = match_entity
