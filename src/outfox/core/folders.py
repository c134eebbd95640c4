"""Folders of the user's machine, and files in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def cache_folder() -> Path:
    """`outfox` in the user's cache folder; `XDG_CACHE_HOME` is honoured. It may not exist yet."""
    if "XDG_CACHE_HOME" in os.environ:
        return Path(os.environ["XDG_CACHE_HOME"]) / "outfox"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser() / "outfox"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/outfox").expanduser()
    return Path("~/.cache/outfox").expanduser()


def cache_of(setting: str | None) -> Path:
    """The folder that a recipe's `cache.dir` names; without one the user's."""
    return Path(setting).expanduser() if setting else cache_folder()


def find(path: str | Path, folders: Sequence[Path]) -> Path:
    """A path of the recipe: meant from the current folder, else from the recipe's own.

    Where it is in none, the path from the current folder, so that a message can name it.
    """
    tried = [base / Path(path).expanduser() for base in (Path(), *folders)]
    return next((each for each in tried if each.exists()), tried[0])
