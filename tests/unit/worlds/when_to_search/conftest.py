"""The four built-in worlds, made once per test run."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product

import pytest

from outfox.worlds.when_to_search import Sizes, make
from outfox.worlds.when_to_search.beliefs import Hop
from outfox.worlds.when_to_search.facts import YEAR
from outfox.worlds.when_to_search.setting import Setting, make_setting
from outfox.worlds.world import World


@dataclass(frozen=True)
class Made:
    world: World
    mixed: World
    """The same, but that its demonstrations are mixed from the start."""
    setting: Setting
    taken: dict = field(default_factory=dict)

    @cached_property
    def values(self) -> dict[str, set[str | None]]:
        """Whatever a thought may end with, by relation."""
        facts, missing = self.setting.facts, self.setting.phrases.missing
        found = {relation: {missing, *values} for relation, values in facts.classes.items()}
        for fact in facts.all:
            found[fact.relation] |= {fact.value, fact.old}
        return found

    @cached_property
    def topics(self) -> dict[str, tuple[str, str]]:
        """(entity, relation) by how a draft or note of it begins, the year included."""
        phrases, found = self.setting.phrases, {}
        for entity, relation in product(self.world.lexicon.names, phrases.relations):
            hop = Hop(entity=entity, relation=relation)
            for cue in ("", YEAR, *([phrases.cue] if relation == "population" else [])):
                found[hop.note(phrases, "#", cue).removesuffix("#").rstrip()] = entity, relation
        return found


@cache
def made(language: str, source: str) -> Made:
    return Made(
        world=make(language=language, source=source),
        mixed=make(
            language=language,
            source=source,
        ),
        setting=make_setting(language=language, source=source, entities=Sizes(), seed=0),
    )


@pytest.fixture(
    scope="session",
    params=[("en", "real"), ("zh", "real"), ("en", "synthetic"), ("zh", "synthetic")],
    ids="-".join,
)
def every(request) -> Made:
    """Each world in turn."""
    return made(*request.param)


@pytest.fixture(scope="session")
def english() -> Made:
    return made("en", "real")


@pytest.fixture(scope="session")
def chinese() -> Made:
    return made("zh", "real")


@pytest.fixture(scope="session")
def worlds():
    """The built-in world of a language, on real facts."""
    return lambda language: made(language, "real")
