"""Training tasks, balanced over kinds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.types import Task
from outfox.worlds.tasks.rows import RowTasks

_BLOCK = 180
"""Items per turn of the pattern: divisible by most numbers of kinds."""


class KindTasks:
    """A TaskSource without state, with a share of the items for each kind.

    Kinds follow a fixed pattern that spreads each as evenly as its share allows; within a kind,
    tasks come in a seeded order, each once per epoch. Kinds without a share get 1; shares are
    relative. Raises ConfigError for a share of a kind that no task has.
    """

    def __init__(
        self, tasks: Sequence[Task], *, shares: Mapping[str, float] | None = None, seed: int = 0
    ) -> None:
        by_kind: dict[str, list[Task]] = defaultdict(list)
        for task in tasks:
            by_kind[str(task.metadata["kind"])].append(task)
        for kind, share in (shares or {}).items():
            if kind not in by_kind:
                raise ConfigError(
                    f"shares are given to kinds; '{kind}' is none.{did_you_mean(kind, by_kind)}"
                )
            if share < 0:
                raise ConfigError(f"the share of '{kind}' is at least 0; got {share}")
        given = {kind: (shares or {}).get(kind, 1.0) for kind in by_kind}
        self._sources = {
            kind: RowTasks(tasks, seed=seed) for kind, tasks in by_kind.items() if given[kind] > 0
        }
        if not self._sources:
            raise ConfigError("at least one kind has a share over 0; all are 0")
        self._pattern = spread({kind: given[kind] for kind in self._sources}, _BLOCK)
        self._total = {kind: self._pattern.count(kind) for kind in self._sources}

    def take(self, step: int, count: int) -> Sequence[Task]:
        return tuple(self._item(step * count + offset) for offset in range(count))

    def _item(self, index: int) -> Task:
        block, place = divmod(index, _BLOCK)
        kind = self._pattern[place]
        earlier = self._pattern[:place].count(kind)
        return self._sources[kind].item(block * self._total[kind] + earlier)


def spread(shares: Mapping[str, float], length: int) -> tuple[str, ...]:
    """Smooth weighted round robin: what is most behind its share comes next."""
    total, owed = sum(shares.values()), dict.fromkeys(shares, 0.0)
    pattern: list[str] = []
    for _ in range(length):
        for kind, share in shares.items():
            owed[kind] += share / total
        chosen = max(owed, key=lambda kind: (round(owed[kind], 9), kind))
        owed[chosen] -= 1
        pattern.append(chosen)
    return tuple(pattern)
