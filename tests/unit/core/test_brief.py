"""`OUTFOX_DOC_TEST=1`: which settings it lowers, and that nothing else changes."""

from dataclasses import replace
from pathlib import Path

import pytest

from outfox.core.brief import (
    AT_MOST,
    DRILL_TOKENS,
    DRILLS,
    SEEDS,
    VARIABLE,
    drills,
    is_brief,
    shortened,
)
from outfox.core.comparison import load_comparison
from outfox.core.config import load_recipe, validate
from outfox.core.recipe import ColdStartSettings, Recipe

RECIPE = validate(Recipe, {"name": "mine", **load_recipe("when-to-search").data})


def value(recipe: Recipe, key: str) -> object:
    found: object = recipe
    for name in key.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("told", [None, "", "0"])
def test_a_training_is_as_long_as_its_recipe_says(
    told: str | None, monkeypatch: pytest.MonkeyPatch
):
    if told is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, told)
    assert not is_brief()
    assert shortened(RECIPE) is RECIPE
    assert drills(200, 64) == {"count": 200, "max_tokens": 64}
    comparison = load_comparison("when-to-search-contrast")
    assert comparison is not None
    assert len(comparison.comparison.seeds) > SEEDS


def test_a_brief_training_has_the_declared_settings_and_no_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "1")
    made = shortened(RECIPE)
    assert {key: value(made, key) for key in AT_MOST} == AT_MOST
    lengthened = made
    for key in AT_MOST:
        name, _, rest = key.partition(".")
        lengthened = replace(lengthened, **{name: getattr(RECIPE, name)})
        assert not rest or made != lengthened
    assert lengthened == RECIPE
    assert drills(200, 64) == {"count": DRILLS, "max_tokens": DRILL_TOKENS}
    comparison = load_comparison("when-to-search-contrast", ["seeds=4,5"])
    assert comparison is not None
    assert comparison.comparison.seeds == (4,)


def test_what_is_briefer_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "1")
    short = replace(RECIPE, steps=0, cold_start=ColdStartSettings(steps=1))
    made = shortened(short)
    assert (made.steps, made.cold_start.steps) == (0, 1)
    assert drills(2, 3) == {"count": 2, "max_tokens": 3}


def test_the_settings_are_written_down_for_contributors():
    page = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if f"{VARIABLE}=1" in line]
    for key, most in AT_MOST.items():
        assert f"`{key}` {most}" in line
    assert f"each gate has {DRILLS} drills of at most {DRILL_TOKENS} tokens" in line
