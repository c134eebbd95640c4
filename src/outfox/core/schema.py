"""The JSON Schema of a recipe, for editors: fields, and the settings of every built-in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter

from outfox.core.errors import ConfigError
from outfox.core.notes import dataclasses_in, field_notes, notes_of
from outfox.core.parts import Parts, built_ins, settings_type

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXTENDS = {"type": "string", "description": "A shipped recipe or a path, merged below this one."}
_USER_CODE = {"type": "string", "pattern": ":", "description": "path.py:attr or module:attr"}


def json_schema(cls: type) -> dict[str, Any]:
    """The schema of a recipe whose settings are the dataclass `cls`.

    Fields `Annotated[Part, InFamily(...)]` list their parts. Imports every built-in of the families
    it meets; one whose package is missing stays open. Nothing is required of a recipe file that
    `extends` another.
    """
    root = TypeAdapter[Any](cls).json_schema()
    defs: dict[str, Any] = root.pop("$defs", {})
    nodes = {cls.__name__: root, **defs}
    for name, each in dataclasses_in(cls).items():
        if name in nodes:
            _add_notes(nodes[name].get("properties", {}), field_notes(each))
    families: dict[str, None] = {}
    root = _close(root, families)
    defs = {name: _close(each, families) for name, each in defs.items()}
    for family in families:
        defs |= family_schema(family)
    root["properties"] = {"extends": _EXTENDS, **root["properties"]}
    required = root.pop("required", [])
    alone = {"anyOf": [{"required": ["extends"]}, {"required": required}]} if required else {}
    return {"$schema": _DIALECT, **root, **alone, "$defs": defs}


def _add_notes(properties: dict[str, Any], notes: Mapping[str, str]) -> None:
    for key, node in properties.items():
        if key in notes:
            node.setdefault("description", notes[key])


def _close(node: Any, families: dict[str, None]) -> Any:
    """Refuse unknown keys, and point part fields to their family's definition."""
    if isinstance(node, list):
        return [_close(each, families) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    mapping = cast("dict[str, Any]", node)
    if "x-family" in mapping:
        family = str(mapping["x-family"])
        families[family] = None
        kept = {k: v for k, v in mapping.items() if k in ("default", "description")}
        return {**kept, "$ref": f"#/$defs/part-{family}"}
    closed = {key: _close(each, families) for key, each in mapping.items()}
    if "properties" in closed and "title" in closed:
        closed["additionalProperties"] = False
    return closed


def family_schema(family: str) -> dict[str, Any]:
    """Definitions `part-FAMILY` and, for each built-in, `part-FAMILY-NAME` with its settings."""
    names = built_ins(family)
    own = {"type": "object", "properties": {"type": _USER_CODE}, "required": ["type"]}
    defs: dict[str, Any] = {}
    for name in names:
        schema, inner = _settings(family, name)
        properties = {"type": {"const": name}, **schema.get("properties", {})}
        required = ["type", *schema.get("required", [])]
        rest = {"properties": properties, "required": required}
        closed = {"additionalProperties": False} if "properties" in schema else {}
        defs |= {**inner, f"part-{family}-{name}": {"type": "object", **rest, **closed}}
    named = [{"$ref": f"#/$defs/part-{family}-{name}"} for name in names]
    bare: list[Mapping[str, Any]] = [{"enum": list(names)}] if names else []
    return {**defs, f"part-{family}": {"anyOf": [*bare, *named, _USER_CODE, own]}}


def _settings(family: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A built-in's settings as (schema, definitions), definitions under names of its own."""
    try:
        factory = Parts(allow_user_code=False).load(family, name)
    except ConfigError:  # needs an extra that is not installed
        return {}, {}
    settings = settings_type(factory)
    adapter = TypeAdapter[Any](settings)
    template = f"#/$defs/part-{family}-{name}-{{model}}"
    schema = adapter.json_schema(ref_template=template)
    defs: dict[str, Any] = schema.pop("$defs", {})
    _add_notes(schema.get("properties", {}), notes_of(factory))
    for key, each in dataclasses_in(settings).items():
        if key in defs:
            _add_notes(defs[key].get("properties", {}), field_notes(each))
    none: dict[str, None] = {}
    inner = {f"part-{family}-{name}-{key}": _close(each, none) for key, each in defs.items()}
    return {"properties": {}, **_close(schema, none)}, inner
