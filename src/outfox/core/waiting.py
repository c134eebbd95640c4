"""Every wait has a name, and who waits long says it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

log = logging.getLogger(__name__)

TOLD_AFTER = 5.0
"""Seconds after which a wait is told of."""


@contextmanager
def waiting(name: str, seconds: float) -> Generator[None]:
    """Tell of a wait for `name` that takes long. `seconds`: its deadline, kept by the caller."""
    telling = threading.Timer(
        TOLD_AFTER, log.warning, (f"waiting for {name}, at most %g s", seconds)
    )
    telling.daemon = True
    telling.start()
    try:
        yield
    finally:
        telling.cancel()
