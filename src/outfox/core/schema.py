"""The JSON Schema of a recipe, for editors: fields, and the settings of every built-in part."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from pydantic import TypeAdapter

from outfox.core.errors import ConfigError
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
    notes = _field_notes(cls)
    for name, node in (*defs.items(), (cls.__name__, root)):
        for key, note in notes.get(name, {}).items():
            node["properties"][key].setdefault("description", note)
    families: dict[str, None] = {}
    root = _close(root, families)
    defs = {name: _close(each, families) for name, each in defs.items()}
    for family in families:
        defs |= _family(family)
    root["properties"] = {"extends": _EXTENDS, **root["properties"]}
    required = root.pop("required", [])
    alone = {"anyOf": [{"required": ["extends"]}, {"required": required}]} if required else {}
    return {"$schema": _DIALECT, **root, **alone, "$defs": defs}


def _field_notes(cls: type) -> dict[str, dict[str, str]]:
    """Class to field to the docstring under the field, for all classes of the module of `cls`."""
    notes: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[cls.__module__])).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for before, after in pairwise(node.body):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(note))),
                ):
                    notes.setdefault(node.name, {})[name] = " ".join(note.split())
                case _:
                    pass
    return notes


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


def _family(family: str) -> dict[str, Any]:
    """Definitions of a family: its name, and one object per part."""
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
    adapter = TypeAdapter[Any](settings_type(factory))
    template = f"#/$defs/part-{family}-{name}-{{model}}"
    schema = adapter.json_schema(ref_template=template)
    defs: dict[str, Any] = schema.pop("$defs", {})
    none: dict[str, None] = {}
    inner = {f"part-{family}-{name}-{key}": _close(each, none) for key, each in defs.items()}
    return {"properties": {}, **_close(schema, none)}, inner
