"""Runs that die at one durable operation, in a forked process of their own.

A durable operation opens a file to write, writes, flushes to disk, renames, makes or removes
something below the watched folders. Of a write that a run dies at, half reaches the file.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOVES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""Audit events of CPython (docs: Audit events table); `os.replace` is told as `os.rename`."""

FILLING = ("open", "write", "fsync", "os.mkdir")
"""What a full disk refuses."""


class Deaths:
    """Counts durable operations below `folders`; the process is killed at number `at` (from 1)."""

    def __init__(self, *folders: Path, at: int | None = None, full: bool = False) -> None:
        """`full`: from number `at` on the disk is full, and nobody is killed."""
        self._folders = tuple(str(folder) for folder in folders)
        self._at = at
        self._full = full
        self.count = 0

    def watch(self) -> None:
        """From now on, for as long as this process lives."""
        sys.addaudithook(self._audit)
        opened, synced = io.open, os.fsync

        def opening(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            writes = isinstance(file, (str, Path)) and set(mode) & set("wax+")
            if not writes or not self._mine(file):
                return opened(file, mode, *args, **kwargs)
            self._happen("open", file)
            return _Written(opened(file, mode, *args, **kwargs), self)

        def syncing(handle: int) -> None:
            self._happen("fsync", os.readlink(f"/proc/self/fd/{handle}"))
            synced(handle)

        io.open = builtins.open = opening  # pathlib calls io.open
        os.fsync = syncing

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event in MOVES and isinstance(args[0], (str, os.PathLike)):
            self._happen(event, args[0])

    def _mine(self, place: Any) -> bool:
        return os.path.abspath(os.fspath(place)).startswith(self._folders)

    def _happen(self, what: str, place: Any) -> None:
        if self._mine(place) and self.dies(what):
            self.end()

    def dies(self, what: str) -> bool:
        self.count += 1
        if self._full and self._at is not None and what in FILLING:
            return self.count >= self._at
        return self.count == self._at and not self._full

    def end(self) -> None:
        if self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.kill(os.getpid(), signal.SIGKILL)


class _Written:
    """A file whose writes count."""

    def __init__(self, file: Any, deaths: Deaths) -> None:
        self._file, self._deaths = file, deaths

    def write(self, data: Any) -> int:
        if self._deaths.dies("write"):
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            self._deaths.end()
        return self._file.write(data)

    def __enter__(self) -> _Written:
        self._file.__enter__()
        return self

    def __exit__(self, *raised: Any) -> Any:
        return self._file.__exit__(*raised)

    def __iter__(self) -> Any:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def forked(work: Callable[[], str]) -> tuple[int, str]:
    """(exit status, what `work` returned or raised) of a child process; -9: it was killed."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        code, said = 0, ""
        try:
            os.close(here)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            said = work()
        except BaseException:
            code, said = 1, traceback.format_exc()
        os.write(there, said.encode()[-60_000:])
        os._exit(code)
    os.close(there)
    with os.fdopen(here, "rb") as answers:
        said = answers.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said
