from __future__ import annotations

from outfox.rewards.intervals import Interval, hull, point, summed, total


def test_arithmetic() -> None:
    assert Interval(0, 1) + Interval(2, 3) == Interval(2, 4)
    assert Interval(0, 1) - Interval(2, 3) == Interval(-3, -1)
    assert Interval(-1, 1).times(Interval(0, 2)) == Interval(-2, 2)
    assert Interval(0.5, 1).times(Interval(0, 2)) == Interval(0, 2)
    assert Interval(0, 3).at_most(2) == Interval(0, 2)
    assert hull([Interval(0, 1), point(3)]) == Interval(0, 3)
    assert summed([]) == point(0)
    assert 1.0 in Interval(0, 1)
    assert 1.1 not in Interval(0, 1)


def test_total_is_the_same_on_numbers_and_on_ranges() -> None:
    assert total(point(1), {"a": point(0.2), "b": point(0.4)}, 0.5) == point(0.5)
    ranges = {"a": Interval(0, 0.2), "b": Interval(0, 0.4)}
    assert total(point(1), ranges, 0.5) == Interval(0.5, 1)
