"""A run in one process, or in several that share it: this one leads and starts the others."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from outfox.build import System, assemble
from outfox.cli.display import Display
from outfox.cli.run import Outcome, run
from outfox.core.config import RecipeFile
from outfox.learning.ranks import GlooRanks, begin_worker, use_threads
from outfox.store.run_folder import RunFolder


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


def run_alone_or_together(
    file: RecipeFile, system: System, folder: RunFolder, display: Display
) -> Outcome:
    """The whole run; the folder is locked meanwhile."""
    use_threads(system.recipe.threads)
    with folder.lock():
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
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="outfox-") as place:
        meeting = Path(place) / "meeting"
        work = [
            Assignment(
                file=file,
                allow_user_code=system.parts.allow_user_code,
                folder=folder.path,
                meeting=meeting,
                index=index,
                count=count,
                threads=system.recipe.threads,
            )
            for index in range(1, count)
        ]
        processes = [context.Process(target=_work, args=(each,), daemon=True) for each in work]
        for process in processes:
            process.start()
        ranks = GlooRanks(meeting, 0, count)
        try:
            yield ranks
        finally:
            ranks.close()
            for process in processes:
                process.kill()


def _work(mine: Assignment) -> None:
    begin_worker(mine.threads)
    logging.disable(logging.WARNING)  # The leading process says the same.
    ranks = GlooRanks(mine.meeting, mine.index, mine.count)
    system = assemble(mine.file, allow_user_code=mine.allow_user_code, ranks=ranks)
    asyncio.run(run(system, RunFolder.open(mine.folder), Display(quiet=True)))
