"""Facts, passages, questions and words of one world, before anything acts in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from outfox.core.errors import ConfigError
from outfox.core.types import Document
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.when_to_search.disputes import with_disputes
from outfox.worlds.when_to_search.facts import Facts, make_facts
from outfox.worlds.when_to_search.gazetteer import Gazetteer
from outfox.worlds.when_to_search.lexicon import make_lexicon
from outfox.worlds.when_to_search.passages import Corpus, make_corpus
from outfox.worlds.when_to_search.phrases import PHRASES, Phrases
from outfox.worlds.when_to_search.questions import Question, is_sound, make_questions
from outfox.worlds.when_to_search.synthetic import synthetic_gazetteer
from outfox.worlds.world import Lexicon

_LENGTH = 0.05
"""BM25's `b`: passages are all short, so their length says little; which words match decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many entities the world has."""

    countries: int = 190
    """Most that there are."""
    cities: int = 640
    """The largest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that the world is made from: facts, passages and all sound questions."""

    seed: int
    facts: Facts
    corpus: Corpus
    retriever: BM25
    questions: tuple[Question, ...]
    phrases: Phrases
    lexicon: Lexicon


@lru_cache(maxsize=4)
def make_setting(
    *,
    language: Literal["en", "zh"],
    source: Literal["real", "synthetic"],
    entities: Sizes,
    seed: int,
    disputed: bool = False,
) -> Setting:
    """The facts, passages and questions behind `make`."""
    gazetteer = _gazetteer(language, source, entities, seed)
    facts = make_facts(gazetteer, language=language, seed=seed)
    if disputed:
        facts = with_disputes(facts, seed=seed)
    corpus = make_corpus(facts, seed=seed)
    lexicon = make_lexicon(facts)
    retriever = index(corpus.documents, lexicon, language)

    def found(query: str) -> Sequence[str]:
        return [document.id for document in retriever.search([query], 2)[0]]

    phrases = PHRASES[language]
    return Setting(
        seed=seed,
        facts=facts,
        corpus=corpus,
        retriever=retriever,
        questions=tuple(q for q in make_questions(facts) if is_sound(q, corpus, phrases, found)),
        phrases=phrases,
        lexicon=lexicon,
    )


def index(documents: Sequence[Document], lexicon: Lexicon, language: str) -> BM25:
    """The passages, searchable."""
    words = lexicon.names + lexicon.words if language == "zh" else ()
    return BM25(documents, b=_LENGTH, words=words)


def _gazetteer(language: str, source: str, entities: Sizes, seed: int) -> Gazetteer:
    if entities.countries < 20 or entities.cities < entities.countries:
        raise ConfigError(
            "world.entities has at least 20 countries and a city for each; "
            f"got {entities.countries} countries, {entities.cities} cities"
        )
    sizes = {"countries": entities.countries, "cities": entities.cities}
    if source == "synthetic":
        return synthetic_gazetteer(language=language, seed=seed, **sizes)
    # Its data packages are optional, and take a third of a second to load.
    from outfox.worlds.when_to_search.real import real_gazetteer

    return real_gazetteer(language=language, **sizes)
