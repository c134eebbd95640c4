from collections import Counter
from dataclasses import replace

import pytest

from outfox.core.errors import ConfigError
from outfox.testing.worlds import FakeEnvironment, FakeTaskSource, fake_task
from outfox.worlds.world import World, balanced

TASKS = [fake_task(n, kind="rare" if n < 3 else "common") for n in range(20)]
WORLD = World(
    name="small",
    language="en",
    train=FakeTaskSource(),
    held_out=balanced(TASKS, 0),
    environment=FakeEnvironment,
)


def kinds(tasks) -> Counter[str]:
    return Counter(task.metadata["kind"] for task in tasks)


def test_every_prefix_is_balanced_until_a_kind_is_used_up():
    for seed in range(5):
        order = balanced(TASKS, seed)
        assert sorted(task.task_id for task in order) == sorted(task.task_id for task in TASKS)
        for length in range(7):
            counts = kinds(order[:length])
            assert abs(counts["rare"] - counts["common"]) <= 1
    assert balanced(TASKS, 1) != balanced(TASKS, 2)


def test_other_wordings_come_last():
    tasks = [fake_task(n, kind="known", entities=[f"city {n % 5}"]) for n in range(15)]
    tasks = [replace(task, reference="x") for task in tasks]
    order = [task.metadata["entities"][0] for task in balanced(tasks, 0)]
    assert [len(set(order[start : start + 5])) for start in (0, 5, 10)] == [5, 5, 5]


def test_draws_are_seeded_and_distinct():
    assert WORLD.draw(8, 1) == WORLD.draw(8, 1)
    assert WORLD.draw(8, 1) != WORLD.draw(8, 2)
    assert len({task.task_id for task in WORLD.draw(20, 0)}) == 20


def test_more_than_there_are_is_refused():
    with pytest.raises(ConfigError, match="holds out 20 questions; 21 were asked for"):
        WORLD.draw(21, 0)
