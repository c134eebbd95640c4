"""A small run that many tests look at, and the cache that lets the others begin where it did."""

from collections.abc import Callable
from pathlib import Path

import pytest

from outfox import train
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"

Go = Callable[..., RunFolder]


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> Go:
    """`go(folder, "key=value", ...)` trains the small recipe, its cold start made once."""
    cache = tmp_path_factory.mktemp("cache")

    def small(folder: Path, *overrides: str) -> RunFolder:
        return train(RECIPE, [f"run.dir={folder}", f"cache.dir={cache}", *overrides])

    return small


@pytest.fixture(scope="session")
def whole(go: Go, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of four steps that nothing interrupted."""
    return go(tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture(scope="session")
def trained(whole: RunFolder) -> str:
    """Overrides that begin with the policy which that run ended with."""
    return str(whole.checkpoint(3))
