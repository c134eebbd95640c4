"""Every wait has a name and a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from types import coroutine
from typing import Any, TypeVar

from outfox.core.waiting import tell, told_after

T = TypeVar("T")


async def within(seconds: float, name: str, awaited: Awaitable[T]) -> T:
    """The awaited value. Raises TimeoutError, saying what was waited for, after `seconds`.

    What answers at once costs no timer; what takes long is told of.
    """
    begun = awaited.__await__()
    try:
        waiting = next(begun)
    except StopIteration as answer:
        return answer.value
    deadline = asyncio.timeout(seconds)
    telling = asyncio.get_running_loop().call_later(told_after(seconds), tell, name, seconds)
    try:
        async with deadline:
            return await _rest(begun, waiting)
    except TimeoutError as late:
        if not deadline.expired():
            raise  # Not this deadline: the awaited part's own.
        raise TimeoutError(f"{name} did not answer within {seconds:g} seconds") from late
    finally:
        telling.cancel()


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
