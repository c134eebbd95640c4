"""The four built-in worlds, made once per test run."""

from dataclasses import dataclass, field
from functools import cache

import pytest

from outfox.worlds.when_to_search import Sizes, make
from outfox.worlds.when_to_search.setting import Setting, make_setting
from outfox.worlds.world import World


@dataclass(frozen=True)
class Made:
    world: World
    setting: Setting
    taken: dict = field(default_factory=dict)


@cache
def made(language: str, source: str) -> Made:
    return Made(
        world=make(language=language, source=source),
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
