"""The folder of a run: where the recipe wants it, the next free one, or one to go on with."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from outfox.build import System
from outfox.cli.display import Display
from outfox.store.files import writable
from outfox.store.run_folder import RunFolder, differences, made_with


def create_folder(system: System) -> RunFolder:
    """Begin a run. Raises ConfigError where the folder holds something already."""
    chosen = system.recipe.run.dir
    path = Path(chosen).expanduser() if chosen else _next_free(system.recipe.name)
    with writable(path):
        return RunFolder.create(
            path,
            system.config,
            threads=system.recipe.threads,
            processes=system.recipe.processes,
            files=system.files,
            folders=(*system.parts.folders, Path()),
        )


def reopen_folder(path: Path | str, display: Display) -> RunFolder:
    """A run to go on with. Warns where it began with other versions, or on another kind of machine.

    Raises DataError where the folder holds no run.
    """
    folder = RunFolder.open(path)
    here = made_with()
    changed = differences({key: folder.about.get(key, here[key]) for key in here}, here)
    if changed:
        display.say(
            f"warning: {folder.path} began elsewhere ({'; '.join(changed)}); it goes on, but need "
            "not end bit for bit as it would have there"
        )
    return folder


def _next_free(name: str) -> Path:
    return next(
        path for number in count(1) if not (path := Path("runs") / f"{name}-{number:03d}").exists()
    )
