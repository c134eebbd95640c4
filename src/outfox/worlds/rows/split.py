"""Which rows training never sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from outfox.core.errors import ConfigError
from outfox.core.seeding import rng
from outfox.worlds.rows.shown import Shown, gold_of


def split(
    rows: Sequence[Shown], share: float, seed: int
) -> tuple[Sequence[Shown], Sequence[Shown]]:
    """Held out, and the rest, in seeded order; rows with a gold passage in common stay together."""
    shuffled = list(rows)
    rng(seed, "held-out").shuffle(shuffled)
    count = round(share * len(shuffled))
    if not 0 < count < len(shuffled):
        raise ConfigError(
            f"world.held_out leaves rows on both sides; {share:g} of {len(shuffled)} rows is "
            f"{count}: give more rows or another share"
        )
    together: dict[int, list[int]] = defaultdict(list)
    for place, group in enumerate(_families(shuffled)):
        together[group].append(place)
    chosen: set[int] = set()
    for places in together.values():
        chosen |= set(places) if len(chosen) < count else set()
    if len(chosen) == len(shuffled):
        raise ConfigError(
            "world.held_out leaves rows on both sides; all rows share passages of gold_evidence"
        )
    test = [row for place, row in enumerate(shuffled) if place in chosen]
    return test, [row for place, row in enumerate(shuffled) if place not in chosen]


def _families(rows: Sequence[Shown]) -> list[int]:
    """Per row the first row that it shares a gold passage with, also by way of others."""
    first = list(range(len(rows)))
    holder: dict[str, int] = {}

    def root(place: int) -> int:
        while first[place] != place:
            place = first[place]
        return place

    for place, row in enumerate(rows):
        for passage in gold_of(row.task):
            left, right = root(holder.setdefault(passage, place)), root(place)
            first[max(left, right)] = min(left, right)
    return [root(place) for place in range(len(rows))]
