"""The other side of `workers.py`: a template that loads the user's code, and workers, its forks.

A worker does one call at a time. The template loads, forks and buries; it is never where the user's
functions run, so it always answers. When the run's process is gone, however it ended, the template
ends every worker and itself.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import random
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from outfox.core.errors import ConfigError

LOADING_SECONDS = 120
"""Longest time in which the user's code is imported."""

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function that can be imported, and its arguments."""


class Warned(NamedTuple):
    """A record that a worker logged, for the run to log."""

    logger: str
    level: int
    message: str
    values: tuple[str | float, ...]


class Answer(NamedTuple):
    """What one call came to."""

    value: Any = None
    failure: str | None = None
    """The exception that ended it."""
    refused: bool = False
    """It is a ConfigError: the run cannot go on."""
    is_last: bool = False
    """The worker ends now: it may have no memory left, or was told to exit."""
    warned: tuple[Warned, ...] = ()


class Prepare(NamedTuple):
    """Do this before workers are forked, so that all of them have the same code loaded."""

    job: bytes


class Fork(NamedTuple):
    """Begin a worker; its connection follows."""


class Bury(NamedTuple):
    """End a worker and whatever it started; the answer is its exit code, below 0 for a signal."""

    pid: int


def main(control_handle: int, memory: int) -> None:
    """The template's life. `memory`: bytes that a worker may take beyond what is loaded."""
    control = Connection(control_handle)
    workers: set[int] = set()
    _listen()
    with suppress(EOFError, OSError):
        while True:
            control.send(_obeyed(control.recv(), control, workers, memory))
    for pid in workers:
        _bury(pid)


def _obeyed(
    order: Prepare | Fork | Bury, control: Connection, workers: set[int], memory: int
) -> Any:
    match order:
        case Prepare(job=job):
            signal.alarm(LOADING_SECONDS)  # Should an import hang, nobody else would notice.
            answer = _answer(job)
            signal.alarm(0)
            return answer
        case Fork():
            pid = _fork(control, memory)
            workers.add(pid)
            return pid
        case Bury(pid=pid):
            workers.discard(pid)
            return _bury(pid)


def _fork(control: Connection, memory: int) -> int:
    handle = recv_handle(control)
    gc.freeze()
    pid = os.fork()
    if pid:
        os.close(handle)
        with suppress(OSError):  # The worker does the same; whoever is first.
            os.setpgid(pid, pid)
        return pid
    try:
        control.close()
        with suppress(OSError):
            os.setpgid(0, 0)
        _limit(memory)
        _work(Connection(handle))
    finally:
        os._exit(0)


def _bury(pid: int) -> int:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _work(run: Connection) -> None:
    """The worker's life: it ends when the run closes the connection, or a call wants to exit."""
    with suppress(EOFError, OSError):
        while True:
            answer = _answer(run.recv_bytes())
            run.send_bytes(_packed(answer))
            if answer.is_last:
                return


def _answer(job: bytes) -> Answer:
    """What the call came to, whatever it raised, and even where its value cannot be sent."""
    try:
        function, arguments = pickle.loads(job)
        return Answer(value=function(*arguments), warned=_heard())
    except ConfigError as error:
        return Answer(failure=str(error), refused=True)
    except MemoryError:
        return Answer(failure="it took more memory than user_code.memory_gb", is_last=True)
    except Exception as error:
        return Answer(failure=_told(error), warned=_heard())
    except BaseException as error:  # SystemExit; it may have left anything behind
        return Answer(failure=_told(error), is_last=True)
    finally:
        with suppress(Exception):
            sys.stdout.flush()


def _told(error: BaseException) -> str:
    with suppress(Exception):
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return type(error).__name__


def _packed(answer: Answer) -> bytes:
    try:
        return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return _packed(Answer(failure=f"its answer cannot be sent: {_told(error)}"))


def seeded(seed: int) -> None:
    """Global generators begin anew, so that a call draws the same in whichever worker it runs."""
    random.seed(seed)
    np.random.seed(seed % 2**32)


def _limit(memory: int) -> None:
    """Bound the address space, where the system can."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    allowed = _mapped() + memory
    if most != resource.RLIM_INFINITY:
        allowed = min(allowed, most)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))


def _mapped() -> int:
    """Bytes of address space in use; 0 where the system does not say."""
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        return 0
    return int(statistics.read_text().split()[0]) * resource.getpagesize()


# -- what is logged -------------------------------------------------------------------------------
_WARNED: list[Warned] = []


class _Ear(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        values = record.args if isinstance(record.args, tuple) else (record.args,)
        _WARNED.append(
            Warned(
                logger=record.name,
                level=record.levelno,
                message=str(record.msg),
                values=tuple(v if isinstance(v, (str, int, float)) else str(v) for v in values),
            )
        )


def _listen() -> None:
    outfox = logging.getLogger("outfox")
    outfox.addHandler(_Ear(logging.WARNING))
    outfox.propagate = False


def _heard() -> tuple[Warned, ...]:
    heard = tuple(_WARNED)
    _WARNED.clear()
    return heard
