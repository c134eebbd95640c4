"""Facts that two undated sources disagree on, until a third settles it.

    population of X 3 million , registry disagrees .
    registry of X 4 million , but archive decides .
    archive of X 4 million , and with that all doubts end .

Each passage names the next source, and which sources these are differs from fact to fact; so only
somebody who has read the second knows where to look for the third. Which of the two it agrees with
is a coin's choice.
"""

from __future__ import annotations

import random
from dataclasses import replace

from outfox.core.seeding import rng
from outfox.worlds.when_to_search.facts import Claims, Fact, Facts
from outfox.worlds.when_to_search.passages import Corpus
from outfox.worlds.when_to_search.phrases import PHRASES
from outfox.worlds.when_to_search.quantities import quantity

_SHARE = 0.8
"""Share of the populations that would be asked as unknown, and in no question of two hops."""


def with_disputes(facts: Facts, *, seed: int) -> Facts:
    """The same facts, but for some unknown populations of each split, which become disputed."""
    draw, bridges = rng(seed, "disputes"), {fact.value for fact in facts.all}
    chosen: set[tuple[str, str]] = set()
    for held_out in (False, True):
        pool = [
            fact.key
            for fact in facts.of(role="plain", held_out=held_out)
            if fact.relation == "population" and not fact.known and fact.entity not in bridges
        ]
        chosen |= set(draw.sample(pool, round(_SHARE * len(pool))))
    changed = [
        _disputed(fact, draw, facts.language) if fact.key in chosen else fact for fact in facts.all
    ]
    return replace(facts, all=tuple(changed), at={fact.key: fact for fact in changed})


def passages_by_source(facts: Facts, corpus: Corpus) -> dict[tuple[str, str], str]:
    """(entity, relation or source) -> id of the passage that answers, for disputed facts."""
    found: dict[tuple[str, str], str] = {}
    for fact in facts.of(role="disputed"):
        if fact.claims is not None:
            first, second = corpus.disputing[fact.key]
            found[fact.key] = first
            found[fact.entity, fact.claims.source] = second
            found[fact.entity, fact.claims.settling] = corpus.gold[fact.key]
    return found


def _disputed(fact: Fact, draw: random.Random, language: str) -> Fact:
    phrases, wrong = PHRASES[language], fact.value
    while wrong == fact.value:
        factor = draw.uniform(0.5, 0.85) if draw.random() < 0.5 else draw.uniform(1.2, 2)
        wrong = phrases.separator.join(quantity(int(fact.amount * factor), language))
    second, settling = draw.sample(phrases.sources, 2)
    values = (fact.value, wrong) if draw.random() < 0.5 else (wrong, fact.value)
    claims = Claims(first=values[0], second=values[1], source=second, settling=settling)
    return replace(fact, role="disputed", old=wrong, claims=claims)
