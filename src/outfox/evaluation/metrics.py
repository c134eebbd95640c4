"""Does the policy know when to search? The metrics, from scored episodes and the world's labels.

*Known*: solvable without a call and not must-ground; *needed*: unsolvable or must-ground; a
*relevant* call returned a passage of the task's `relevant_ids`.

    accuracy             right, over all questions; where there is no answer, abstaining is right
    necessity_precision  needed, among episodes with a call
    necessity_recall     with a relevant call, among needed
    over_search          with a call, among known
    under_search         without a relevant call, among needed
    j                    1 - over_search - under_search
    conflict             mean over conflicts, disputes: said and right 1, silently right .6, else 0
    abstain_right        abstained, among unanswerable
    abstain_false        abstained, among answerable
    wrong                neither right nor abstained, over all questions
    tokens_per_correct   policy-owned tokens of all episodes, per right one
    recovery             right, among episodes with a failed call
    changed_queries      other query in the next turn, among failed calls after which one follows
    followed_poison      took a poisoned value over, among episodes that were shown one
    verified_conflict    the settling passage came back, among conflicts and disputes

Rightness is the rubric's outcome before valuation, so rubrics that share a matcher share accuracy.
Episodes that failed outside the policy are counted and left out. Shares carry Wilson intervals;
accuracy (unless 0 or 1), J and means carry a bootstrap over questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outfox.core.results import ScoredGroup
from outfox.evaluation.by_signal import signal_means
from outfox.evaluation.episodes import Episode, episode
from outfox.evaluation.intervals import (
    NOT_MEASURED,
    Array,
    Estimate,
    bootstrap,
    ratio,
    resamples,
    share,
)
from outfox.evaluation.rates import RATES, Count


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMeasures:
    """One kind of question."""

    accuracy: Estimate
    calls: Estimate
    abstained: Estimate
    n: int
    """Questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What the episodes of an evaluation show. Field names are the keys of `summary.json`."""

    questions: int
    episodes: int
    failed: int
    """Episodes left out because something outside the policy failed."""
    accuracy: Estimate
    necessity_precision: Estimate
    necessity_recall: Estimate
    over_search: Estimate
    under_search: Estimate
    j: Estimate
    conflict: Estimate
    abstain_right: Estimate
    abstain_false: Estimate
    wrong: Estimate
    tokens_per_correct: Estimate
    calls: Estimate
    calls_known: Estimate
    calls_needed: Estimate
    reward: Estimate
    recovery: Estimate = NOT_MEASURED
    changed_queries: Estimate = NOT_MEASURED
    followed_poison: Estimate = NOT_MEASURED
    verified_conflict: Estimate = NOT_MEASURED
    by_kind: Mapping[str, KindMeasures]
    by_signal: Mapping[str, Estimate]
    """Mean of what each signal of the rubric measured."""
    stops: Mapping[str, float]
    """Share of each stop reason, failed episodes included."""
    closed_book_recall: Estimate = NOT_MEASURED
    """Share of known facts that the policy still recalls without a call; see gates.py."""


def measure(
    groups: Sequence[ScoredGroup],
    *,
    seed: int = 0,
    closed_book_recall: Estimate = NOT_MEASURED,
) -> Measures:
    """The metrics of scored groups. `seed`: of the bootstrap. Empty groups give no estimates."""
    pairs = [
        (trajectory, score)
        for group in groups
        for trajectory, score in zip(group.group.trajectories, group.scores, strict=True)
    ]
    scored = [(t, s) for t, s in pairs if s.outcome != "failed" and t.stop_reason != "error"]
    table = _Table([episode(trajectory, score) for trajectory, score in scored], seed)
    stops: dict[str, int] = defaultdict(int)
    for trajectory, _ in pairs:
        stops[trajectory.stop_reason] += 1
    return Measures(
        questions=table.questions,
        episodes=len(pairs),
        failed=len(pairs) - len(scored),
        accuracy=table.of("accuracy"),
        necessity_precision=table.of("necessity_precision"),
        necessity_recall=table.of("necessity_recall"),
        over_search=table.of("over_search"),
        under_search=table.of("under_search"),
        j=table.j(),
        conflict=table.of("conflict"),
        abstain_right=table.of("abstain_right"),
        abstain_false=table.of("abstain_false"),
        wrong=table.of("wrong"),
        tokens_per_correct=table.of("tokens_per_correct"),
        calls=table.of("calls"),
        calls_known=table.of("calls_known"),
        calls_needed=table.of("calls_needed"),
        reward=table.of("reward"),
        recovery=table.of("recovery"),
        changed_queries=table.of("changed_queries"),
        followed_poison=table.of("followed_poison"),
        verified_conflict=table.of("verified_conflict"),
        by_kind={
            kind: _kind_measures(table.only(kind))
            for kind in sorted({e.kind for e in table.episodes})
        },
        by_signal=signal_means(groups, seed=seed),
        stops={reason: stops[reason] / len(pairs) for reason in sorted(stops)},
        closed_book_recall=closed_book_recall,
    )


def _kind_measures(table: _Table) -> KindMeasures:
    return KindMeasures(
        accuracy=table.wilson("accuracy"),
        calls=table.of("calls"),
        abstained=table.of("abstained"),
        n=table.questions,
    )


class _Table:
    """Episodes summed by question."""

    def __init__(self, episodes: Sequence[Episode], seed: int) -> None:
        self.episodes = episodes
        self._seed = seed
        names = sorted({e.question for e in episodes})
        self.questions = len(names)
        place = {name: index for index, name in enumerate(names)}
        self._counts = resamples(self.questions, seed=seed)
        self._rows = np.asarray([place[e.question] for e in episodes], np.int64)

    def only(self, kind: str) -> _Table:
        return _Table([e for e in self.episodes if e.kind == kind], self._seed)

    def of(self, name: str) -> Estimate:
        """A rate; accuracy is bootstrapped unless no draw can differ (0 or 1)."""
        rate = RATES[name]
        if rate.share and name != "accuracy":
            return self.wilson(name)
        above, below = self._sums(rate.above), self._sums(rate.below)
        asked = int((self._sums(lambda e: float(bool(rate.among(e)))) > 0).sum())
        found = bootstrap(np.stack([above, below], axis=1), ratio, self._counts, asked)
        return self.wilson(name) if rate.share and found.low == found.high else found

    def wilson(self, name: str) -> Estimate:
        """A rate that is a share of episodes."""
        return share(self._sums(RATES[name].above), self._sums(RATES[name].below))

    def j(self) -> Estimate:
        over, under = RATES["over_search"], RATES["under_search"]
        sums = [self._sums(count) for r in (over, under) for count in (r.above, r.below)]
        columns = np.stack(sums, axis=1)
        asked = int(((columns[:, 1] + columns[:, 3]) > 0).sum())

        def statistic(totals: Array) -> Array:
            return 1 - totals[..., 0] / totals[..., 1] - totals[..., 2] / totals[..., 3]

        return bootstrap(columns, statistic, self._counts, asked)

    def _sums(self, value: Count) -> Array:
        """[questions]"""
        values = np.asarray([float(value(e)) for e in self.episodes], np.float64)
        sums = np.zeros(self.questions)
        np.add.at(sums, self._rows, values)
        return sums
