from collections import Counter

import pytest

from outfox.core.errors import ConfigError
from outfox.testing.worlds import fake_task
from outfox.worlds.when_to_search.kind_tasks import KindTasks, spread

TASKS = [fake_task(n, kind="abc"[n % 3]) for n in range(30)]


def kinds(tasks) -> Counter[str]:
    return Counter(task.metadata["kind"] for task in tasks)


def test_every_stretch_is_balanced_over_kinds():
    source = KindTasks(TASKS)
    for step in range(40):
        assert set(kinds(source.take(step, 6)).values()) == {2}


def test_each_task_comes_once_per_epoch():
    taken = [task.task_id for step in range(5) for task in KindTasks(TASKS).take(step, 6)]
    assert sorted(taken) == sorted(task.task_id for task in TASKS)


def test_shares_are_relative_and_zero_leaves_a_kind_out():
    counts = kinds(KindTasks(TASKS, shares={"a": 2, "b": 0}).take(0, 180))
    assert counts == {"a": 120, "c": 60}


def test_taking_is_pure_over_blocks():
    source = KindTasks(TASKS, seed=5)
    late = source.take(100, 7)
    source.take(3, 7)
    assert late == source.take(100, 7) == KindTasks(TASKS, seed=5).take(100, 7)


def test_shares_spread_evenly():
    assert spread({"a": 0.5, "b": 0.25, "c": 0.25}, 8).count("a") == 4
    assert "aa" not in "".join(spread({"a": 0.5, "b": 0.5}, 20))


def test_wrong_shares_are_refused():
    with pytest.raises(ConfigError, match="'known' is none"):
        KindTasks(TASKS, shares={"known": 1})
    with pytest.raises(ConfigError, match="at least 0"):
        KindTasks(TASKS, shares={"a": -1})
    with pytest.raises(ConfigError, match="all are 0"):
        KindTasks(TASKS, shares={"a": 0, "b": 0, "c": 0})
