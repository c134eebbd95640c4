"""Is an answer right? One file per type of answer; `match(reference, answer)` picks it.

    reference (gold) ─parse_reference─▶ Gold ─┐
    answer (policy text) ─────────────────────┴─matcher of gold.type─▶ Match(right, why, ...)

A matcher wants one assertion: candidates listed, hedged or negated are not right.
"""

from __future__ import annotations

from outfox.rewards.matchers.assertion import is_abstention
from outfox.rewards.matchers.gold import Gold, Match, parse_reference
from outfox.rewards.matchers.match import match, reference_fault

__all__ = ["Gold", "Match", "is_abstention", "match", "parse_reference", "reference_fault"]
