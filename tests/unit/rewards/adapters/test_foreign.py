"""How what a foreign function returned is read, and how often it is asked."""

import asyncio

import numpy as np
import pytest

from outfox.core.errors import ConfigError
from outfox.core.results import NotApplicable, SignalError, SignalTimeout, Value
from outfox.rewards.adapters.foreign import Foreign, Noted, Reading, at_once, one_by_one
from outfox.testing.rewards import check_signal, context, group, task, trajectory

GROUP = group(task("t", "q", "a"), ["<answer>a</answer>"], ["<answer>b</answer>"])
SCORE = Reading(key="score", range=(0.0, 1.0))


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (0.5, 0.5),
        (1, 1.0),
        (True, 1.0),
        (np.float32(0.25), 0.25),
        (np.array(0.25), 0.25),
        ({"score": 0.5}, 0.5),
    ],
)
def test_numbers_are_values(returned, value):
    assert SCORE.read(returned, "f on row") == Value(value=value)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "f on row returned NoneType None; return a number"),
        ("1.0", "f on row returned str '1.0'; return a number"),
        (float("nan"), r"f on row returned nan, outside its range \[0, 1\]"),
        (float("inf"), "f on row returned inf, outside"),
        (-0.5, r"returned -0.5, outside its range \[0, 1\]; say `range: \[LOW, HIGH\]`"),
        ([0.5], "returned list"),
        (np.array([0.5, 1.0]), "no one number"),
        ({"reward": 1.0}, "returned a mapping of reward; return a number under 'score'"),
        ({}, "returned a mapping of nothing"),
        ({"score": None}, "returned NoneType None"),
        (ValueError("no"), "f on row raised ValueError: no"),
    ],
)
def test_everything_else_is_an_error_that_names_the_row(returned, message):
    result = SCORE.read(returned, "f on row")
    assert isinstance(result, SignalError)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(result.why)


def test_none_and_timeouts_have_types_of_their_own():
    assert isinstance(SCORE.read(TimeoutError(), "f"), SignalTimeout)
    may_pass = Reading(key=None, range=(0.0, 1.0), none_applies=True)
    assert isinstance(may_pass.read(None, "f"), NotApplicable)
    assert isinstance(may_pass.read({"score": 1.0}, "f"), SignalError)


def test_a_declared_range_is_scaled_and_a_lack_turned_round():
    signed = Reading(key="score", range=(-1.0, 3.0))
    assert signed.read(-1, "f") == Value(value=0.0)
    assert signed.read(0, "f") == Value(value=0.25)
    assert isinstance(signed.read(3.5, "f"), SignalError)
    lacking = Reading(key="score", range=(-1.0, 3.0), lack=True)
    assert lacking.read(3, "f") == Value(value=0.0)


def test_other_entries_become_details_or_are_told():
    returned = {"score": 0.5, "format": True, "f1": np.float64(0.25), "pred": "Elbe", "nan": np.nan}
    result = SCORE.read(returned, "f")
    assert result == Value(
        value=0.5, details={"format": 1.0, "f1": 0.25}, why="pred: 'Elbe'; nan: nan"
    )
    noted = SCORE.read(Noted(returned=1.0, notes={"parsed": 1}), "f")
    assert noted == Value(value=1.0, details={"parsed": 1.0})
    assert isinstance(SCORE.read(Noted(returned="x", notes={"parsed": 1}), "f"), SignalError)


def asked(answers):
    """A signal whose function keeps what it was asked."""
    questions = []

    def call(siblings, step):
        questions.append(([each.sibling for each in siblings], step))
        return answers(siblings)

    return Foreign("f", call, reading=SCORE, family="outcome"), questions


def test_it_is_asked_once_per_group():
    signal, questions = asked(lambda siblings: [0.1 * each.sibling for each in siblings])
    results = [signal(each, context(GROUP)) for each in GROUP.trajectories]
    assert results == [Value(value=0.0), Value(value=0.1)]
    assert questions == [([0, 1], 0)]
    assert signal(GROUP.trajectories[1], context(GROUP)) == Value(value=0.1)  # asked again
    assert len(questions) == 2


def test_siblings_that_failed_are_left_out():
    failed = trajectory(GROUP.trajectories[0].task, [], sibling=2, error="engine down")
    siblings = type(GROUP)(group_id="g", trajectories=(*GROUP.trajectories, failed))
    signal, questions = asked(lambda siblings: [1.0 for _ in siblings])
    assert signal(siblings.trajectories[0], context(siblings)) == Value(value=1.0)
    assert questions == [([0, 1], 0)]


def test_it_keeps_the_promises_of_a_signal():
    signal, _ = asked(lambda siblings: [0.5 if e.answer == "a" else "x" for e in siblings])
    check_signal(signal, [GROUP])


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.0, 0.0), (0.0, float("inf"))])
def test_a_range_that_is_none_is_refused(bounds):
    with pytest.raises(ConfigError, match=r"rubric\.settings\.f\.range: is \[low, high\], finite"):
        Foreign("f", lambda s, n: [], reading=Reading(key=None, range=bounds), family="outcome")


def test_one_call_fails_alone_and_a_batch_together():
    def picky(x):
        return 1 / x

    one, fault = one_by_one(picky, [((1,), {}), ((0,), {})])
    assert one == 1
    assert isinstance(fault, ZeroDivisionError)
    both = at_once(picky, ((0,), {}), 2)
    assert [type(each) for each in both] == [ZeroDivisionError] * 2


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1.0], "1 rewards; return a list of 2"),
        ([1.0] * 3, "3 rewards"),
        (0.5, "returned 0.5"),
        ("ab", "returned 'ab'"),
        ({"a": 1, "b": 2}, "return a list of 2"),
        (np.array(1.0), r"returned array\(1\.\)"),
    ],
)
def test_a_batch_of_another_size_is_a_fault_of_all(returned, message):
    faults = at_once(lambda: returned, ((), {}), 2)
    assert len(faults) == 2
    with pytest.raises(ValueError, match=message):
        raise faults[0]


def test_an_array_is_as_good_as_a_list():
    assert list(at_once(lambda: np.array([0.5, 1.0]), ((), {}), 2)) == [0.5, 1.0]


async def test_async_functions_run_together_even_inside_a_loop():
    started = asyncio.Event()

    async def late(first):
        if first:
            await asyncio.wait_for(wait_for_second(), 5)
        seen.append(first)
        return 1.0 if first else fail()

    async def wait_for_second():
        while not seen:
            await asyncio.sleep(0)

    def fail():
        raise KeyError("x")

    seen = []
    one, other = one_by_one(late, [((True,), {}), ((False,), {})])
    assert one == 1.0
    assert isinstance(other, KeyError)
    assert not started.is_set()
