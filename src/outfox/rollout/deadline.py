"""Every wait has a name and a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(seconds: float, name: str, awaited: Awaitable[T]) -> T:
    """The awaited value. Raises TimeoutError, saying what was waited for, after `seconds`."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await awaited
    except TimeoutError as late:
        if not deadline.expired():
            raise  # Not this deadline: the awaited part's own.
        raise TimeoutError(f"{name} did not answer within {seconds:g} seconds") from late
