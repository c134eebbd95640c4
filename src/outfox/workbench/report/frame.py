"""Pages that need nothing but themselves: templates, filled, with style and script inside."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources


def fill(template: str, parts: Mapping[str, str]) -> str:
    """A template of this folder with its parts, which are HTML already."""
    parts = {**parts, "style": _read("page.css"), "script": _read("page.js")}
    head, *sections = _read(template).split("{{")
    filled = [head]
    for section in sections:
        name, _, rest = section.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _read(name: str) -> str:
    return resources.files("outfox.workbench.report").joinpath(name).read_text(encoding="utf-8")
