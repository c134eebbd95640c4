"""Variants of a recipe on the same held-out questions: what each came to, and how they differ.

Two things are drawn by chance: which facts were held out, and which seeds trained. An interval
draws both again, crossed (the pigeonhole bootstrap of Owen 2007): seeds with return, facts with
return; an episode counts as often as its seed was drawn times its fact. All variants meet the same
draws, so differences are paired. Questions on one fact, in other wordings or by a detour, are
drawn together.

    columns[variant]  [seeds, facts, measures, 2]   sums above and below the line of each rate
    a draw            seed counts x fact counts     one total per measure, and its value
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from outfox.core.errors import DataError
from outfox.evaluation.episodes import Episode
from outfox.evaluation.intervals import NOT_MEASURED, Array, Estimate, resamples, wilson
from outfox.evaluation.rates import RATES, Rate

Runs = Mapping[int, Sequence[Episode]]
"""Seed to the episodes of its evaluation."""

COUNTED: Mapping[str, Rate] = {
    **RATES,
    "hops": Rate(value=lambda e: e.hops, among=lambda e: e.hops > 0),
    "calls_per_hop": Rate(
        value=lambda e: e.calls, among=lambda e: e.hops > 0, over=lambda e: e.hops
    ),
}
"""`hops`: searches per question of one who knows nothing and searches once per hop."""
J_OF = ("over_search", "under_search")
MEASURES = (*COUNTED, "j")
DRAWS = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """The episodes of all variants, summed by seed and fact."""

    seeds: tuple[int, ...]
    facts: tuple[str, ...]
    questions: int
    columns: Mapping[str, Array]
    """By variant: [seeds, facts, rates, 2]."""


class Comparing:
    """Estimates of each variant, and of differences and ratios between them.

    `seed`: of the bootstrap. Raises DataError where the variants share no seed or no question.
    """

    def __init__(self, variants: Mapping[str, Runs], *, seed: int = 0, draws: int = DRAWS) -> None:
        self.tally = tallied(variants)
        self._seed, self._draws = seed, draws
        self._values = {name: _values(c.sum((0, 1))) for name, c in self.tally.columns.items()}

    @cached_property
    def _drawn(self) -> Mapping[str, Array]:
        """By variant: [draws, measures]."""
        tally = self.tally
        seeds = resamples(len(tally.seeds), seed=self._seed, draws=self._draws)
        facts = resamples(len(tally.facts), seed=self._seed + 1, draws=self._draws)
        drawn: dict[str, Array] = {}
        for name, columns in tally.columns.items():
            flat = columns.reshape(*columns.shape[:2], -1)
            totals = np.zeros((self._draws, flat.shape[-1]))
            for index in range(len(tally.seeds)):
                totals += seeds[:, index, None] * (facts @ flat[index])
            drawn[name] = _values(totals.reshape(self._draws, *columns.shape[2:]))
        return drawn

    def estimates(self, variant: str) -> dict[str, Estimate]:
        """Every measure of a variant, over its seeds. `n` is facts.

        A share that is 0 or 1 in every draw has Wilson's interval on the facts.
        """
        found = self._all(self._values[variant], self._drawn[variant], (variant,))
        for name, one in found.items():
            if name in COUNTED and COUNTED[name].share and one.value in (0.0, 1.0):
                low, high = wilson(one.value, one.n)
                found[name] = Estimate(value=one.value, low=low, high=high, n=one.n)
        return found

    def differences(self, variant: str, against: str) -> dict[str, Estimate]:
        """Every measure of `variant` less that of `against`."""
        return self._paired(np.subtract, variant, against)

    def ratios(self, variant: str, against: str) -> dict[str, Estimate]:
        """Every measure of `variant` over that of `against`."""
        return self._paired(np.divide, variant, against)

    def by_seed(self, variant: str) -> dict[int, dict[str, float | None]]:
        """Seed to every measure of the variant."""
        columns = self.tally.columns[variant].sum(1)
        return {
            seed: {
                name: float(value) if np.isfinite(value) else None
                for name, value in zip(MEASURES, _values(of), strict=True)
            }
            for seed, of in zip(self.tally.seeds, columns, strict=True)
        }

    def _paired(
        self, join: Callable[[Array, Array], Array], variant: str, against: str
    ) -> dict[str, Estimate]:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = join(self._values[variant], self._values[against])
            drawn = join(self._drawn[variant], self._drawn[against])
        return self._all(value, drawn, (variant, against))

    def _all(self, value: Array, drawn: Array, variants: Sequence[str]) -> dict[str, Estimate]:
        below = [self.tally.columns[v][..., 1].sum(0) > 0 for v in variants]
        asked = np.logical_and.reduce(below)
        counted = dict(zip(COUNTED, asked.sum(0).tolist(), strict=True))
        two = [list(COUNTED).index(name) for name in J_OF]
        counted["j"] = int(asked[:, two].any(1).sum())
        return {
            name: _estimate(float(value[index]), drawn[:, index], counted[name])
            for index, name in enumerate(MEASURES)
        }


def tallied(variants: Mapping[str, Runs]) -> Tally:
    """Sums by seed and fact, over the seeds and questions that all variants have."""
    seeds = sorted(set[int].intersection(*(set(runs) for runs in variants.values())))
    asked = [{e.question for e in runs[seed]} for runs in variants.values() for seed in seeds]
    questions = set[str].intersection(*asked) if asked else set[str]()
    if not questions:
        raise DataError(
            "variants are compared on the seeds and held-out questions that all of them have; "
            f"{', '.join(variants)} have none in common: give them the same seeds and eval settings"
        )
    facts = sorted(
        {e.fact for runs in variants.values() for e in runs[seeds[0]] if e.question in questions}
    )
    place = {fact: index for index, fact in enumerate(facts)}
    columns: dict[str, Array] = {}
    for name, runs in variants.items():
        columns[name] = np.zeros((len(seeds), len(facts), len(COUNTED), 2))
        for index, seed in enumerate(seeds):
            kept = [e for e in runs[seed] if e.question in questions]
            rows = [place[e.fact] for e in kept]
            np.add.at(columns[name][index], rows, _counted(kept))
    return Tally(seeds=tuple(seeds), facts=tuple(facts), questions=len(questions), columns=columns)


def _counted(episodes: Sequence[Episode]) -> Array:
    """[episodes, rates, 2]"""
    return np.asarray(
        [[(float(r.above(e)), float(r.below(e))) for r in COUNTED.values()] for e in episodes],
        np.float64,
    )


def _values(totals: Array) -> Array:
    """[..., rates, 2] totals to [..., measures] values; not finite where nothing was counted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = totals[..., 0] / totals[..., 1]
    over, under = (rates[..., list(COUNTED).index(name)] for name in J_OF)
    return np.concatenate([rates, (1 - over - under)[..., None]], axis=-1)


def _estimate(value: float, drawn: Array, n: int) -> Estimate:
    finite = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or not len(finite):
        return NOT_MEASURED
    low, high = np.quantile(finite, [0.025, 0.975])
    return Estimate(value=value, low=float(low), high=float(high), n=n)
