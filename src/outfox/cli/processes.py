"""A run in one process, or in several that share it: this one leads and starts the others."""

from __future__ import annotations

import asyncio
import logging
import signal
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from outfox.build import System, assemble
from outfox.cli.display import Display
from outfox.cli.run import Outcome, run
from outfox.core.config import RecipeFile
from outfox.core.errors import OutfoxError
from outfox.core.waiting import waiting
from outfox.learning.ranks import DEADLINE, GlooRanks, begin_worker, use_threads
from outfox.store.files import writable
from outfox.store.run_folder import RunFolder

_NOTICED = 5.0
"""Seconds within which the end of a process is known, once its connection broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What another process needs to play its part."""

    file: RecipeFile
    allow_user_code: bool
    folder: Path
    meeting: Path
    index: int
    count: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Another process, and the end of a pipe on which it says once that it is there."""

    process: SpawnProcess
    there: Connection


def run_alone_or_together(
    file: RecipeFile, system: System, folder: RunFolder, display: Display
) -> Outcome:
    """The whole run; the folder is locked meanwhile.

    Raises OutfoxError, naming the process, where another one ends too soon.
    """
    use_threads(system.recipe.threads)
    own_code = system.isolation or nullcontext()
    with writable(folder.path), folder.lock(), display.warnings(), own_code:
        if system.recipe.processes == 1:
            outcome = asyncio.run(run(system, folder, display))
        else:
            with _others(file, system, folder) as ranks:
                outcome = asyncio.run(run(replace(system, ranks=ranks), folder, display))
    assert outcome is not None
    return outcome


@contextmanager
def _others(file: RecipeFile, system: System, folder: RunFolder) -> Generator[GlooRanks]:
    """Start ranks 1 and up; they end with this process, whatever ends it."""
    count = system.recipe.processes
    workers: list[Worker] = []
    ranks: GlooRanks | None = None
    with tempfile.TemporaryDirectory(prefix="outfox-") as place:
        meeting = Path(place) / "meeting"
        try:
            for index in range(1, count):
                mine = Assignment(
                    file=file,
                    allow_user_code=system.parts.allow_user_code,
                    folder=folder.path,
                    meeting=meeting,
                    index=index,
                    count=count,
                    threads=system.recipe.threads,
                )
                workers.append(_start(mine))
            _await(workers, folder)
            ranks = GlooRanks(meeting, 0, count)
            yield ranks
        except RuntimeError as error:  # The connection to another process broke.
            ending = wait([worker.process.sentinel for worker in workers], timeout=_NOTICED)
            for worker in workers:
                if worker.process.sentinel in ending:
                    worker.process.join(_NOTICED)  # Its exit code comes a moment later.
            check_workers(workers, folder, error)
            raise
        finally:
            for worker in workers:  # Before the connection closes, of which they would complain.
                worker.process.kill()
                worker.process.join(_NOTICED)
            if ranks is not None:
                ranks.close()


def _start(mine: Assignment) -> Worker:
    """Ctrl-C reaches every process of a terminal; the new one leaves it to this one from birth."""
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(mine, there), daemon=True)
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process.start()
        finally:
            signal.signal(signal.SIGINT, before)
    else:
        process.start()
    there.close()
    return Worker(process=process, there=here)


def _await(workers: Sequence[Worker], folder: RunFolder) -> None:
    """Until all are there: whoever dies on the way would be waited for in vain."""
    seconds = DEADLINE.total_seconds()
    for index, worker in enumerate(workers, start=1):
        try:
            with waiting(f"process {index} to begin", seconds):
                if not worker.there.poll(seconds):
                    raise OutfoxError(
                        f"a process of a run begins within {seconds:g} s; process {index} did not: "
                        f"go on with outfox train --resume {folder.path}, or begin a run with "
                        "processes=1"
                    )
            worker.there.recv()
        except EOFError:
            worker.process.join(_NOTICED)
            check_workers(workers, folder, None)
            raise


def check_workers(workers: Sequence[Worker], folder: RunFolder, cause: Exception | None) -> None:
    """Raises OutfoxError for the first worker that has failed."""
    for index, worker in enumerate(workers, start=1):
        code = worker.process.exitcode
        if code:
            raise OutfoxError(
                f"all processes of a run end together; process {index} ended too soon with exit "
                f"code {code}{_meaning(code)}: go on with outfox train --resume {folder.path}, or "
                "begin a run with processes=1"
            ) from cause


def _meaning(code: int) -> str:
    """-9 is what the system sends when memory runs out."""
    return " (killed, perhaps for want of memory)" if code == -signal.SIGKILL else ""


def _work(mine: Assignment, there: Connection) -> None:
    begin_worker(mine.threads)
    logging.disable(logging.WARNING)  # The leading process says the same.
    there.send(mine.index)
    ranks = GlooRanks(mine.meeting, mine.index, mine.count)
    system = assemble(mine.file, allow_user_code=mine.allow_user_code, ranks=ranks)
    asyncio.run(run(system, RunFolder.open(mine.folder), Display(quiet=True)))
