"""The corpus: one short, single-fact passage per fact, in one of several wordings.

A changed fact has a passage with the old value and one, dated, with the new. A conflict has the
earlier count, the latest, and a passage on something else that is latest about the entity; so the
canonical query shows the earlier count only, and the query with the cue word the latest only. A
disputed fact has two passages that name the next source, and one that settles it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from outfox.core.seeding import rng
from outfox.core.types import Document
from outfox.worlds.when_to_search.facts import YEAR, Claims, Fact, Facts
from outfox.worlds.when_to_search.phrases import PHRASES, Phrases

EARLIER_YEARS = ("2012", "2015", "2018")
LATER_YEARS = ("2024", "2025")
USUAL_YEAR = "2022"
"""When a passage without a year was written; its text does not say."""
BESIDE_COUNTS = range(2, 41)
SOURCE = "when-to-search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a passage says of a fact."""

    key: tuple[str, str]
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """All passages, and which of them hold what."""

    documents: tuple[Document, ...]
    gold: Mapping[tuple[str, str], str]
    """(entity, relation) -> id of the passage with the right value."""
    outdated: Mapping[tuple[str, str], str]
    """(entity, relation) -> id of the passage with the value that was replaced."""
    disputing: Mapping[tuple[str, str], tuple[str, str]]
    """(entity, relation) -> ids of the two passages that disagree."""
    said: Mapping[str, Said]
    """Id -> what the passage says; none where it says nothing of a fact."""
    about: Mapping[str, tuple[str, ...]]
    """Entity -> ids of the passages about it."""


def make_corpus(facts: Facts, *, seed: int) -> Corpus:
    """Passages of all facts but the removed ones, in seeded order."""
    phrases, draw = PHRASES[facts.language], rng(seed, "corpus")
    drafts: list[tuple[Fact, str, Document]] = []

    def add(fact: Fact, what: str, template: str, **values: str) -> None:
        text = phrases.join(template, e=fact.entity, **values)
        place(fact, what, text, values.get("y", USUAL_YEAR))

    def place(fact: Fact, what: str, text: str, year: str) -> None:
        # A title that says "latest" weighs enough to hide the earlier count from the cued query.
        latest = what == "beside" or (what == "gold" and fact.role == "conflict")
        title = fact.entity + (f" {phrases.cue}" if latest else "")
        document = Document(id="", title=title, text=text, date=f"{year}-01-01", source=SOURCE)
        drafts.append((fact, what, document))

    for fact in facts.all:
        usual = phrases.passages[fact.relation]
        if fact.role == "plain":
            add(fact, "gold", draw.choice(usual), v=fact.value)
        elif fact.role == "changed" and fact.old is not None:
            add(fact, "outdated", draw.choice(usual), v=fact.old)
            add(fact, "gold", draw.choice(phrases.changed[fact.relation]), v=fact.value, y=YEAR)
        elif fact.role == "conflict" and fact.old is not None:
            earlier, later = draw.choice(EARLIER_YEARS), draw.choice(LATER_YEARS)
            add(fact, "outdated", draw.choice(phrases.earlier), v=fact.old, y=earlier)
            add(fact, "gold", draw.choice(phrases.later), v=fact.value, y=later)
            add(fact, "beside", draw.choice(phrases.beside), v=str(draw.choice(BESIDE_COUNTS)))
        elif fact.claims is not None:
            texts = disputed_texts(phrases, fact.entity, fact.claims, fact.value, draw)
            for what, text in zip(("first", "second", "gold"), texts, strict=True):
                place(fact, what, text, LATER_YEARS[0] if what == "gold" else USUAL_YEAR)
    draw.shuffle(drafts)
    return _number(drafts)


def disputed_texts(
    phrases: Phrases, entity: str, claims: Claims, value: str, draw: random.Random
) -> tuple[str, str, str]:
    """The first source, the second, and the one that settles it for `value`."""
    first, second, settling = (draw.choice(forms) for forms in phrases.disputed)
    usual, source, last = phrases.relations["population"], claims.source, claims.settling
    return (
        phrases.join(first, r=usual, e=entity, v=claims.first, t=source),
        phrases.join(second, r=source, e=entity, v=claims.second, t=last),
        phrases.join(settling, r=last, e=entity, v=value),
    )


def _number(drafts: list[tuple[Fact, str, Document]]) -> Corpus:
    documents: list[Document] = []
    places: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    said: dict[str, Said] = {}
    about: dict[str, list[str]] = defaultdict(list)
    for number, (fact, what, draft) in enumerate(drafts, start=1):
        document = replace(draft, id=f"d{number}")
        documents.append(document)
        places[what][fact.key] = document.id
        about[fact.entity].append(document.id)
        value = _value(fact, what)
        if value is not None:
            said[document.id] = Said(key=fact.key, value=value)
    return Corpus(
        documents=tuple(documents),
        gold=places["gold"],
        outdated=places["outdated"],
        disputing={key: (first, places["second"][key]) for key, first in places["first"].items()},
        said=said,
        about={entity: tuple(ids) for entity, ids in about.items()},
    )


def _value(fact: Fact, what: str) -> str | None:
    """What a passage of this sort says of the fact."""
    match what:
        case "gold":
            return fact.value
        case "outdated":
            return fact.old
        case "first" | "second" if fact.claims is not None:
            return fact.claims.first if what == "first" else fact.claims.second
        case _:
            return None


def query(phrases: Phrases, fact: Fact, cue: str = "") -> str:
    """The canonical query: entity, relation and, where the question has one, its cue or year."""
    topic = phrases.join(phrases.topic, r=phrases.relations[fact.relation], e=fact.entity)
    return phrases.separator.join((topic, cue)) if cue else topic


def query_of(phrases: Phrases, source: str, entity: str) -> str:
    """How a source of a disputed fact is asked."""
    return phrases.join(phrases.topic, r=source, e=entity)
