"""Made-up search results for reading drills: their values are drawn, so they must be copied.

Passages have the corpus's own wordings. Where the value sought is there, it stands beside a passage
that shares entity or relation; where it is absent, two such passages stand alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from outfox.core.types import Document
from outfox.worlds.when_to_search.beliefs import Hop
from outfox.worlds.when_to_search.facts import YEAR, Claims, Facts
from outfox.worlds.when_to_search.passages import (
    BESIDE_COUNTS,
    EARLIER_YEARS,
    LATER_YEARS,
    disputed_texts,
)
from outfox.worlds.when_to_search.phrases import PHRASES

_MISRANKED = 0.03
_FIRST_AGAIN = 0.7
"""Of a dispute: how often the first source comes before the second where that one is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Passages as a search ranks them, and the value that they give."""

    documents: tuple[Document, ...]
    value: str | None
    """None where it is absent."""
    asides: tuple[tuple[Hop, str | None], ...] = ()
    """What else could be asked of these passages, with what they say of it: None for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A passage, and what it says."""

    document: Document
    hop: Hop
    value: str


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
        value = None if absent else self._value(hop.relation, draw)
        first = self._beside(hop, draw) if value is None else self._told(hop, value, draw)
        told = sorted([first, self._beside(hop, draw)], key=lambda each: _rank(each.hop, hop))
        block = self._block([each.document for each in told], value, draw)
        return replace(block, asides=self._asides(hop, told, draw))

    def counted(self, hop: Hop, draw: random.Random, *, latest: bool) -> Block:
        """Two counts of a population; or what stands beside one of them.

        `latest`: the query had the cue word; now and then both counts come back, the later one
        being right. Without the cue only the earlier count is there.
        """
        old, new = self._value(hop.relation, draw), self._value(hop.relation, draw)
        earlier = self._fill(draw.choice(self._phrases.earlier), hop, old, draw)
        if not latest:
            return self._block([earlier, self._beside(hop, draw).document], old, draw)
        later = self._fill(draw.choice(self._phrases.later), hop, new, draw)
        report = self._fill(draw.choice(self._phrases.beside), hop, self._count(draw), draw)
        return self._block([later, earlier if draw.random() < 0.3 else report], new, draw)

    def changed(self, hop: Hop, draw: random.Random, *, absent: bool) -> Block:
        """An old value and a dated new one; or the new one gone, something else in its place."""
        old, new = self._value(hop.relation, draw), self._value(hop.relation, draw)
        if absent:
            return self.plain(hop, draw, absent=True)
        template = draw.choice(self._phrases.changed[hop.relation])
        dated = self._fill(template, hop, new, draw, year=YEAR)
        second = self._told(hop, old, draw) if draw.random() < 0.8 else self._beside(hop, draw)
        return self._block([dated, second.document], new, draw)

    def disputed(self, hop: Hop, draw: random.Random) -> tuple[tuple[Hop, Block], ...]:
        """A dispute about a population: who is asked in turn, and what comes back."""
        source, settling = draw.sample(self._phrases.sources, 2)
        first, second = draw.sample(self._facts.classes[hop.relation], 2)
        claims = Claims(first=first, second=second, source=source, settling=settling)
        right = draw.choice((first, second))
        texts = disputed_texts(self._phrases, hop.entity, claims, right, draw)
        one, two, three = (Document(id="", text=text) for text in texts)
        both = [one, two] if draw.random() < _FIRST_AGAIN else [two, one]
        beside = self._beside(hop, draw).document
        return (
            (hop, self._block([one, beside], first, draw)),
            (replace(hop, relation=source), self._block(both, second, draw)),
            (replace(hop, relation=settling), self._block([two, three], right, draw)),
        )

    # -- passages ----------------------------------------------------------------------------------
    def _asides(
        self, hop: Hop, told: list[Told], draw: random.Random
    ) -> tuple[tuple[Hop, str | None], ...]:
        """Every passage's own fact, and as many that mix up its words or ask of another entity."""
        said = {each.hop: each.value for each in told}
        entities, relations = ([h.entity for h in said], [h.relation for h in said])
        mixed = {Hop(entity=e, relation=r) for e in entities for r in relations} - set(said)
        other = Hop(entity=hop.entity, relation=draw.choice(sorted(self._entities)))
        relation = draw.choice(relations)
        foreign = Hop(entity=draw.choice(self._entities[relation]), relation=relation)
        absent = sorted(
            mixed | ({other, foreign} - set(said)), key=lambda h: (h.entity, h.relation)
        )
        draw.shuffle(absent)
        asides: list[tuple[Hop, str | None]] = [*said.items()]
        asides += [(each, None) for each in absent[: len(said)]]
        draw.shuffle(asides)
        return tuple((each, value) for each, value in asides if each != hop)

    def _beside(self, hop: Hop, draw: random.Random) -> Told:
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
        return self._told(other, self._value(other.relation, draw), draw)

    def _told(self, hop: Hop, value: str, draw: random.Random) -> Told:
        template = draw.choice(self._phrases.passages[hop.relation])
        return Told(document=self._fill(template, hop, value, draw), hop=hop, value=value)

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

    def _block(self, ranked: list[Document], value: str | None, draw: random.Random) -> Block:
        """The search ranks what fits best first; now and then it does not."""
        if draw.random() < _MISRANKED:
            ranked = ranked[::-1]
        return Block(documents=tuple(ranked), value=value)


def _rank(found: Hop, sought: Hop) -> int:
    """Entities are rarer words than relations, so a passage on the entity comes first."""
    return -2 * (found.entity == sought.entity) - (found.relation == sought.relation)
