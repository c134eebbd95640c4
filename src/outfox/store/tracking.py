"""Trackers beside the run folder. The folder is the truth: a tracker can only fail alone.

    with tracking(folder, trackers) as tracked:       begin, or go on
        tracked.log(step, metrics, seconds)           no step twice, however often a run is resumed
        tracked.end(summary)

Each tracker is called in a thread of its own, so a service that does not answer holds nothing up.
`trackers.json` keeps by which name each run goes on there, and the last step that it was given.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, cast

from outfox.core.config import Part
from outfox.core.errors import ConfigError
from outfox.core.parts import Parts
from outfox.core.protocols import TrackedRun, Tracker
from outfox.core.types import JSON
from outfox.store.files import write_json
from outfox.store.run_folder import RunFolder

BEGINS_WITHIN, ENDS_WITHIN = 300.0, 60.0
"""Seconds that a run waits for a tracker: one may create a database, or send what it held back."""
_QUIET = 5.0
"""Seconds of waiting that nothing is said about."""
_FILE = "trackers.json"
_NO_STEP = -1
_LOG = logging.getLogger(__name__)

Call = tuple[Callable[[], Any], "Future[Any]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTracker:
    """A tracker of a recipe."""

    name: str
    tracker: Tracker
    data: Mapping[str, JSON]
    """As the run folder records it: `type` and every setting."""


def make_trackers(wanted: Sequence[Part], parts: Parts) -> tuple[NamedTracker, ...]:
    """The trackers that a recipe names. Raises ConfigError, also where a package is missing."""
    made: list[NamedTracker] = []
    for index, part in enumerate(wanted):
        found = parts.resolve("tracker", part, where=f"trackers.{index}")
        tracker: Tracker = found.factory(**found.settings)
        made.append(NamedTracker(name=part.type, tracker=tracker, data=found.data))
    return tuple(made)


@dataclass(slots=True, kw_only=True)
class Follower:
    """One tracker, the thread that calls it, and how far it is."""

    name: str
    tracker: Tracker
    id: str | None = None
    step: int = _NO_STEP
    """The last step that it took."""
    state: str = "new"
    """`new`, `following`, `failed` or `ended`."""
    _calls: SimpleQueue[Call] = field(default_factory=lambda: SimpleQueue())

    def start(self) -> None:
        """The thread ends with the process, whatever the tracker waits for then."""
        threading.Thread(target=self._work, name=f"tracker {self.name}", daemon=True).start()

    def ask(self, call: Callable[[], Any]) -> Future[Any]:
        """The call's result or error, once the thread came to it."""
        future: Future[Any] = Future()
        self._calls.put((call, future))
        return future

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """A step that it had already is passed over."""
        if self.state == "following" and step > self.step:
            self.ask(partial(self._log, step, metrics))

    def fail(self, error: BaseException) -> None:
        """Say so; nothing more is asked of this tracker."""
        self.state = "failed"
        _LOG.warning(
            f"tracker {self.name} failed and is left alone: {_told(error)}. The run goes on, and "
            "its folder holds all that the tracker misses"
        )

    def _log(self, step: int, metrics: Mapping[str, float]) -> None:
        if self.state != "following":
            return
        try:
            self.tracker.log(step, metrics)
        except Exception as error:
            self.fail(error)
        else:
            self.step = step

    def _work(self) -> None:
        while True:
            call, future = self._calls.get()
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)

    @property
    def record(self) -> dict[str, JSON]:
        return {"type": self.name, "id": self.id, "step": self.step, "state": self.state}


@dataclass(slots=True, kw_only=True)
class Tracked:
    """The trackers of a run."""

    folder: RunFolder
    followers: Sequence[Follower] = ()
    _summary: Mapping[str, float] | None = None
    _recorded: Sequence[str] = ()

    def log(self, step: int, metrics: Mapping[str, JSON], seconds: Mapping[str, JSON]) -> None:
        """A step's metrics and the seconds of its parts; what is no finite number is left out."""
        row = _row(metrics, seconds)
        for follower in self.followers:
            follower.log(step, row)
        if [follower.state for follower in self.followers] != self._recorded:
            self.record()  # A resumed run gives the tracker what it missed.

    def end(self, summary: Mapping[str, JSON]) -> None:
        """The run is complete, with these measures in blocks."""
        self._summary = {
            f"{name}/{key}": value
            for name, block in summary.items()
            if isinstance(block, Mapping)
            for key, value in _numbers(cast("Mapping[str, JSON]", block)).items()
        }

    def close(self) -> None:
        """End every tracker, as complete or not."""
        asked = [
            (follower, follower.ask(partial(follower.tracker.end, self._summary)))
            for follower in self.followers
            if follower.state == "following"
        ]
        for follower, future in asked:
            try:
                _wait(future, f"tracker {follower.name} to end", ENDS_WITHIN)
            except Exception as error:
                if follower.state == "following":
                    follower.fail(error)
            else:
                if follower.state == "following" and self._summary is not None:
                    follower.state = "ended"
        self.record()

    def record(self) -> None:
        """Write down how far each is."""
        self._recorded = [follower.state for follower in self.followers]
        if any(follower.id for follower in self.followers):
            write_json(self.folder.path / _FILE, [each.record for each in self.followers])


@contextmanager
def tracking(folder: RunFolder, trackers: Sequence[NamedTracker]) -> Generator[Tracked]:
    """Begin all trackers, or go on with them; end them at the end.

    Enter it before the folder is rewound: all that its metrics show was given to the trackers.
    Raises ConfigError where one of a new run cannot begin; in a resumed run that is a warning.
    """
    tracked = Tracked(folder=folder, followers=_followers(folder, trackers))
    try:
        for follower in tracked.followers:
            _begin(follower, folder)
        tracked.record()
        _catch_up(tracked)
        yield tracked
    finally:
        tracked.close()


def _followers(folder: RunFolder, trackers: Sequence[NamedTracker]) -> tuple[Follower, ...]:
    """As `trackers.json` left them, in the recipe's order."""
    if not trackers:
        return ()
    file = folder.path / _FILE
    records: list[dict[str, JSON]] = json.loads(file.read_text()) if file.exists() else []
    given = max((step for step, _, _ in _rows(folder)), default=_NO_STEP)
    followers: list[Follower] = []
    for index, named in enumerate(trackers):
        old = records[index] if records else {}
        step = old.get("step", _NO_STEP)
        followers.append(
            Follower(
                name=named.name,
                tracker=named.tracker,
                id=old.get("id"),
                # Killed, it had all that was stored; failed, it had what it took.
                step=max(step, given) if old.get("state") == "following" else step,
                state="ended" if old.get("state") == "ended" else "new",
            )
        )
    return tuple(followers)


def _begin(follower: Follower, folder: RunFolder) -> None:
    if follower.state == "ended":
        return
    run = TrackedRun(
        name=folder.path.absolute().name,
        folder=folder.path,
        config=folder.config,
        id=follower.id,
    )
    follower.start()
    try:
        begun = follower.ask(partial(follower.tracker.begin, run))
        follower.id = _wait(begun, f"tracker {follower.name} to begin", BEGINS_WITHIN)
        follower.state = "following"
    except Exception as error:
        if follower.id is not None:
            follower.fail(error)
            return
        raise ConfigError(
            f"trackers: each can begin before a run does; {follower.name} cannot: {_told(error)}: "
            "check its settings and that you are logged in, or leave it out"
        ) from error


def _catch_up(tracked: Tracked) -> None:
    """What a tracker missed when it failed."""
    if all(follower.state != "following" for follower in tracked.followers):
        return
    for step, metrics, seconds in _rows(tracked.folder):
        tracked.log(step, metrics, seconds)


def _rows(folder: RunFolder) -> Iterator[tuple[int, Mapping[str, JSON], Mapping[str, JSON]]]:
    """Steps of reinforcement as stored: step, metrics, seconds."""
    seconds = {row["step"]: row for row in folder.timings() if row.get("stage") == "reinforce"}
    for row in folder.metrics():
        if row["stage"] == "reinforce":
            yield row["step"], row, seconds.get(row["step"], {})


def _row(metrics: Mapping[str, JSON], seconds: Mapping[str, JSON]) -> dict[str, float]:
    timed = {f"seconds/{key}": value for key, value in _numbers(seconds).items() if key != "step"}
    numbers = {key: value for key, value in _numbers(metrics).items() if key != "step"}
    return {**numbers, **timed}


def _numbers(values: Mapping[str, JSON]) -> dict[str, float]:
    """What can be drawn."""
    return {
        key: float(value)
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _wait(future: Future[Any], what: str, seconds: float) -> Any:
    """The result. Raises TimeoutError, saying how long it took, and whatever the call raised."""
    done, _ = wait([future], timeout=min(_QUIET, seconds))
    if not done:
        _LOG.warning(f"waiting for {what}, for at most {seconds:.0f} seconds")
        done, _ = wait([future], timeout=seconds - _QUIET)
    if not done:
        raise TimeoutError(f"no answer within {seconds:.0f} seconds")
    return future.result()


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
