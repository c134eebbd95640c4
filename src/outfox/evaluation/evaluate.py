"""Held-out questions: rolled out, scored, measured. Nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from outfox.core.protocols import Credit, CreditNotes, EnvironmentFactory, Policy, Rubric
from outfox.core.ranks import ALONE, Ranks, gathered
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.core.types import Task, Trajectory
from outfox.evaluation.intervals import NOT_MEASURED, Estimate
from outfox.evaluation.metrics import Measures, measure
from outfox.rewards.score import score_groups
from outfox.rollout.group import RolloutPlan, rollout
from outfox.rollout.limits import Limits
from outfox.rollout.readings import Reading


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """Scored held-out episodes and what they show."""

    groups: tuple[ScoredGroup, ...]
    measures: Measures
    credits: tuple[tuple[TrajectoryCredit, ...], ...] | None = None
    """What an update would have pushed, where a credit was given. Nothing was updated."""


async def evaluate(
    tasks: Sequence[Task],
    *,
    policy: Policy,
    environment: EnvironmentFactory,
    rubric: Rubric,
    limits: Limits,
    readings: Mapping[str, Reading] | None = None,
    samples: int = 2,
    seed: int = 1,
    step: int = 0,
    chunk: int = 128,
    credit: Credit | None = None,
    closed_book_recall: Estimate = NOT_MEASURED,
    progress: Callable[[int, int], None] | None = None,
    ranks: Ranks = ALONE,
) -> Evaluation:
    """`samples` episodes per task, `chunk` tasks at a time; how they are drawn is the policy's.

    `step`: where the rubric's schedules stand. The draws depend on `seed` and `chunk` alone, so
    before and after face the same ones. `progress(done, all)` hears of every episode. Of several
    ranks each plays and scores its share.
    """
    groups: list[ScoredGroup] = []
    done = 0

    def played(_: Trajectory) -> None:
        nonlocal done
        done += ranks.count
        if progress:
            progress(min(done, len(tasks) * samples), len(tasks) * samples)

    for start in range(0, len(tasks), chunk):
        drawn = await rollout(
            tasks[start : start + chunk],
            step=start,
            seed=seed,
            plan=RolloutPlan(group_size=samples),
            policy=policy,
            environment=environment,
            limits=limits,
            readings=readings,
            progress=played,
            ranks=ranks,
            gather=False,
        )
        groups += gathered(score_groups(rubric, drawn, step=step), ranks)
    return Evaluation(
        groups=tuple(groups),
        measures=measure(groups, closed_book_recall=closed_book_recall),
        credits=credit(groups, CreditNotes()) if credit else None,
    )
