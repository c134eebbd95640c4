"""Which tasks can this policy answer without a call? K closed-book samples say so.

tasks ─closed_book policy, K siblings─▶ trajectories ─matcher─▶ p0 ─▶ Solvability
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from outfox.core.protocols import EnvironmentFactory
from outfox.core.ranks import ALONE, Ranks
from outfox.core.types import Group, Task, Trajectory
from outfox.evaluation.episodes import is_answerable
from outfox.policies.engine_policy import EnginePolicy, closed_book
from outfox.rewards.matchers import match
from outfox.rewards.solvability import Provenance, Solvability
from outfox.rollout.group import RolloutPlan, rollout
from outfox.rollout.limits import Limits
from outfox.rollout.readings import Reading


async def probe(
    tasks: Sequence[Task],
    *,
    policy: EnginePolicy,
    environment: EnvironmentFactory,
    limits: Limits,
    readings: Mapping[str, Reading] | None = None,
    k: int = 8,
    seed: int = 0,
    step: int = 0,
    chunk: int = 64,
    progress: Callable[[Trajectory], None] | None = None,
    ranks: Ranks = ALONE,
) -> dict[str, float | None]:
    """task_id -> p0: the share right of `k` samples that cannot search.

    Of several ranks each probes its share of the tasks and returns that. A task that appears twice
    is probed once. Samples that failed outside the policy are left out;
    None where none is left. An unanswerable task has p0 0: nothing can be answered. Raises
    ConfigError where the policy's `<search>` is not one token, DataError for a wrong reference.
    """
    distinct = list({task.task_id: task for task in tasks}.values())
    shut = closed_book(policy)
    found: dict[str, float | None] = {}
    for start in range(0, len(distinct), chunk):
        groups = await rollout(
            distinct[start : start + chunk],
            step=step,
            seed=seed,
            plan=RolloutPlan(group_size=k),
            policy=shut,
            environment=environment,
            limits=limits,
            readings=readings,
            progress=progress,
            ranks=ranks,
            gather=False,
        )
        found |= {group.trajectories[0].task.task_id: share_right(group) for group in groups}
    return found


async def refresh(
    table: Solvability,
    tasks: Sequence[Task],
    *,
    policy: EnginePolicy,
    environment: EnvironmentFactory,
    limits: Limits,
    policy_hash: str,
    step: int,
    readings: Mapping[str, Reading] | None = None,
    k: int = 8,
    seed: int = 0,
    max_age: int = 0,
    ranks: Ranks = ALONE,
) -> Callable[[], int]:
    """Probe the tasks that the table does not know, or knows from over `max_age` steps ago.

    `max_age` 0 keeps every reading for good. What is returned puts the readings of all ranks into
    the table and says how many: ranks meet there, so that a probe may run beside something else.
    """

    def due(task: Task) -> bool:
        known = table.probe(task.task_id)
        return known is None or 0 < max_age < step - known.provenance.step

    found = await probe(
        [task for task in tasks if due(task)],
        policy=policy,
        environment=environment,
        limits=limits,
        readings=readings,
        k=k,
        seed=seed,
        step=step,
        ranks=ranks,
    )

    def record() -> int:
        everywhere: list[dict[str, float | None]] = ranks.gather(found)
        readings = {task_id: p0 for part in everywhere for task_id, p0 in part.items()}
        table.record(readings, Provenance(policy_hash=policy_hash, k=k, step=step))
        return len(readings)

    return record


def share_right(group: Group) -> float | None:
    """Share of right answers among the siblings that did not fail outside the policy."""
    task = group.trajectories[0].task
    if not is_answerable(task):
        return 0.0
    answers = [t.answer for t in group.trajectories if t.stop_reason != "error"]
    right = {
        answer: match(task.reference, answer, row=task.task_id).right for answer in set(answers)
    }
    return sum(right[answer] for answer in answers) / len(answers) if answers else None
