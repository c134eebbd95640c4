"""Every shipped signal and rubric keeps the promises of its protocol."""

from __future__ import annotations

import pytest

from outfox.core.results import Value
from outfox.core.types import Document, Group, ToolResult
from outfox.rewards.rubric import RubricTree
from outfox.rewards.signals import SIGNALS
from outfox.rewards.solvability import WorldSolvability
from outfox.rewards.tree import preset_names
from outfox.testing.rewards import (
    FakeRubric,
    FakeSignal,
    Move,
    check_rubric,
    check_signal,
    group,
    task,
)

PAGE = Document(id="d1", text="The currency of Chad is the franc.")
REFUSED = ToolResult(tool_call_id="c0", name="search", content="", status="refused")
LOOK: list[Move] = ["<search>Chad currency</search>", PAGE]
EPISODES: list[list[Move]] = [
    [*LOOK, "<answer>franc [d1]</answer>"],
    [*LOOK * 3, "<answer>franc [d1] [d7]</answer>"],
    ["<answer>franc</answer>"],
    ["<answer>euro</answer>"],
    ["<answer>unknown</answer>"],
    [*LOOK, "<answer>unknown</answer>"],
    ["<search>x</search>", REFUSED],
    ["<information>franc</information>[sure]<answer>euro</answer>"],
    ["no tag at all", "<answer>a</answer><answer>b</answer>"],
    [],
]
GOLDS = (
    {"type": "entity", "answer": "franc"},
    {"type": "entity", "answer": None},
    {"type": "number", "answer": 5},
    {"type": "list", "answer": ["franc", "euro"]},
    "The",
    None,
)
GROUPS: list[Group] = [
    group(
        task(
            f"t{index}",
            "What is the currency of Chad?",
            gold,
            solvable=solvable,
            must_ground=must_ground,
            relevant_ids=["d1"],
            entities=["Chad"],
        ),
        *EPISODES,
    )
    for index, gold in enumerate(GOLDS)
    for solvable, must_ground in (("solvable", False), ("unsolvable", True))
]


@pytest.mark.parametrize("name", SIGNALS)
def test_signal(name: str) -> None:
    check_signal(SIGNALS[name], GROUPS)


@pytest.mark.parametrize("name", preset_names())
def test_rubric(name: str) -> None:
    check_rubric(RubricTree(name, solvability=WorldSolvability()), GROUPS)


def test_fakes_keep_the_promises() -> None:
    check_signal(FakeSignal(), GROUPS)
    check_rubric(FakeRubric(totals=(1.0, 0.0, None)), GROUPS)


def test_the_checks_can_fail() -> None:
    with pytest.raises(AssertionError, match="outside"):
        check_signal(FakeSignal(results=(Value(value=3.0),)), GROUPS)
    with pytest.raises(AssertionError):
        check_rubric(FakeRubric(totals=(2.0,)), GROUPS)
