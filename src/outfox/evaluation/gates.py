"""Is a cold-started policy ready for reinforcement? Five gates.

    recall   known facts, without a call                      at least .97
    copy     values of fictional facts, from passages         at least .95
    found    the value, where a passage holds it              at least .90
    missing  the word for missing, where none does            at least .90
    decision does it already know when to search? AUROC of searching at the first decision
             against the label unsolvable, over whole episodes     under .75

The first four are drills of the world: the policy reads the context and writes its next think
block greedily; the block must be what the drill expects.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outfox.core.deadline import within
from outfox.core.ledger import Ints
from outfox.core.protocols import Codec, Engine, Sampling
from outfox.core.results import ScoredGroup
from outfox.core.types import Task, Trajectory
from outfox.evaluation.intervals import NOT_MEASURED, Estimate, wilson
from outfox.worlds.world import DemonstrationSource, Drill, DrillName

AT_LEAST: dict[DrillName, float] = {"recall": 0.97, "copy": 0.95, "found": 0.9, "missing": 0.9}
DECISION_UNDER = 0.75
_ANSWERS_WITHIN = 3600.0
"""Seconds; all drills are answered together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate's reading."""

    name: str
    estimate: Estimate
    limit: float
    below: bool = False
    """True where the value must stay under the limit."""

    @property
    def passed(self) -> bool:
        """False also where nothing was measured."""
        value = self.estimate.value
        if value is None:
            return False
        return value < self.limit if self.below else value >= self.limit

    def __str__(self) -> str:
        value = "not measured" if self.estimate.value is None else f"{self.estimate.value:.3f}"
        wanted = f"{'under' if self.below else 'at least'} {self.limit:g}"
        return f"{self.name} {value} ({wanted}) {'passed' if self.passed else 'FAILED'}"


async def run_gates(
    engine: Engine,
    codec: Codec,
    demonstrations: DemonstrationSource,
    *,
    count: int = 200,
    seed: int = 0,
    max_tokens: int = 64,
) -> tuple[Gate, ...]:
    """The four drill gates, `count` drills each; a gate without drills is not measured."""
    gates: list[Gate] = []
    for name in AT_LEAST:
        drills = demonstrations.drills(name, count, seed)
        produced = await answers(engine, codec, drills, max_tokens=max_tokens)
        gates.append(drill_gate(name, [drill.expected for drill in drills], produced))
    return tuple(gates)


async def recall(
    engine: Engine,
    codec: Codec,
    demonstrations: DemonstrationSource,
    *,
    count: int,
    seed: int = 0,
    max_tokens: int = 64,
) -> Estimate:
    """Closed-book recall of known facts, by the recall gate's drills."""
    drills = demonstrations.drills("recall", count, seed)
    produced = await answers(engine, codec, drills, max_tokens=max_tokens)
    return drill_gate("recall", [drill.expected for drill in drills], produced).estimate


def drill_gate(name: DrillName, gold: Sequence[str], produced: Sequence[str | None]) -> Gate:
    """Share of equal values; None (no think block was finished) is wrong."""
    n = len(gold)
    if not n:
        return Gate(name=name, estimate=NOT_MEASURED, limit=AT_LEAST[name])
    value = sum(g == p for g, p in zip(gold, produced, strict=True)) / n
    low, high = wilson(value, n)
    estimate = Estimate(value=value, low=low, high=high, n=n)
    return Gate(name=name, estimate=estimate, limit=AT_LEAST[name])


async def answers(
    engine: Engine, codec: Codec, drills: Sequence[Drill], *, max_tokens: int = 64
) -> list[str | None]:
    """For each drill, the content of the next think block, written greedily; None without one."""
    return await asyncio.gather(
        *(_answer(engine, codec, drill, f"drill-{i}", max_tokens) for i, drill in enumerate(drills))
    )


async def _answer(
    engine: Engine, codec: Codec, drill: Drill, session: str, max_tokens: int
) -> str | None:
    sampling = Sampling(temperature=0.0, max_tokens=max_tokens)
    engine.open(session, noise_key=0)
    try:
        completion = await within(
            _ANSWERS_WITHIN,
            f"the engine's answer of {session}",
            engine.generate(session, context(codec, drill), sampling=sampling, stop=codec.stop),
        )
    finally:
        engine.end(session)
    after = bool(drill.events and drill.events[-1].messages)
    ids = completion.token_ids
    for span in codec.spans(ids, after_observation=after):
        if span.name == "thought":
            return codec.decode(ids[span.start : span.end]).strip()
    return None


def context(codec: Codec, drill: Drill) -> Ints:
    """[T] what the policy reads before it writes."""
    parts = [codec.render(drill.opening.messages, drill.opening.tools).token_ids]
    for event in drill.events:
        parts.append(
            codec.extend(event.messages).token_ids if event.messages else codec.encode(event.text)
        )
    return np.concatenate(parts)


def decision_gate(groups: Sequence[ScoredGroup]) -> Gate:
    """AUROC of "calls in the first turn" against the world's label unsolvable.

    A question's score is the share of its samples that call at once; undetermined questions and
    episodes that failed outside the policy are left out.
    """
    calls: dict[str, list[bool]] = defaultdict(list)
    labels: dict[str, bool] = {}
    for group in groups:
        for trajectory in group.group.trajectories:
            label = _unsolvable(trajectory.task)
            if label is not None and trajectory.stop_reason != "error":
                calls[trajectory.task.task_id].append(_calls_at_once(trajectory))
                labels[trajectory.task.task_id] = label
    scores = [sum(found) / len(found) for found in calls.values()]
    value = auroc(scores, list(labels.values()))
    estimate = NOT_MEASURED if value is None else Estimate(value=value, n=len(scores))
    return Gate(name="decision", estimate=estimate, limit=DECISION_UNDER, below=True)


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Chance that a positive outranks a negative, ties half (Mann-Whitney U / n1 n0).

    None where either class is missing.
    """
    values, positive = np.asarray(scores, np.float64), np.asarray(labels, np.bool_)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return None
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _unsolvable(task: Task) -> bool | None:
    label = task.metadata.get("solvable")
    return label == "unsolvable" if label in ("solvable", "unsolvable") else None


def _calls_at_once(trajectory: Trajectory) -> bool:
    action = trajectory.turns[0].action if trajectory.turns else None
    return action is not None and bool(action.calls)
