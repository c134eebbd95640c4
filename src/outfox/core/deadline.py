"""Every wait has a name and a deadline.

A timer for every wait would take longer than most waits do. Those of one length fall due in the
order in which they begin, so that one timer serves them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from types import coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


async def within(seconds: float, name: str, awaited: Awaitable[T]) -> T:
    """The awaited value. Raises TimeoutError, saying what was waited for, after `seconds`.

    What answers at once costs next to nothing.
    """
    begun = awaited.__await__()
    try:
        waiting = next(begun)
    except StopIteration as answer:
        return answer.value
    watch = _watch(asyncio.get_running_loop(), seconds)
    wait = watch.begin()
    try:
        return await _rest(begun, waiting)
    except asyncio.CancelledError as cancelled:
        if wait.is_late_only():
            raise TimeoutError(f"{name} did not answer within {seconds:g} seconds") from cancelled
        raise
    finally:
        watch.end(wait)


@coroutine
def _rest(begun: Generator[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """What is left of something awaited that has begun, and now waits for `waiting`."""
    while True:
        try:
            given = yield waiting
        except BaseException as thrown:
            go_on, value = begun.throw, thrown
        else:
            go_on, value = begun.send, given
        try:
            waiting = go_on(value)
        except StopIteration as answer:
            return answer.value


class _Wait:
    """A task that waits. When it is late it is cancelled, and counted so, as `asyncio.timeout`
    does."""

    __slots__ = ("_cancelled_before", "late", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.late = False
        self._cancelled_before = task.cancelling()

    def is_late_only(self) -> bool:
        """Late, and nobody else has cancelled it meanwhile."""
        return self.late and self.task.cancelling() <= self._cancelled_before + 1


class _Watch:
    """Waits of one length in one event loop, the oldest first."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[_Wait, float] = {}
        self._has_timer = False

    def begin(self) -> _Wait:
        task = asyncio.current_task()
        assert task is not None, "only tasks wait"
        wait = _Wait(task)
        self._due[wait] = due = task.get_loop().time() + self._seconds
        if not self._has_timer:
            self._wake_at(due)
        return wait

    def end(self, wait: _Wait) -> None:
        del self._due[wait]
        if wait.late:
            wait.task.uncancel()

    def _wake_at(self, due: float) -> None:
        self._has_timer = True
        asyncio.get_running_loop().call_at(due, self._look)

    def _look(self) -> None:
        self._has_timer = False
        now = asyncio.get_running_loop().time()
        for wait, due in self._due.items():
            if due > now:
                self._wake_at(due)
                break
            if not wait.late:
                wait.late = True
                wait.task.cancel()


_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _Watch]] = WeakKeyDictionary()


def _watch(loop: asyncio.AbstractEventLoop, seconds: float) -> _Watch:
    of_loop = _watches.get(loop)
    if of_loop is None:
        of_loop = _watches[loop] = {}
    if seconds not in of_loop:
        of_loop[seconds] = _Watch(seconds)
    return of_loop[seconds]
