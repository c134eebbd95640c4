"""The folder of a run: where the recipe wants it, or the next free one."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from outfox.build import System
from outfox.store.run_folder import RunFolder


def create_folder(system: System) -> RunFolder:
    """Begin a run. Raises ConfigError where the folder holds something already."""
    chosen = system.recipe.run.dir
    path = Path(chosen).expanduser() if chosen else _next_free(system.recipe.name)
    return RunFolder.create(
        path,
        system.config,
        threads=system.recipe.threads,
        processes=system.recipe.processes,
        files=system.files,
        folders=(*system.parts.folders, Path()),
    )


def _next_free(name: str) -> Path:
    return next(
        path for number in count(1) if not (path := Path("runs") / f"{name}-{number:03d}").exists()
    )
