"""Signals of the user's in worker processes: what they do to themselves they do to nobody else."""

import asyncio
import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from outfox.core.errors import ConfigError
from outfox.core.isolation.failures import Asked, failures, from_row, to_row
from outfox.core.isolation.isolation import Isolation
from outfox.core.isolation.workers import Workers
from outfox.core.parts import Parts
from outfox.core.results import (
    ScoredGroup,
    SignalCrash,
    SignalError,
    SignalResult,
    SignalTimeout,
    Value,
)
from outfox.core.types import JSON, Group
from outfox.rewards.rubric import RubricTree
from outfox.rewards.score import make_rubric, score_groups
from outfox.rewards.solvability import WorldSolvability
from outfox.testing.rewards import group, task

SIGNALS = '''
import os, random, re, time
from dataclasses import dataclass, replace
import numpy as np
import outfox
from outfox.rewards.signals import find_signal

lifted = outfox.signal(range=(0, 1), family="cost")


def second(trajectory):
    return trajectory.sibling == 1


@lifted
def loops(trajectory):
    while second(trajectory):
        pass
    return .5


@lifted
def backtracks(trajectory):
    if second(trajectory):
        re.match("(a+)+$", "a" * 64 + "b")
    return .5


@lifted
def sleeps(trajectory):
    if second(trajectory):
        time.sleep(1e6)
    return .5


@lifted
def ends(trajectory):
    if second(trajectory):
        os._exit(3)
    return .5


@lifted
def hoards(trajectory):
    kept = []
    while second(trajectory):
        kept.append(bytes(1 << 20))
    return .5


@lifted
def meddles(trajectory, context):
    """Changes everything that it can reach, and tells how much was changed before."""
    changed = len(trajectory.task.metadata.get("seen", []))
    for each in context.group.trajectories:
        each.task.metadata.setdefault("seen", []).append(1)
        for ledger in each.ledgers:
            ledger.token_ids[:] = 7
            for segment in ledger.segments:
                segment.token_ids[:] = 7
    context.settings["scale"] = 99
    return float(changed > 0)


@lifted
def looks_around(trajectory, context, *, scale: float = 1.0):
    own = context.group.trajectories[trajectory.sibling]
    assert own is trajectory
    bare = replace(context, settings={})
    assert find_signal("calls")(trajectory, bare).value == len(trajectory.calls)
    known = [r is not None for r in context.right] + [context.solvable == "solvable"]
    return scale * (len(context.group.trajectories) + sum(known)) / 100


@lifted
def draws(trajectory):
    return (random.random() + np.random.random()) / 2


@lifted
def boasts(trajectory):
    return 7


@dataclass
class Made:
    name: str = "made"
    range: tuple = (0, 1)
    family: str = "cost"
    scope: str = "trajectory"

    def __call__(self, trajectory, context):
        if second(trajectory):
            raise SystemExit("enough")
        return "much"


made = Made()


def seen(text):
    """How often this was asked: a file keeps it."""
    with open(os.path.join(os.path.dirname(__file__), "seen"), "a") as file:
        file.write(text + "\\n")


def compute_score(solution_str, extra_info, **_):
    """As veRL has it: one answer."""
    seen("one")
    if extra_info["num_turns"] == 2:
        while True:
            pass
    return .5


def compute_scores(data_sources, solution_strs, ground_truths, extra_infos):
    """As veRL has it: a batch."""
    seen(f"batch of {len(solution_strs)}")
    if any("odd" in each for each in solution_strs):
        os._exit(3)
    extra_infos[0]["num_turns"] = 99
    return [.5 for _ in solution_strs]
'''
GROUP = group(
    task("t", "Chad currency", "CFA franc", solvable="solvable"),
    *[["<answer>CFA franc</answer>"]] * 3,
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "own.py").write_text(SIGNALS)
    return folder


@dataclass(frozen=True)
class Desk:
    """Makes rubrics with one signal; their workers end with the test."""

    folder: Path
    isolation: Isolation

    def rubric(self, name: str, isolated: bool = True, **settings: JSON) -> RubricTree:
        signal = f"own.py:{name}"
        tree = {
            "version": 1,
            "if_right": {"cap": 0.5, "deduct": {signal: 0.5}},
            "settings": {signal: settings},
        }
        parts = Parts(folders=(self.folder,))
        where = self.isolation if isolated else None
        return make_rubric(tree, parts, WorldSolvability(), where)

    def results(self, name: str, of: Group = GROUP, **settings: JSON) -> list[SignalResult]:
        scores = self.rubric(name, **settings).score(of, step=0)
        return [score.results[f"own.py:{name}"] for score in scores]


@pytest.fixture(scope="module")
def at(desk: Path) -> Iterator[Desk]:
    with Isolation(workers=Workers(seconds=0.6, memory_gb=0.5)) as isolation:
        yield Desk(folder=desk, isolation=isolation)


@pytest.mark.parametrize("name", ["loops", "backtracks", "sleeps"])
def test_a_signal_that_does_not_answer_is_a_timeout_of_its_row_alone(at: Desk, name: str):
    first, second, third = at.results(name)
    assert first == third == Value(value=0.5)
    assert isinstance(second, SignalTimeout)
    assert second.why == f"{name} on task t (sibling 1): did not answer within 0.6 seconds"
    (score, *_) = at.rubric("boasts").score(GROUP, step=0)
    assert score.total is None


@pytest.mark.parametrize(
    ("name", "says"), [("ends", "ended with exit code 3"), ("hoards", "more memory than")]
)
def test_a_signal_that_ends_its_process_is_a_crash_of_its_row_alone(at: Desk, name, says):
    first, second, third = at.results(name)
    assert first == third == Value(value=0.5)
    assert isinstance(second, SignalCrash)
    assert says in second.why
    assert "sibling 1" in second.why


def test_what_a_signal_changes_reaches_nobody(at: Desk):
    before = pickle.dumps(GROUP)
    ids = [ledger.token_ids.copy() for t in GROUP.trajectories for ledger in t.ledgers]
    assert at.results("meddles") == [Value(value=0.0)] * 3
    assert pickle.dumps(GROUP) == before
    now = [ledger.token_ids for t in GROUP.trajectories for ledger in t.ledgers]
    assert all(map(np.array_equal, ids, now))
    rubric = at.rubric("meddles")
    assert rubric.score(GROUP, step=0) == rubric.score(GROUP, step=0)


@pytest.mark.parametrize("name", ["looks_around", "boasts"])
def test_the_result_is_the_one_of_this_process(at: Desk, name: str):
    settings = {"scale": 2.0} if name == "looks_around" else {}
    here = at.rubric(name, isolated=False, **settings).score(GROUP, step=0)
    assert at.rubric(name, **settings).score(GROUP, step=0) == here
    bounds = at.rubric(name, isolated=False).bounds
    assert at.rubric(name).bounds == bounds


def test_settings_are_checked_before_anything_is_asked(at: Desk):
    with pytest.raises(ConfigError, match="Did you mean 'scale'"):
        at.rubric("looks_around", scales=1.0)


def test_random_draws_are_the_same_whoever_draws(at: Desk):
    first = at.results("draws")
    assert at.results("draws") == first
    assert len({result.value for result in first if isinstance(result, Value)}) == 3


def test_a_signal_of_another_make_is_checked_too(at: Desk):
    first, second, _ = at.results("made")
    assert isinstance(first, SignalError)
    assert "returned str 'much'" in first.why
    assert isinstance(second, SignalCrash)
    assert "SystemExit: enough" in second.why


def test_groups_are_scored_in_order_whichever_is_late(at: Desk):
    groups = [
        Group(
            group_id=f"g{n}", trajectories=tuple(_renamed(t, f"g{n}") for t in GROUP.trajectories)
        )
        for n in range(5)
    ]
    scored = score_groups(at.rubric("sleeps"), groups, step=0)
    assert [each.group.group_id for each in scored] == [f"g{n}" for n in range(5)]
    totals = [[score.total is None for score in each.scores] for each in scored]
    assert totals == [[False, True, False]] * 5


def asked(at: Desk) -> list[str]:
    """What the functions of another system were asked since the last time."""
    file = at.folder / "seen"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def test_a_function_of_another_system_that_hangs_loses_its_row_alone(at: Desk):
    longer = ["<search>Chad currency</search>", "<answer>CFA franc</answer>"]
    task_of = GROUP.trajectories[0].task
    of = group(task_of, ["<answer>CFA franc</answer>"], longer, ["<answer>CFA franc</answer>"])
    first, second, third = at.results("compute_score", of, adapter="verl")
    assert first == third == Value(value=0.5)
    assert isinstance(second, SignalTimeout)
    assert asked(at) == ["one"] * 4  # The second twice.
    here = at.rubric("compute_score", isolated=False, adapter="verl").score(GROUP, step=0)
    assert at.rubric("compute_score", adapter="verl").score(GROUP, step=0) == here
    asked(at)


def test_a_function_of_batches_is_asked_once_and_fails_for_the_whole_batch(at: Desk):
    assert at.results("compute_scores", adapter="verl") == [Value(value=0.5)] * 3
    assert asked(at) == ["batch of 3"]
    task_of = GROUP.trajectories[0].task
    of = group(task_of, ["<answer>CFA franc</answer>"], ["<answer>odd</answer>"])
    rubric = at.rubric("compute_scores", adapter="verl")
    scores = rubric.score(of, step=0)
    results = [score.results["own.py:compute_scores"] for score in scores]
    assert all(isinstance(result, SignalCrash) for result in results)
    assert asked(at) == ["batch of 2"] * 2
    found = failures([ScoredGroup(group=of, scores=scores)])
    assert [(key.sibling, failure.kind) for key, failure in found.items()] == [
        (0, "crashed"),
        (1, "crashed"),
    ]
    at.isolation.failures.update(found)
    assert rubric.score(of, step=0) == scores
    at.isolation.failures.clear()
    assert asked(at) == []


def test_siblings_that_did_the_same_each_keep_their_failure(at: Desk):
    (at.folder / "both.py").write_text(
        "import outfox, time\n"
        "@outfox.signal(range=(0, 1), family='cost')\n"
        "def late(trajectory): time.sleep(1e6)\n"
    )
    tree = {"version": 1, "if_right": {"cap": 0.5, "deduct": {"both.py:late": 0.5}}}
    parts = Parts(folders=(at.folder,))
    rubric = make_rubric(tree, parts, WorldSolvability(), at.isolation)
    scores = rubric.score(GROUP, step=0)
    found = failures([ScoredGroup(group=GROUP, scores=scores)])
    assert [key.sibling for key in found] == [0, 1, 2]


def _renamed(trajectory, group_id: str):
    return replace(trajectory, group_id=group_id)


def test_a_stored_timeout_is_said_again_and_not_asked_again(at: Desk):
    rubric = at.rubric("loops")
    scores = rubric.score(GROUP, step=0)
    found = failures([ScoredGroup(group=GROUP, scores=scores)])
    assert list(found) == [Asked(group_id="g", sibling=1, part="own.py:loops")]
    rows = [to_row(*each) for each in found.items()]
    with Isolation(workers=Workers(seconds=60)) as isolation:
        isolation.failures.update(map(from_row, rows))
        again = replace(at, isolation=isolation).rubric("loops").score(GROUP, step=0)
    assert again == scores


async def test_a_run_that_is_to_end_does_not_wait_for_a_signal(at: Desk):
    with Isolation(workers=Workers(seconds=60)) as isolation:
        rubric = replace(at, isolation=isolation).rubric("sleeps")

        async def scoring() -> None:
            rubric.score(GROUP, step=0)

        task = asyncio.create_task(scoring())
        threading.Timer(0.3, task.cancel).start()  # As Ctrl-C does, in the midst of it.
        with pytest.raises(asyncio.CancelledError):
            await task


def test_code_that_changed_meanwhile_ends_the_run(tmp_path: Path):
    file = tmp_path / "own.py"
    file.write_text(SIGNALS)
    isolation = Isolation(workers=Workers(seconds=60))
    make = Desk(folder=tmp_path, isolation=isolation).rubric
    with isolation:
        rubric = make("draws")
        isolation.workers.ready()
        rubric.score(GROUP, step=0)
        isolation.workers._template._stop()  # pyright: ignore[reportPrivateUsage]
        file.write_text(SIGNALS + "\n")
        with pytest.raises(ConfigError, match="has changed since"):
            rubric.score(GROUP, step=0)
