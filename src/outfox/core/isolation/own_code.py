"""Code of the user's own, found again in another process as the run found it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from outfox.core.errors import ConfigError
from outfox.core.parts import Parts


class OwnCode(NamedTuple):
    """What it takes to find it."""

    folders: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    """Absolute path and SHA-256 of the files that were loaded when the run began."""


def own_code(parts: Parts) -> OwnCode:
    """Of all that `parts` has loaded."""
    return OwnCode(
        folders=tuple(str(folder.absolute()) for folder in (*parts.folders, Path())),
        files=tuple(sorted(parts.files.items())),
    )


@contextmanager
def found_again(code: OwnCode, *, where: str) -> Generator[Parts]:
    """Loads it. Raises ConfigError in the end where a file has changed since."""
    parts = Parts(folders=tuple(map(Path, code.folders)))
    yield parts
    begun_with = dict(code.files)
    for file, digest in parts.files.items():
        if begun_with.get(file) != digest:
            raise ConfigError(
                f"{where}: a run keeps the code that it began with; {file} has changed since: "
                "resume the run, or begin another"
            )
