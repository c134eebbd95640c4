from __future__ import annotations

from typing import Any

import pytest

from outfox.core.errors import ConfigError
from outfox.core.protocols import Rubric, SignalContext, Stateful
from outfox.core.results import (
    NotApplicable,
    Score,
    ScoredGroup,
    SignalError,
    SignalResult,
    SignalTimeout,
    Value,
)
from outfox.core.types import JSON, Document, Group, Task, Trajectory
from outfox.rewards.intervals import Interval
from outfox.rewards.lift import signal
from outfox.rewards.rubric import RubricTree
from outfox.rewards.solvability import Provenance, Solvability, WorldSolvability
from outfox.testing.rewards import FakeSignal, Move, group, task, trajectory

PAGE = Document(id="d1", text="The currency of Chad is the franc.")
LOOK: list[Move] = ["<search>Chad currency</search>", PAGE]
RIGHT = "<answer>franc</answer>"
WRONG = "<answer>euro</answer>"


def chad(answer: str | None = "franc", **metadata: JSON) -> Task:
    labels: dict[str, JSON] = {"relevant_ids": ["d1"], "entities": ["Chad"]}
    return task("t", "Chad?", {"type": "entity", "answer": answer}, **{**labels, **metadata})


def fake(name: str, *results: SignalResult | float, **given: Any) -> FakeSignal:
    typed = tuple(Value(value=r) if isinstance(r, float | int) else r for r in results)
    return FakeSignal(name=name, results=typed, **given)


def rubric(tree: dict[str, JSON], *signals: FakeSignal) -> RubricTree:
    return RubricTree({"version": 1, **tree}, signals={each.name: each for each in signals})


def one(of: RubricTree, *moves: Move, step: int = 0, **metadata: JSON) -> Score:
    [score] = of.score(group(chad(**metadata), moves), step=step)
    return score


# -- totals ---------------------------------------------------------------------------------------
def test_deductions_are_capped_and_parts_sum_to_the_total() -> None:
    two = {"cap": 0.5, "deduct": {"a": 0.4, "b": 0.4}}
    half = one(rubric({"if_right": two}, fake("a", 0.5), fake("b", 0.25)), RIGHT)
    assert half.total == pytest.approx(0.7)
    assert half.parts == pytest.approx({"typed_match": 1.0, "a": -0.2, "b": -0.1})
    full = one(rubric({"if_right": two}, fake("a", 1.0), fake("b", 1.0)), RIGHT)
    assert full.total == pytest.approx(0.5)
    assert full.parts == pytest.approx({"typed_match": 1.0, "a": -0.25, "b": -0.25})


def test_a_graded_outcome_is_its_own_value() -> None:
    tree: dict[str, JSON] = {
        "outcome": {"signal": "a", "graded": True, "right_from": 0.5},
        "if_right": {"cap": 1.0, "deduct": {"b": 0.1}},
    }
    for value, outcome, total in ((0.75, "right", 0.65), (0.25, "wrong", 0.25)):
        graded = rubric(tree, fake("a", value), fake("b", 1.0))
        score = one(graded, RIGHT)
        assert (score.outcome, score.total) == (outcome, pytest.approx(total))
        assert score.parts["a"] == value
        assert graded.bounds == (pytest.approx(-0.1), 1.0)
    silent = one(rubric(tree, fake("a", 0.25), fake("b", 1.0)), "no tag")
    assert (silent.outcome, silent.total) == ("unanswered", 0.25)


def test_signals_are_told_the_step() -> None:
    told: list[int] = []

    @signal(range=(0, 1), family="cost")
    def listens(trajectory: Trajectory, context: SignalContext) -> float:
        told.append(context.step)
        return 0.0

    tree = {"version": 1, "if_right": {"cap": 1, "deduct": {"listens": 0.1}}}
    RubricTree(tree, signals={"listens": listens}).score(group(chad(), [RIGHT]), step=7)
    assert told == [7]


def test_each_side_has_its_own_deductions() -> None:
    both = rubric(
        {
            "if_right": {"cap": 1.0, "deduct": {"a": 0.1}},
            "if_not_right": {"cap": 1.0, "deduct": {"b": 0.2}},
        },
        fake("a", 1.0),
        fake("b", 1.0),
    )
    assert one(both, RIGHT).total == pytest.approx(0.9)
    assert one(both, WRONG).total == pytest.approx(-0.7)
    assert one(both, *LOOK, "<answer>unknown</answer>").total == pytest.approx(-0.2)
    rightly = one(both, *LOOK, "<answer>unknown</answer>", answer=None)
    assert (rightly.outcome, rightly.total) == ("abstained", pytest.approx(0.9))


def test_what_does_not_apply_deducts_nothing() -> None:
    tree: dict[str, JSON] = {"if_right": {"cap": 0.5, "deduct": {"a": 0.4}}}
    score = one(rubric(tree, fake("a", NotApplicable(why="no"))), RIGHT)
    assert score.total == 1.0
    assert score.results["a"] == NotApplicable(why="no")
    assert "a" not in score.parts


@pytest.mark.parametrize("failure", [SignalError(why="x"), SignalTimeout(why="x")])
def test_failures(failure: SignalResult) -> None:
    deduct: dict[str, JSON] = {"if_right": {"cap": 0.5, "deduct": {"a": 0.4}}}
    assert one(rubric(deduct, fake("a", failure)), RIGHT).total is None
    assert one(rubric(deduct, fake("a", failure)), WRONG).total == -0.5, "it does not count here"
    assert one(rubric({"gates": ["a"]}, fake("a", failure)), RIGHT).outcome == "failed"
    assert one(rubric({"outcome": {"signal": "a"}}, fake("a", failure)), RIGHT).total is None
    nothing = fake("a", NotApplicable())
    assert one(rubric({"outcome": {"signal": "a"}}, nothing), RIGHT).total is None


def test_an_episode_that_ended_in_error_is_unscored_whatever_it_did() -> None:
    broken = trajectory(chad(), ["<information>x</information>" + RIGHT], error="engine died")
    [score] = RubricTree("default").score(Group(group_id="g", trajectories=(broken,)), step=0)
    assert (score.total, score.outcome, score.gate) == (None, "failed", None)
    assert list(score.results) == ["typed_match"]
    failed = score.results["typed_match"]
    assert isinstance(failed, SignalError)
    assert "engine died" in failed.why


# -- gates ----------------------------------------------------------------------------------------
def test_a_gate_lies_half_below_the_lowest_reachable_total() -> None:
    gated = rubric(
        {
            "gates": ["g", "h"],
            "outcome": {"wrong": -2},
            "if_not_right": {"cap": 0.3, "deduct": {"a": 0.2}},
        },
        fake("g", 0.0),
        fake("h", 1.0),
        fake("a", 1.0),
    )
    score = one(gated, RIGHT)
    assert (score.outcome, score.gate, score.total) == ("gated", "h", pytest.approx(-2 - 0.2 - 0.5))
    assert score.parts == {"h": score.total}
    assert gated.bounds == (pytest.approx(-2.7), 1.0)


def test_a_gate_that_fired_counts_even_where_something_else_failed() -> None:
    tree: dict[str, JSON] = {"gates": ["g", "h"], "outcome": {"signal": "a"}}
    down = fake("a", SignalError(why="x"))
    assert (
        one(rubric(tree, fake("g", SignalError(why="x")), fake("h", 1.0), down), RIGHT).gate == "h"
    )


def test_a_gate_that_does_not_apply_does_not_fire() -> None:
    assert one(rubric({"gates": ["g"]}, fake("g", NotApplicable())), RIGHT).total == 1.0


# -- what siblings know of each other -------------------------------------------------------------
def test_group_signals_see_outcome_and_support_of_all_siblings() -> None:
    priced = rubric(
        {"if_right": {"cap": 0.5, "deduct": {"needless_calls": 0.36}}},
    )
    priced = RubricTree(priced.tree, solvability=WorldSolvability())
    siblings = group(
        chad(solvable="unsolvable"), [RIGHT], [*LOOK * 2, RIGHT], [*LOOK * 3, RIGHT], [*LOOK, WRONG]
    )
    totals = [score.total for score in priced.score(siblings, step=0)]
    assert totals == pytest.approx([1.0, 1.0, 0.88, -0.5])


def test_solvability_decides_what_applies() -> None:
    table = Solvability()
    measured = RubricTree("default", solvability=table)
    assert one(measured, RIGHT).total == 1.0, "never probed: undetermined"
    table.record({"t": 0.0}, Provenance(policy_hash="p", k=8, step=0))
    assert one(measured, RIGHT, step=10).total == pytest.approx(0.6)
    table.record({"t": 1.0}, Provenance(policy_hash="p", k=8, step=5))
    assert one(measured, RIGHT, step=10).total == 1.0
    assert one(measured, *LOOK, RIGHT, step=10).total == pytest.approx(0.88)
    assert one(RubricTree("default"), RIGHT).total == 1.0, "no table: undetermined"


def test_must_ground_by_the_task_or_by_the_domain() -> None:
    assert one(RubricTree("default"), RIGHT, must_ground=True).outcome == "unsupported"
    assert one(RubricTree("medical"), RIGHT).total == pytest.approx(-2.2)
    assert one(RubricTree("medical"), *LOOK, RIGHT).total == 1.0


def test_a_tasks_own_w_scales_what_is_negative() -> None:
    scaled = rubric({"outcome": {"task_w": [0.5, 2]}})
    assert one(scaled, WRONG, w=2).total == pytest.approx(-2.0)
    assert one(scaled, "<answer>unknown</answer>", w=2).total == pytest.approx(-1.0)
    assert one(scaled, RIGHT, w=2).total == 1.0
    assert one(scaled, WRONG).total == -0.5
    assert scaled.bounds == (-2.0, 1.0)
    too_much = one(scaled, WRONG, w=3)
    assert too_much.total is None
    assert "task_w" in str(too_much.results["typed_match"])
    assert one(rubric({}), WRONG, w=2).total == -0.5, "without task_w tasks have no say"


# -- schedule and budgets -------------------------------------------------------------------------
def test_a_scheduled_weight_ramps_by_step() -> None:
    ramped = rubric(
        {
            "if_right": {"cap": 0.5, "deduct": {"a": 0.4}},
            "schedule": {"a": {"from_step": 0, "to_step": 10}},
        },
        fake("a", 1.0),
    )
    totals = [one(ramped, RIGHT, step=step).total for step in (0, 5, 10, 99)]
    assert totals == pytest.approx([1.0, 0.8, 0.6, 0.6])


def test_a_budget_prices_calls_under_the_cap_and_moves_once_per_step() -> None:
    budget = {"calls": {"limit": 1.0, "lr": 0.1}}
    held = rubric({"if_right": {"cap": 0.5}, "budgets": budget})
    episodes = group(chad(), [*LOOK * 3, RIGHT])
    scores = held.score(episodes, step=0)
    assert scores[0].total == 1.0
    held.after_step([ScoredGroup(group=episodes, scores=scores)])
    assert held.score(episodes, step=1)[0].parts["budget calls"] == pytest.approx(-0.6 * 0.5 / 0.6)
    assert held.score(episodes, step=1)[0].total == pytest.approx(0.5)
    assert held.bounds_of("right") == Interval(0.5, 1.0)
    assert one(held, *LOOK, WRONG).total == -0.5, "only where the answer is right"

    other = rubric({"if_right": {"cap": 0.5}, "budgets": budget})
    other.restore(held.state())
    assert other.score(episodes, step=1) == held.score(episodes, step=1)


# -- what is refused ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"gates": ["forged_observations"]}, "Did you mean 'forged_observation'"),
        ({"if_right": {"cap": 1, "deduct": {"tokens": 0.1}}}, "tokens has [0, inf]"),
        ({"if_right": {"cap": 1, "deduct": {"below": 0.1}}}, "below has [-1, 1]"),
        ({"outcome": {"signal": "needless_calls"}}, "scope group"),
        ({"outcome": {"graded": True, "task_w": [1, 2]}}, "which `graded` leaves unread"),
        (
            {
                "if_right": {"cap": 1, "deduct": {"needless_calls": 0.1}},
                "settings": {"needless_calls": {"scales": 3}},
            },
            "Did you mean 'scale'",
        ),
    ],
)
def test_refused_with_a_remedy(tree: dict[str, JSON], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        rubric(tree, fake("below", 0.0, range=(-1.0, 1.0)))
    assert said in str(raised.value)


def test_a_foreign_signal_is_held_to_its_range() -> None:
    wild = rubric({"if_right": {"cap": 1, "deduct": {"a": 0.1}}}, fake("a", 7.0))
    score = one(wild, RIGHT)
    assert score.total is None
    assert "outside its range" in str(score.results["a"])


def test_it_fits_its_protocols() -> None:
    default: Rubric = RubricTree("default")
    assert isinstance(default, Stateful)
    assert default.bounds == (pytest.approx(-1.3), 1.0)
