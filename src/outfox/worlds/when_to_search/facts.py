"""Facts, who knows them, and what each is used for.

    gazetteer ─▶ (entity, relation, value) ─rank─▶ known or not ─seed─▶ role, split

Popular entities' facts are *known*: the cold start teaches them closed-book. Roles:
`plain` is in the corpus and asked; `changed` was known and got a new, fictional value in YEAR;
`conflict` has two dated counts, an earlier, fictional one and the right one; `removed` is in no
passage; `disputed` has two sources that disagree and a third that settles it (disputes.py). A
held-out fact is never asked in training, neither by itself nor as part of a question.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from outfox.core.seeding import rng
from outfox.worlds.when_to_search.gazetteer import Gazetteer
from outfox.worlds.when_to_search.phrases import PHRASES, QUANTITIES
from outfox.worlds.when_to_search.quantities import quantity

Role = Literal["plain", "changed", "conflict", "removed", "disputed"]

YEAR = "2026"
"""When changed facts changed: later than what the cold start teaches."""
HELD_OUT = 0.45
"""Share of each kind of fact that training never asks."""
_KNOWN = {"capital": 0.6, "currency": 0.45, "language": 0.4, "population": 0.2}
"""Share of countries, by population, whose fact is known."""
_KNOWN_CITIES = 0.3
"""Share of cities, by population, whose country is known; so is that of a known capital. No city's
population is known."""
_CHANGED = {"capital": 0.5, "currency": 0.5, "language": 0.5}
_REMOVED = {
    "capital": 0.3,
    "currency": 0.25,
    "language": 0.25,
    "population": 0.32,
    "country": 0.12,
}
"""Shares of known facts that change, and of unknown ones that no passage holds."""
_CONFLICT = 0.38
"""Share of unknown populations that two passages disagree on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What two sources say of a disputed fact, and who knows better."""

    first: str
    """The value that the canonical query shows."""
    second: str
    source: str
    """Who says the second, as passages and queries name it."""
    settling: str
    """The source that agrees with one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that is so."""

    entity: str
    relation: str
    value: str
    """What is right now."""
    known: bool
    role: Role = "plain"
    held_out: bool = False
    old: str | None = None
    """What was right before it changed, the earlier count, or the wrong one of two claims."""
    amount: int = 0
    """A quantity before rounding."""
    claims: Claims | None = None
    """Of a disputed fact."""

    @property
    def key(self) -> tuple[str, str]:
        return self.entity, self.relation

    @property
    def taught(self) -> str | None:
        """What a cold start teaches closed-book, if anything."""
        return (self.old or self.value) if self.known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts of a world."""

    language: str
    all: tuple[Fact, ...]
    at: Mapping[tuple[str, str], Fact]
    """By (entity, relation)."""
    classes: Mapping[str, tuple[str, ...]]
    """By relation: the values it can take, for drafts and for fictional passages."""

    def of(self, *, role: Role, held_out: bool | None = None) -> list[Fact]:
        return [
            fact
            for fact in self.all
            if fact.role == role and (held_out is None or fact.held_out == held_out)
        ]


def make_facts(gazetteer: Gazetteer, *, language: str, seed: int) -> Facts:
    """The facts of a gazetteer, with roles and splits drawn from `seed`."""
    bare = [*_country_facts(gazetteer, language), *_city_facts(gazetteer, language)]
    classes: dict[str, tuple[str, ...]] = {}
    for relation in PHRASES[language].relations:
        classes[relation] = tuple(sorted({f.value for f in bare if f.relation == relation}))
    towns: dict[str, list[str]] = defaultdict(list)
    for city in gazetteer.cities:
        towns[city.country].append(city.name)
    facts = _restore_hinted(_assign_roles(bare, classes, towns, rng(seed, "roles"), language))
    facts = _split(facts, rng(seed, "split"))
    return Facts(
        language=language,
        all=tuple(facts),
        at={fact.key: fact for fact in facts},
        classes=classes,
    )


def _country_facts(gazetteer: Gazetteer, language: str) -> list[Fact]:
    join = PHRASES[language].separator.join
    facts: list[Fact] = []
    for rank, country in enumerate(gazetteer.countries):
        values = {
            "capital": country.capital,
            "currency": country.currency,
            "language": country.language,
            "population": join(quantity(country.population, language)),
        }
        for relation, value in values.items():
            if value is not None:
                known = rank < _KNOWN[relation] * len(gazetteer.countries)
                facts.append(
                    Fact(
                        entity=country.name,
                        relation=relation,
                        value=value,
                        known=known,
                        amount=country.population if relation == "population" else 0,
                    )
                )
    return facts


def _city_facts(gazetteer: Gazetteer, language: str) -> list[Fact]:
    join = PHRASES[language].separator.join
    facts: list[Fact] = []
    famous = gazetteer.countries[: round(_KNOWN["capital"] * len(gazetteer.countries))]
    capitals = {country.capital for country in famous}
    for rank, city in enumerate(gazetteer.cities):
        known = rank < _KNOWN_CITIES * len(gazetteer.cities) or city.name in capitals
        people = join(quantity(city.population, language))
        facts += [
            Fact(entity=city.name, relation="country", value=city.country, known=known),
            Fact(
                entity=city.name,
                relation="population",
                value=people,
                known=False,
                amount=city.population,
            ),
        ]
    return facts


def _assign_roles(
    bare: Sequence[Fact],
    classes: Mapping[str, tuple[str, ...]],
    towns: Mapping[str, Sequence[str]],
    draw: random.Random,
    language: str,
) -> list[Fact]:
    separator = PHRASES[language].separator
    facts: list[Fact] = []
    for stratum in _strata(bare):
        draw.shuffle(stratum)
        relation, known = stratum[0].relation, stratum[0].known
        changed = round(_CHANGED.get(relation, 0) * len(stratum)) if known else 0
        conflict = round(_CONFLICT * len(stratum)) if not known and relation == "population" else 0
        removed = 0 if known else round(_REMOVED[relation] * (len(stratum) - conflict))
        for place, fact in enumerate(stratum):
            if place < changed:
                options = towns[fact.entity] if relation == "capital" else classes[relation]
                fact = _change(fact, options, draw)
            elif place < conflict:
                earlier = quantity(int(fact.amount * draw.uniform(0.55, 0.85)), language)
                fact = replace(fact, role="conflict", old=separator.join(earlier))
            elif place < conflict + removed:
                fact = replace(fact, role="removed")
            facts.append(fact)
    return facts


def _restore_hinted(facts: Sequence[Fact]) -> list[Fact]:
    """A passage on a capital tells the capital's country, so that one is not removed."""
    told: set[str | None] = set()
    for fact in facts:
        if fact.relation == "capital" and fact.role != "removed":
            told |= {fact.value, fact.old}
    return [
        replace(fact, role="plain")
        if fact.role == "removed" and fact.relation == "country" and fact.entity in told
        else fact
        for fact in facts
    ]


def _change(fact: Fact, options: Sequence[str], draw: random.Random) -> Fact:
    """A new value among the options; a country with one city keeps its capital."""
    others = [option for option in options if option != fact.value]
    if not others:
        return fact
    return replace(fact, role="changed", old=fact.value, value=draw.choice(others))


def _split(facts: Sequence[Fact], draw: random.Random) -> list[Fact]:
    done: list[Fact] = []
    for stratum in _strata(facts):
        draw.shuffle(stratum)
        held = round(HELD_OUT * len(stratum))
        done += [replace(fact, held_out=place < held) for place, fact in enumerate(stratum)]
    return done


def _strata(facts: Sequence[Fact]) -> list[list[Fact]]:
    """Facts alike in relation, in being known and in role."""
    strata: dict[tuple[str, bool, Role], list[Fact]] = defaultdict(list)
    for fact in facts:
        strata[fact.relation, fact.known, fact.role].append(fact)
    return list(strata.values())


def is_quantity(relation: str) -> bool:
    return relation in QUANTITIES
