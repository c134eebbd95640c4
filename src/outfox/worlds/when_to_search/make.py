"""The world `when-to-search`: some facts are known, some must be looked up, some are nowhere.

gazetteer ─▶ facts ─▶ corpus ─▶ BM25 ─▶ search tool ─▶ environment
               ├────▶ questions ─▶ tasks (train, held out)
               └────▶ demonstrations, lexicon
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from outfox.core.errors import ConfigError
from outfox.core.protocols import Codec, Retriever, Tool
from outfox.core.types import Task
from outfox.worlds.environments.tools import ToolEnvironments
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.when_to_search.demonstrations import Demonstrations, Mix
from outfox.worlds.when_to_search.kind_tasks import KindTasks
from outfox.worlds.when_to_search.noise import Noise, Routes
from outfox.worlds.when_to_search.phrases import PHRASES
from outfox.worlds.when_to_search.questions import make_task
from outfox.worlds.when_to_search.setting import Setting, Sizes, make_setting
from outfox.worlds.world import DemonstrationSource, Lexicon, Supplies, World, balanced

NAME = "when-to-search"


_SIZES, _QUIET, _MIX, _NOTHING = Sizes(), Noise(), Mix(), Supplies()


def make(
    supplies: Supplies = _NOTHING,
    *,
    language: Literal["en", "zh"] = "en",
    source: Literal["real", "synthetic"] = "real",
    entities: Sizes = _SIZES,
    seed: int = 0,
    noise: Noise = _QUIET,
    disputed: bool = False,
    shares: Mapping[str, float] | None = None,
    top_k: int = 2,
    show_ids: bool = False,
    system: str = "",
    demonstrations: Mix = _MIX,
) -> World:
    """The world. The same settings give the same world.

    Args:
        language: Of questions, passages and answers.
        source: Facts of real countries and cities, or made-up ones.
        entities: How many entities the world has.
        seed: Which facts are known, which are asked, and in which words.
        noise: Shares of searches that go wrong.
        disputed: Adds the kind of that name: two sources disagree.
        shares: Relative share of each kind in training, 1 where none is given.
        top_k: Passages per search.
        show_ids: Each passage begins with `[id]`, so that it can be cited.
        system: A system message that stands before every question.
        demonstrations: What the cold start is made of; its searches fail as often as `noise.error`.

    Raises ConfigError for settings it cannot follow.
    """
    _check(language, supplies)
    setting = make_setting(
        language=language, source=source, entities=entities, seed=seed, disputed=disputed
    )
    searches = _Searches(setting, noise, top_k=top_k, show_ids=show_ids)

    def tools(task: Task, episode_seed: int) -> Sequence[Tool]:
        return (searches.of(task, episode_seed), *(made() for made in supplies.tools))

    demonstrator = partial(
        _demonstrations, setting, searches, top_k, system, demonstrations, noise.error
    )
    train, held_out = (_tasks(setting, language, system, split) for split in (False, True))
    return World(
        name=NAME,
        language=language,
        train=KindTasks(train, shares=shares, seed=seed),
        held_out=balanced(held_out, seed),
        environment=ToolEnvironments(tools=tools),
        retriever=setting.retriever,
        demonstrations=demonstrator,
        make_lexicon=partial(_lexicon, setting, demonstrations),
    )


def _demonstrations(
    setting: Setting,
    searches: _Searches,
    top_k: int,
    system: str,
    mix: Mix,
    failures: float,
    codec: Codec,
    *,
    readings: bool = False,
) -> DemonstrationSource:
    if readings and mix.checks:
        raise ConfigError(
            "a draft is checked by the policy or read by the environment, not both; got "
            "world.demonstrations.checks true and a reading: set readings to {}"
        )
    return Demonstrations(
        setting,
        codec,
        searches.made(0),
        top_k=top_k,
        system=system,
        mix=mix,
        readings=readings,
        failures=failures,
    )


def _lexicon(setting: Setting, mix: Mix) -> Lexicon:
    """All words, those with which drafts are checked where they are."""
    lexicon = setting.lexicon
    if not mix.checks:
        return lexicon
    return replace(lexicon, words=tuple(sorted({*lexicon.words, *setting.phrases.checked})))


class _Searches:
    """Makes the search tool of an episode."""

    def __init__(self, setting: Setting, noise: Noise, *, top_k: int, show_ids: bool) -> None:
        self._setting = setting
        self._noise = noise
        self._routes = Routes(setting, noise)
        self._sought = {question.id: question.facts for question in setting.questions}
        self._top_k = top_k
        self._show_ids = show_ids
        self._nothing = setting.phrases.join(setting.phrases.nothing)
        self._failed = setting.phrases.join(setting.phrases.failed)

    def of(self, task: Task, episode_seed: int) -> SearchTool:
        route = self._routes.of(self._sought.get(task.task_id, ()), episode_seed)
        return self.made(episode_seed, route)

    def made(
        self, episode_seed: int, route: Callable[[float], Retriever] | None = None
    ) -> SearchTool:
        return SearchTool(
            self._setting.retriever,
            episode_seed,
            None,
            route,
            top_k=self._top_k,
            show_ids=self._show_ids,
            nothing=self._nothing,
            failed=self._failed,
            error_rate=self._noise.error,
        )


def _tasks(setting: Setting, language: str, system: str, held_out: bool) -> list[Task]:
    return [
        make_task(question, setting.corpus, language, system)
        for question in setting.questions
        if question.held_out == held_out
    ]


def _check(language: str, supplies: Supplies) -> None:
    """Raises ConfigError for what this world cannot follow."""
    if language not in PHRASES:
        raise ConfigError(f"world.language is one of {', '.join(PHRASES)}; got '{language}'")
    given = supplies.tasks or supplies.corpus
    if given:
        raise ConfigError(
            f"{NAME} makes its own tasks and corpus; got {given}: leave tasks.path and "
            "corpus.path out"
        )
