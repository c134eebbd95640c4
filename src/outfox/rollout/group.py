"""Groups of siblings: every task played `group_size` times, all at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from outfox.core.errors import ConfigError
from outfox.core.protocols import EnvironmentFactory, Policy
from outfox.core.ranks import ALONE, Ranks, gathered, share
from outfox.core.types import EpisodeKey, Group, Task, Trajectory
from outfox.rollout.episode import run_episode
from outfox.rollout.limits import Limits
from outfox.rollout.readings import Reading

log = logging.getLogger(__name__)
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """How often each task is played. Raises ConfigError for numbers that allow nothing."""

    group_size: int = 8
    greedy_baselines: int = 0
    """Further siblings per group at temperature 0, numbered from `group_size` on."""
    redraw_until: Callable[[Group], bool] | None = None
    """A group for which this is False is drawn anew (dynamic sampling, DAPO, Yu et al. 2025)."""
    max_redraws: int = 0
    """Per task; then the last group is kept."""
    max_concurrent: int = 512
    """Episodes at once, each with its engine session; more wait. It changes no trajectory."""

    def __post_init__(self) -> None:
        least = {"group_size": 1, "greedy_baselines": 0, "max_redraws": 0, "max_concurrent": 1}
        given = (self.group_size, self.greedy_baselines, self.max_redraws, self.max_concurrent)
        for (name, bound), value in zip(least.items(), given, strict=True):
            if value < bound:
                raise ConfigError(f"a rollout plan has {name} of at least {bound}; got {value}")


async def rollout(
    tasks: Sequence[Task],
    *,
    step: int,
    seed: int,
    plan: RolloutPlan,
    policy: Policy,
    environment: EnvironmentFactory,
    limits: Limits,
    readings: Mapping[str, Reading] | None = None,
    greedy: Policy | None = None,
    progress: Callable[[Trajectory], None] | None = None,
    ranks: Ranks = ALONE,
    gather: bool = True,
) -> tuple[Group, ...]:
    """One Group per task, in order; siblings of all tasks run concurrently.

    A group's id, `step/index/task_id`, names the occurrence of a task, so that a task drawn twice
    makes two groups. `greedy` plays `plan.greedy_baselines`; `progress` hears of every episode as
    it ends. Of several ranks each plays its share of the tasks; all return all groups, or without
    `gather` their share. Raises ConfigError where baselines have no greedy policy.
    """
    if plan.greedy_baselines and greedy is None:
        raise ConfigError(
            f"greedy_baselines={plan.greedy_baselines} needs a greedy policy: pass one, or set 0"
        )
    places = asyncio.Semaphore(plan.max_concurrent)

    async def episode(task: Task, group_id: str, sibling: int) -> Trajectory:
        async with places:
            trajectory = await run_episode(
                task,
                EpisodeKey(seed=seed, step=step, group_id=group_id, sibling=sibling),
                policy=policy if sibling < plan.group_size or greedy is None else greedy,
                environment=environment,
                limits=limits,
                readings=readings,
            )
        if progress is not None:
            progress(trajectory)
        return trajectory

    async def group(task: Task, index: int) -> Group:
        drawn = await draw(task, f"{step}/{index}/{task.task_id}")
        for redraw in range(1, plan.max_redraws + 1):
            if plan.redraw_until is None or plan.redraw_until(drawn):
                break
            drawn = await draw(task, f"{step}/{index}/{task.task_id}/redraw-{redraw}")
        return drawn

    async def draw(task: Task, group_id: str) -> Group:
        siblings = range(plan.group_size + plan.greedy_baselines)
        played = await _all([episode(task, group_id, sibling) for sibling in siblings])
        return Group(group_id=group_id, trajectories=tuple(played))

    mine = share(list(enumerate(tasks)), ranks)
    played = await _all([group(task, index) for index, task in mine])
    groups = tuple(gathered(played, ranks) if gather else played)
    _tell(groups, plan)
    return groups


async def together(one: Coroutine[Any, Any, A], other: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Both results; the first failure cancels the other and is raised as it is."""
    return cast("tuple[A, B]", tuple(await _all([one, other])))


async def _all(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first failure cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as together:
            running = [together.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in running]


def _tell(groups: Sequence[Group], plan: RolloutPlan) -> None:
    """Say what would otherwise stay silent: no turn could be read, a filter kept no group."""
    turns = [turn for group in groups for t in group.trajectories for turn in t.turns]
    if turns and all(turn.action is None for turn in turns):
        log.warning(
            "0 of %d policy turns parsed as an action; the last was %r: does the codec fit the "
            "model's format?",
            len(turns),
            turns[-1].text[-200:],
        )
    if plan.redraw_until is not None:
        unmet = sum(not plan.redraw_until(group) for group in groups)
        if unmet:
            log.warning(
                "%d of %d groups did not meet redraw_until after %d redraws and are kept as they "
                "are; raise max_redraws, or choose tasks of another difficulty",
                unmet,
                len(groups),
                plan.max_redraws,
            )
