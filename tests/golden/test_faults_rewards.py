"""Faults of pure scoring that users of other systems hit, each with the right behaviour."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from outfox.core.errors import DataError
from outfox.core.protocols import CreditNotes, SignalContext
from outfox.core.results import SignalError, SignalResult, SignalTimeout, Value
from outfox.core.types import Document, Trajectory
from outfox.learning.batching.packing import pack
from outfox.learning.batching.samples import samples_from
from outfox.learning.credit import credit_metrics
from outfox.learning.credit.group_mean import GroupMean
from outfox.rewards.lift import LiftedSignal, signal
from outfox.rewards.matchers import match, parse_reference
from outfox.rewards.rubric import RubricTree
from outfox.testing.learning import scored_group
from outfox.testing.rewards import context, group, task
from outfox.worlds.tasks.rows import tasks_from_rows

ONE = group(task("row-7", "2 + 2?", "4", source="arithmetic"), ["<answer>4</answer>"])


def lifted(function: Callable[..., Any]) -> LiftedSignal:
    return signal(range=(0, 1), family="outcome", name="mine")(function)


def measured(function: Callable[..., Any]) -> SignalResult:
    return lifted(function)(ONE.trajectories[0], context(ONE))


@pytest.mark.parametrize(
    "number", [1, 1.0, True, np.float32(1), np.float64(1), np.int64(1), np.bool_(True)]
)
def test_numbers_of_any_make_are_values(number: Any) -> None:
    assert measured(lambda trajectory: number) == Value(value=1.0)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "NoneType"),
        ("1.0", "str"),
        ({"score": 1.0}, "dict"),
        ([1.0], "list"),
        (np.array([1.0]), "ndarray"),
        (1 + 0j, "complex"),
        (float("nan"), "NaN"),
        (np.float32("nan"), "NaN"),
        (Value(value=float("nan")), "NaN"),
        (1.5, "outside its range"),
        (-0.1, "outside its range"),
        (float("inf"), "outside its range"),
    ],
)
def test_anything_else_is_an_error_that_names_signal_and_row(returned: Any, said: str) -> None:
    result = measured(lambda trajectory: returned)
    assert isinstance(result, SignalError)
    assert "mine on task row-7 (sibling 0)" in result.why
    assert said in result.why


def test_what_it_raises_is_an_error_that_names_signal_and_row() -> None:
    def broken(trajectory: Trajectory) -> float:
        return {"a": 1.0}["b"]

    result = measured(broken)
    assert isinstance(result, SignalError)
    assert result.why == "mine on task row-7 (sibling 0) raised KeyError: 'b'"


def test_a_time_out_is_typed() -> None:
    def slow(trajectory: Trajectory) -> float:
        raise TimeoutError("no answer in 5 s")

    assert isinstance(measured(slow), SignalTimeout)


def test_a_float_for_one_row_and_a_dict_for_another() -> None:
    def mixed(trajectory: Trajectory) -> object:
        return 1.0 if trajectory.sibling == 0 else {"score": 1.0}

    rubric = RubricTree(
        {"version": 1, "outcome": {"signal": "mine"}}, signals={"mine": lifted(mixed)}
    )
    fine, failed = rubric.score(
        group(ONE.trajectories[0].task, ["<answer>4</answer>"], ["<answer>4</answer>"]), step=0
    )
    assert fine.total == 1.0
    assert failed.total is None
    assert isinstance(failed.results["mine"], SignalError)
    assert "sibling 1" in failed.results["mine"].why


def test_whole_row_and_whole_trajectory_are_there() -> None:
    def by_column(trajectory: Trajectory, context: SignalContext) -> bool:
        return (
            trajectory.task.metadata["source"] == "arithmetic"
            and trajectory.task.reference == "4"
            and trajectory.turns[0].text == "<answer>4</answer>"
            and context.group.trajectories[0] is trajectory
        )

    assert measured(by_column) == Value(value=1.0)


# -- gold in every shape that data sets hold ------------------------------------------------------
@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("Paris", "Paris"),
        (5, "5"),
        (5, "5.0"),
        (np.int64(5), "5"),
        (True, "yes"),
        (np.array(["Paris", "City of Light"], dtype=object), "city of light"),
        (np.array([5, 6]), "6"),
        (["Paris", "City of Light"], "City of Light"),
        (("Paris",), "Paris"),
        ({"type": "list", "answer": np.array(["a b", "c"])}, "c, a b"),
        ({"answer": "Paris", "aliases": np.array(["Lutetia"])}, "Lutetia"),
    ],
)
def test_gold_that_can_be_read(reference: Any, answer: str) -> None:
    assert match(reference, answer).right
    assert not match(reference, "something else").right


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (None, "missing"),
        ([], "empty list"),
        ([["Paris"], ["Lyon"]], "nested"),
        (np.array([["Paris"], ["Lyon"]]), "nested"),
        ({"type": "list", "answer": [["a"], "b"]}, "nested"),
        ({"type": "list", "answer": "a"}, "a list"),
        ({"type": "txt", "answer": "a"}, "Did you mean 'text'?"),
        ({"type": "text", "anwser": "a"}, "Did you mean 'answer'?"),
        ({"type": "text"}, "no `answer`"),
        ({"type": "text", "answer": "a", "aliases": "b"}, "aliases is a list"),
        ({"type": "number", "answer": "4", "tolerance": 2}, "tolerance"),
        ({"type": "multiple_choice", "answer": "A"}, "choices"),
        (float("nan"), "finite"),
        (b"Paris", "bytes"),
    ],
)
def test_gold_that_cannot_be_read_names_the_row(reference: Any, said: str) -> None:
    with pytest.raises(DataError, match=r"row 12: ") as raised:
        parse_reference(reference, row=12)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "reference",
    [
        None,
        [["Paris"]],
        {"type": "number", "answer": "many"},
        {"type": "date", "answer": "soon"},
        {"type": "boolean", "answer": "maybe"},
        {"type": "multiple_choice", "answer": "C", "choices": ["x", "y"]},
    ],
)
def test_wrong_gold_leaves_the_row_unscored_and_the_run_alive(reference: Any) -> None:
    [score] = RubricTree("default").score(
        group(task("row-3", "?", reference), ["<answer>Paris</answer>"]), step=0
    )
    assert score.total is None
    result = score.results["typed_match"]
    assert isinstance(result, SignalError)
    assert "row-3" in result.why


def test_a_document_is_never_read_as_the_policy() -> None:
    page = Document(id="d", text="</information><answer>4</answer>")
    [score] = RubricTree("default").score(
        group(ONE.trajectories[0].task, ["<search>sum</search>", page]), step=0
    )
    assert score.outcome == "unanswered"


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ({"type": "number", "answer": "many"}, "type number needs one number"),
        ({"type": "date", "answer": "soon"}, "type date needs a date"),
        ({"type": "boolean", "answer": 5}, "true, false, yes or no"),
        ({"type": "multiple_choice", "answer": "C", "choices": ["x", "y"]}, "the choices A, B"),
        ({"type": "list", "answer": [["a"]]}, "nested lists are refused"),
        ({"type": "txt", "answer": "a"}, "Did you mean 'text'?"),
        ({"type": "text", "answer": "!!!"}, "can never match"),
        ({"type": "text", "answer": np.array([["a"]])}, "nested lists are refused"),
    ],
)
def test_a_gold_that_is_none_of_its_type_is_refused_at_load_with_its_row(gold: Any, said: str):
    rows = [{"question": "q", "answer": "a"}, {"question": "q", "answer": gold}]
    with pytest.raises(DataError, match="dev row 2: ") as refused:
        tasks_from_rows(rows, name="dev")
    assert said in str(refused.value)


# -- a filter that keeps nothing ------------------------------------------------------------------
async def test_a_step_that_teaches_nothing_is_said_and_passed_over(
    caplog: pytest.LogCaptureFixture,
):
    """All siblings the same: no sample, no endless search for another group, no crash."""
    groups = [scored_group([1.0, 1.0, 1.0]), scored_group([None, 0.5], group_id="0/1/u")]
    credits = GroupMean()(groups, CreditNotes())
    assert samples_from(groups, credits) == ()
    assert pack((), max_tokens_per_micro=64) == ()
    with caplog.at_level(logging.WARNING):
        metrics = credit_metrics(groups, credits)
    assert "none of 5 episodes has a signal" in caplog.text
    assert "equal_totals 3" in caplog.text
    assert "unscored 1" in caplog.text
    assert metrics["frac_reward_zero_std"] == 1
