"""How the rows of a task file are written, one file per system."""

from __future__ import annotations

from pathlib import Path

from outfox.core.config import Part
from outfox.core.folders import find
from outfox.core.parts import Parts
from outfox.worlds.tasks.columns import RowFormat


def make_format(part: Part, parts: Parts) -> RowFormat:
    """The reader that `tasks.format` names; its files are looked for as the recipe's are."""
    found = parts.resolve("format", part, where="tasks.format")
    settings = {
        name: find(value, parts.folders) if isinstance(value, Path) else value
        for name, value in found.settings.items()
    }
    return found.factory(**settings)
