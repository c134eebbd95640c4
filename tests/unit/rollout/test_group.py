"""Groups: order, ids, baselines, bounded redraws, fatal errors."""

import asyncio
import logging

import pytest

from outfox.core.errors import ConfigError
from outfox.core.types import Action, Draft, Message, Observation, Opening, Task
from outfox.policies.scripted import ScriptedPolicy
from outfox.rollout.group import RolloutPlan, rollout
from outfox.rollout.limits import Limits
from outfox.testing.policies import FakePolicy


class World:
    """An environment whose reset takes the task's time."""

    def __init__(self, task: Task, seed: int):
        self._task, self.seed = task, seed

    async def reset(self) -> Opening:
        await asyncio.sleep(self._task.metadata.get("wait", 0))
        return Opening(messages=self._task.prompt)

    async def step(self, message: Message) -> Observation:
        return Observation(done=True)

    def final(self):
        return self.seed

    async def close(self) -> None:
        pass


def task(name: str, wait: float = 0) -> Task:
    prompt = (Message(role="user", content=name),)
    return Task(task_id=name, prompt=prompt, reference="x", metadata={"wait": wait})


def answer(text: str) -> FakePolicy:
    return FakePolicy(drafts=[Draft(text=text, action=Action(answer=text))])


async def roll(tasks, plan: RolloutPlan, policy=None, **settings):
    return await rollout(
        tasks,
        step=3,
        seed=7,
        plan=plan,
        policy=policy or answer("a"),
        environment=World,
        limits=Limits(),
        **settings,
    )


async def test_groups_stand_in_task_order_whoever_finishes_first():
    tasks = [task("slow", 0.02), task("quick"), task("slow", 0.01)]
    groups = await roll(tasks, RolloutPlan(group_size=3))
    assert [group.group_id for group in groups] == ["3/0/slow", "3/1/quick", "3/2/slow"]
    for group in groups:
        assert [t.sibling for t in group.trajectories] == [0, 1, 2]
        assert len({t.final_state for t in group.trajectories}) == 1  # one environment seed
    assert len({group.trajectories[0].final_state for group in groups}) == 3


async def test_episodes_run_side_by_side():
    waiting = 0

    async def script(task, messages):
        nonlocal waiting
        waiting += 1
        while waiting < 6:
            await asyncio.sleep(0)
        return Action(answer="a")

    tasks = [task("a"), task("b")]
    groups = await roll(tasks, RolloutPlan(group_size=3), ScriptedPolicy(script))
    assert sum(len(group.trajectories) for group in groups) == 6


async def test_no_more_episodes_run_at_once_than_allowed():
    running, most = 0, 0

    async def script(task, messages):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Action(answer="a")

    plan = RolloutPlan(group_size=3, max_concurrent=2)
    groups = await roll([task("a"), task("b")], plan, ScriptedPolicy(script))
    assert sum(len(group.trajectories) for group in groups) == 6
    assert most == 2


async def test_progress_hears_of_every_episode():
    heard = []
    await roll([task("a"), task("b")], RolloutPlan(group_size=2), progress=heard.append)
    assert sorted(t.group_id for t in heard) == ["3/0/a", "3/0/a", "3/1/b", "3/1/b"]


async def test_greedy_baselines_are_further_siblings():
    plan = RolloutPlan(group_size=2, greedy_baselines=1)
    (group,) = await roll([task("a")], plan, greedy=answer("greedy"))
    assert [t.answer for t in group.trajectories] == ["a", "a", "greedy"]
    with pytest.raises(ConfigError, match="needs a greedy policy"):
        await roll([task("a")], plan)


async def test_redraws_are_bounded_and_said(caplog: pytest.LogCaptureFixture):
    drawn = []

    def never(group) -> bool:
        drawn.append(group.group_id)
        return False

    plan = RolloutPlan(group_size=2, redraw_until=never, max_redraws=2)
    with caplog.at_level(logging.WARNING):
        (group,) = await roll([task("a")], plan)
    assert drawn[:2] == ["3/0/a", "3/0/a/redraw-1"]
    assert group.group_id == "3/0/a/redraw-2"
    assert "1 of 1 groups did not meet redraw_until after 2 redraws" in caplog.text


async def test_a_group_that_will_do_is_kept(caplog: pytest.LogCaptureFixture):
    plan = RolloutPlan(
        group_size=1, redraw_until=lambda group: "redraw-1" in group.group_id, max_redraws=5
    )
    with caplog.at_level(logging.WARNING):
        groups = await roll([task("a"), task("b")], plan)
    assert [group.group_id for group in groups] == ["3/0/a/redraw-1", "3/1/b/redraw-1"]
    assert caplog.text == ""


async def test_a_fault_of_the_run_is_raised_as_it_is_and_stops_the_others():
    ended = []

    class Broken(World):
        def __init__(self, task: Task, seed: int):
            super().__init__(task, seed)
            if task.task_id == "bad":
                raise ConfigError("wrong setting")

        async def close(self) -> None:
            ended.append(self._task.task_id)

    with pytest.raises(ConfigError, match="wrong setting"):
        await rollout(
            [task("slow", 60), task("bad")],
            step=0,
            seed=0,
            plan=RolloutPlan(group_size=1),
            policy=answer("a"),
            environment=Broken,
            limits=Limits(),
        )
    assert ended == ["slow"]


@pytest.mark.parametrize(
    "settings",
    [{"group_size": 0}, {"greedy_baselines": -1}, {"max_redraws": -1}, {"max_concurrent": 0}],
)
def test_a_plan_that_allows_nothing_is_refused(settings):
    with pytest.raises(ConfigError, match="a rollout plan has"):
        RolloutPlan(**settings)
