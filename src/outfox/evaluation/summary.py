"""`summary.json`: what a run came to, before and after, and one line of it for the progress bar.

    {"recipe": ..., "seed": ..., "steps": ...,
     "before": {...}, "after": {...}, "greedy": {...}}       one block per evaluation

    a block:
      accuracy, necessity_precision, ...: number or null      keys of `Measures`, see metrics.py
      intervals: {accuracy: {low, high, n}, ...}              95 %, n in questions
      by_kind: {kind: {n, accuracy, calls, abstained, intervals}}
      by_signal: {signal: {value, low, high, n}}
      n: {questions, episodes, failed}
      stops: {answer: share, ...}
      settings: {questions, samples, temperature, seed, ...}  how it was drawn

Keys in `NOT_YET` are defined but not measured, and null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

from outfox.core.types import JSON
from outfox.evaluation.intervals import Estimate
from outfox.evaluation.metrics import KindMeasures, Measures

NOT_YET = (
    "query_utility",
    "harmful_query_rate",
    "stop_late",
    "stop_premature",
    "attribution",
    "aurc",
)


_NONE: Mapping[str, Mapping[str, JSON]] = {}


def summary(
    *,
    before: Measures | None = None,
    after: Measures | None = None,
    greedy: Measures | None = None,
    settings: Mapping[str, Mapping[str, JSON]] = _NONE,
    **about: JSON,
) -> dict[str, JSON]:
    """Content of `summary.json`; an evaluation that was not made is null.

    `settings`: how each was drawn, by its name.
    """
    evaluations = {"before": before, "after": after, "greedy": greedy}
    return {
        **about,
        **{
            name: None if of is None else {**block(of), "settings": dict(settings.get(name, {}))}
            for name, of in evaluations.items()
        },
    }


def block(measures: Measures) -> dict[str, JSON]:
    """One evaluation as JSON."""
    return {
        **_flat(measures),
        **dict.fromkeys(NOT_YET),
        "by_kind": {
            kind: {"n": measured.n, **_flat(measured)}
            for kind, measured in measures.by_kind.items()
        },
        "by_signal": {name: asdict(found) for name, found in measures.by_signal.items()},
        "n": {
            "questions": measures.questions,
            "episodes": measures.episodes,
            "failed": measures.failed,
        },
        "stops": dict(measures.stops),
    }


def line(measures: Measures) -> str:
    """`acc .62 · searches known .31 unknown 1.40 · J .28 · reward .41`"""
    shown = [
        f"acc {short(measures.accuracy.value)}",
        f"searches known {short(measures.calls_known.value)} "
        f"unknown {short(measures.calls_needed.value)}",
        f"J {short(measures.j.value)}",
        f"reward {short(measures.reward.value)}",
    ]
    return " · ".join(shown)


def short(value: float | None) -> str:
    """Two decimals, no leading zero; an en dash where nothing was measured."""
    if value is None:
        return "–"
    text = f"{value:.2f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _flat(measures: Measures | KindMeasures) -> dict[str, JSON]:
    """Every estimate's value by name, and their intervals together."""
    estimates = {
        field.name: found
        for field in fields(measures)
        if isinstance(found := getattr(measures, field.name), Estimate)
    }
    intervals: Mapping[str, JSON] = {
        name: {"low": estimate.low, "high": estimate.high, "n": estimate.n}
        for name, estimate in estimates.items()
        if estimate.value is not None
    }
    return {
        **{name: estimate.value for name, estimate in estimates.items()},
        "intervals": intervals,
    }
