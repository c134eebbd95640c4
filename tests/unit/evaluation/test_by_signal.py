"""Means of what signals measured, by hand."""

from outfox.core.results import NotApplicable, Score, ScoredGroup, SignalError, Value
from outfox.core.types import Group
from outfox.evaluation.by_signal import signal_means
from outfox.testing.rewards import task, trajectory


def group(name, *results):
    """One sibling per result of the signal `mine.py:loud`."""
    asked = task(name, reference="x")
    members = tuple(
        trajectory(asked, ["<answer>x</answer>"], sibling=i, group_id=name)
        for i, _ in enumerate(results)
    )
    scores = tuple(
        Score(total=1.0, outcome="right", results={"mine.py:loud": result}, parts={})
        for result in results
    )
    return ScoredGroup(group=Group(group_id=name, trajectories=members), scores=scores)


def test_a_mean_counts_the_episodes_that_have_a_value():
    found = signal_means(
        [
            group("a", Value(value=1.0), Value(value=0.5), NotApplicable()),
            group("b", Value(value=0.0), SignalError(why="broken")),
        ]
    )
    estimate = found["mine.py:loud"]
    assert (estimate.value, estimate.n) == (0.5, 2)
    assert (estimate.low, estimate.high) == (0.0, 0.75)


def test_a_signal_that_never_applies_is_absent():
    assert signal_means([group("a", NotApplicable(), SignalError(why="broken"))]) == {}
    assert signal_means([]) == {}


def test_details_stand_beside_their_signal():
    found = signal_means([group("a", Value(value=1.0, details={"f1": 0.5}), Value(value=0.0))])
    assert found["mine.py:loud"].value == 0.5
    assert found["mine.py:loud/f1"].value == 0.5
