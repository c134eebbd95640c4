"""The template process and its workers, as the run sees them."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Any

from outfox.core.errors import ConfigError, UserCodeError
from outfox.core.isolation.template import LOADING_SECONDS, Answer, Bury, Fork, Prepare
from outfox.core.waiting import waiting

_OBEYS_WITHIN = 10.0
"""Seconds in which the template forks or buries; else it is replaced."""
_MOVES_WITHIN = 10
"""Seconds in which a message that has begun to pass must be through."""
_LARGEST = 256 << 20
"""Bytes of an answer."""


class Process:
    """One worker process."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid = pid
        self.connection = connection
        self._ears = select.poll()
        self._ears.register(connection.fileno(), select.POLLIN)

    def tell(self, job: bytes) -> None:
        """Raises OSError where it is gone."""
        self.connection.send_bytes(job)

    def speaks(self, seconds: float) -> bool:
        """Does it say something, or end, within this time?"""
        return bool(self._ears.poll(max(0.0, 1e3 * seconds)))

    def hear(self) -> Answer:
        """Its answer. Raises EOFError or OSError where it is gone."""
        heard = self.connection.recv_bytes(_LARGEST)
        try:
            return pickle.loads(heard)
        except Exception as error:  # of a class that this process cannot import, say
            return Answer(failure=f"its answer cannot be read: {type(error).__name__}: {error}")


class TemplateProcess:
    """Loads the user's code once, and forks workers that have it.

    `memory`: bytes that a worker may take beyond what is loaded.
    """

    def __init__(self, *, memory: int) -> None:
        self._memory = memory
        self._jobs: list[bytes] = []
        self._answered = 0
        self._lock = threading.RLock()
        self._popen: subprocess.Popen[bytes] | None = None
        self._control: Connection | None = None
        self._closed = False

    def prepare(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call this in the template; it starts at once and works beside this process."""
        with self._lock:
            self._jobs.append(pickle.dumps((function, arguments)))
            if self._control is None:
                self._start()
            else:
                self._control.send(Prepare(job=self._jobs[-1]))

    def ready(self) -> None:
        """Wait until everything is prepared. Raises ConfigError where that fails."""
        with self._lock:
            while self._answered < len(self._jobs):
                answer = self._prepared()
                self._answered += 1
                if answer.refused:
                    raise ConfigError(answer.failure)
                if answer.failure is not None:
                    raise ConfigError(
                        "code of your own must load in a process of its own, too; "
                        f"{answer.failure}: mend it, or set user_code.isolated=false"
                    )

    def fork(self) -> Process:
        """A new worker. Raises ConfigError where the user's code cannot be loaded."""
        with self._lock:
            if self._closed:
                raise UserCodeError("the workers were closed")
            with suppress(OSError, EOFError):
                return self._fork()
            self._stop()
            return self._fork()

    def bury(self, process: Process) -> str:
        """End a worker, however it is doing; says how it ended."""
        process.connection.close()
        with self._lock:
            try:
                self._tell(Bury(pid=process.pid))
                code = self._hear(_OBEYS_WITHIN)
            except (OSError, EOFError):
                if not self._closed:  # It died by itself, and so its workers are still there.
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(process.pid, signal.SIGKILL)
                self._stop()
                return "its process was lost"
        return f"its process ended with {'exit code' if code >= 0 else 'signal'} {abs(code)}"

    def close(self) -> None:
        """End the template, and with it every worker."""
        with self._lock:
            self._closed = True
            self._stop()

    def _start(self) -> None:
        here, there = socket.socketpair()
        with there:
            program = (
                f"import sys; sys.path[:] = {[place or os.getcwd() for place in sys.path]!r}; "
                "from outfox.core.isolation.template import main; "
                f"main({there.fileno()}, {self._memory})"
            )
            # What the user's code prints must not get between the lines of `--json`.
            self._popen = subprocess.Popen(
                [sys.executable, "-c", program],
                pass_fds=(there.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=2,
                env={**os.environ, "PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
        self._control = Connection(here.detach())
        self._answered = 0
        for job in self._jobs:
            self._control.send(Prepare(job=job))

    def _stop(self) -> None:
        if self._control is None or self._popen is None:
            return
        self._control.close()
        self._control = None
        try:
            self._popen.wait(_OBEYS_WITHIN)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait(_OBEYS_WITHIN)

    def _fork(self) -> Process:
        if self._control is None:
            self._start()
        self.ready()
        assert self._control is not None
        assert self._popen is not None
        here, there = socket.socketpair()
        # A message that stops half-way must not stop the run.
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            here.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _MOVES_WITHIN, 0))
        with there, here:
            self._control.send(Fork())
            send_handle(self._control, there.fileno(), self._popen.pid)
            pid = self._hear(_OBEYS_WITHIN)
            return Process(pid, Connection(here.detach()))

    def _prepared(self) -> Answer:
        try:
            with waiting("code of your own to load", LOADING_SECONDS):
                return self._hear(LOADING_SECONDS)
        except TimeoutError:
            return Answer(failure=f"it took over {LOADING_SECONDS} seconds")
        except (OSError, EOFError):
            return Answer(failure="the process ended")

    def _tell(self, order: Bury) -> None:
        if self._control is None:
            raise EOFError
        self.ready()
        self._control.send(order)

    def _hear(self, seconds: float) -> Any:
        """Raises TimeoutError, EOFError."""
        assert self._control is not None
        if not self._control.poll(seconds):
            raise TimeoutError
        return self._control.recv()
