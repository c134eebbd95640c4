"""One trajectory as HTML: every token by owner and advantage, the reward part by part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from outfox.core.ledger import Floats, Ledger, Segment
from outfox.core.results import (
    NotApplicable,
    Score,
    SignalCrash,
    SignalError,
    SignalResult,
    SignalTimeout,
    TrajectoryCredit,
    Value,
)
from outfox.core.types import Trajectory
from outfox.workbench.report.charts import number


def transcript(
    trajectory: Trajectory,
    pieces: Sequence[Sequence[str]] | None,
    credit: TrajectoryCredit | None,
    peak: float,
) -> str:
    """The episode's tokens; without stored token texts, its messages.

    `peak`: the advantage that gets the deepest shade.
    """
    if not pieces or not trajectory.ledgers:
        return _messages(trajectory)
    readings = {reading for turn in trajectory.turns for reading in turn.readings}
    advantages = credit.advantages if credit else ()
    blocks: list[str] = []
    for index, ledger in enumerate(trajectory.ledgers):
        pushed = advantages[index] if index < len(advantages) else None
        blocks += _ledger(ledger, pieces[index], pushed, peak, readings)
    return f'<div class="tokens">{"".join(blocks)}</div>'


def _ledger(
    ledger: Ledger,
    pieces: Sequence[str],
    advantages: Floats | None,
    peak: float,
    readings: set[str],
) -> list[str]:
    """Rows by owner; a reading stays inside the policy's row that it interrupts."""
    rows: list[tuple[str, list[str]]] = []
    start = 0
    for segment in ledger.segments:
        end = start + len(segment.token_ids)
        texts = pieces[start:end]
        pushed = None if advantages is None else advantages[start:end]
        reading = segment.owner == "environment" and "".join(texts).strip() in readings
        row = "policy" if reading else segment.owner
        if not rows or rows[-1][0] != row:
            rows.append((row, []))
        rows[-1][1].append(_segment(segment, texts, pushed, peak))
        start = end
    return [
        f'<div class="row {owner}"><b>{owner}</b><p dir="auto">{"".join(parts)}</p></div>'
        for owner, parts in rows
    ]


def _segment(segment: Segment, texts: Sequence[str], advantages: Floats | None, peak: float) -> str:
    names = {
        position: span.name
        for span in segment.spans
        for position in range(span.start, span.end)
        if span.name != "thought"
    }
    shown: list[str] = []
    for position, text in enumerate(texts):
        told = [segment.owner, names[position]] if position in names else [str(segment.owner)]
        kind = f"{segment.owner[:3]} {names.get(position) or _tag(text)}".strip()
        style = ""
        if segment.owner == "policy" and segment.logprobs is not None:
            told.append(f"p {number(math.exp(float(segment.logprobs[position])))}")
        if segment.owner == "policy" and advantages is not None:
            advantage = float(advantages[position])
            told.append(f"advantage {signed(advantage)}")
            style, sign = _shade(advantage, peak)
            kind += sign
        tip = escape(" · ".join(told))
        shown.append(f'<span class="{kind}"{style} data-t="{tip}">{escape(text)}</span>')
    return "".join(shown)


def _tag(text: str) -> str:
    return "tag" if text.startswith("<") and text.endswith(">") else ""


def _shade(advantage: float, peak: float) -> tuple[str, str]:
    """Depth of the shade by size, its colour by sign."""
    if not advantage or not peak:
        return "", ""
    depth = round(8 + 28 * min(1.0, abs(advantage) / peak))
    return f' style="--a:{depth}%"', " up" if advantage > 0 else " down"


def _messages(trajectory: Trajectory) -> str:
    rows = [("prompt", message.content) for message in trajectory.task.prompt]
    for turn in trajectory.turns:
        rows.append(("policy", turn.text))
        if turn.observation:
            rows += [("environment", message.content) for message in turn.observation.messages]
    blocks = "".join(
        f'<div class="row {owner}"><b>{owner}</b><p dir="auto">'
        f'<span class="{owner[:3]}" data-t="{owner}">{escape(text)}</span></p></div>'
        for owner, text in rows
    )
    return f'<div class="tokens">{blocks}</div>'


# -- reward ---------------------------------------------------------------------------------------
def reward(score: Score) -> str:
    """Every part's contribution, their sum, and what each signal measured."""
    if score.total is None:
        return '<p class="empty">Not scored: something outside the policy failed.</p>'
    width = max(1.0, *(abs(value) for value in (score.total, *score.parts.values())))
    parts = [
        ("outcome" if index == 0 and score.gate is None else words(name), value)
        for index, (name, value) in enumerate(score.parts.items())
    ]
    rows = "".join(
        _bar(name, value, width, "") for name, value in parts if value or name == "outcome"
    )
    silent = [name for name, value in parts if not value and name != "outcome"]
    gate = f'<p class="gate">Gate: {escape(words(score.gate))}</p>' if score.gate else ""
    rest = f'<p class="silent">Nothing for {escape(", ".join(silent))}.</p>' if silent else ""
    measured = "".join(_signal(name, result) for name, result in score.results.items())
    return (
        f'{gate}<div class="bars">{rows}{_bar("total", score.total, width, " total")}</div>{rest}'
        f"<details><summary>What the signals measured</summary><dl>{measured}</dl></details>"
    )


def _bar(name: str, value: float, width: float, kind: str) -> str:
    """One row; the bar starts at zero in the middle of its track."""
    size = 50 * abs(value) / width
    left = 50 - size if value < 0 else 50
    sign = "down" if value < 0 else "up"
    return (
        f'<div class="bar{kind}"><span>{escape(name)}</span><i><u class="{sign}" '
        f'style="left:{left:.1f}%;width:{size:.1f}%"></u></i><b>{signed(value)}</b></div>'
    )


def _signal(name: str, result: SignalResult) -> str:
    match result:
        case Value(value=value, why=why):
            shown, text = number(value), why
        case NotApplicable(why=why):
            shown, text = "–", why or "does not apply"
        case SignalError(why=why):
            shown, text = "error", why
        case SignalTimeout(why=why):
            shown, text = "timeout", why
        case SignalCrash(why=why):
            shown, text = "crash", why
    return f"<dt>{escape(words(name))} <b>{shown}</b></dt><dd dir='auto'>{escape(text)}</dd>"


def words(name: str) -> str:
    """`needless_calls` as it is read."""
    return name.replace("_", " ")


def signed(value: float) -> str:
    """`+.25` style is for machines; people get +0.25, −0.25 and 0."""
    text = number(value)
    return f"+{text}" if value > 0 and text != "0" else text
