"""What the metrics count: each is a sum over episodes, divided by another.

`RATES` is the one place that says what a measure is; `metrics.py` estimates it for one evaluation,
`compare.py` for several. J is none of them, but made of two: 1 - over_search - under_search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from outfox.evaluation.episodes import Episode

Count = Callable[[Episode], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`value` summed over the episodes `among`, per such episode."""

    value: Count
    among: Count = lambda e: True
    over: Count | None = None
    """Divide by the sum of this over the episodes `among` instead of by their number."""
    share: bool = False
    """Value is true or false, or counts part of what it is divided by."""

    def above(self, e: Episode) -> float:
        return self.value(e) if self.among(e) else 0.0

    def below(self, e: Episode) -> float:
        counted = 1.0 if self.over is None else self.over(e)
        return counted if self.among(e) else 0.0


def _share(of: Count, among: Count = lambda e: True) -> Rate:
    return Rate(value=of, among=among, share=True)


def _known(e: Episode) -> bool:
    return e.known


def _needed(e: Episode) -> bool:
    return e.needed


def _called(e: Episode) -> bool:
    return e.calls > 0


def _in_conflict(e: Episode) -> bool:
    return e.kind.startswith(("conflict", "disputed"))


def _calls(e: Episode) -> float:
    return e.calls


RATES: Mapping[str, Rate] = {
    "accuracy": Rate(value=lambda e: e.right, share=True),
    "necessity_precision": _share(_needed, _called),
    "necessity_recall": _share(lambda e: e.relevant, _needed),
    "over_search": _share(_called, _known),
    "under_search": _share(lambda e: not e.relevant, _needed),
    "conflict": Rate(value=lambda e: e.resolved, among=_in_conflict),
    "abstain_right": _share(lambda e: e.abstained, lambda e: not e.answerable),
    "abstain_false": _share(lambda e: e.abstained, lambda e: e.answerable),
    "wrong": _share(lambda e: not (e.right or e.abstained)),
    "tokens_per_correct": Rate(value=lambda e: e.tokens, over=lambda e: e.right),
    "calls": Rate(value=_calls),
    "calls_known": Rate(value=_calls, among=_known),
    "calls_needed": Rate(value=_calls, among=_needed),
    "reward": Rate(value=lambda e: e.reward or 0.0, among=lambda e: e.reward is not None),
    "recovery": _share(lambda e: e.right, lambda e: e.retries.failed > 0),
    "changed_queries": Rate(
        value=lambda e: e.retries.changed,
        among=lambda e: e.retries.followed_up > 0,
        over=lambda e: e.retries.followed_up,
        share=True,
    ),
    "followed_poison": _share(lambda e: e.followed, lambda e: e.poisoned),
    "verified_conflict": _share(lambda e: e.verified, _in_conflict),
    "abstained": _share(lambda e: e.abstained),
}
"""By the names of `metrics.Measures` and `metrics.KindMeasures`."""
