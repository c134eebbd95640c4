"""A recipe that is written out and read again is the same recipe; so is one made by overrides."""

import json
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from outfox.core import recipe as recipes
from outfox.core.config import Part, apply_overrides, dump_yaml, load_yaml, merge, to_data, validate
from outfox.core.recipe import Recipe

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
INTEGERS = st.integers(-(2**63), 2**63)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | TEXT
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
SETTINGS = st.dictionaries(TEXT.filter(lambda key: key != "type"), DATA, max_size=3)
PARTS = st.builds(Part, type=TEXT.filter(bool), settings=SETTINGS)
VALUES = {
    "PositiveInt": st.integers(1, 2**63),
    "NonNegativeInt": st.integers(0, 2**63),
    "PositiveFloat": st.floats(0, exclude_min=True),
    "NonNegativeFloat": st.floats(0),
    "int": INTEGERS,
    "bool": st.booleans(),
    "str": TEXT,
    "JSON": DATA,
    "Part": PARTS,
    "Annotated[int, Field(ge=16)]": st.integers(16, 2**63),
    "Mapping[str, JSON]": st.dictionaries(TEXT, DATA, max_size=2),
    "Mapping[str, str]": st.dictionaries(TEXT, TEXT, max_size=2),
    "tuple[str, ...]": st.lists(TEXT, max_size=3).map(tuple),
}
"""By annotation, as `core/recipe.py` writes it."""


def of_type(annotation: str) -> st.SearchStrategy:
    if annotation in VALUES:
        return VALUES[annotation]
    if annotation.endswith(" | None"):
        return st.none() | of_type(annotation.removesuffix(" | None"))
    if annotation.startswith("Annotated[Part"):
        return PARTS
    if annotation.startswith("tuple[Annotated[Part"):
        return st.lists(PARTS, max_size=2).map(tuple)
    if annotation.startswith("Literal["):
        return st.sampled_from(json.loads(annotation.removeprefix("Literal").replace("'", '"')))
    return built(vars(recipes)[annotation])


def built(kind: type) -> st.SearchStrategy:
    return st.builds(kind, **{field.name: of_type(str(field.type)) for field in fields(kind)})


RECIPES = built(Recipe)


@given(RECIPES)
def test_a_recipe_written_out_and_read_again_is_the_same(recipe: Recipe):
    again = validate(Recipe, load_yaml(dump_yaml(to_data(recipe))))
    assert again == recipe
    assert repr(again) == repr(recipe)


def leaves(data, path=()):
    """(keys, value) of what overrides can set, one by one."""
    if isinstance(data, dict) and data and all(map(sayable, data)):
        return [leaf for key, value in data.items() for leaf in leaves(value, (*path, key))]
    return [(path, data)]


def sayable(key: str) -> bool:
    return key != "" and key == key.strip() and not set(key) & set(".=")


@given(RECIPES)
def test_a_recipe_made_by_overrides_is_the_same(recipe: Recipe):
    words = [f"{'.'.join(keys)}={in_flow(value)}" for keys, value in leaves(to_data(recipe))]
    assert repr(validate(Recipe, apply_overrides({}, words))) == repr(recipe)


def in_flow(value) -> str:
    """A value as one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{in_flow(k)}: {in_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(in_flow, value)) + "]"
    if isinstance(value, float) and abs(value) == float("inf"):
        return ".inf" if value > 0 else "-.inf"
    return json.dumps(value)


@given(RECIPES, RECIPES)
def test_what_a_recipe_lays_over_another_is_what_it_says(base: Recipe, over: Recipe):
    below, above = to_data(base), to_data(over)
    merged = merge(below, above)
    for key, value in above.items():
        assert isinstance(value, dict) or repr(merged[key]) == repr(value)
    assert repr(merge(above, above)) == repr(above)
    assert repr(merge(below, {})) == repr(below)
