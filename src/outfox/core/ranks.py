"""Processes that run one loop together: each plays its share, all hold everything.

    rank 0   tasks 0, 2, 4 …   its share of each micro-batch  ─┐
    rank 1   tasks 1, 3, 5 …   its share of each micro-batch  ─┴─▶ all groups, the summed gradient

A rank scores what it played; every rank credits all, so that only scored groups and gradients
travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Ranks(Protocol):
    """One of `count` processes."""

    @property
    def index(self) -> int: ...
    @property
    def count(self) -> int: ...
    def gather(self, mine: Any) -> list[Any]:
        """What each rank gave, in rank order, on every rank."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """A process by itself."""

    index: int = 0
    count: int = 1

    def gather(self, mine: Any) -> list[Any]:
        return [mine]


ALONE = Alone()


def share(items: Sequence[T], ranks: Ranks) -> Sequence[T]:
    """This rank's part: every `count`-th item."""
    return items[ranks.index :: ranks.count]


def gathered(mine: Sequence[T], ranks: Ranks) -> list[T]:
    """All ranks' parts in the order that `share` took them from."""
    parts: list[Sequence[T]] = ranks.gather(mine)
    whole = sum(map(len, parts))
    return [parts[place % ranks.count][place // ranks.count] for place in range(whole)]
