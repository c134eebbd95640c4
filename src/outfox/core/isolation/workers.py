"""The run's side of worker processes: calls with a deadline, in order of asking.

    submit ─▶ waiting ─▶ a thread, and the process that it speaks with ─▶ Future
                              └ too late, or dead: killed, and tried once more in a new one

Which worker does a call and when never shows: whoever asks gets the answer by its Future.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from outfox.core.errors import ConfigError, CrashError, UserCodeError
from outfox.core.isolation.process import Process, TemplateProcess
from outfox.core.isolation.template import Answer
from outfox.core.waiting import tell, told_after

PATIENCE = 0.05
"""Seconds at one call after which a worker is stuck, and another one does what waits."""
_LONG = 0.25
"""Seconds that a call waits for workers that are not stuck before another one helps them."""
_CORES = os.cpu_count() or 1
"""So many may help; more would only wait for each other."""
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
    inbox: SimpleQueue[Call | None] = field(default_factory=lambda: SimpleQueue[Call | None]())
    """What it alone is to do; None: end."""
    homes: set[Home] = field(default_factory=lambda: set[Home]())
    is_stuck: bool = False


class _Pool:
    """Threads that each do calls in a process of their own."""

    def __init__(self, template: TemplateProcess, most: int) -> None:
        self._template = template
        self._most = most
        self._lock = threading.RLock()  # A finalizer may ask while its thread does.
        self._waiting: deque[Call] = deque()
        self._workers: dict[_Worker, threading.Thread] = {}
        self._idle: list[_Worker] = []
        self._fault: BaseException | None = None

    # -- asked by other threads -------------------------------------------------------------------
    def take(self, call: Call) -> None:
        with self._lock:
            if self._fault is not None:
                _fail(call, self._fault)
            elif call.home is not None and call.home.worker is not None:
                self._give(call.home.worker, call)
            else:
                self._waiting.append(call)
                self._help()

    def close(self) -> None:
        self._end(UserCodeError("the workers were closed"))
        self._template.close()  # Threads that listen to a worker hear that it is gone.
        for thread in self._workers.values():
            if thread is not threading.current_thread():
                thread.join(_ENDS_WITHIN)

    def _end(self, fault: BaseException) -> None:
        with self._lock:
            self._fault = self._fault or fault
            while self._waiting:
                _fail(self._waiting.popleft(), self._fault)
            for worker in self._workers:
                worker.inbox.put(None)

    def _give(self, worker: _Worker, call: Call) -> None:
        if worker in self._idle:
            self._idle.remove(worker)
        worker.inbox.put(call)

    def _help(self) -> None:
        """Have another worker do what waits where all that are at work are stuck, or slow."""
        if not self._waiting:
            return
        at_work = [worker for worker in self._workers if worker not in self._idle]
        late = time.monotonic() > self._waiting[0].since + _LONG and len(at_work) < _CORES
        if not late and not all(worker.is_stuck for worker in at_work):
            return
        if self._idle:
            self._give(self._idle[-1], self._waiting.popleft())
        elif len(self._workers) < self._most:
            worker = _Worker()
            self._give(worker, self._waiting.popleft())
            self._workers[worker] = threading.Thread(
                target=self._live, args=(worker,), name="outfox-worker", daemon=True
            )
            self._workers[worker].start()

    # -- the threads ------------------------------------------------------------------------------
    def _live(self, worker: _Worker) -> None:
        try:
            while call := self._next(worker):
                if self._fault is not None:
                    _fail(call, self._fault)
                elif not call.is_void:
                    self._do(worker, call)
        except BaseException as fault:  # Whoever waits must hear of it.
            self._end(fault)
        if worker.process is not None:
            worker.process.connection.close()

    def _next(self, worker: _Worker) -> Call | None:
        """What to do now; it waits for that. None: the end."""
        with self._lock:
            worker.is_stuck = False
            if worker.inbox.empty():
                if self._waiting:
                    call = self._waiting.popleft()
                    self._help()
                    return call
                self._idle.append(worker)
        return worker.inbox.get()

    def _do(self, worker: _Worker, call: Call) -> None:
        """Once, and where that ended the process, once more in a new one."""
        try:
            fault = self._try(worker, call)
            if fault is not None and not call.is_void and self._fault is None:
                fault = self._try(worker, call)
        except BaseException as error:  # The user's code can no longer be loaded, say.
            _fail(call, error)
            raise
        if fault is not None:
            _fail(call, self._fault or fault)

    def _try(self, worker: _Worker, call: Call) -> Exception | None:
        """What ended the process, if the call did."""
        process = worker.process = worker.process or self._template.fork()
        try:
            process.tell(call.job)
            answer = self._hear(worker, process, call)
        except TimeoutError as late:
            self._lose(worker, process)
            return late
        except (OSError, EOFError):
            return CrashError(self._lose(worker, process))
        if answer.is_last:
            self._lose(worker, process)
            return CrashError(answer.failure)
        _settle(call, answer)
        return None

    def _hear(self, worker: _Worker, process: Process, call: Call) -> Answer:
        """Raises TimeoutError, EOFError, OSError."""
        begun, limit = time.monotonic(), call.seconds
        if call.home is not None:
            if call.home.worker is not worker:  # The object is made anew.
                limit *= 1 + call.home.calls
            call.home.worker = None if call.is_last else worker
            (worker.homes.discard if call.is_last else worker.homes.add)(call.home)
        for after, act in ((PATIENCE, self._stuck), (told_after(limit), _tell)):
            if after < limit:
                if process.speaks(begun + after - time.monotonic()):
                    return process.hear()
                act(worker, call)
        if process.speaks(begun + limit - time.monotonic()):
            return process.hear()
        raise TimeoutError(f"did not answer within {call.seconds:g} seconds")

    def _stuck(self, worker: _Worker, _: Call) -> None:
        with self._lock:
            worker.is_stuck = True
            self._help()

    def _lose(self, worker: _Worker, process: Process) -> str:
        """End its process; says how it ended."""
        how = self._template.bury(process)
        with self._lock:
            worker.process, worker.is_stuck = None, False
            for home in worker.homes:
                home.worker = None
            worker.homes.clear()
        return how


def _settle(call: Call, answer: Answer) -> None:
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
    tell(call.label, call.seconds)


def _fail(call: Call, error: BaseException | None) -> None:
    with suppress(InvalidStateError):
        call.future.set_exception(error)
