"""Whatever a recipe, a rubric or a command line says: plain data, or a ConfigError of one's own."""

import copy
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from outfox.core.comparison import load_comparison
from outfox.core.config import Part, apply_overrides, dump_yaml, load_recipe, load_yaml, validate
from outfox.core.errors import ConfigError
from outfox.core.parts import Parts, built_ins
from outfox.core.recipe import Recipe
from outfox.rewards.rubric import RubricTree
from outfox.rewards.tree import load_tree

PIECES = st.sampled_from(
    [
        *("{", "}", "[", "]", ",", ": ", ":", "- ", "? ", "\n", "\n  ", " ", "\t", "# ", "---\n"),
        *(
            "&a ",
            "*a",
            "&b ",
            "*b",
            "<<: ",
            "!!int ",
            "!x ",
            "%YAML 1.1\n",
            "...",
            "|",
            ">-\n",
            "''",
        ),
        *('"', "'", '"\\ud800"', '"\\0"', "\\", "~", "null", "true", "yes", "0x1f", "0o17", "1e-6"),
        *(
            "1_000",
            ".5",
            ".inf",
            ".nan",
            "-.inf",
            "1e999",
            "9" * 5000,
            "0x" + "f" * 40,
            "2024-01-01",
        ),
        *(
            "a",
            "steps",
            "world",
            "rubric",
            "type",
            "extends",
            "rollout",
            "tools",
            "é",
            "法国",
            "\u2028",
        ),
        *("\x85", "\ufeff", "\ud800", "\x00", "\x07", "[" * 200, "- " * 200, "{a: " * 100),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=12).map("".join)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "default", "grpo", "a.py:b", "m:x", "tags", "rows", "\x00"])
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "extends", "a", "0", "version"]), inner)
    ),
    max_leaves=5,
)


def told(error: ConfigError) -> None:
    """A message can be printed, and is not the size of what it tells of."""
    text = str(error)
    assert text.encode()
    assert len(text) < 5000


@given(TEXTS)
def test_any_yaml_is_plain_data_or_refused(text: str):
    try:
        data = load_yaml(text)
    except ConfigError as error:
        told(error)
        return
    again = load_yaml(dump_yaml(data))
    assert repr(again) == repr(data)  # NaN is not equal to itself


KEYS = st.sampled_from(
    [
        *Recipe.__dataclass_fields__,
        "type",
        "0",
        "1",
        "9" * 30,
        "²",
        "٣",
        "-1",
        "",
        " a",
        "a",
        "\ud800",
    ]
)


@given(st.lists(KEYS, min_size=1, max_size=4), TEXTS, VALUES)
def test_any_override_sets_its_key_and_no_other_or_is_refused(keys: list[str], text: str, was):
    data = {"rollout": {"tasks": 2}, "tools": ["a"], "name": "x", "a": was}
    before = copy.deepcopy(data)
    try:
        after = apply_overrides(data, [f"{'.'.join(keys)}={text}"])
    except ConfigError as error:
        told(error)
    else:
        untouched = {key for key in before if key != keys[0]}
        assert all(repr(after[key]) == repr(before[key]) for key in untouched)
        node = after
        for key in keys:
            node = node[int(key)] if isinstance(node, list) else node[key]
        assert repr(node) == repr(load_yaml(text))
    assert repr(data) == repr(before)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_recipe_is_validated_or_refused(settings: dict):
    try:
        recipe = validate(Recipe, {"name": "x", "world": "rows", **settings})
    except ConfigError as error:
        told(error)
    else:
        assert recipe.steps >= 0


PLACES = st.sampled_from(
    [
        *("outcome.signal", "outcome.wrong", "outcome.right", "outcome.abstain", "outcome.task_w"),
        *("outcome.abstain.after_call", "if_right.cap", "if_right.deduct", "if_right.deduct.calls"),
        *(
            "if_not_right.cap",
            "gates",
            "gates.0",
            "budgets",
            "budgets.calls",
            "schedule",
            "extends",
        ),
        *("schedule.calls", "settings", "settings.calls", "must_ground", "version", "unknown"),
    ]
)


@given(PLACES, SCALARS | VALUES)
def test_any_rubric_is_built_or_refused(place: str, value):
    tree = {"version": 1, "extends": "default"}
    *above, last = place.split(".")
    node = tree
    for key in above:
        node = node.setdefault(key, {})
    node[last] = value
    try:
        low, high = RubricTree(load_tree(tree)).bounds
    except ConfigError as error:
        told(error)
    else:
        assert low <= high


FAMILIES = {family: built_ins(family) for family in ("credit", "format", "tasks", "world")}
NAMED = st.sampled_from([(family, name) for family, names in FAMILIES.items() for name in names])
SETTINGS = st.sampled_from(["gamma", "scale", "weights", "answer_key", "top_k", "entities", "x"])


@given(NAMED, st.dictionaries(SETTINGS, VALUES))
def test_any_settings_of_a_part_are_validated_or_refused(named: tuple[str, str], settings: dict):
    family, name = named
    try:
        Parts().resolve(family, Part(type=name, settings=settings))
    except ConfigError as error:
        told(error)


WORDS = st.sampled_from(["seeds=", "variants=", "against=", "run.dir=", "seed=", "steps=", "base="])
BASE = "base: when-to-search\nvariants: {a: {}, b: {seed: 1}}\n"
HEADS = st.sampled_from([BASE, BASE.replace("{seed: 1}", "{}"), "extends: when-to-search\n", ""])


@given(HEADS, TEXTS, WORDS, TEXTS | st.sampled_from(["--1", "1,,2", "a,b", "[1, a]", "-", "1.5"]))
def test_any_file_is_a_recipe_or_a_comparison_or_refused(head: str, text: str, word: str, value):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        path.write_bytes((head + text).encode("utf-8", "surrogatepass"))
        try:
            comparison = load_comparison(str(path), [word + value])
            if comparison is None:
                load_recipe(path, [word + value])
            else:
                seed, variant = next(comparison.runs)
                validate(Recipe, {"name": "x", **comparison.recipe(variant, seed).data})
        except ConfigError as error:
            told(error)
