"""Searches of a demonstrated episode: asked of the real corpus, and noted.

query ─▶ passages ─▶ note ─coin─▶ asked again or elsewhere, or left at that
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from outfox.core.types import Document, ToolSpec
from outfox.worlds.when_to_search.beliefs import Hop
from outfox.worlds.when_to_search.disputes import passages_by_source
from outfox.worlds.when_to_search.facts import Claims, Fact
from outfox.worlds.when_to_search.questions import Question
from outfox.worlds.when_to_search.script import Script
from outfox.worlds.when_to_search.setting import Setting


class SearchView(Protocol):
    """How the world's search tool shows itself."""

    @property
    def spec(self) -> ToolSpec: ...
    def show(self, documents: Sequence[Document]) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search came to."""

    value: str | None
    again: str
    """What to search for once more: more widely, or after a failure perhaps just the same."""


class Lookups:
    """Plays searches into a Script.

    `coin`: chance to go on where that is decided; `failures`: share of searches that fail.
    """

    def __init__(
        self,
        setting: Setting,
        search: SearchView,
        *,
        top_k: int,
        coin: float,
        failures: float,
    ) -> None:
        self._setting = setting
        self._phrases = setting.phrases
        self._search = search
        self._top_k = top_k
        self._heads = coin
        self._failures = failures
        self._sources = passages_by_source(setting.facts, setting.corpus)

    def coin(self, draw: random.Random) -> bool:
        return draw.random() < self._heads

    def look_up(
        self, script: Script, question: Question, hop: Hop, draw: random.Random
    ) -> str | None:
        """Search, note; by the coin once more: with the cue word, or again after a miss."""
        fact = question.facts[0]
        if fact.claims is not None:
            return self._ask_around(script, fact, fact.claims, draw)
        in_two = question.kind == "conflict"
        cue = "" if in_two else question.cue
        found = self._find(script, hop, hop.query(self._phrases, cue), cue, draw)
        if in_two and self.coin(draw):
            cue = question.cue
            return self._find(script, hop, hop.query(self._phrases, cue), cue, draw).value
        if found.value is None and self.coin(draw):
            return self._find(script, hop, found.again, cue, draw).value
        return found.value

    def note(
        self,
        script: Script,
        hop: Hop,
        content: str,
        value: str | None,
        cue: str,
    ) -> None:
        """What came back, and the thought on what it says of the hop."""
        script.observe(content)
        said = self._phrases.missing if value is None else value
        script.think(hop.note(self._phrases, said, cue), sure=True)

    def _ask_around(
        self, script: Script, fact: Fact, claims: Claims, draw: random.Random
    ) -> str | None:
        """One source of a dispute after the other, by the coin; the latest has the last word."""
        value: str | None = None
        for place, source in enumerate((fact.relation, claims.source, claims.settling)):
            if place and not self.coin(draw):
                break
            hop = Hop(entity=fact.entity, relation=source)
            found = self._find(script, hop, hop.query(self._phrases), "", draw)
            if found.value is None and self.coin(draw):
                found = self._find(script, hop, found.again, "", draw)
            if found.value is None:
                break
            value = found.value
        return value

    def _find(self, script: Script, hop: Hop, query: str, cue: str, draw: random.Random) -> Found:
        """One search; as often as the world's searches do, it fails, and nothing is noted."""
        script.search(query)
        if self._failures and draw.random() < self._failures:
            failed = self._phrases.join(self._phrases.failed)
            self.note(script, hop, failed, None, cue)
            return Found(value=None, again=query if draw.random() < 0.5 else hop.entity)
        documents = self._setting.retriever.search([query], self._top_k)[0]
        value = self._value_in(hop, [document.id for document in documents])
        self.note(script, hop, self._search.show(documents), value, cue)
        return Found(value=value, again=hop.entity)

    def _value_in(self, hop: Hop, ids: Sequence[str]) -> str | None:
        """What these passages say of the hop: the newer value where both are there."""
        corpus, key = self._setting.corpus, (hop.entity, hop.relation)
        for identity in (self._sources.get(key), corpus.gold.get(key), corpus.outdated.get(key)):
            if identity is not None and identity in ids:
                return corpus.said[identity].value
        return None
