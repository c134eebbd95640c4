"""Searches that go wrong. One draw per call, from the episode's seed, says how:

    error ─▶ the call fails · stale ─▶ an index that lags behind answers it
    poisoned ─▶ one passage asserts a wrong value · else ─▶ the index answers it as it is

The next call draws anew, so that asking again can help.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from outfox.core.errors import ConfigError
from outfox.core.protocols import Retriever
from outfox.core.seeding import rng
from outfox.core.types import Document
from outfox.worlds.when_to_search.facts import Fact, is_quantity
from outfox.worlds.when_to_search.passages import EARLIER_YEARS, LATER_YEARS
from outfox.worlds.when_to_search.setting import Setting, index


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Shares of search calls that go wrong; together at most 1."""

    error: float = 0.0
    """The call fails with status `error`."""
    stale: float = 0.0
    """An index of some years ago answers: what is dated later is not in it, and undisputed
    populations are those of an earlier count, with its year."""
    poisoned: float = 0.0
    """One passage asserts a wrong value for the fact that the query seeks; `Document.poison` tells
    metrics which."""


class Routes:
    """Which Retriever answers a call, by its draw. Raises ConfigError for shares that cannot be."""

    def __init__(self, setting: Setting, noise: Noise) -> None:
        shares = (noise.error, noise.stale, noise.poisoned)
        if min(shares) < 0 or sum(shares) > 1:
            raise ConfigError(
                "world.noise holds shares of calls: each at least 0, together at most 1; got "
                f"error={noise.error:g}, stale={noise.stale:g}, poisoned={noise.poisoned:g}"
            )
        self._setting = setting
        self._noise = noise
        self._stale = stale_index(setting) if noise.stale else setting.retriever

    def of(self, sought: Sequence[Fact], episode_seed: int) -> Callable[[float], Retriever] | None:
        """For an episode about the facts `sought`; None where its index is always up to date."""
        if not self._noise.stale and not self._noise.poisoned:
            return None
        stale = self._noise.error + self._noise.stale
        poisoned = Poisoned(self._setting, sought, episode_seed)

        def route(draw: float) -> Retriever:
            if draw < stale:
                return self._stale
            return poisoned if draw < stale + self._noise.poisoned else self._setting.retriever

        return route


def stale_index(setting: Setting) -> Retriever:
    """The corpus as it was before what is dated LATER_YEARS; passages keep their ids."""
    draw = rng(setting.seed, "stale")
    counts = sorted({(f.amount, f.value) for f in setting.facts.all if is_quantity(f.relation)})
    documents = [
        _earlier(document, setting, counts, draw)
        for document in setting.corpus.documents
        if (document.date or "") < LATER_YEARS[0]
    ]
    return index(documents, setting.lexicon, setting.facts.language)


def _earlier(
    document: Document, setting: Setting, counts: list[tuple[int, str]], draw: random.Random
) -> Document:
    """The passage as it was: an earlier count, if it says how many people there are."""
    said, phrases = setting.corpus.said.get(document.id), setting.phrases
    fact = setting.facts.at[said.key] if said else None
    if fact is None or fact.role != "plain" or not is_quantity(fact.relation):
        return document
    # Among the values of the world, for which there are words.
    fewer = counts[: bisect_left(counts, (int(fact.amount * draw.uniform(0.55, 0.85)), ""))]
    if not fewer or fewer[-1][1] == fact.value:
        return document
    year = draw.choice(EARLIER_YEARS)
    text = phrases.join(draw.choice(phrases.earlier), e=fact.entity, v=fewer[-1][1], y=year)
    return replace(document, text=text, date=f"{year}-01-01")


class Poisoned:
    """A Retriever that finds what the index does, but for one passage with a wrong value.

    That is the passage with the value where it was found, else the first, rewritten. Its id stays:
    somebody has tampered with the page. All poison of one episode on one fact asserts the same.
    """

    def __init__(self, setting: Setting, sought: Sequence[Fact], seed: int) -> None:
        self._setting = setting
        self._sought = sought
        self._seed = seed

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        return [[document for document, _ in self.scores(query, top_k)] for query in queries]

    def scores(self, query: str, top_k: int) -> list[tuple[Document, float]]:
        found = self._setting.retriever.scores(query, top_k)
        fact = self._fact(query, [document for document, _ in found])
        if fact is None:
            return found
        place = self._place(fact, [document for document, _ in found])
        document, score = found[place]
        return [*found[:place], (self._tampered(document, fact), score), *found[place + 1 :]]

    def _fact(self, query: str, found: Sequence[Document]) -> Fact | None:
        """What the query seeks: the task's fact about an entity that it names, else what it hit."""
        if not found:
            return None
        named = [fact for fact in self._sought if fact.entity.casefold() in query.casefold()]
        if named:
            return max(named, key=lambda fact: len(fact.entity))
        said = [self._setting.corpus.said.get(document.id) for document in found]
        return next((self._setting.facts.at[each.key] for each in said if each), None)

    def _place(self, fact: Fact, found: Sequence[Document]) -> int:
        corpus = self._setting.corpus
        holding = (
            corpus.gold.get(fact.key),
            *corpus.disputing.get(fact.key, ())[::-1],
            corpus.outdated.get(fact.key),
        )
        ids = [document.id for document in found]
        return next((ids.index(held) for held in holding if held in ids), 0)

    def _tampered(self, document: Document, fact: Fact) -> Document:
        draw = rng(self._seed, "poison", *fact.key)
        values = self._setting.facts.classes[fact.relation]
        wrong = draw.choice([value for value in values if value not in (fact.value, fact.old)])
        said, phrases = self._setting.corpus.said.get(document.id), self._setting.phrases
        if said is not None and said.key == fact.key:
            before, _, after = document.text.rpartition(said.value)
            text = before + wrong + after
        else:
            template = draw.choice(phrases.passages[fact.relation])
            text = phrases.join(template, e=fact.entity, v=wrong)
        return replace(document, text=text, poison=wrong)
