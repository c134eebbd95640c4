"""`comparison.json`: what the runs of a comparison came to, side by side.

{"comparison", "base", "command", "versions", "steps", "seeds", "samples", "against", ...
 "variants": {NAME: {"settings": what it changes, "runs": {seed: folder}, "seconds": {seed: s},
                     "before": {...}, "after": {...}, "greedy": {...},   over all seeds
                     "by_kind": {KIND: {"n", "before": {...}, "after": {...}}},
                     "by_seed": {seed: {MEASURE: number}}}},
 "differences": {NAME: {...}}, "ratios": {NAME: {...}},    to `against`, after training
 "asks": [{"variant", "measure", "at_least", ..., "holds", "surely"}]}

{...} is {MEASURE: {"value", "low", "high", "n"}}; 95 %, n in facts; see compare.py
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import cast

from outfox.core.comparison import Ask, ComparisonFile
from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.types import JSON
from outfox.evaluation.compare import MEASURES, Comparing, Runs
from outfox.evaluation.episodes import Episode, episode
from outfox.evaluation.intervals import Estimate, wilson
from outfox.store.run_folder import RunFolder

Folders = Mapping[str, Mapping[int, RunFolder]]
"""Variant to seed to its finished run."""
EVALUATIONS = ("before", "after", "greedy")
OF_A_KIND = ("accuracy", "calls", "abstained")
RECALL = "closed_book_recall"
"""The one measure that is read from the runs' summaries: it is no rate over episodes."""


def check_asks(asks: Iterable[Ask]) -> None:
    """Raises ConfigError for a measure that is none."""
    for index, ask in enumerate(asks):
        known = (*MEASURES, RECALL) if ask.value else MEASURES
        if ask.measure not in known:
            raise ConfigError(
                f"asks.{index}: '{ask.measure}' is no measure.{did_you_mean(ask.measure, known)}"
            )


def contrast(file: ComparisonFile, runs: Folders) -> dict[str, JSON]:
    """Content of `comparison.json`, over the seeds that every variant has finished."""
    seeds = sorted(set[int].intersection(*(set(of) for of in runs.values())))
    runs = {name: {seed: of[seed] for seed in seeds} for name, of in runs.items()}
    played = {when: _played(runs, when) for when in EVALUATIONS}
    comparing = {when: Comparing(of) for when, of in played.items() if of is not None}
    after = comparing["after"]
    variants = {
        name: {
            "settings": dict(file.comparison.variants[name]),
            "runs": {str(seed): run.path.name for seed, run in of.items()},
            "seconds": {str(seed): _seconds(run) for seed, run in of.items()},
            **{
                when: _block({**c.estimates(name), **_recall(of, when)})
                for when, c in comparing.items()
            },
            "by_seed": {str(seed): each for seed, each in after.by_seed(name).items()},
        }
        for name, of in runs.items()
    }
    for name, kinds in _by_kind(played).items():
        variants[name]["by_kind"] = kinds
    others = [name for name in runs if name != file.against]
    first = next(iter(runs[file.against].values()))
    return {
        "comparison": file.name,
        "base": file.base.name,
        "command": shlex.join(["outfox", "train", *file.words]),
        "versions": dict(first.about["versions"]),
        "steps": first.config["steps"],
        "seeds": seeds,
        "samples": first.config["eval"]["samples"],
        "questions": after.tally.questions,
        "facts": len(after.tally.facts),
        "against": file.against,
        "variants": variants,
        "differences": {name: _block(after.differences(name, file.against)) for name in others},
        "ratios": {name: _block(after.ratios(name, file.against)) for name in others},
        "asks": [
            row
            for name in others
            for ask in file.comparison.asks
            for row in _answered(ask, name, file.against, after, variants[name]["after"])
        ],
    }


def _played(runs: Folders, when: str) -> dict[str, Runs] | None:
    """The episodes of an evaluation by variant and seed; None unless every run made it."""
    if not all(when in run.evaluations() for of in runs.values() for run in of.values()):
        return None
    return {
        name: {seed: _episodes(run, when) for seed, run in of.items()} for name, of in runs.items()
    }


def _episodes(run: RunFolder, when: str) -> list[Episode]:
    """Those that nothing outside the policy spoiled."""
    pairs = [
        (trajectory, score)
        for group in run.evaluation(when).groups
        for trajectory, score in zip(group.group.trajectories, group.scores, strict=True)
    ]
    return [episode(t, s) for t, s in pairs if s.outcome != "failed" and t.stop_reason != "error"]


def _by_kind(played: Mapping[str, Mapping[str, Runs] | None]) -> dict[str, dict[str, JSON]]:
    """Variant to kind to its few measures, before and after."""
    found: dict[str, dict[str, JSON]] = {}
    after = played["after"] or {}
    kinds = sorted({e.kind for of in after.values() for es in of.values() for e in es})
    for when in ("before", "after"):
        variants = played[when]
        if variants is None:
            continue
        for kind in kinds:
            only = {
                name: {seed: [e for e in es if e.kind == kind] for seed, es in of.items()}
                for name, of in variants.items()
            }
            comparing = Comparing(only)
            for name in only:
                block = _block(comparing.estimates(name), OF_A_KIND)
                of_kind = found.setdefault(name, {}).setdefault(kind, {})
                of_kind |= {"n": comparing.tally.questions, when: block}
    return found


def _answered(
    ask: Ask, name: str, against: str, after: Comparing, block: Mapping[str, JSON]
) -> list[dict[str, JSON]]:
    """The ask with what came of it; nothing where it could not be measured."""
    if ask.value is not None:
        found: JSON = block.get(ask.value)
    else:
        of = after.differences if ask.difference is not None else after.ratios
        found = _block(of(name, against)).get(ask.measure)
    if found is None:
        return []
    low, high = found["low"], found["high"]
    if ask.at_least is not None:
        bound, holds, surely = ask.at_least, found["value"] >= ask.at_least, low >= ask.at_least
        asked: dict[str, JSON] = {"at_least": bound}
    else:
        bound = cast("float", ask.at_most)
        holds, surely = found["value"] <= bound, high <= bound
        asked = {"at_most": bound}
    kind = "value" if ask.value else "difference" if ask.difference else "ratio"
    return [
        {
            "variant": name,
            "of": kind,
            "measure": ask.measure,
            **asked,
            **found,
            "holds": holds,
            "surely": holds and surely,
        }
    ]


def _block(
    estimates: Mapping[str, Estimate], names: Iterable[str] = (*MEASURES, RECALL)
) -> dict[str, JSON]:
    return {
        name: {
            "value": round(found.value, 5),
            "low": None if found.low is None else round(found.low, 5),
            "high": None if found.high is None else round(found.high, 5),
            "n": found.n,
        }
        for name in names
        if (found := estimates.get(name)) is not None and found.value is not None
    }


def _recall(runs: Mapping[int, RunFolder], when: str) -> dict[str, Estimate]:
    """Mean closed-book recall over the seeds; Wilson's interval on the facts, which they share."""
    blocks = [cast("Mapping[str, JSON]", run.summary().get(when) or {}) for run in runs.values()]
    values = [float(each) for block in blocks if (each := block.get(RECALL)) is not None]
    if not values or len(values) < len(blocks):
        return {}
    value = sum(values) / len(values)
    n = int(blocks[0]["intervals"][RECALL]["n"])
    low, high = wilson(value, n)
    return {RECALL: Estimate(value=value, low=low, high=high, n=n)}


def _seconds(run: RunFolder) -> float:
    """Of the command that finished the run."""
    return round([row["whole"] for row in run.timings() if row.get("stage") == "run"][-1], 1)
