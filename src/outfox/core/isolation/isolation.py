"""What the user's signals and tools share in a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from outfox.core.isolation.failures import Asked, Failure
from outfox.core.isolation.workers import Workers
from outfox.core.recipe import UserCodeSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Isolation:
    """Where the user's code runs, and which calls of it are known to fail."""

    workers: Workers
    failures: dict[Asked, Failure] = field(default_factory=lambda: dict[Asked, Failure]())
    """Of the steps that a resumed run does again: not asked, but said as it was."""

    def __enter__(self) -> Isolation:
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()


def isolate(own: UserCodeSettings) -> Isolation | None:
    """No process is started yet. None: the user's code runs in this one."""
    if not own.isolated:
        return None
    workers = Workers(seconds=own.seconds, memory_gb=own.memory_gb, most=own.workers)
    return Isolation(workers=workers)
