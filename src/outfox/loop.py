"""The whole system on one screen.

    take tasks ─▶ roll out groups ─▶ score ─▶ credit ─▶ samples ─▶ annotate ─▶ pack ─▶ update
         ▲                                                                            │
         └────────────── engine takes the new weights, policy_version + 1 ◀───────────┘

`train` knows no files; `cli/train.py` composes run folder, display and checkpoints around it.
A cold start is the same loop with an `Imitate` stage.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, TypeAlias

from outfox.core.protocols import (
    Codec,
    Credit,
    CreditNotes,
    Engine,
    EnvironmentFactory,
    Policy,
    Rubric,
    TaskSource,
    Trainer,
)
from outfox.core.ranks import ALONE, Ranks, gathered, share
from outfox.core.results import Sample, ScoredGroup, StepResult, TrajectoryCredit
from outfox.core.types import Task
from outfox.learning.batching.packing import pack
from outfox.learning.batching.samples import demonstration_sample, samples_from
from outfox.learning.credit import credit_metrics
from outfox.rewards.score import score_groups
from outfox.rollout.group import RolloutPlan, rollout, together
from outfox.rollout.limits import Limits
from outfox.rollout.readings import Reading
from outfox.worlds.world import DemonstrationSource

Probe: TypeAlias = Callable[[Sequence[Task], int], Coroutine[Any, Any, Callable[[], object]]]
"""(a step's tasks, the step): find out which of them the policy answers without a call, beside the
rollout. What it returns writes them down; ranks meet there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Imitate:
    """Samples from demonstrations."""

    demonstrations: DemonstrationSource
    codec: Codec
    count: int
    """Demonstrations per step."""
    weight: float = 1.0
    """Weight of their loss; below 1 where they are replayed beside a policy loss."""
    names: tuple[str, ...] = ()
    """Kinds of demonstration to keep; empty: all."""
    first: int = 0
    """Where to begin: a replay goes on behind what the cold start took."""
    ranks: Ranks = ALONE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reinforce:
    """Samples from the policy's own episodes."""

    tasks: TaskSource
    count: int
    """Tasks per step."""
    seed: int
    policy: Policy
    environment: EnvironmentFactory
    plan: RolloutPlan
    limits: Limits
    rubric: Rubric
    credit: Credit
    readings: Mapping[str, Reading] = field(default_factory=lambda: dict[str, Reading]())
    frozen_spans: tuple[str, ...] = ()
    replay: Imitate | None = None
    probe: Probe | None = None
    ranks: Ranks = ALONE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Experience:
    """What a stage collected in one step."""

    samples: tuple[Sample, ...]
    groups: tuple[ScoredGroup, ...] = ()
    credits: tuple[tuple[TrajectoryCredit, ...], ...] = ()
    timings: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())


async def train(
    stage: Imitate | Reinforce,
    trainer: Trainer,
    engine: Engine | None = None,
    *,
    steps: int,
    start: int = 0,
) -> AsyncIterator[StepResult]:
    """Steps `start` to `steps - 1`; the engine holds the new weights when a result is yielded."""
    for step in range(start, steps):
        experience = await collect(stage, step)
        begun = perf_counter()
        notes = trainer.annotate(experience.samples, trainer.needs)
        batches = pack(experience.samples, max_tokens_per_micro=trainer.micro_tokens)
        report = trainer.update(batches, notes)
        if engine is not None:
            engine.load_weights(trainer.weights(), report.policy_version)
        if isinstance(stage, Reinforce):
            stage.rubric.after_step(experience.groups)
        yield StepResult(
            step=step,
            stage="imitate" if isinstance(stage, Imitate) else "reinforce",
            groups=experience.groups,
            credits=experience.credits,
            report=report,
            metrics={**credit_metrics(experience.groups, experience.credits), **report.metrics},
            timings={**experience.timings, "update": perf_counter() - begun},
        )


async def collect(stage: Imitate | Reinforce, step: int) -> Experience:
    """One step's samples: demonstrations, or episodes rolled out, scored and credited."""
    if isinstance(stage, Imitate):
        return Experience(samples=imitated(stage, step))
    clock = [perf_counter()]
    tasks = stage.tasks.take(step, stage.count)
    playing = rollout(
        tasks,
        step=step,
        seed=stage.seed,
        plan=stage.plan,
        policy=stage.policy,
        environment=stage.environment,
        limits=stage.limits,
        readings=stage.readings,
        ranks=stage.ranks,
        gather=False,
    )
    played, write_down = await together(playing, (stage.probe or _no_probe)(tasks, step))
    write_down()
    clock.append(perf_counter())
    mine = score_groups(stage.rubric, played, step=step)
    clock.append(perf_counter())
    scored = tuple(gathered(mine, stage.ranks))
    clock.append(perf_counter())
    credits = stage.credit(scored, CreditNotes())
    samples = samples_from(scored, credits, frozen_spans=stage.frozen_spans)
    replayed = imitated(stage.replay, step) if stage.replay else ()
    clock.append(perf_counter())
    seconds = [later - sooner for sooner, later in pairwise(clock)]
    return Experience(
        samples=(*samples, *replayed),
        groups=scored,
        credits=credits,
        timings=dict(zip(("rollout", "score", "gather", "credit"), seconds, strict=True)),
    )


async def _no_probe(tasks: Sequence[Task], step: int) -> Callable[[], object]:
    return lambda: None


def imitated(stage: Imitate, step: int) -> tuple[Sample, ...]:
    """The step's demonstrations as samples."""
    taken = [
        demonstration
        for demonstration in stage.demonstrations.take(stage.first + step, stage.count)
        if not stage.names or demonstration.name in stage.names
    ]
    mine = [demonstration_sample(each, stage.codec) for each in share(taken, stage.ranks)]
    return tuple(
        replace(sample, weights=sample.weights * stage.weight)
        for sample in gathered(mine, stage.ranks)
    )
