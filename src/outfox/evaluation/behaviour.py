"""One training step's episodes as metrics: what the policy did, beside what it earned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from outfox.core.results import ScoredGroup, SignalCrash, SignalTimeout
from outfox.core.types import CALL_FAILED
from outfox.evaluation.by_signal import details
from outfox.evaluation.metrics import measure

SHOWN = (
    "accuracy",
    "wrong",
    "over_search",
    "under_search",
    "j",
    "abstain_right",
    "abstain_false",
    "calls",
    "calls_known",
    "calls_needed",
    "recovery",
    "changed_queries",
    "followed_poison",
    "verified_conflict",
)
"""Estimates of `Measures` that are worth following step by step."""


def behaviour(groups: Sequence[ScoredGroup]) -> dict[str, float]:
    """`behaviour/<measure>`, `parts/<part>/mean`, `stop/<reason>`, `tools/*`, `completions/*`,
    `rewards/<signal>/<detail>/mean` of signals that say what their value is made of, and
    `signals/timeouts`, `signals/crashes`, `tools/timeouts`, `tools/crashes` where there were any.

    Parts are the contributions to the total, over scored episodes: they sum to `reward`. A score's
    first part is its outcome (`parts/outcome/mean`), unless a gate fired; the others go by their
    own names. What cannot be measured in these episodes is absent.
    """
    measures = measure(groups)
    found = {f"behaviour/{name}": getattr(measures, name).value for name in SHOWN}
    found |= {f"stop/{reason}": share for reason, share in measures.stops.items()}
    return {name: value for name, value in found.items() if value is not None} | {
        **_parts(groups),
        **_details(groups),
        **_tools(groups),
        **_late_or_lost(groups),
    }


def _parts(groups: Sequence[ScoredGroup]) -> dict[str, float]:
    scored = [score for group in groups for score in group.scores if score.total is not None]
    sums: dict[str, float] = defaultdict(float)
    for score in scored:
        for index, (name, value) in enumerate(score.parts.items()):
            sums["outcome" if index == 0 and score.gate is None else name] += value
    return {f"parts/{name}/mean": total / len(scored) for name, total in sorted(sums.items())}


def _details(groups: Sequence[ScoredGroup]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for score in (score for group in groups for score in group.scores):
        for name, value in details(score):
            found[f"rewards/{name}/mean"].append(value)
    return {name: sum(values) / len(values) for name, values in sorted(found.items())}


def _tools(groups: Sequence[ScoredGroup]) -> dict[str, float]:
    trajectories = [t for group in groups for t in group.group.trajectories]
    results = [result for t in trajectories for result in t.results]
    failed = sum(result.status in CALL_FAILED for result in results)
    if not trajectories:
        return {}
    return {
        "completions/mean_length": sum(t.policy_tokens for t in trajectories) / len(trajectories),
        "tools/call_frequency": sum(len(t.calls) for t in trajectories) / len(trajectories),
        **({"tools/failure_frequency": failed / len(results)} if results else {}),
    }


def _late_or_lost(groups: Sequence[ScoredGroup]) -> dict[str, float]:
    scores = [score for group in groups for score in group.scores]
    measured = [result for score in scores for result in score.results.values()]
    returned = [r for group in groups for t in group.group.trajectories for r in t.results]
    found = {
        "signals/timeouts": sum(isinstance(each, SignalTimeout) for each in measured),
        "signals/crashes": sum(isinstance(each, SignalCrash) for each in measured),
        "tools/timeouts": sum(each.status == "timeout" for each in returned),
        "tools/crashes": sum(each.status == "crashed" for each in returned),
    }
    return {name: float(count) for name, count in found.items() if count}
