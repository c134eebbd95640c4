"""Comparisons: which runs they are, what each run's recipe is, and what is refused."""

from pathlib import Path

import pytest

from outfox.core.comparison import ComparisonFile, load_comparison
from outfox.core.config import dump_yaml, load_recipe, load_yaml
from outfox.core.errors import ConfigError

BASE = """
seed: 7
steps: 4
world: {type: when-to-search, seed: 3}
readings: {draft: confidence}
rubric: {extends: default, if_right: {cap: .3}}
rollout: {tasks: 2, group_size: 4}
"""
FILE = """
base: base.yaml
seeds: [0, 1]
variants:
  default: {}
  outcome-only: {rubric: outcome_only}
  reading-off: {readings: {}, rollout: {tasks: 3}}
against: outcome-only
asks: [{difference: accuracy, at_least: -.02}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    return path


def loaded(path: Path, *overrides: str) -> ComparisonFile:
    found = load_comparison(str(path), overrides)
    assert found is not None
    return found


def test_an_ordinary_recipe_is_none(file: Path):
    assert load_comparison(str(file.with_name("base.yaml"))) is None
    assert load_comparison("when-to-search") is None


def test_runs_go_seed_by_seed(file: Path):
    names = ("default", "outcome-only", "reading-off")
    assert list(loaded(file).runs) == [(seed, name) for seed in (0, 1) for name in names]


def test_a_variant_lies_over_the_base_and_the_command_line_over_both(file: Path):
    found = loaded(file, "steps=9", "rollout.group_size=6", "cache.dir=there")
    base = load_recipe(file.with_name("base.yaml")).data
    made = found.recipe("default", 1)
    changed = {"seed": 1, "steps": 9, "rollout": {"tasks": 2, "group_size": 6}}
    places = {"cache": {"dir": "there"}, "run": {"dir": "runs/mine/default-seed1"}}
    assert made.data == {**base, **changed, **places}
    assert made.name == "mine-default"
    assert found.recipe("outcome-only", 0).data["rubric"] == "outcome_only"
    off = found.recipe("reading-off", 0).data
    assert off["readings"] == {}
    assert off["rollout"] == {"tasks": 3, "group_size": 6}


def test_the_command_line_chooses_runs_and_their_place(file: Path):
    found = loaded(file, "seeds=5", "variants=reading-off,default", "run.dir=here")
    assert list(found.runs) == [(5, "reading-off"), (5, "default")]
    assert found.place("default", 5) == Path("here/default-seed5")
    assert found.settings == ()
    assert found.words == ("mine.yaml", "seeds=5", "variants=reading-off,default")
    assert found.against == "reading-off"  # outcome-only is not run: the first
    assert loaded(file, "seeds=[2, 3]").comparison.seeds == (2, 3)
    assert loaded(file, "seeds=2,3").comparison.seeds == (2, 3)
    assert loaded(file, "against=default").against == "default"


WRONG = [
    ("an unknown key", "variant: 3", [], "mine.variant: unknown key. Did you mean 'variants'?"),
    ("no seed", "seeds: []", [], "needs a variant and a seed"),
    ("a seed twice", "seeds: [1, 1]", [], "each is run once; got [1, 1]"),
    ("a seed that is none", "", ["seeds=one"], "are whole numbers, not 'one'; write seeds=0,1,2"),
    ("one seed as in a recipe", "", ["seed=3"], "got seed=3: write seeds=0,1,2"),
    ("an unknown variant", "", ["variants=defualt"], "Did you mean 'default'?"),
    ("beside nothing", "against: outcome", [], "Did you mean 'outcome-only'?"),
    ("two bounds", "asks: [{value: j, at_least: 0, at_most: 1}]", [], "asks.0: has one of value"),
    ("no measure", "asks: [{at_least: 0}]", [], "asks.0: has one of value"),
    ("a name with a slash", "variants: {a/b: {}}", [], "'a/b' has others: rename it"),
    ("a variant's seed", "variants: {a: {seed: 1}}", [], "variants.a: seeds and folders belong"),
    ("a base that is one", "base: mine.yaml", [], "a recipe makes one run"),
]


@pytest.mark.parametrize(
    ("line", "words", "told"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_wrong_input_is_told(file: Path, line: str, words: list[str], told: str):
    file.write_text(dump_yaml({**load_yaml(FILE), **(load_yaml(line) or {})}))
    with pytest.raises(ConfigError) as caught:
        loaded(file, *words)
    assert told in str(caught.value)


def test_a_comparison_is_no_recipe(file: Path):
    with pytest.raises(ConfigError, match="a recipe makes one run, and this is a comparison"):
        load_recipe(file)


@pytest.mark.parametrize(
    "name",
    [
        "when-to-search-contrast",
        "when-to-search-contrast-zh",
        "when-to-search-noise",
    ],
)
def test_the_shipped_comparisons_load(name: str):
    found = load_comparison(name)
    assert found is not None
    assert found.words == (name,)
    assert len(found.comparison.seeds) == 3
    assert found.folder == Path("runs") / name
