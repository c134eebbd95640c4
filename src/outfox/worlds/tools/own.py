"""Tools of a recipe, made for each episode; the user's own run in worker processes.

    episode ─call─▶ IsolatedTool ─worker─▶ the tool, or the object that this episode has of it

A class has one object per episode, in one worker. When that is lost, because some call in its
worker was too late or ended it, the object is made anew and its earlier calls are done again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from functools import lru_cache, partial
from inspect import iscoroutinefunction, isfunction
from typing import Any, NamedTuple

from outfox.core.config import Part
from outfox.core.errors import ConfigError, CrashError, UserCodeError
from outfox.core.isolation.failures import Asked, told
from outfox.core.isolation.isolation import Isolation
from outfox.core.isolation.own_code import OwnCode, found_again, own_code
from outfox.core.isolation.template import seeded
from outfox.core.isolation.workers import Home
from outfox.core.parts import Parts
from outfox.core.playing import PLAYING
from outfox.core.protocols import Tool
from outfox.core.seeding import derive
from outfox.core.types import JSON, ToolResult, ToolSpec, ToolStatus
from outfox.worlds.tools.function import FunctionTool, tool

log = logging.getLogger(__name__)
_TOKENS = itertools.count()


class Origin(NamedTuple):
    """How a worker comes by a tool."""

    code: OwnCode
    name: str
    settings: str
    """JSON."""
    where: str


class Use(NamedTuple):
    """One call of a tool."""

    call_id: str
    arguments: Mapping[str, JSON]
    seed: int
    """Of the global generators: siblings that ask the same draw the same."""


def recipe_tool(
    parts: Parts, part: Part, *, where: str, isolation: Isolation | None
) -> Callable[[], Tool]:
    """Makes an episode's tool. With `isolation` code of the user's runs in worker processes.

    Raises ConfigError.
    """
    found = _found(parts, part, where)
    make = (lambda: found) if isinstance(found, FunctionTool) else found
    if isolation is None or ":" not in part.type:
        return make
    settings = json.dumps(part.settings)
    origin = Origin(code=own_code(parts), name=part.type, settings=settings, where=where)
    isolation.workers.prepare(warm_up, origin)
    return partial(IsolatedTool, make(), origin, isolation)


def _found(parts: Parts, part: Part, where: str) -> FunctionTool | Callable[[], Tool]:
    """A plain function becomes a tool; a class is called for each episode, with its settings."""
    found = parts.load("tool", part.type, where=where)
    if isinstance(found, FunctionTool) or isfunction(found):
        if part.settings:
            raise ConfigError(
                f"{where}: a function has no settings; got {', '.join(part.settings)}: make it a "
                "class with keyword-only parameters"
            )
        return found if isinstance(found, FunctionTool) else tool(found)
    return parts.alone("tool", part, where=where)


class IsolatedTool:
    """Fits the protocol `Tool`; of one episode. `like`: the same tool in this process.

    A call that is too late twice is a result with status `timeout`; one that ends its process
    twice has status `crashed`.
    """

    def __init__(self, like: Tool, origin: Origin, isolation: Isolation) -> None:
        self._spec = like.spec
        self._origin = origin
        self._isolation = isolation
        self._seconds = like.timeout_seconds if isinstance(like, FunctionTool) else None
        self._asked: Counter[str] = Counter()
        self._done: list[Use] = []
        """What its object has been through."""
        self._token = next(_TOKENS)
        self._home: Home | None = None
        self._one_by_one: AbstractAsyncContextManager[Any] = nullcontext()
        if not isinstance(like, FunctionTool):
            self._home, self._one_by_one = Home(), asyncio.Lock()
            workers = isolation.workers
            weakref.finalize(self, workers.release, self._home, forget, self._token).atexit = False

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def __call__(self, call_id: str, arguments: Mapping[str, JSON]) -> ToolResult:
        text = told(arguments)
        number = self._asked[text]
        self._asked[text] += 1
        playing = PLAYING.get()
        stored = playing and self._isolation.failures.get(
            Asked(
                group_id=playing.group_id,
                sibling=playing.sibling,
                part=self._spec.name,
                arguments=text,
                number=number,
            )
        )
        if stored:
            return self._failure(call_id, stored.why, stored.kind)
        of = (playing.seed, playing.step, playing.group_id) if playing else ()
        seed = derive("tool", self._spec.name, text, number, *of)
        async with self._one_by_one:
            return await self._perform(Use(call_id=call_id, arguments=dict(arguments), seed=seed))

    async def _perform(self, use: Use) -> ToolResult:
        name = self._spec.name
        future = self._isolation.workers.submit(
            f"the tool {name}",
            perform,
            self._origin,
            self._token,
            tuple(self._done) if self._home else (),
            use,
            seconds=self._seconds,
            home=self._home,
        )
        try:
            result = await asyncio.wrap_future(future)
        except TimeoutError as late:
            log.warning(f"the tool {name} %s, twice; the policy reads that it was late", late)
            return self._failure(use.call_id, f"{name} {late}.", "timeout")
        except (CrashError, UserCodeError) as error:
            if isinstance(error, UserCodeError):
                self._done.append(use)
            log.warning(
                f"the tool {name} failed: %s; the policy reads that its call failed: let the tool "
                "say what it cannot answer",
                error,
            )
            status = "crashed" if isinstance(error, CrashError) else "error"
            return self._failure(use.call_id, f"{name} failed: {error}", status)
        self._done.append(use)
        return replace(result, tool_call_id=use.call_id, name=name)

    def _failure(self, call_id: str, content: str, status: ToolStatus) -> ToolResult:
        return ToolResult(
            tool_call_id=call_id,
            name=self._spec.name,
            content=content,
            status=status,
            error=content,
        )


# -- in a worker ----------------------------------------------------------------------------------
_HELD: dict[int, Tool] = {}
"""By token: this worker's objects of episodes."""


def perform(origin: Origin, token: int, earlier: Sequence[Use], use: Use) -> ToolResult:
    """Do one call; of a class by the episode's object, made anew with all `earlier` calls where
    this worker does not hold it. Raises MemoryError."""
    made = _made(origin)
    if isinstance(made, FunctionTool):
        return _done(made, use)
    if token not in _HELD:
        seeded(derive("tool", origin.name))
        performer = made()
        for each in earlier:
            with suppress(Exception):  # It raised then, too.
                _done(performer, each)
        _HELD[token] = performer
    return _done(_HELD[token], use)


def warm_up(origin: Origin) -> None:
    """What is the same for all calls, ahead of them."""
    _made(origin)


def forget(token: int) -> None:
    """The episode is over."""
    _HELD.pop(token, None)


def _done(performer: Tool, use: Use) -> ToolResult:
    seeded(use.seed)
    result: Any = _runner().run(_called(performer, use))
    if not isinstance(result, ToolResult):
        raise TypeError(f"it returned {type(result).__name__}; a tool returns a ToolResult")
    if result.status == "crashed":  # The worker's end, but perhaps another call's fault.
        raise MemoryError
    return result


async def _called(performer: Tool, use: Use) -> ToolResult:
    return await performer(use.call_id, dict(use.arguments))


@lru_cache(maxsize=1)
def _runner() -> asyncio.Runner:
    """One event loop for the worker's life: what a tool opened in it stays open."""
    return asyncio.Runner()


@lru_cache(maxsize=64)
def _made(origin: Origin) -> FunctionTool | Callable[[], Tool]:
    part = Part(type=origin.name, settings=json.loads(origin.settings))
    with found_again(origin.code, where=origin.where) as parts:
        found = _found(parts, part, origin.where)
    return _here(found) if isinstance(found, FunctionTool) else found


def _here(lifted: FunctionTool) -> FunctionTool:
    """Runs in the main thread, for nothing else does; the deadline is the run's business."""
    function = lifted.function
    if not iscoroutinefunction(function):
        plain = function

        async def function(**values: Any) -> Any:
            return plain(**values)

    return replace(lifted, function=function, timeout_seconds=math.inf)
