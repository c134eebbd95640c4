"""`OUTFOX_DOC_TEST=1`: any training takes seconds, so that a test can run every documented command.

A recipe stands as it is written, but each setting below is at most what is said here. Of a
comparison only the first seed is run, and gates have few drills.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outfox.core.recipe import Recipe

VARIABLE = "OUTFOX_DOC_TEST"
AT_MOST: Mapping[str, int] = {
    "processes": 1,
    "steps": 2,
    "cold_start.steps": 2,
    "cold_start.items": 8,
    "replay.items": 4,
    "rollout.tasks": 2,
    "rollout.max_new_tokens": 8,
    "solvability.samples": 1,
    "eval.questions": 8,
    "eval.samples": 1,
}
"""Setting of a recipe to its highest value."""
SEEDS = 1
"""Seeds of a comparison."""
DRILLS, DRILL_TOKENS = 4, 8
"""Drills of each gate, known facts that are asked for, and most tokens of an answer."""


def is_brief() -> bool:
    """Does the environment ask for trainings of seconds?"""
    return os.environ.get(VARIABLE) == "1"


def shortened(recipe: Recipe) -> Recipe:
    """The recipe, within `AT_MOST` where the environment asks for that."""
    if not is_brief():
        return recipe
    for key, most in AT_MOST.items():
        recipe = _within(recipe, key.split("."), most)
    return recipe


def drills(count: int, tokens: int) -> dict[str, int]:
    """`count` and `max_tokens` of drills, lowered where the environment asks for that."""
    if is_brief():
        count, tokens = min(count, DRILLS), min(tokens, DRILL_TOKENS)
    return {"count": count, "max_tokens": tokens}


def _within(settings: Any, keys: list[str], most: int) -> Any:
    """With the setting at `keys` lowered to `most` where it is higher."""
    key, *rest = keys
    below: Any = getattr(settings, key)
    lower = _within(below, rest, most) if rest else min(below, most)
    return replace(settings, **{key: lower})
