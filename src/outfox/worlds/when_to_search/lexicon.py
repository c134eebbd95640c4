"""Every word of the world, for a tokenizer of whole words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from outfox.worlds.when_to_search.facts import YEAR, Facts, is_quantity
from outfox.worlds.when_to_search.passages import BESIDE_COUNTS, EARLIER_YEARS, LATER_YEARS
from outfox.worlds.when_to_search.phrases import PHRASES, Phrases
from outfox.worlds.world import Lexicon

_FIGURE_OR_WORD = re.compile(r"\d+(?:\.\d+)?|[^\d\s]+")


def make_lexicon(facts: Facts) -> Lexicon:
    """Words of all templates, figures of all quantities, and all names."""
    phrases = PHRASES[facts.language]
    words = {YEAR, *EARLIER_YEARS, *LATER_YEARS, *map(str, BESIDE_COUNTS), ":"}
    disputed = any(fact.claims for fact in facts.all)
    for template in (*_templates(phrases), *(_disputes(phrases) if disputed else ())):
        plain = [word for word in template.split(" ") if "{" not in word]
        words.update(plain)
        # A question may begin in the middle of a sentence: "In 2026 , what is ...".
        words.update(word.lower() for word in plain[:1])
    names: set[str] = set()
    for fact in facts.all:
        names.add(fact.entity)
        for value in filter(None, (fact.value, fact.old)):
            if is_quantity(fact.relation):
                words.update(_FIGURE_OR_WORD.findall(value))
            else:
                names.add(value)
    return Lexicon(
        words=tuple(sorted(words - names)),
        names=tuple(sorted(names)),
        separator=phrases.separator,
    )


def _templates(phrases: Phrases) -> Iterable[str]:
    for family in (phrases.passages, phrases.changed, phrases.questions):
        for templates in family.values():
            yield from templates
    yield from (*phrases.earlier, *phrases.later, *phrases.beside, *phrases.latest, *phrases.dated)
    yield from (*phrases.nested.values(), *phrases.relations.values())
    yield from (phrases.cue, phrases.unknown, phrases.missing, phrases.aside)
    yield from (phrases.nothing, phrases.failed)


def _disputes(phrases: Phrases) -> Iterable[str]:
    """Words that a world without disputed facts does not have."""
    yield from phrases.sources
    for templates in phrases.disputed:
        yield from templates
