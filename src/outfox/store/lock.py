"""One writer per run folder, held by the operating system: a crash releases it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from outfox.core.errors import DataError


@contextmanager
def exclusive(folder: Path) -> Generator[None]:
    """Hold `folder/run.lock` while the block runs.

    Raises DataError where another process (or another holder in this one) has it.
    """
    with (folder / "run.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise DataError(
                f"one process writes a run folder; {folder} is being written by process {holder}: "
                "wait for it, stop it, or choose another run.dir"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            fcntl.flock(file, fcntl.LOCK_UN)
