"""What a comparison was asked, and what came of it, in words."""

from __future__ import annotations

from collections.abc import Mapping

from outfox.core.types import JSON


def answer(row: Mapping[str, JSON], against: str, name: str) -> str:
    """One row of `asks` in a sentence; `name`: what to call its measure.

    `default: accuracy less that of outcome-only is -0.003 (-0.015 to 0.009), asked to be at least
    -0.02: holds`
    """
    joined = {"value": "", "difference": f" less that of {against}", "ratio": f" over {against}'s"}
    side = "at least" if "at_least" in row else "at most"
    bound = row["at_least"] if "at_least" in row else row["at_most"]
    return (
        f"{row['variant']}: {name}{joined[row['of']]} is {interval(row)}, asked to be {side} "
        f"{bound:g}: {standing(row)}"
    )


def standing(row: Mapping[str, JSON]) -> str:
    """`holds`: the whole interval is where it was asked to be; `on average`: the value is."""
    if row["surely"]:
        return "holds"
    return "holds on average" if row["holds"] else "does not hold"


def interval(found: Mapping[str, JSON], digits: int = 3) -> str:
    """`0.881 (0.862 to 0.899)`"""
    value, low, high = (found[key] for key in ("value", "low", "high"))
    if low is None or high is None:
        return fixed(value, digits)
    return f"{fixed(value, digits)} ({fixed(low, digits)} to {fixed(high, digits)})"


def fixed(value: float, digits: int = 3) -> str:
    """A fixed number of decimals, and no minus before zero."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text
