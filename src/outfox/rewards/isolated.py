"""A signal of the user's, asked in a worker process.

    group ─▶ one call per sibling (a function of batches: one for all) ─worker─▶ SignalResults

A call gets a copy of what the signal sees, so a signal that changes what it was given changes
nothing for anyone else.
"""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Literal, NamedTuple

from outfox.core.errors import CrashError, UserCodeError
from outfox.core.isolation.failures import Asked
from outfox.core.isolation.isolation import Isolation
from outfox.core.isolation.own_code import OwnCode, found_again
from outfox.core.isolation.template import seeded
from outfox.core.protocols import Family, Signal, SignalContext
from outfox.core.results import SignalCrash, SignalError, SignalResult, SignalTimeout
from outfox.core.seeding import derive
from outfox.core.types import JSON, Group, Trajectory
from outfox.rewards.adapters.foreign import Foreign
from outfox.rewards.lift import LiftedSignal, called, row_name
from outfox.rewards.own import own_signal

_LOOKS_UP = 0.2
"""Seconds between looks whether the run is to end."""


class Origin(NamedTuple):
    """How a worker comes by the signal."""

    code: OwnCode
    name: str
    """As the rubric has it."""
    settings: str
    """JSON."""


class IsolatedSignal:
    """Fits the protocol `Signal`. The first question about a group asks about all its siblings."""

    def __init__(
        self, signal: Signal, name: str, settings: Mapping[str, JSON], code: OwnCode, own: Isolation
    ) -> None:
        self.signal = signal
        self._origin = Origin(code=code, name=name, settings=json.dumps(settings))
        self._isolation = own
        self._needs_siblings = not (
            isinstance(signal, Foreign)
            or (isinstance(signal, LiftedSignal) and not signal.takes_context)
        )
        self._together = isinstance(signal, Foreign) and signal.together
        self._due: dict[Trajectory, Callable[[], SignalResult]] = {}
        own.workers.prepare(warm_up, self._origin)

    @property
    def name(self) -> str:
        return self.signal.name

    @property
    def range(self) -> tuple[float, float]:
        return self.signal.range

    @property
    def family(self) -> Family:
        return self.signal.family

    @property
    def scope(self) -> Literal["trajectory", "group"]:
        return self.signal.scope

    def begin(self, groups: Iterable[Group], settings: Mapping[str, JSON], step: int) -> None:
        """Ask about all of them, where the signal needs no context for it."""
        if self._needs_siblings:
            return
        for group in groups:
            self._ask(
                SignalContext(
                    group=group,
                    solvable="undetermined",
                    must_ground=False,
                    settings=settings,
                    step=step,
                )
            )

    def __call__(self, trajectory: Trajectory, context: SignalContext) -> SignalResult:
        """A failure is a result; raises ConfigError where the run cannot go on."""
        if trajectory not in self._due:
            self._ask(context)
        return self._due.pop(trajectory)()

    def _ask(self, context: SignalContext) -> None:
        """About all siblings that did not fail; what is known to fail is not asked again."""
        asked: list[Trajectory] = []
        for each in context.group.trajectories:
            stored = self._stored(each)
            if stored is not None:
                self._due[each] = partial(_same, stored)
            elif each.stop_reason != "error":
                asked.append(each)
        whole = _packed(context) if self._needs_siblings else b""
        for batch in [asked] if self._together and asked else [[each] for each in asked]:
            group_id = context.group.group_id
            seen = Group(group_id=group_id, trajectories=tuple(batch))
            future: Future[list[SignalResult]] = self._isolation.workers.submit(
                f"the signal {self._origin.name}",
                measure,
                self._origin,
                whole or _packed(replace(context, group=seen)),
                [(context.group if whole else seen).trajectories.index(each) for each in batch],
                derive("signal", self._origin.name, group_id, batch[0].sibling),
            )
            for place, each in enumerate(batch):
                self._due[each] = partial(self._answer, future, place, each)

    def _stored(self, trajectory: Trajectory) -> SignalResult | None:
        failure = self._isolation.failures.get(
            Asked(group_id=trajectory.group_id, sibling=trajectory.sibling, part=self._origin.name)
        )
        if failure is None:
            return None
        return (SignalTimeout if failure.kind == "timeout" else SignalCrash)(why=failure.why)

    def _answer(
        self, future: Future[list[SignalResult]], place: int, trajectory: Trajectory
    ) -> SignalResult:
        """Of one sibling. Each call has its deadline, so this ends; who waits long is told of."""
        row = f"{self.name} on {row_name(trajectory)}"
        match _failure(future):
            case None:
                return future.result()[place]
            case TimeoutError() as late:
                return SignalTimeout(why=f"{row}: {late}")
            case CrashError() as crash:
                return SignalCrash(why=f"{row}: {crash}")
            case UserCodeError() as error:
                return SignalError(why=f"{row}: {error}")
            case fault:
                raise fault


def _failure(future: Future[list[SignalResult]]) -> BaseException | None:
    """What a call failed with. Raises CancelledError on Ctrl-C, which in a coroutine only asks its
    task to end."""
    while True:
        try:
            return future.exception(_LOOKS_UP)
        except TimeoutError:
            with suppress(RuntimeError):  # No coroutine asks.
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError from None


def _packed(context: SignalContext) -> bytes:
    return pickle.dumps(context, protocol=pickle.HIGHEST_PROTOCOL)


def _same(result: SignalResult) -> SignalResult:
    return result


# -- in a worker ----------------------------------------------------------------------------------
def measure(origin: Origin, packed: bytes, places: Sequence[int], seed: int) -> list[SignalResult]:
    """The signal's results for the trajectories at `places`. Raises MemoryError."""
    signal = _signal(origin)
    seeded(seed)
    context: SignalContext = pickle.loads(packed)
    siblings = [context.group.trajectories[place] for place in places]
    results = [called(signal, each, context) for each in siblings]
    for result in results:
        if isinstance(result, SignalCrash):  # The worker's end, but perhaps another call's fault.
            raise MemoryError
    return results


def warm_up(origin: Origin) -> None:
    """Load the signal, and this module with it, ahead of all calls."""
    _signal(origin)


@lru_cache(maxsize=64)
def _signal(origin: Origin) -> Signal:
    with found_again(origin.code, where="rubric") as parts:
        return own_signal(origin.name, json.loads(origin.settings), parts)
