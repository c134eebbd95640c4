"""Curves: ticks, gaps, smoothing, names that do not overlap."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfox.workbench.report.charts import Series, curves, nice_ticks, number, shares, smoothed


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75, 1]),
        (-0.5, 1, [-0.5, 0, 0.5, 1]),
        (0, 79, [0, 20, 40, 60, 80]),
        (0.2, 0.2, None),
    ],
)
def test_ticks(low, high, ticks):
    found = nice_ticks(low, high)
    assert found == ticks if ticks else found[0] <= low <= found[-1]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_enclose_the_range_and_are_few(low, span):
    found = nice_ticks(low, low + span)
    assert found[0] <= low + 1e-6 * span + 1e-9
    assert found[-1] >= low + span - 1e-6 * span - 1e-9
    assert 2 <= len(found) <= 7


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-0.001, "0"),
        (1.0, "1"),
        (-0.25, "−0.25"),
        (1.5, "1.5"),
        (20.0, "20"),
        (100, "100"),
    ],
)
def test_number(value, shown):
    assert number(value) == shown


def test_short_runs_are_shown_as_they_are():
    assert smoothed([1, None, 3]) == [1, None, 3]


def test_smoothing_keeps_gaps_and_means():
    values = [float(i % 2) for i in range(48)]
    values[10] = None
    found = smoothed(values)
    assert found[10] is None
    assert found[24] == pytest.approx(4 / 7)  # steps 21 to 27: 1 0 1 0 1 0 1


def test_line_breaks_where_a_step_has_no_value():
    figure = curves(
        "t", "n", [0, 1, 2, 3], [Series(name="a", values=[0, 1, None, 1])], low=0, high=1
    )
    (path,) = re.findall(r'class="curve s0" d="([^"]*)"', figure)
    assert path == "M0.00 100.00L33.33 0.00M100.00 0.00"


def test_names_at_the_edge_keep_their_distance_and_stay_inside():
    same = [Series(name=name, values=[0.0, 0.0]) for name in "abcd"]
    figure = curves("t", "n", [0, 1], same, low=0, high=1)
    tops = [float(t) for t in re.findall(r'class="name s\d" style="top:([\d.]+)%"', figure)]
    assert len(tops) == 4
    assert max(tops) <= 100
    assert min(b - a for a, b in zip(sorted(tops), sorted(tops)[1:], strict=False)) >= 9 - 1e-6


def test_a_series_of_zeros_has_a_plot():
    figure = curves("t", "n", [0, 1], [Series(name="a", values=[0.0, 0.0])], low=0)
    (path,) = re.findall(r'class="curve s0" d="([^"]*)"', figure)
    assert path == "M0.00 100.00L100.00 100.00"


def test_series_without_values_are_left_out():
    empty = Series(name="nothing", values=[None, None])
    assert "Not recorded" in curves("t", "n", [0, 1], [empty])
    assert "nothing" not in curves("t", "n", [0, 1], [empty, Series(name="a", values=[1, 2])])
    assert "Not recorded" in shares("t", "n", [0], [Series(name="a", values=[1])])


def test_shares_are_stacked():
    one, two = Series(name="a", values=[0.25, 0.5]), Series(name="b", values=[0.75, 0.5])
    figure = shares("t", "n", [0, 1], [one, two])
    first, second = re.findall(r'points="([^"]*)"', figure)
    assert first == "0.00,75.00 100.00,50.00 100.00,100.00 0.00,100.00"
    assert second == "0.00,0.00 100.00,0.00 100.00,50.00 0.00,75.00"
