"""Trackers beside a run folder: what they are shown, and that they can only fail alone."""

import json
import logging
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from outfox.core import waiting as told
from outfox.core.config import Part
from outfox.core.errors import ConfigError, ContractError
from outfox.core.parts import FAMILIES, Parts, built_ins
from outfox.core.protocols import TrackedRun
from outfox.core.results import ScoredGroup
from outfox.core.types import JSON
from outfox.store import tracking as module
from outfox.store.run_folder import RunFolder
from outfox.store.tracking import SAMPLES, SAMPLES_EVERY, tracking
from outfox.testing.run import made_up_run
from outfox.testing.trackers import FakeTracker, check_tracker

PACKAGES = {"tensorboard", "wandb", "trackio", "mlflow"}
DONE = {"after": {"accuracy": 1}}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run-001", {"name": "mine", "seed": 0, "steps": 5})


def go(
    folder: RunFolder,
    *trackers: FakeTracker,
    steps: range = range(0),
    groups: Sequence[ScoredGroup] = (),
    summary: Mapping[str, JSON] | None = None,
) -> None:
    """Steps as a run takes them: stored first, then shown."""
    with tracking(folder, trackers) as tracked:
        folder.rewind(steps.start - 1)
        for step in steps:
            folder.add_metrics(step, {"reward": step / 4})
            tracked.log(step, {"reward": step / 4}, {"update": 0.5}, groups)
        if summary is not None:
            tracked.end(summary)


def steps_of(tracker: FakeTracker) -> list[int]:
    return [step for step, _ in tracker.rows]


def record(folder: RunFolder) -> dict[str, JSON]:
    return json.loads((folder.path / "trackers.json").read_text())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


# -- what a tracker is shown ----------------------------------------------------------------------
def test_a_tracker_sees_the_run_its_steps_and_its_result(folder: RunFolder):
    fake = FakeTracker()
    result = {"steps": 2, "before": None, "after": {"accuracy": 0.5, "by_kind": {"known": {}}}}
    go(folder, fake, steps=range(2), summary=result)
    (run,) = fake.runs
    assert (run.name, run.folder, run.id) == ("run-001", folder.path, None)
    assert run.config == folder.config
    assert fake.rows == [
        (0, {"reward": 0.0, "seconds/update": 0.5}),
        (1, {"reward": 0.25, "seconds/update": 0.5}),
    ]
    assert fake.summaries == [{"after/accuracy": 0.5}]
    assert record(folder) == {"ids": ["fake-1"], "shown": 1, "complete": True}


def test_only_finite_numbers_are_shown(folder: RunFolder):
    fake = FakeTracker()
    with tracking(folder, [fake]) as tracked:
        odd = {"stage": "reinforce", "flag": True, "none": None, "list": [1]}
        tracked.log(0, {**odd, "nan": float("nan"), "inf": float("inf"), "kl": 1}, {}, ())
    assert fake.rows == [(0, {"kl": 1.0})]


def test_some_steps_come_with_a_few_episodes_as_text(folder: RunFolder, tmp_path: Path):
    fake = FakeTracker()
    groups = made_up_run(tmp_path / "made-up", steps=1, questions=6).evaluation("before").groups
    go(folder, fake, steps=range(SAMPLES_EVERY + 1), groups=groups)
    assert {step: len(shown) for step, shown in fake.samples.items()} == {
        0: SAMPLES,
        SAMPLES_EVERY: SAMPLES,
    }
    first = groups[0]
    trajectory, score = first.group.trajectories[0], first.scores[0]
    lines = fake.samples[0][0].splitlines()
    assert lines[0] == f"user: {trajectory.task.prompt[0].content}"
    assert f"policy: {trajectory.turns[0].text}" in fake.samples[0][0]
    assert lines[-1] == f"reward: {score.total:.3f} ({score.outcome})"
    for turn in trajectory.turns:
        for message in turn.observation.messages if turn.observation else ():
            assert f"environment: {message.content}" in fake.samples[0][0]


def test_a_run_that_stops_ends_without_a_result(folder: RunFolder):
    fake = FakeTracker()
    with pytest.raises(KeyboardInterrupt), tracking(folder, [fake]):
        raise KeyboardInterrupt
    assert fake.summaries == [None]
    assert record(folder) == {"ids": ["fake-1"], "shown": -1, "complete": False}


def test_without_trackers_the_run_folder_is_as_ever(folder: RunFolder):
    before = sorted(folder.path.iterdir())
    go(folder, steps=range(0))
    assert sorted(folder.path.iterdir()) == before


# -- going on -------------------------------------------------------------------------------------
def test_a_resumed_run_goes_on_under_its_id_and_shows_no_step_twice(folder: RunFolder):
    first, second, third = FakeTracker(), FakeTracker(), FakeTracker()
    go(folder, first, steps=range(4))
    go(folder, second, steps=range(2, 3))  # Steps 2 and 3 were lost, and only 2 made again.
    go(folder, third, steps=range(2, 6), summary={})
    assert (steps_of(first), steps_of(second), steps_of(third)) == ([0, 1, 2, 3], [], [4, 5])
    assert [each.runs[0].id for each in (first, second, third)] == [None, "fake-1", "fake-1"]


def test_a_run_killed_twice_shows_no_step_twice(folder: RunFolder, tmp_path: Path):
    """Killed after step 2, and again when it had gone back and made step 1 anew."""
    places = [folder.path, tmp_path / "killed", tmp_path / "killed-again"]
    fakes = [FakeTracker(), FakeTracker(), FakeTracker()]
    for before, after, fake, steps in zip(
        places, places[1:], fakes, (range(3), range(1, 2)), strict=False
    ):
        run = RunFolder.open(before)
        with tracking(run, [fake]) as tracked:
            run.rewind(steps.start - 1)
            for step in steps:
                run.add_metrics(step, {"reward": 0.0})
                tracked.log(step, {"reward": 0.0}, {}, ())
            shutil.copytree(run.path, after)  # What a kill leaves at this instant.
    go(RunFolder.open(places[-1]), fakes[-1], steps=range(1, 4))
    assert [steps_of(fake) for fake in fakes] == [[0, 1, 2], [], [3]]


def test_a_finished_run_that_is_resumed_is_not_shown_again(folder: RunFolder):
    go(folder, FakeTracker(), steps=range(2), summary=DONE)
    fake = FakeTracker()
    go(folder, fake, steps=range(2, 2), summary=DONE)
    assert (fake.runs, fake.rows, fake.summaries) == ([], [], [])


def test_a_run_killed_before_its_end_was_shown_shows_it(folder: RunFolder):
    go(folder, FakeTracker(), steps=range(2))
    folder.write_summary(DONE)
    fake = FakeTracker()
    go(folder, fake, steps=range(2, 2), summary=DONE)
    assert (fake.rows, fake.summaries) == ([], [{"after/accuracy": 1.0}])


# -- failing --------------------------------------------------------------------------------------
def test_a_tracker_that_fails_is_left_alone_with_one_warning(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
):
    failing, other = FakeTracker(fails_at=2), FakeTracker()
    go(folder, failing, other, steps=range(5), summary=DONE)
    assert (steps_of(failing), failing.summaries) == ([0, 1], [])
    assert (steps_of(other), other.summaries) == ([0, 1, 2, 3, 4], [{"after/accuracy": 1.0}])
    (warning,) = warnings(caplog)
    assert warning.startswith(
        "tracker FakeTracker failed and is left alone: ConnectionError: no way to hand over step 2"
    )
    assert [row["step"] for row in folder.metrics()] == [0, 1, 2, 3, 4]


class Old(FakeTracker):
    """Takes no samples."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:  # type: ignore[override]
        raise AssertionError


class NoTracker:
    """Has no methods."""


@pytest.mark.parametrize("made", [Old, NoTracker])
def test_what_is_no_tracker_is_refused_before_the_run(folder: RunFolder, made: type):
    with pytest.raises(ConfigError, match=rf"end\(summary\); {made.__name__} has not: "):
        go(folder, made(), steps=range(1))
    assert folder.metrics() == []


class Leaving(FakeTracker):
    """Ends the program, or so it thinks."""

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        sys.exit(3)


def test_a_tracker_cannot_end_the_run(folder: RunFolder, caplog: pytest.LogCaptureFixture):
    go(folder, Leaving(), steps=range(2))
    assert [row["step"] for row in folder.metrics()] == [0, 1]
    assert "SystemExit: 3" in warnings(caplog)[0]


class Refusing(FakeTracker):
    """Cannot begin."""

    def begin(self, run: TrackedRun) -> str:
        raise ConnectionError("who are you?")


def test_a_new_run_whose_tracker_cannot_begin_does_not_begin(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
):
    first = FakeTracker()
    with pytest.raises(ConfigError, match=r"Refusing cannot: ConnectionError: who are you\?: chec"):
        go(folder, first, Refusing(), steps=range(3))
    assert (first.rows, first.summaries, warnings(caplog)) == ([], [None], [])
    assert folder.metrics() == []


def test_a_resumed_run_whose_tracker_cannot_begin_goes_on(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
):
    go(folder, FakeTracker(), steps=range(2))
    go(folder, Refusing(), steps=range(2, 4))
    assert len(warnings(caplog)) == 1
    fake = FakeTracker()
    go(folder, fake, steps=range(4, 5))
    assert (fake.runs[0].id, steps_of(fake)) == ("fake-1", [4])


class Hanging(FakeTracker):
    """Answers nothing from its second step on."""

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        if step == 1:
            threading.Event().wait()
        FakeTracker.log(self, step, metrics, samples)


def test_a_tracker_that_hangs_holds_nothing_up(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(module, "END_WITHIN", 0.2)
    monkeypatch.setattr(told, "TOLD_AFTER", 0.05)
    other = FakeTracker()
    go(folder, Hanging(), other, steps=range(3), summary=DONE)
    waiting, late = warnings(caplog)
    assert waiting == "waiting for tracker Hanging to end, at most 0.2 s"
    assert "TimeoutError: no answer within 0.2 seconds" in late
    assert (steps_of(other), other.summaries) == ([0, 1, 2], [{"after/accuracy": 1.0}])


class Chatty(FakeTracker):
    """Prints."""

    def begin(self, run: TrackedRun) -> str:
        print("hello")
        return FakeTracker.begin(self, run)


def test_what_a_tracker_prints_is_no_result(folder: RunFolder, capsys: pytest.CaptureFixture[str]):
    go(folder, Chatty())
    assert capsys.readouterr() == ("", "hello\n")


# -- the shipped ones -----------------------------------------------------------------------------
def test_these_ship():
    assert set(built_ins("tracker")) == PACKAGES
    assert FAMILIES["tracker"] == "store/trackers"


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_tracker_without_its_package_is_refused(name: str, monkeypatch: pytest.MonkeyPatch):
    own = f"outfox.store.trackers.{name}"
    for loaded in [each for each in sys.modules if each.partition(".")[0] == name or each == own]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError) as refused:
        Parts().resolve("tracker", Part(type=name), where="trackers.0")
    told = str(refused.value)
    assert told.startswith(f"trackers.0: tracker '{name}' needs '{name}")
    assert f"pip install 'outfox[{name}]'" in told


def test_the_fake_keeps_the_rules(tmp_path: Path):
    fake = FakeTracker()
    assert check_tracker(lambda: fake, tmp_path) == "fake-1"
    assert steps_of(fake) == [0, 1, 2, 3, 4]
    assert list(fake.samples) == [0]
    assert fake.summaries == [None, {"before/accuracy": 0.25, "after/accuracy": 0.5}]


class Forgetful(FakeTracker):
    """Begins anew each time."""

    def begin(self, run: TrackedRun) -> str:
        self.runs.append(run)
        return f"fake-{len(self.runs)}"


def test_a_tracker_that_begins_anew_breaks_the_rules(tmp_path: Path):
    fake = Forgetful()
    with pytest.raises(ContractError, match="'fake-1', then 'fake-2'"):
        check_tracker(lambda: fake, tmp_path)
