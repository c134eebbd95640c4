"""Every wait has a name and a deadline, and who waits long says it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

log = logging.getLogger(__name__)

TOLD_AFTER = 5.0
"""Seconds after which a wait is told of; a tenth of its deadline where that is later."""


@contextmanager
def waiting(name: str, seconds: float) -> Generator[None]:
    """Tell of a wait for `name` that takes long. `seconds`: its deadline, kept by the caller."""
    telling = threading.Timer(told_after(seconds), tell, (name, seconds))
    telling.daemon = True
    telling.start()
    try:
        yield
    finally:
        telling.cancel()


def told_after(seconds: float) -> float:
    """How soon a wait with this deadline is told of."""
    return max(TOLD_AFTER, seconds / 10)


def tell(name: str, seconds: float) -> None:
    """Say it; of several waits that differ only in what follows ` of `, people read the first."""
    kind, of, which = name.partition(" of ")
    log.warning(f"waiting for {kind}{of}%s, at most %g s", which, seconds)
