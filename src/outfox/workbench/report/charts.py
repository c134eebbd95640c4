"""Curves over steps, as SVG that stretches and HTML labels that do not.

The plot area is a 100 x 100 drawing stretched to its box, with strokes that keep their width; ticks
and names are HTML placed in percent, so text has one size on a phone, a screen and on paper.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_MOST_TICKS = 4
_NAME_HEIGHT = 9.0
"""Least distance of two names at the right edge, in percent of the plot's height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One named curve; None where a step has no value."""

    name: str
    values: Sequence[float | None]


def curves(
    title: str,
    note: str,
    steps: Sequence[int],
    series: Sequence[Series],
    *,
    low: float | None = None,
    high: float | None = None,
) -> str:
    """A figure with one line per series: thin as measured, thick smoothed over nearby steps."""
    drawn = [s for s in series if any(v is not None for v in s.values)]
    if not drawn or len(steps) < 2:
        return _figure(title, note, '<p class="empty">Not recorded in this run.</p>')
    known = [v for s in drawn for v in s.values if v is not None]
    scale = _Scale(steps, *_range(known, low, high))
    ticks = [t for t in nice_ticks(scale.bottom, scale.top) if scale.bottom <= t <= scale.top]
    lines = [_rule(scale.y(tick), zero=tick == 0 and scale.bottom < 0) for tick in ticks]
    ends: list[tuple[float, str, int]] = []
    for index, one in enumerate(drawn):
        smooth = smoothed(one.values)
        if smooth != list(one.values):
            lines.append(_path(steps, one.values, scale, f"raw s{index}"))
        lines.append(_path(steps, smooth, scale, f"curve s{index}"))
        last = next(v for v in reversed(smooth) if v is not None)
        ends.append((scale.y(last), one.name, index))
    body = _plot(lines, _y_labels(ticks, scale) + _x_labels(steps, scale) + _names(ends))
    return _figure(title, note, _live(body, steps, drawn))


def shares(title: str, note: str, steps: Sequence[int], series: Sequence[Series]) -> str:
    """A figure of shares that sum to one, stacked from the bottom, with a legend."""
    drawn = [s for s in series if any(s.values)]
    if not drawn or len(steps) < 2:
        return _figure(title, note, '<p class="empty">Not recorded in this run.</p>')
    scale = _Scale(steps, 0.0, 1.0)
    below = [0.0] * len(steps)
    areas: list[str] = []
    for index, one in enumerate(drawn):
        above = [b + (v or 0.0) for b, v in zip(below, one.values, strict=True)]
        forth = [f"{scale.x(x):.2f},{scale.y(y):.2f}" for x, y in zip(steps, above, strict=True)]
        back = [f"{scale.x(x):.2f},{scale.y(y):.2f}" for x, y in zip(steps, below, strict=True)]
        areas.append(f'<polygon class="area s{index}" points="{" ".join(forth + back[::-1])}"/>')
        below = above
    ticks = [0.0, 0.5, 1.0]
    legend = "".join(
        f'<li><i class="swatch s{index}"></i>{escape(one.name)}</li>'
        for index, one in enumerate(drawn)
    )
    body = _plot(areas, _y_labels(ticks, scale) + _x_labels(steps, scale))
    return _figure(title, note, _live(body, steps, drawn) + f'<ul class="legend">{legend}</ul>')


def _range(known: Sequence[float], low: float | None, high: float | None) -> tuple[float, float]:
    """What the plot spans: the values and, where given, `low` and `high`; air where they end."""
    bottom = min(known) if low is None else min(low, *known)
    top = max(known) if high is None else max(high, *known)
    air = 0.04 * (top - bottom) or 0.5
    pinned = (low, high, 0.0)
    if top == bottom:
        top += air
    return bottom - air * (bottom not in pinned), top + air * (top not in pinned)


def smoothed(values: Sequence[float | None]) -> list[float | None]:
    """Mean over a window of an eighth of the run, centred; as it is under 24 steps."""
    if len(values) < 24:
        return list(values)
    half = max(1, len(values) // 16)
    result: list[float | None] = []
    for index, value in enumerate(values):
        near = [v for v in values[max(0, index - half) : index + half + 1] if v is not None]
        result.append(sum(near) / len(near) if value is not None else None)
    return result


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers around and inside the range."""
    span = max(high - low, 1e-9)
    rough = span / _MOST_TICKS
    power = 10 ** math.floor(math.log10(rough))
    size = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return [round(k * size, 10) for k in range(first, last + 1)]


def number(value: float) -> str:
    """At most two decimals, no needless zeros, a true minus sign."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return text.replace("-", "−") if text not in ("", "-0") else "0"


class _Scale:
    """Data to percent of the plot; y grows downwards."""

    def __init__(self, steps: Sequence[int], bottom: float, top: float) -> None:
        self._first, self._last = steps[0], steps[-1]
        self.bottom, self.top = bottom, top

    def x(self, step: float) -> float:
        return 100 * (step - self._first) / (self._last - self._first)

    def y(self, value: float) -> float:
        return 100 * (self.top - value) / (self.top - self.bottom)


def _path(steps: Sequence[int], values: Sequence[float | None], scale: _Scale, kind: str) -> str:
    """A line that breaks where there is no value."""
    commands: list[str] = []
    pen = "M"
    for step, value in zip(steps, values, strict=True):
        if value is None:
            pen = "M"
            continue
        commands.append(f"{pen}{scale.x(step):.2f} {scale.y(value):.2f}")
        pen = "L"
    return f'<path class="{kind}" d="{"".join(commands)}"/>'


def _rule(y: float, *, zero: bool) -> str:
    return f'<path class="{"zero" if zero else "rule"}" d="M0 {y:.2f}H100"/>'


def _y_labels(ticks: Sequence[float], scale: _Scale) -> str:
    return "".join(
        f'<span class="tick y" style="top:{scale.y(tick):.2f}%">{number(tick)}</span>'
        for tick in ticks
    )


def _x_labels(steps: Sequence[int], scale: _Scale) -> str:
    whole = [t for t in nice_ticks(steps[0], steps[-1]) if t == round(t)]
    inside = [t for t in whole if steps[0] <= t <= steps[-1]]
    return "".join(
        f'<span class="tick x" style="left:{scale.x(tick):.2f}%">{number(tick)}</span>'
        for tick in inside
    )


def _names(ends: Sequence[tuple[float, str, int]]) -> str:
    """Names at the ends of their curves, pushed apart where they would overlap."""
    placed: list[tuple[float, str, int]] = []
    for y, name, index in sorted(ends):
        least = placed[-1][0] + _NAME_HEIGHT if placed else -math.inf
        placed.append((max(y, least), name, index))
    over = max(0.0, placed[-1][0] - 100) if placed else 0.0
    for position in range(len(placed) - 1, -1, -1):
        y, name, index = placed[position]
        roof = placed[position + 1][0] - _NAME_HEIGHT if position + 1 < len(placed) else 100.0
        placed[position] = (min(y, roof) if over else y, name, index)
    return "".join(
        f'<span class="name s{index}" style="top:{y:.2f}%">{escape(name)}</span>'
        for y, name, index in placed
    )


def _plot(shapes: Sequence[str], labels: str) -> str:
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">'
        f'{"".join(shapes)}</svg><i class="cursor"></i>{labels}'
    )


def _live(body: str, steps: Sequence[int], series: Sequence[Series]) -> str:
    """The plot with what the script shows under the pointer, and its ends in words."""
    rows = [
        {"n": one.name, "v": [None if v is None else round(v, 3) for v in one.values]}
        for one in series
    ]
    data = escape(json.dumps({"x": list(steps), "s": rows}, ensure_ascii=False))
    spoken = "; ".join(f"{one.name}: {_first_last(one.values)}" for one in series)
    return (
        f'<div class="plot" role="img" tabindex="0" aria-label="{escape(spoken)}" '
        f'data-plot="{data}">{body}</div>'
    )


def _first_last(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{number(known[0])} to {number(known[-1])}"


def _figure(title: str, note: str, body: str) -> str:
    return (
        f'<figure class="chart"><figcaption><h3>{escape(title)}</h3><p>{escape(note)}</p>'
        f"</figcaption>{body}</figure>"
    )
