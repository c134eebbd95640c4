"""Numbers lie inside the interval bounds, parts sum to totals, wrong never outranks right."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outfox.core.results import NotApplicable, Score, SignalError, SignalResult, Value
from outfox.core.types import Document, Task
from outfox.rewards.rubric import RubricTree
from outfox.rewards.solvability import WorldSolvability
from outfox.rewards.tree import preset_names
from outfox.rewards.verdict import CASES
from outfox.testing.rewards import FakeSignal, Move, group, task

NAMES = ("a", "b", "c", "g")
PAGE = Document(id="d1", text="The currency of Chad is the franc.")
JUNK = Document(id="d9", text="Tomorrow will be sunny.")
REPERTOIRE: tuple[tuple[Move, ...], ...] = (
    ("<search>Chad currency</search>", PAGE),
    ("<search>currency of Chad</search>", PAGE),
    ("<search>weather</search>", JUNK),
    ("<search>Chad</search>", []),
    ("no tag",),
)
ENDINGS = (
    "<answer>franc</answer>",
    "<answer>franc [d1]</answer>",
    "<answer>franc [d7]</answer>",
    "<answer>euro</answer>",
    "<answer>euro or franc</answer>",
    "<answer>not franc</answer>",
    "<answer>unknown</answer>",
    "<information>franc</information><answer>franc</answer>",
    "no tag",
)
PRESETS = {name: RubricTree(name, solvability=WorldSolvability()) for name in preset_names()}


@st.composite
def episodes(draw: st.DrawFn) -> list[Move]:
    steps = draw(st.lists(st.sampled_from(REPERTOIRE), max_size=5))
    return [*(move for step in steps for move in step), draw(st.sampled_from(ENDINGS))]


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    return task(
        "t",
        "What is the currency of Chad?",
        {"type": "entity", "answer": draw(st.sampled_from(["franc", None]))},
        solvable=draw(st.sampled_from(["solvable", "unsolvable", "undetermined"])),
        must_ground=draw(st.booleans()),
        relevant_ids=["d1"],
        entities=["Chad"],
        w=draw(st.sampled_from([0.5, 1.0, 2.0])),
    )


shares = st.floats(0, 1)
weights = st.floats(0, 3)
some_results = st.one_of(
    shares.map(lambda share: Value(value=share)),
    st.just(NotApplicable()),
    st.just(SignalError(why="drawn")),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    def side() -> dict[str, Any]:
        deduct = draw(st.dictionaries(st.sampled_from(NAMES[:3]), weights))
        return {"cap": draw(weights), "deduct": deduct}

    w = draw(st.floats(0.1, 3))
    if_right, if_not_right = side(), side()
    scheduled = sorted({*if_right["deduct"], *if_not_right["deduct"]})
    task_w = draw(st.sampled_from([None, [0.5, 2.0]]))
    return {
        "version": 1,
        "gates": draw(st.sampled_from([[], ["g"]])),
        "outcome": {
            "wrong": -w,
            "unsupported": draw(st.none() | st.floats(-3, 1)),
            "abstain": {"after_call": draw(st.floats(-1, 1)), "without_call": -w / 2},
            "task_w": task_w,
            "graded": task_w is None and draw(st.booleans()),
        },
        "if_right": if_right,
        "if_not_right": if_not_right,
        "schedule": {name: {"to_step": 10} for name in scheduled if draw(st.booleans())},
        "budgets": draw(st.sampled_from([{}, {"calls": {"limit": 1, "initial": 0.7}}])),
    }


def parts_sum(score: Score) -> bool:
    return score.total is None or math.isclose(
        math.fsum(score.parts.values()), score.total, abs_tol=1e-9
    )


@settings(max_examples=150, deadline=None)
@given(
    tree=trees(),
    results=st.fixed_dictionaries({name: st.tuples(*[some_results] * 3) for name in NAMES}),
    asked=tasks(),
    siblings=st.lists(episodes(), min_size=1, max_size=3),
    step=st.integers(0, 20),
)
def test_numbers_lie_inside_the_bounds_and_parts_sum(
    tree: dict[str, Any],
    results: dict[str, tuple[SignalResult, ...]],
    asked: Task,
    siblings: list[list[Move]],
    step: int,
) -> None:
    fakes = {name: FakeSignal(name=name, results=given) for name, given in results.items()}
    rubric = RubricTree(tree, solvability=WorldSolvability(), signals=fakes)
    low, high = rubric.bounds
    assert all(rubric.gate_total <= rubric.bounds_of(case).low - 0.5 + 1e-9 for case in CASES)
    for score in rubric.score(group(asked, *siblings), step=step):
        assert parts_sum(score)
        assert (score.total is None) == (score.outcome == "failed")
        if score.total is not None:
            assert low - 1e-9 <= score.total <= high + 1e-9
        if score.gate:
            assert score.total == rubric.gate_total


@pytest.mark.parametrize("name", preset_names())
def test_intervals_prove_that_wrong_never_outranks_right(name: str) -> None:
    rubric = PRESETS[name]
    for case in ("wrong", "unanswered", "unanswerable_asserted", "unsupported"):
        if name == "outcome_only" and case == "unsupported":
            continue  # that preset does not ask for support
        assert rubric.bounds_of(case).high < rubric.bounds_of("right").low
        assert rubric.bounds_of(case).high < rubric.bounds_of("rightly_abstained").low


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(preset_names()),
    asked=tasks(),
    siblings=st.lists(episodes(), min_size=2, max_size=4),
    step=st.integers(0, 20),
)
def test_a_wrong_trajectory_never_outranks_a_right_supported_one(
    name: str, asked: Task, siblings: list[list[Move]], step: int
) -> None:
    scores = PRESETS[name].score(group(asked, *siblings), step=step)
    assert all(parts_sum(score) for score in scores)
    below = {"wrong", "unanswered", "gated"}
    if name != "outcome_only":  # which does not ask for support
        below.add("unsupported")
    best_wrong = [score.total for score in scores if score.outcome in below]
    worst_right = [score.total for score in scores if score.outcome == "right"]
    assert all(wrong < right for wrong in best_wrong for right in worst_right)  # type: ignore[operator]


@settings(max_examples=60, deadline=None)
@given(asked=tasks(), siblings=st.lists(episodes(), min_size=2, max_size=4), data=st.data())
def test_metamorphic_relations(
    asked: Task, siblings: list[list[Move]], data: st.DataObject
) -> None:
    """Scored again: identical. Another order: the same. One more duplicate call: not up."""
    rubric = PRESETS["default"]
    scores = rubric.score(group(asked, *siblings), step=50)
    assert rubric.score(group(asked, *siblings), step=50) == scores
    order = data.draw(st.permutations(range(len(siblings))))
    turned = rubric.score(group(asked, *(siblings[index] for index in order)), step=50)
    assert [score.total for score in turned] == [scores[index].total for index in order]
    calls = [n for n, move in enumerate(siblings[0][:-1]) if str(move).startswith("<search>")]
    if calls:
        again = siblings[0][calls[0] : calls[0] + 2]
        longer = [*siblings[0][: calls[0] + 2], *again, *siblings[0][calls[0] + 2 :]]
        [more, *_] = rubric.score(group(asked, longer, *siblings[1:]), step=50)
        assert more.total is not None
        assert scores[0].total is not None
        assert more.total <= scores[0].total + 1e-9
