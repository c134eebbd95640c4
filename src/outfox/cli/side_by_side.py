"""A comparison in the terminal: measures by variant, differences, kinds, and what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from outfox.cli.display import Display, plain_table
from outfox.core.types import JSON
from outfox.evaluation.asks import answer, fixed
from outfox.workbench.report.comparison import NAMES, hops, shown

Block = Mapping[str, JSON]


def show(content: Block, display: Display) -> None:
    """Everything that `comparison.json` says in short."""
    variants = cast("Mapping[str, Block]", content["variants"])
    _measures(content, variants, display)
    _differences(content, display)
    _kinds(variants, display)
    each = hops(variants)
    if each is not None:
        display.say(f"one search per hop, always: {fixed(each, 2)} searches a question")
    for row in cast("list[Block]", content["asks"]):
        name = NAMES[row["measure"]][0].lower() if row["measure"] != "j" else "J"
        display.say(answer(row, str(content["against"]), name))


def _measures(content: Block, variants: Mapping[str, Block], display: Display) -> None:
    seeds = ", ".join(map(str, content["seeds"]))
    title = f"{content['questions']} held-out questions, after training, seeds {seeds}; 95 %"
    table = plain_table(title, "", *variants)
    for key in shown(of["after"] for of in variants.values()):
        table.add_row(NAMES[key][0], *(_cell(of["after"].get(key)) for of in variants.values()))
    if all("greedy" in of for of in variants.values()):
        for key in ("accuracy", "j", "calls"):
            cells = [_cell(of["greedy"].get(key)) for of in variants.values()]
            table.add_row(f"{NAMES[key][0]}, greedy", *cells)
    display.console.print(table)


def _differences(content: Block, display: Display) -> None:
    others = cast("Mapping[str, Block]", content["differences"])
    if not others:
        return
    table = plain_table(f"less {content['against']}, paired", "", *others)
    for key in shown(others.values()):
        table.add_row(NAMES[key][0], *(_cell(of.get(key), 3) for of in others.values()))
    ratios = [content["ratios"][name].get("calls") for name in others]
    table.add_row("Searches, ratio", *(_cell(found, 3) for found in ratios))
    display.console.print(table)


def _kinds(variants: Mapping[str, Block], display: Display) -> None:
    table = plain_table("accuracy · searches, by kind", "", "n", *variants)
    for kind in sorted({kind for of in variants.values() for kind in of["by_kind"]}):
        found = [of["by_kind"].get(kind, {}) for of in variants.values()]
        counted = max(of.get("n", 0) for of in found)
        cells = [
            f"{_value(of.get('after', {}).get('accuracy'))} · "
            f"{_value(of.get('after', {}).get('calls'))}"
            for of in found
        ]
        table.add_row(kind, str(counted), *cells)
    display.console.print(table)


def _cell(found: Block | None, digits: int = 2) -> str:
    """`.88 (.86 to .90)`"""
    if found is None or found["low"] is None:
        return _value(found, digits)
    low, high = _brief(found["low"], digits), _brief(found["high"], digits)
    return f"{_value(found, digits)} ({low} to {high})"


def _value(found: Block | None, digits: int = 2) -> str:
    return "–" if found is None else _brief(found["value"], digits)


def _brief(value: float, digits: int) -> str:
    """Without a leading zero."""
    text = fixed(value, digits)
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
