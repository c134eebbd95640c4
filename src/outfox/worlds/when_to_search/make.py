"""The world `when-to-search`: some facts are known, some must be looked up, some are nowhere.

gazetteer ─▶ facts ─▶ corpus ─▶ BM25 ─▶ search tool ─▶ environment
               └────▶ questions ─▶ tasks (train, held out)
               └────▶ demonstrations, lexicon
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from outfox.core.errors import ConfigError
from outfox.core.protocols import Tool
from outfox.core.types import Task
from outfox.worlds.environments.tools import ToolEnvironments
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.when_to_search.facts import Facts, make_facts
from outfox.worlds.when_to_search.gazetteer import Gazetteer
from outfox.worlds.when_to_search.kind_tasks import KindTasks
from outfox.worlds.when_to_search.lexicon import make_lexicon
from outfox.worlds.when_to_search.passages import Corpus, make_corpus
from outfox.worlds.when_to_search.phrases import PHRASES, Phrases
from outfox.worlds.when_to_search.questions import (
    Question,
    is_sound,
    make_questions,
    make_task,
)
from outfox.worlds.when_to_search.synthetic import synthetic_gazetteer
from outfox.worlds.world import Lexicon, World, balanced

NAME = "when-to-search"
_LENGTH = 0.05
"""BM25's `b`: passages are all short, so their length says little; which words match decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many entities the world has."""

    countries: int = 190
    cities: int = 640


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Shares of search calls that go wrong; drawn from the episode's seed."""

    error: float = 0.0
    """The call fails with status `error`."""
    stale: float = 0.0
    poisoned: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that the world is made from: facts, passages and all sound questions."""

    facts: Facts
    corpus: Corpus
    retriever: BM25
    questions: tuple[Question, ...]
    phrases: Phrases
    lexicon: Lexicon


def make(
    *,
    language: Literal["en", "zh"] = "en",
    source: Literal["real", "synthetic"] = "real",
    entities: Sizes = Sizes(),
    seed: int = 0,
    noise: Noise = Noise(),
    shares: Mapping[str, float] | None = None,
    top_k: int = 2,
    show_ids: bool = False,
    system: str = "",
) -> World:
    """The world. The same settings give the same world.

    `shares`: relative share of each kind in training, 1 where none is given; `system`: a system
    message that stands before every question. Raises ConfigError for settings it cannot follow.
    """
    if language not in PHRASES:
        raise ConfigError(f"world.language is one of {', '.join(PHRASES)}; got '{language}'")
    if noise.stale or noise.poisoned:
        raise ConfigError(
            "world.noise.stale and world.noise.poisoned must be 0: this world only injects "
            f"search errors; got stale={noise.stale:g}, poisoned={noise.poisoned:g}"
        )
    setting = make_setting(language=language, source=source, entities=entities, seed=seed)
    tasks = {
        held_out: [
            make_task(question, setting.corpus, language, system)
            for question in setting.questions
            if question.held_out == held_out
        ]
        for held_out in (False, True)
    }
    phrases = setting.phrases

    def tools(task: Task, episode_seed: int) -> Sequence[Tool]:
        search = SearchTool(
            setting.retriever,
            top_k=top_k,
            show_ids=show_ids,
            nothing=phrases.join(phrases.nothing),
            failed=phrases.join(phrases.failed),
            error_rate=noise.error,
            seed=episode_seed,
        )
        return (search,)

    return World(
        name=NAME,
        language=language,
        train=KindTasks(tasks[False], shares=shares, seed=seed),
        held_out=balanced(tasks[True], seed),
        environment=ToolEnvironments(tools=tools),
        retriever=setting.retriever,
        lexicon=setting.lexicon,
    )


@lru_cache(maxsize=4)
def make_setting(
    *,
    language: Literal["en", "zh"] = "en",
    source: Literal["real", "synthetic"] = "real",
    entities: Sizes = Sizes(),
    seed: int = 0,
) -> Setting:
    """The facts, passages and questions behind `make`."""
    gazetteer = _gazetteer(language, source, entities, seed)
    facts = make_facts(gazetteer, language=language, seed=seed)
    corpus = make_corpus(facts, seed=seed)
    lexicon = make_lexicon(facts)
    words = lexicon.names + lexicon.words if language == "zh" else ()
    retriever = BM25(corpus.documents, b=_LENGTH, words=words)

    def found(query: str) -> Sequence[str]:
        return [document.id for document in retriever.search([query], 2)[0]]

    phrases = PHRASES[language]
    return Setting(
        facts=facts,
        corpus=corpus,
        retriever=retriever,
        questions=tuple(q for q in make_questions(facts) if is_sound(q, corpus, phrases, found)),
        phrases=phrases,
        lexicon=lexicon,
    )


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
