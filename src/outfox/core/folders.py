"""Folders of the user's machine."""

from __future__ import annotations

import os
import sys
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
