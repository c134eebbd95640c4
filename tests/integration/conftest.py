"""A small run that many tests look at, and the cache that lets the others begin where it did."""

from collections.abc import Callable
from pathlib import Path

import pytest

from outfox import train
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"

Go = Callable[..., RunFolder]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def go(cache: Path) -> Go:
    """`go(folder, "key=value", ...)` trains the small recipe, its cold start made once."""

    def small(folder: Path, *overrides: str) -> RunFolder:
        return train(RECIPE, [f"run.dir={folder}", f"cache.dir={cache}", *overrides])

    return small


@pytest.fixture(scope="session")
def whole(go: Go, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of four steps that nothing interrupted."""
    return go(tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture(scope="session")
def trained(whole: RunFolder, cache: Path) -> str:
    """A model folder: the policy that the cold start made, which writes whole episodes."""
    (key,) = [row["key"] for row in whole.events() if row["event"] == "cold_start"]
    return str(cache / "cold-start" / key)
