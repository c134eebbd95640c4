from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import Annotated

import pytest

from outfox.core import schema as schema_module
from outfox.core.config import InFamily, Part
from outfox.core.errors import ConfigError
from outfox.core.parts import FAMILIES, built_ins
from outfox.core.recipe import Recipe
from outfox.core.schema import json_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    size: int = 1
    """How large
    it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    steps: int
    """How many."""
    inner: Inner = field(default_factory=Inner)
    engine: Annotated[Part, InFamily("engine")] = field(default_factory=lambda: Part(type="fast"))
    tools: tuple[Annotated[Part, InFamily("tool")], ...] = ()
    other: Part


def fast(model: object, *, rows: int = 4, inner: Inner | None = None) -> None: ...


class FakeParts:
    def __init__(self, **_: object) -> None: ...

    def load(self, family: str, name: str) -> object:
        if name == "slow":
            raise ConfigError("needs an extra")
        return fast


@pytest.fixture
def schema(monkeypatch: pytest.MonkeyPatch) -> dict:
    names = {"engine": {"fast": "x.fast", "slow": "x.slow"}, "tool": {}}
    monkeypatch.setattr(schema_module, "built_ins", lambda family: names.get(family, {}))
    monkeypatch.setattr(schema_module, "Parts", FakeParts)
    return json_schema(Outer)


def test_fields_have_their_types_defaults_and_notes(schema: dict):
    assert schema["properties"]["steps"] == {
        "title": "Steps",
        "type": "integer",
        "description": "How many.",
    }
    assert schema["$defs"]["Inner"]["properties"]["size"]["description"] == "How large it is."


def test_unknown_keys_are_refused_and_an_extending_recipe_may_leave_everything_out(schema: dict):
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Inner"]["additionalProperties"] is False
    assert "extends" in schema["properties"]
    assert schema["anyOf"] == [{"required": ["extends"]}, {"required": ["steps", "other"]}]


def test_a_family_lists_its_built_ins_with_their_settings(schema: dict):
    assert schema["properties"]["engine"]["$ref"] == "#/$defs/part-engine"
    choices = schema["$defs"]["part-engine"]["anyOf"]
    assert {"enum": ["fast", "slow"]} in choices
    assert {"$ref": "#/$defs/part-engine-fast"} in choices
    part = schema["$defs"]["part-engine-fast"]
    assert part["properties"]["type"] == {"const": "fast"}
    assert part["properties"]["rows"] == {"default": 4, "title": "Rows", "type": "integer"}
    assert "model" not in part["properties"]
    assert part["additionalProperties"] is False
    assert "additionalProperties" not in schema["$defs"]["part-engine-slow"]


def references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if "$ref" in node else set()
        return own.union(*(references(each) for each in node.values()))
    if isinstance(node, list):
        return set().union(*(references(each) for each in node))
    return set()


def test_every_reference_leads_somewhere(schema: dict):
    for each in (schema, json_schema(Recipe)):
        targets = {f"#/$defs/{name}" for name in each["$defs"]}
        assert references(each) <= targets
        assert references(each)


# Trackers need their packages: tests/trackers.
@pytest.mark.parametrize("family", [each for each in FAMILIES if each != "tracker"])
def test_the_settings_of_every_built_in_have_a_schema(family: str):
    fields = [("part", Annotated[Part, InFamily(family)])]
    whole = json_schema(make_dataclass("Whole", fields, namespace={"__module__": __name__}))
    assert references(whole) <= {f"#/$defs/{name}" for name in whole["$defs"]}
    for name in built_ins(family):
        assert whole["$defs"][f"part-{family}-{name}"]["additionalProperties"] is False


def test_settings_of_parts_say_what_they_mean():
    defs = schema_module.family_schema("trainer")
    assert defs["part-trainer-local"]["properties"]["learning_rate"]["description"]
    loss = schema_module.family_schema("loss")
    assert loss["part-loss-mixed-Ramp"]["properties"]["upto"]["description"]
