"""The run's side of worker processes: calls with a deadline, in order of asking.

    submit ─▶ waiting ─▶ a thread, and the process that it speaks with ─▶ Future
                 ▲              └ too late, or dead: killed, and tried once more in a new one
                 └── others that it was given beside it ◀┘

Which worker does a call and when never shows: whoever asks gets the answer by its Future.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from outfox.core import waiting
from outfox.core.errors import ConfigError, CrashError, UserCodeError
from outfox.core.isolation.process import Process, TemplateProcess
from outfox.core.isolation.template import Answer

log = logging.getLogger(__name__)

PATIENCE = 0.05
"""Seconds at one call after which another worker may be started; also how much work is given to
one at once, so that threads and processes need not take turns at each call."""
_LONG = 0.25
"""Seconds that a call waits for a worker before another one is started in any case."""
_TOGETHER = 32
"""Most calls given to a worker at once."""
_ENDS_WITHIN = 10.0
GIGABYTE = 1 << 30


class Workers:
    """Processes for the user's code. Nothing is started before `prepare` or `submit`.

    `seconds`: deadline of a call; `memory_gb`: what a worker may take beyond the code it has
    loaded; `most`: workers at once, each a call.
    """

    def __init__(self, *, seconds: float = 20.0, memory_gb: float = 4.0, most: int = 8) -> None:
        self.seconds = seconds
        self._template = TemplateProcess(memory=round(memory_gb * GIGABYTE))
        self._pool = _Pool(self._template, most)
        self._close = weakref.finalize(self, self._pool.close)

    def prepare(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call this where workers are forked from, e.g. to load code for all of them."""
        self._template.prepare(function, *arguments)

    def ready(self) -> None:
        """Wait for what was prepared. Raises ConfigError where it failed."""
        self._template.ready()

    def submit(
        self,
        label: str,
        function: Callable[..., Any],
        *arguments: Any,
        seconds: float | None = None,
        home: Home | None = None,
    ) -> Future[Any]:
        """Call an importable function in a worker. A call that is too late or ends its process is
        tried once more.

        `label` names it to people; calls of one `home` meet the same worker, while that lives. The
        Future raises, after the second try, TimeoutError or CrashError; UserCodeError where the
        function raised; ConfigError where the user's code can no longer be loaded.
        """
        call = Call(
            label=label,
            job=pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL),
            seconds=self.seconds if seconds is None else seconds,
            home=home,
        )
        self._pool.take(call)
        return call.future

    def release(self, home: Home, function: Callable[..., Any], *arguments: Any) -> None:
        """Call this where the object of `home` is, if it still is; nobody waits for it."""
        job = pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        last = Call(label="its end", job=job, seconds=self.seconds, home=home, is_last=True)
        self._pool.take(last)

    def close(self) -> None:
        """End all processes; what was asked and not answered raises UserCodeError."""
        self._close()


@dataclass(slots=True, eq=False)
class Home:
    """Where the object is that some calls share."""

    worker: _Worker | None = None
    """None before the first, and when it was lost."""
    calls: int = 0
    """Answered; so many have to be done again where it was lost."""


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call, from its submission to its end."""

    label: str
    job: bytes
    seconds: float
    home: Home | None
    future: Future[Any] = field(default_factory=lambda: Future[Any]())
    since: float = field(default_factory=time.monotonic)
    """When it was submitted."""
    tried: bool = False
    is_last: bool = False
    """Of its home, which then is given up."""

    @property
    def is_void(self) -> bool:
        """Nobody waits for it, or what it would end is gone."""
        gone = self.is_last and (self.home is None or self.home.worker is None)
        return gone or self.future.cancelled()


@dataclass(slots=True, eq=False)
class _Worker:
    """A thread and its process."""

    process: Process | None = None
    calls: deque[Call] = field(default_factory=lambda: deque[Call]())
    """Of its homes, to be done by it alone."""
    homes: set[Home] = field(default_factory=lambda: set[Home]())
    is_stuck: bool = False
    """It has been at one call for longer than `PATIENCE`."""


class _Pool:
    """Threads that each do calls in a process of their own."""

    def __init__(self, template: TemplateProcess, most: int) -> None:
        self._template = template
        self._most = most
        self._change = threading.Condition()
        self._waiting: deque[Call] = deque()
        self._workers: dict[_Worker, threading.Thread] = {}
        self._room: dict[str, int] = {}
        """How many calls of a label fit into `PATIENCE`."""
        self._fault: BaseException | None = None

    # -- asked by other threads -------------------------------------------------------------------
    def take(self, call: Call) -> None:
        with self._change:
            home = call.home.worker if call.home else None
            if self._fault is not None:
                _fail(call, self._fault)
            elif home is not None:
                home.calls.append(call)
                self._change.notify_all()
            elif not call.is_void:
                self._waiting.append(call)
                self._help()

    def close(self) -> None:
        self._end(UserCodeError("the workers were closed"))
        self._template.close()  # Threads that listen to a worker hear that it is gone.
        for thread in self._workers.values():
            if thread is not threading.current_thread():
                thread.join(_ENDS_WITHIN)

    def _end(self, fault: BaseException) -> None:
        with self._change:
            self._fault = self._fault or fault
            for calls in (self._waiting, *(worker.calls for worker in self._workers)):
                while calls:
                    _fail(calls.popleft(), self._fault)
            self._change.notify_all()

    def _help(self) -> None:
        """Wake a worker for what waits; start another one where all are busy with slow calls."""
        if not self._waiting:
            return
        self._change.notify()
        if len(self._workers) >= self._most:
            return
        late = time.monotonic() > self._waiting[0].since + _LONG
        if late or all(worker.is_stuck for worker in self._workers):
            worker = _Worker()
            self._workers[worker] = threading.Thread(
                target=self._live, args=(worker,), name="outfox-worker", daemon=True
            )
            self._workers[worker].start()

    # -- the threads ------------------------------------------------------------------------------
    def _live(self, worker: _Worker) -> None:
        try:
            while calls := self._next(worker):
                self._do(worker, calls)
        except BaseException as fault:  # Whoever waits must hear of it.
            self._end(fault)
        if worker.process is not None:
            worker.process.connection.close()

    def _next(self, worker: _Worker) -> deque[Call]:
        """What to do now; it waits for that. Nothing: the end."""
        with self._change:
            worker.is_stuck = False
            while self._fault is None:
                if worker.calls or self._waiting:
                    calls = deque([worker.calls.popleft()]) if worker.calls else self._some()
                    self._help()
                    if real := deque(call for call in calls if not call.is_void):
                        return real
                else:
                    self._change.wait()
        return deque()

    def _some(self) -> deque[Call]:
        """Of those that wait: the first, and what follows of the same label and is quick."""
        first = self._waiting.popleft()
        calls, room = deque([first]), self._room.get(first.label, 1)
        while len(calls) < room and self._waiting and self._waiting[0].label == first.label:
            calls.append(self._waiting.popleft())
        return calls

    def _do(self, worker: _Worker, calls: deque[Call]) -> None:
        """All of them, in order; of a worker that is lost only the call that it was at."""
        try:
            fault = self._done(worker, calls)
        except BaseException as error:  # The user's code can no longer be loaded, say.
            while calls:
                _fail(calls.popleft(), error)
            raise
        if fault is None:
            return
        call = calls.popleft()
        with self._change:
            self._waiting.extendleft(reversed(calls))
            self._change.notify_all()
        if call.tried or call.is_void or self._fault is not None:
            _fail(call, self._fault or fault)
        else:
            call.tried = True
            self._do(worker, deque([call]))

    def _done(self, worker: _Worker, calls: deque[Call]) -> Exception | None:
        """Do them; what is left in `calls` is unanswered, for its first one ended the worker."""
        begun, count, label = time.monotonic(), len(calls), calls[0].label
        if worker.process is None:
            worker.process = self._template.fork()
        try:
            worker.process.tell([call.job for call in calls])
            while calls:
                answer = self._hear(worker, worker.process, calls[0])
                if answer.is_last:
                    return self._lost(worker, worker.process, CrashError(answer.failure))
                self._settle(calls.popleft(), answer)
        except TimeoutError as late:
            return self._lost(worker, worker.process, late)
        except (OSError, EOFError):
            return self._lost(worker, worker.process, None)
        each = (time.monotonic() - begun) / count
        self._room[label] = max(1, min(2 * count, _TOGETHER, int(PATIENCE / each)))
        return None

    def _hear(self, worker: _Worker, process: Process, call: Call) -> Answer:
        """Raises TimeoutError, EOFError, OSError."""
        begun, limit = time.monotonic(), call.seconds
        if call.home is not None:
            if call.home.worker is not worker:  # The object is made anew.
                limit *= 1 + call.home.calls
            call.home.worker = None if call.is_last else worker
            (worker.homes.discard if call.is_last else worker.homes.add)(call.home)
        for after, act in ((PATIENCE, self._stuck), (waiting.TOLD_AFTER, _tell)):
            if after < limit:
                if process.speaks(begun + after - time.monotonic()):
                    return process.hear()
                act(worker, call)
        if process.speaks(begun + limit - time.monotonic()):
            return process.hear()
        raise TimeoutError(f"did not answer within {call.seconds:g} seconds")

    def _stuck(self, worker: _Worker, _: Call) -> None:
        with self._change:
            worker.is_stuck = True
            self._help()

    def _lost(self, worker: _Worker, process: Process, why: Exception | None) -> Exception:
        how = self._template.bury(process)
        with self._change:
            worker.process, worker.is_stuck = None, False
            for home in worker.homes:
                home.worker = None
            worker.homes.clear()
        return why or CrashError(how)

    def _settle(self, call: Call, answer: Answer) -> None:
        for warned in answer.warned:
            logging.getLogger(warned.logger).log(warned.level, warned.message, *warned.values)
        if call.home is not None:
            call.home.calls += 1
        if answer.failure is not None:
            _fail(call, (ConfigError if answer.refused else UserCodeError)(answer.failure))
            return
        with suppress(InvalidStateError):
            call.future.set_result(answer.value)


def _tell(_: _Worker, call: Call) -> None:
    log.warning(f"waiting for {call.label}, which is stopped after %g s", call.seconds)


def _fail(call: Call, error: BaseException | None) -> None:
    with suppress(InvalidStateError):
        call.future.set_exception(error)
