"""The corpus: one short, single-fact passage per fact, in one of several wordings.

A changed fact has a passage with the old value and one, dated, with the new. A conflict has the
earlier count, the latest, and a passage on something else that is latest about the entity; so the
canonical query shows the earlier count only, and the query with the cue word the latest only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from outfox.core.seeding import rng
from outfox.core.types import Document
from outfox.worlds.when_to_search.facts import YEAR, Fact, Facts
from outfox.worlds.when_to_search.phrases import PHRASES, Phrases

EARLIER_YEARS = ("2012", "2015", "2018")
LATER_YEARS = ("2024", "2025")
BESIDE_COUNTS = range(2, 41)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """All passages, and which of them hold what."""

    documents: tuple[Document, ...]
    gold: Mapping[tuple[str, str], str]
    """(entity, relation) -> id of the passage with the right value."""
    outdated: Mapping[tuple[str, str], str]
    """(entity, relation) -> id of the passage with the value that was replaced."""
    about: Mapping[str, tuple[str, ...]]
    """Entity -> ids of the passages about it."""


def make_corpus(facts: Facts, *, seed: int) -> Corpus:
    """Passages of all facts but the removed ones, in seeded order."""
    phrases, draw = PHRASES[facts.language], rng(seed, "corpus")
    drafts: list[tuple[Fact, str, Document]] = []

    def add(fact: Fact, what: str, template: str, **values: str) -> None:
        text = phrases.join(template, e=fact.entity, **values)
        date = f"{values['y']}-01-01" if "y" in values else "2022-01-01"
        # A title that says "latest" weighs enough to hide the earlier count from the cued query.
        latest = what == "beside" or (what == "gold" and fact.role == "conflict")
        title = fact.entity + (f" {phrases.cue}" if latest else "")
        document = Document(id="", title=title, text=text, date=date, source="when-to-search")
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
    draw.shuffle(drafts)
    return _number(drafts)


def _number(drafts: list[tuple[Fact, str, Document]]) -> Corpus:
    documents: list[Document] = []
    places: dict[str, dict[tuple[str, str], str]] = {"gold": {}, "outdated": {}, "beside": {}}
    about: dict[str, list[str]] = defaultdict(list)
    for number, (fact, what, draft) in enumerate(drafts, start=1):
        document = replace(draft, id=f"d{number}")
        documents.append(document)
        places[what][fact.key] = document.id
        about[fact.entity].append(document.id)
    return Corpus(
        documents=tuple(documents),
        gold=places["gold"],
        outdated=places["outdated"],
        about={entity: tuple(ids) for entity, ids in about.items()},
    )


def query(phrases: Phrases, fact: Fact, cue: str = "") -> str:
    """The canonical query: entity, relation and, where the question has one, its cue or year."""
    topic = phrases.join(phrases.topic, r=phrases.relations[fact.relation], e=fact.entity)
    return phrases.separator.join((topic, cue)) if cue else topic
