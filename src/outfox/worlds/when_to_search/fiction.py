"""Made-up search results for reading drills: their values are drawn, so they must be copied.

Passages have the corpus's own wordings. Where the value sought is there, it stands beside a passage
that shares entity or relation; where it is absent, two such passages stand alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from outfox.core.types import Document
from outfox.worlds.when_to_search.beliefs import Hop
from outfox.worlds.when_to_search.facts import YEAR, Facts
from outfox.worlds.when_to_search.passages import BESIDE_COUNTS, EARLIER_YEARS, LATER_YEARS
from outfox.worlds.when_to_search.phrases import PHRASES


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Two passages in random order, and the value that they give."""

    documents: tuple[Document, ...]
    value: str | None
    """None where it is absent."""


class Fiction:
    """Draws blocks over a world's entities and classes of values."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._phrases = PHRASES[facts.language]
        self._relations: dict[str, list[str]] = {}
        self._entities: dict[str, list[str]] = {}
        for fact in facts.all:
            self._relations.setdefault(fact.entity, []).append(fact.relation)
            self._entities.setdefault(fact.relation, []).append(fact.entity)

    def plain(self, hop: Hop, draw: random.Random, *, absent: bool) -> Block:
        """What the canonical query of an ordinary question could return."""
        if absent:
            return self._shuffled([self._beside(hop, draw), self._beside(hop, draw)], None, draw)
        value = self._value(hop.relation, draw)
        gold = self._passage(hop, value, draw)
        return self._shuffled([gold, self._beside(hop, draw)], value, draw)

    def counted(self, hop: Hop, draw: random.Random, *, latest: bool) -> Block:
        """Two counts of a population; or what stands beside one of them.

        `latest`: the query had the cue word; now and then both counts come back, the later one
        being right. Without the cue only the earlier count is there.
        """
        old, new = self._value(hop.relation, draw), self._value(hop.relation, draw)
        earlier = self._fill(draw.choice(self._phrases.earlier), hop, old, draw)
        if not latest:
            return self._shuffled([earlier, self._beside(hop, draw)], old, draw)
        later = self._fill(draw.choice(self._phrases.later), hop, new, draw)
        report = self._fill(draw.choice(self._phrases.beside), hop, self._count(draw), draw)
        return self._shuffled([later, earlier if draw.random() < 0.3 else report], new, draw)

    def changed(self, hop: Hop, draw: random.Random, *, absent: bool) -> Block:
        """An old value and a dated new one; or the new one gone, something else in its place."""
        old, new = self._value(hop.relation, draw), self._value(hop.relation, draw)
        if absent:
            return self._shuffled([self._beside(hop, draw), self._beside(hop, draw)], None, draw)
        template = draw.choice(self._phrases.changed[hop.relation])
        dated = self._fill(template, hop, new, draw, year=YEAR)
        second = self._passage(hop, old, draw) if draw.random() < 0.8 else self._beside(hop, draw)
        return self._shuffled([dated, second], new, draw)

    # -- passages ----------------------------------------------------------------------------------
    def _beside(self, hop: Hop, draw: random.Random) -> Document:
        """A passage that shares the entity, or the relation, with what is sought."""
        others = [r for r in self._relations.get(hop.entity, ()) if r != hop.relation]
        if others and draw.random() < 0.6:
            relation = draw.choice(others)
            other = Hop(entity=hop.entity, relation=relation)
        else:
            entity = draw.choice(self._entities[hop.relation])
            while entity == hop.entity:
                entity = draw.choice(self._entities[hop.relation])
            other = Hop(entity=entity, relation=hop.relation)
        return self._passage(other, self._value(other.relation, draw), draw)

    def _passage(self, hop: Hop, value: str, draw: random.Random) -> Document:
        return self._fill(draw.choice(self._phrases.passages[hop.relation]), hop, value, draw)

    def _fill(
        self, template: str, hop: Hop, value: str, draw: random.Random, year: str = ""
    ) -> Document:
        years = LATER_YEARS if template in self._phrases.later else EARLIER_YEARS
        text = self._phrases.join(template, e=hop.entity, v=value, y=year or draw.choice(years))
        return Document(id="", text=text)

    def _value(self, relation: str, draw: random.Random) -> str:
        return draw.choice(self._facts.classes[relation])

    def _count(self, draw: random.Random) -> str:
        return str(draw.choice(BESIDE_COUNTS))

    def _shuffled(self, documents: list[Document], value: str | None, draw: random.Random) -> Block:
        draw.shuffle(documents)
        return Block(documents=tuple(documents), value=value)
