"""Outfox trains language-model policies that act in several steps, and keeps their rewards honest.

The names below are the public Python API; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outfox.cli.train import resume, train
    from outfox.core.types import Trajectory
    from outfox.evaluation.evaluate import evaluate
    from outfox.rewards.lift import signal
    from outfox.rewards.score import score
    from outfox.store.run_folder import RunFolder
    from outfox.worlds.tools.function import tool

    open_run = RunFolder.open

__all__ = ["Trajectory", "evaluate", "open_run", "resume", "score", "signal", "tool", "train"]

_HOMES = {
    "Trajectory": "outfox.core.types:Trajectory",
    "evaluate": "outfox.evaluation.evaluate:evaluate",
    "open_run": "outfox.store.run_folder:RunFolder.open",
    "resume": "outfox.cli.train:resume",
    "score": "outfox.rewards.score:score",
    "signal": "outfox.rewards.lift:signal",
    "tool": "outfox.worlds.tools.function:tool",
    "train": "outfox.cli.train:train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'outfox' has no attribute '{name}'")
    module, _, attribute = _HOMES[name].partition(":")
    return attrgetter(attribute)(import_module(module))


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
