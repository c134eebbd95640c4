"""Trackers beside a run folder: what they are given, and that they can only fail alone."""

import json
import logging
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from outfox.core.config import Part
from outfox.core.errors import ConfigError, ContractError
from outfox.core.parts import FAMILIES, Parts, built_ins
from outfox.core.protocols import TrackedRun
from outfox.core.types import JSON
from outfox.store import tracking as module
from outfox.store.run_folder import RunFolder
from outfox.store.tracking import NamedTracker, make_trackers, tracking
from outfox.testing.trackers import FakeTracker, check_tracker

PACKAGES = {"tensorboard", "wandb", "trackio", "mlflow"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run-001", {"name": "mine", "seed": 0, "steps": 5})


def named(*trackers: FakeTracker) -> list[NamedTracker]:
    return [
        NamedTracker(name=f"fake {number}", tracker=each, data={})
        for number, each in enumerate(trackers)
    ]


def go(
    folder: RunFolder,
    *trackers: FakeTracker,
    steps: range = range(0),
    summary: Mapping[str, JSON] | None = None,
) -> None:
    """Steps as a run takes them: stored first, then shown."""
    with tracking(folder, named(*trackers)) as tracked:
        folder.rewind(steps.start - 1)
        for step in steps:
            folder.add_metrics(step, {"reward": step / 4})
            folder.add_timings(step, {"update": 0.5})
            tracked.log(step, {"reward": step / 4}, {"update": 0.5})
        if summary is not None:
            tracked.end(summary)


def steps_of(tracker: FakeTracker) -> list[int]:
    return [step for step, _ in tracker.rows]


def records(folder: RunFolder) -> list[dict[str, JSON]]:
    return json.loads((folder.path / "trackers.json").read_text())


# -- what a tracker is given ----------------------------------------------------------------------
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
    assert records(folder) == [{"type": "fake 0", "id": "fake-1", "step": 1, "state": "ended"}]


def test_only_finite_numbers_are_shown(folder: RunFolder):
    fake = FakeTracker()
    with tracking(folder, named(fake)) as tracked:
        odd = {"step": 0, "stage": "reinforce", "flag": True, "none": None, "list": [1]}
        tracked.log(0, {**odd, "nan": float("nan"), "inf": float("inf"), "kl": 1}, {})
    assert fake.rows == [(0, {"kl": 1.0})]


def test_a_run_that_stops_ends_without_a_result(folder: RunFolder):
    fake = FakeTracker()
    with pytest.raises(KeyboardInterrupt), tracking(folder, named(fake)):
        raise KeyboardInterrupt
    assert fake.summaries == [None]
    assert records(folder)[0]["state"] == "following"


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


def test_a_killed_run_shows_no_step_twice(folder: RunFolder, tmp_path: Path):
    with tracking(folder, named(FakeTracker())) as tracked:
        for step in range(3):
            folder.add_metrics(step, {"reward": 0.0})
            tracked.log(step, {"reward": 0.0}, {})
        shutil.copytree(folder.path, tmp_path / "killed")  # What a kill leaves at this instant.
    killed, fake = RunFolder.open(tmp_path / "killed"), FakeTracker()
    assert records(killed) == [{"type": "fake 0", "id": "fake-1", "step": -1, "state": "following"}]
    go(killed, fake, steps=range(1, 4))
    assert steps_of(fake) == [3]


def test_a_finished_run_that_is_resumed_is_not_shown_again(folder: RunFolder):
    go(folder, FakeTracker(), steps=range(2), summary={"after": {"accuracy": 1}})
    fake = FakeTracker()
    go(folder, fake, steps=range(2, 2), summary={"after": {"accuracy": 1}})
    assert (fake.runs, fake.rows, fake.summaries) == ([], [], [])


# -- failing --------------------------------------------------------------------------------------
def test_a_tracker_that_fails_is_left_alone_with_one_warning(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
):
    failing, other = FakeTracker(fails_at=2), FakeTracker()
    go(folder, failing, other, steps=range(5), summary={"after": {"accuracy": 1}})
    assert (steps_of(failing), failing.summaries) == ([0, 1], [])
    assert (steps_of(other), other.summaries) == ([0, 1, 2, 3, 4], [{"after/accuracy": 1.0}])
    (warning,) = [each.getMessage() for each in caplog.records]
    assert warning.startswith("tracker fake 0 failed and is left alone: ConnectionError: no way to")
    assert [each["state"] for each in records(folder)] == ["failed", "ended"]
    assert [row["step"] for row in folder.metrics()] == [0, 1, 2, 3, 4]


def test_a_resumed_run_shows_what_a_failed_tracker_missed(folder: RunFolder):
    go(folder, FakeTracker(fails_at=1), steps=range(4))
    fake = FakeTracker()
    go(folder, fake, steps=range(3, 6))
    assert steps_of(fake) == [1, 2, 3, 4, 5]
    assert fake.rows[0][1] == {"reward": 0.25, "seconds/update": 0.5}


class Refusing(FakeTracker):
    """Cannot begin."""

    def begin(self, run: TrackedRun) -> str:
        raise ConnectionError("who are you?")


def test_a_new_run_whose_tracker_cannot_begin_does_not_begin(folder: RunFolder):
    first = FakeTracker()
    with pytest.raises(ConfigError, match=r"fake 1 cannot: ConnectionError: who are you\?: check"):
        go(folder, first, Refusing(), steps=range(3))
    assert (first.rows, first.summaries) == ([], [None])
    assert folder.metrics() == []


def test_a_resumed_run_whose_tracker_cannot_begin_goes_on(
    folder: RunFolder, caplog: pytest.LogCaptureFixture
):
    go(folder, FakeTracker(), steps=range(2))
    go(folder, Refusing(), steps=range(2, 4))
    assert len(caplog.records) == 1
    fake = FakeTracker()
    go(folder, fake, steps=range(4, 5))
    assert fake.runs[0].id == "fake-1"
    assert steps_of(fake) == [2, 3, 4]


class Hanging(FakeTracker):
    """Answers nothing from its second step on."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        if step == 1:
            threading.Event().wait()
        FakeTracker.log(self, step, metrics)


def test_a_tracker_that_hangs_holds_nothing_up(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(module, "ENDS_WITHIN", 0.2)
    monkeypatch.setattr(module, "_QUIET", 0.1)
    go(folder, Hanging(), steps=range(3), summary={})
    said = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "waiting for tracker fake 0 to end" in said[0]
    assert "TimeoutError: no answer within 0 seconds" in said[1]
    fake = FakeTracker()
    go(folder, fake, steps=range(3, 4))
    assert steps_of(fake) == [1, 2, 3]


# -- the shipped ones -----------------------------------------------------------------------------
def test_these_ship():
    assert set(built_ins("tracker")) == PACKAGES
    assert FAMILIES["tracker"] == "store/trackers"


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_tracker_without_its_package_is_refused(name: str, monkeypatch: pytest.MonkeyPatch):
    for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError) as refused:
        make_trackers([Part(type=name)], Parts())
    told = str(refused.value)
    assert told.startswith(f"the tracker {name} needs the package {name}, which cannot be imported")
    assert f"pip install 'outfox[{name}]'" in told


def test_a_wrong_setting_is_refused_by_its_place():
    wrong = Part(type="wandb", settings={"mode": "offlin"})
    with pytest.raises(ConfigError, match=r"^trackers\.1\.mode: .*Did you mean 'offline'"):
        make_trackers([Part(type="outfox.testing.trackers:FakeTracker"), wrong], Parts())


def test_the_fake_keeps_the_rules(tmp_path: Path):
    fake = FakeTracker()
    assert check_tracker(lambda: fake, tmp_path) == "fake-1"
    assert steps_of(fake) == [0, 1, 2, 3, 4]
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
