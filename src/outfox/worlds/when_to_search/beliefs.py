"""What a policy of this world believes: facts that were taught, guesses for the rest."""

from __future__ import annotations

import random
from dataclasses import dataclass

from outfox.worlds.when_to_search.facts import Facts
from outfox.worlds.when_to_search.phrases import Phrases
from outfox.worlds.when_to_search.questions import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A drafted value."""

    value: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What a policy is looking for: an entity that it believes in, and the question's relation."""

    entity: str
    relation: str
    """Or the source of a disputed fact that is asked about it."""

    def topic(self, phrases: Phrases) -> str:
        """How a thought and a query begin."""
        return phrases.join(
            phrases.topic, r=phrases.relations.get(self.relation, self.relation), e=self.entity
        )

    def draft(self, phrases: Phrases, value: str, right: bool | None = None) -> str:
        """A guess; written unlike a note, so that notes are copied from passages only.

        `right`: what the policy itself says of it; None where it does not check.
        """
        text = f"{self.topic(phrases)} ? {value}"
        if right is None:
            return text
        return phrases.separator.join((text, phrases.check(right)))

    def note(self, phrases: Phrases, value: str, cue: str = "") -> str:
        """What a passage says, in its own words: with the year, where it was asked for."""
        year = cue if cue != phrases.cue else ""
        return phrases.separator.join(word for word in (self.topic(phrases), year, value) if word)

    def aside(self, phrases: Phrases, value: str) -> str:
        """A note on what was not asked. Written unlike a note: behind one, a thought that begins
        with a topic drafts the next hop."""
        return phrases.separator.join((phrases.aside, self.note(phrases, value)))

    def query(self, phrases: Phrases, cue: str = "") -> str:
        topic = self.topic(phrases)
        return phrases.separator.join((topic, cue)) if cue else topic


def draft(facts: Facts, hop: Hop, draw: random.Random) -> Belief:
    """The value that was taught, or any value of the right class."""
    fact = facts.at.get((hop.entity, hop.relation))
    if fact is not None and fact.taught is not None:
        return Belief(value=fact.taught, known=True)
    return Belief(value=draw.choice(facts.classes[hop.relation]), known=False)


def relations(question: Question) -> tuple[str, ...]:
    return tuple(fact.relation for fact in question.facts)
