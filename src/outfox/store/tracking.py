"""Trackers beside the run folder. The folder is the truth: a tracker can only fail alone.

    with tracking(folder, trackers) as tracked:         begin, or go on
        tracked.log(step, metrics, seconds, groups)     no step twice, however often it is resumed
        tracked.end(summary)

Each tracker is called in a thread of its own, so a service that does not answer holds nothing up.
`trackers.json` keeps by which ids a run goes on there, and the last step that was shown before.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import cast

from outfox.core.errors import ConfigError
from outfox.core.protocols import TrackedRun, Tracker
from outfox.core.results import ScoredGroup
from outfox.core.types import JSON
from outfox.core.waiting import waiting
from outfox.store.files import write_json
from outfox.store.run_folder import RunFolder

BEGIN_WITHIN, END_WITHIN = 300.0, 60.0
"""Seconds that a run waits for its trackers: one may create a database, or send what it held."""
SAMPLES, SAMPLES_EVERY = 3, 10
"""Episodes that are shown as text, each of another task, and the steps between."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Follower:
    """A tracker and the thread that calls it. What it raises is one warning, and its last call."""

    tracker: Tracker
    run: TrackedRun
    id: str | None
    error: BaseException | None = None
    calls: SimpleQueue[Callable[[], None] | None] = field(default_factory=lambda: SimpleQueue())
    """None: there are no more."""
    begun: Event = field(default_factory=Event)
    """Also set where it could not."""
    ended: Event = field(default_factory=Event)

    @property
    def name(self) -> str:
        return type(self.tracker).__name__

    def start(self) -> None:
        """The thread ends with the process, whatever the tracker waits for then."""
        Thread(target=self._follow, name=f"tracker {self.name}", daemon=True).start()

    def fail(self, error: BaseException) -> None:
        self.error = error
        if self.id is not None:  # Else it never began, and the run is refused.
            _LOG.warning(
                f"tracker {self.name} failed and is left alone: {_told(error)}. The run goes on, "
                "and its folder holds all that the tracker misses"
            )

    def _follow(self) -> None:
        try:
            self.id = self.tracker.begin(self.run)
            self.begun.set()
            for call in iter(self.calls.get, None):
                call()
        except BaseException as error:  # Also `sys.exit` in a library.
            self.fail(error)
        finally:
            self.begun.set()
            self.ended.set()


@dataclass(slots=True, kw_only=True)
class Tracked:
    """The trackers of a run."""

    followers: Sequence[Follower] = ()
    shown: int = -1
    """The last step that they have."""
    summary: Mapping[str, float] | None = None

    def log(
        self,
        step: int,
        metrics: Mapping[str, JSON],
        seconds: Mapping[str, JSON],
        groups: Sequence[ScoredGroup],
    ) -> None:
        """A step's metrics, the seconds of its parts and, at some steps, a few of its episodes."""
        if step <= self.shown:
            return
        self.shown = step
        row = {**_numbers(metrics), **_numbers(seconds, "seconds/")}
        samples = [sample(each) for each in groups[:SAMPLES]] if step % SAMPLES_EVERY == 0 else []
        for follower in self.followers:
            if follower.error is None:
                follower.calls.put(partial(follower.tracker.log, step, row, samples))

    def end(self, summary: Mapping[str, JSON]) -> None:
        """The run is complete, with these measures in blocks."""
        self.summary = {}
        for name, block in summary.items():
            if isinstance(block, Mapping):
                self.summary |= _numbers(cast("Mapping[str, JSON]", block), f"{name}/")


@contextmanager
def tracking(folder: RunFolder, trackers: Sequence[Tracker]) -> Generator[Tracked]:
    """Begin all trackers, or go on with them; end them at the end.

    Enter it before the folder is rewound: all that its metrics show was shown to them. Raises
    ConfigError where a tracker of a new run cannot begin; in a resumed run that is a warning.
    """
    file = folder.path / "trackers.json"
    known = json.loads(file.read_text()) if file.exists() else None
    if not trackers or (known and known["complete"]):
        yield Tracked()
        return
    tracked = Tracked()
    if known:
        stored = [row["step"] for row in folder.metrics() if row["stage"] == "reinforce"]
        tracked.shown = max(known["shown"], *stored, -1)
    tracked.followers = [
        _follower(folder, tracker, known["ids"][index] if known else None)
        for index, tracker in enumerate(trackers)
    ]
    try:
        with redirect_stdout(sys.stderr):  # Some libraries print; stdout is the result's.
            _begin(tracked.followers)
        _record(tracked, folder)
        yield tracked
    finally:
        with redirect_stdout(sys.stderr):
            _end(tracked)
    _record(tracked, folder)


def _follower(folder: RunFolder, tracker: Tracker, id: str | None) -> Follower:
    name = folder.path.absolute().name
    run = TrackedRun(name=name, folder=folder.path, config=folder.config, id=id)
    return Follower(tracker=tracker, run=run, id=id)


def _record(tracked: Tracked, folder: RunFolder) -> None:
    record = {
        "ids": [follower.id for follower in tracked.followers],
        "shown": tracked.shown,
        "complete": tracked.summary is not None,
    }
    write_json(folder.path / "trackers.json", record)


def _begin(followers: Sequence[Follower]) -> None:
    for follower in followers:
        _check(follower.tracker)
    for follower in followers:
        follower.start()
    _wait([(each, each.begun) for each in followers], "begin", BEGIN_WITHIN)
    for follower in followers:
        if follower.error is not None and follower.id is None:
            raise ConfigError(
                "trackers: each can begin before a run does; "
                f"{follower.name} cannot: {_told(follower.error)}: "
                "check its settings and that you are logged in, or leave it out"
            ) from follower.error


def _check(tracker: Tracker) -> None:
    """What would else be found at the first step, or at the last."""
    try:
        signature(tracker.begin).bind("run")
        signature(tracker.log).bind("step", "metrics", "samples")
        signature(tracker.end).bind("summary")
    except (AttributeError, TypeError) as error:
        raise ConfigError(
            "a tracker has begin(run), log(step, metrics, samples) and end(summary); "
            f"{type(tracker).__name__} has not: {error}"
        ) from error


def _end(tracked: Tracked) -> None:
    following = [each for each in tracked.followers if each.begun.is_set() and each.error is None]
    for follower in following:
        follower.calls.put(partial(follower.tracker.end, tracked.summary))
        follower.calls.put(None)
    _wait([(each, each.ended) for each in following], "end", END_WITHIN)


def _wait(events: Sequence[tuple[Follower, Event]], what: str, seconds: float) -> None:
    """For all together; one that is late fails."""
    until = monotonic() + seconds
    for follower, event in events:
        with waiting(f"tracker {follower.name} to {what}", seconds):
            answered = event.wait(max(0.0, until - monotonic()))
        if not answered:
            follower.fail(TimeoutError(f"no answer within {seconds:g} seconds"))


# -- what they are shown --------------------------------------------------------------------------
def sample(scored: ScoredGroup) -> str:
    """A group's first episode as text, with its reward."""
    trajectory, score = scored.group.trajectories[0], scored.scores[0]
    lines = [f"{message.role}: {message.content}" for message in trajectory.task.prompt]
    for turn in trajectory.turns:
        lines.append(f"policy: {turn.text}")
        if turn.observation:
            lines += [f"environment: {each.content}" for each in turn.observation.messages]
    total = "none" if score.total is None else f"{score.total:.3f}"
    return "\n".join([*lines, f"reward: {total} ({score.outcome})"])


def _numbers(values: Mapping[str, JSON], before: str = "") -> dict[str, float]:
    """What can be drawn, its names behind `before`."""
    return {
        f"{before}{key}": float(value)
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
