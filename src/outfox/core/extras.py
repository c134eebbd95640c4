"""Which installable extra of Outfox brings which package, read from Outfox's own metadata."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import requires

_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@cache
def extras() -> dict[str, tuple[str, ...]]:
    """Extra to the distributions that it adds, names normalised (`pydantic-monty`)."""
    found: dict[str, list[str]] = {}
    for requirement in requires("outfox") or ():
        extra = _EXTRA.search(requirement)
        if extra:
            found.setdefault(extra.group(1), []).append(distribution(requirement))
    return {name: tuple(packages) for name, packages in found.items()}


def distribution(requirement: str) -> str:
    """`torch>=2.8; extra == 'local'` to `torch`."""
    name = re.split(r"[\s<>=!~;\[(]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def install_hint(module: str) -> str:
    """How to get a missing top-level module."""
    package = distribution(module)
    for extra, packages in extras().items():
        if package in packages:
            return f"pip install 'outfox[{extra}]'"
    return f"pip install {package}"
