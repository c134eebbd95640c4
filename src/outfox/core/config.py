"""From a recipe and `key.path=value` overrides to one validated, frozen dataclass.

    recipe.yaml ─extends─▶ plain data ─overrides─▶ plain data ─validate─▶ frozen dataclass

There is one parser (`core/yaml.py`) and one validation (`validate`). Settings of parts are
validated with the same function once `core/parts.py` knows the part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.text import MAX_DEPTH, is_unicode, unusable
from outfox.core.types import JSON
from outfox.core.yaml import dump_yaml, load_yaml

__all__ = [
    "RECIPES",
    "InFamily",
    "Part",
    "RecipeFile",
    "apply_overrides",
    "dump_yaml",
    "find_recipe",
    "load_recipe",
    "load_yaml",
    "merge",
    "to_data",
    "validate",
]

T = TypeVar("T")

_NAMED_BY = {"rubric": "extends"}
"""What a bare string stands for at a key, where it is not a part's `type`."""

RECIPES = Path(__file__).parents[1] / "recipes"
"""Folder of the shipped recipes."""


# -- parts as data --------------------------------------------------------------------------------
def _no_settings() -> dict[str, JSON]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part by name: `{type: NAME, ...settings}`; a bare string means `{type: string}`.

    NAME is a built-in, `module:attr` or `path.py:attr`. The settings are checked when
    `core/parts.py` resolves the name.
    """

    type: str
    settings: Mapping[str, JSON] = field(default_factory=_no_settings)

    @property
    def data(self) -> dict[str, JSON]:
        """As it is written in YAML."""
        return {"type": self.type, **self.settings}

    @classmethod
    def parse(cls, value: JSON) -> Part:
        """From a string or a mapping. Raises PydanticCustomError, which `validate` reports."""
        if isinstance(value, str) and value:
            return cls(type=value)
        if not isinstance(value, dict):
            raise PydanticCustomError(
                "part", "must be the name of a part or a mapping with `type: NAME`"
            )
        settings = dict(cast("dict[str, JSON]", value))
        name = settings.pop("type", None)
        if not isinstance(name, str) or not name:
            raise PydanticCustomError("part", "must hold the part's name as `type: NAME`")
        return cls(type=name, settings=settings)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(_part_data),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        settings = {"type": "object", "properties": {"type": {"type": "string"}}}
        return {"anyOf": [{"type": "string"}, {**settings, "required": ["type"]}]}


def _part_data(part: Part) -> dict[str, JSON]:
    return part.data


@dataclass(frozen=True, slots=True)
class InFamily:
    """`Annotated[Part, InFamily("engine")]`: lets the JSON Schema list the family's parts."""

    name: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "x-family": self.name}


# -- recipes and overrides ------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """A recipe as plain data, before validation."""

    name: str
    path: Path
    folders: tuple[Path, ...]
    """Where its `path.py:attr` parts are looked for: its own folder, then those it extends."""
    data: dict[str, JSON]


def load_recipe(name: str | Path, overrides: Sequence[str] = ()) -> RecipeFile:
    """A shipped recipe by name, or a file by path; `extends: NAME` is merged, then overrides.

    Raises ConfigError.
    """
    recipe = _load_recipe(str(name), Path(), ())
    return RecipeFile(
        name=recipe.name,
        path=recipe.path,
        folders=recipe.folders,
        data=apply_overrides(recipe.data, overrides),
    )


def _load_recipe(name: str, folder: Path, seen: tuple[Path, ...]) -> RecipeFile:
    path = find_recipe(name, folder)
    if path in seen:
        raise ConfigError(f"{path}: a recipe may not extend itself; remove `extends: {name}`")
    data: JSON = load_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a recipe is a mapping of settings, not {_brief(data)}")
    own = dict(cast("dict[str, JSON]", data))
    if "variants" in own:
        raise ConfigError(
            f"{path}: a recipe makes one run, and this is a comparison of several: "
            f"`outfox train {name}` makes those; for one run give its base"
        )
    base_name = own.pop("extends", None)
    if base_name is None:
        return RecipeFile(name=path.stem, path=path, folders=(path.parent,), data=own)
    if not isinstance(base_name, str):
        raise ConfigError(f"{path}: extends: must name one recipe, not {_brief(base_name)}")
    base = _load_recipe(base_name, path.parent, (*seen, path))
    return RecipeFile(
        name=path.stem,
        path=path,
        folders=(path.parent, *base.folders),
        data=merge(base.data, own),
    )


def find_recipe(name: str, folder: Path = Path()) -> Path:
    """`*.yaml` and anything with a slash is a path; the rest names a shipped recipe.

    Raises ConfigError.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name or "\\" in name:
        path = (folder / name).expanduser().resolve()
        if not path.is_file():
            raise ConfigError(f"no recipe file at {path}; check the path")
        return path
    shipped = {path.stem: path for path in RECIPES.glob("*.yaml")}
    if name not in shipped:
        raise ConfigError(f"no shipped recipe is called '{name}'.{did_you_mean(name, shipped)}")
    return shipped[name]


def merge(base: JSON, over: JSON) -> JSON:
    """`over` on top of `base`: mappings key by key, everything else replaced whole.

    A part of another `type` replaces the base's part and its settings; `{}` empties a mapping.
    """
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    below, above = cast("dict[str, JSON]", base), cast("dict[str, JSON]", over)
    if "type" in above and above["type"] != below.get("type"):
        return above
    merged = {
        key: merge(_opened(key, below[key], value), value) if value and key in below else value
        for key, value in above.items()
    }
    return {**below, **merged}


def _opened(key: str, name: JSON, over: JSON) -> JSON:
    """A part or rubric given by its bare name, as a mapping where settings are laid over it."""
    named = _NAMED_BY.get(key, "type")
    if not isinstance(name, str) or not isinstance(over, dict) or named in over:
        return name
    return {named: name}


def apply_overrides(data: Mapping[str, JSON], overrides: Sequence[str]) -> dict[str, JSON]:
    """`data` with each `key.path=value` set, the value read as YAML; `data` is left alone.

    A number in the path indexes a list (`tools.0=search`; one past the end appends). A path into a
    part given as a bare string makes it `{type: string}` first, a rubric
    `{extends: string}`. Raises ConfigError.
    """
    result: JSON = dict(data)
    for override in overrides:
        key, equals, text = override.partition("=")
        keys = key.split(".")
        named = all(part.strip() == part and part for part in keys) and is_unicode(override)
        if not equals or not named or len(keys) > MAX_DEPTH:
            written = f"'{override}'" if is_unicode(override) else ascii(override)
            raise ConfigError(
                f"an override is written key.path=value, not {written:.200}; for example steps=10"
            )
        try:
            value = load_yaml(text)
        except ConfigError as error:
            why = str(error).partition(": ")[2]
            raise ConfigError(f"{key}: {why}, in '{text:.200}'; put text in quotes") from error
        result = _set(result, keys, value, "")
    return result


def _set(node: JSON, keys: Sequence[str], value: JSON, path: str) -> JSON:
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    below = _join(path, key)
    if node is None and key == "0":
        node = []
    if isinstance(node, list):
        items = list(cast("list[JSON]", node))
        if not key.isdecimal() or len(key) > 9 or int(key) > len(items):
            raise ConfigError(
                f"{path}: is a list of {len(items)}; '{key}' must be an index from 0 to "
                f"{len(items)} (the last appends)"
            )
        index = int(key)
        items[index : index + 1] = [
            _set(items[index] if index < len(items) else None, rest, value, below)
        ]
        return items
    if isinstance(node, str):
        node = {_NAMED_BY.get(path, "type"): node}
    if node is not None and not isinstance(node, dict):
        raise ConfigError(f"{path}: is {_brief(node)} and has no settings; '{below}' cannot be set")
    mapping = cast("dict[str, JSON]", node or {})
    return {**mapping, key: _set(mapping.get(key), rest, value, below)}


# -- validation -----------------------------------------------------------------------------------
@lru_cache(maxsize=256)
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def validate(cls: type[T], data: JSON, *, where: str = "") -> T:
    """Plain data as `cls`, a frozen dataclass (or any type that pydantic knows).

    Strict: no text for numbers, no floats for integers, no unknown keys. `where` is the path of
    `data` in the recipe. Raises ConfigError with one line per fault: path, rule, value, remedy.
    """
    adapter = _adapter(cls)
    if fault := unusable(data, where):
        raise ConfigError(fault)
    try:
        # The JSON route: strict there still takes lists for tuples and text for paths.
        return adapter.validate_json(json.dumps(data, default=str), strict=True, extra="forbid")
    except ValidationError as error:
        faults = error.errors(include_url=False)
    schema = adapter.json_schema()
    lines: dict[str, list[str]] = {}
    for fault in faults:
        path = _visible_path(fault, data, where)
        lines.setdefault(path, []).append(_explain(fault, schema))
    told = [f"{path}: {' or '.join(dict.fromkeys(rules))}" for path, rules in lines.items()]
    raise ConfigError("\n".join(told))


def to_data(value: Any) -> JSON:
    """A validated dataclass as plain data, which `validate` reads back."""
    cls: Any = value.__class__
    return _as_json(_adapter(cls).dump_python(value))


def _as_json(value: Any) -> JSON:
    """Unlike pydantic's JSON mode, it keeps infinity, which YAML can write."""
    match value:
        case Mapping():
            items = cast("Mapping[str, Any]", value).items()
            return {key: _as_json(item) for key, item in items}
        case list() | tuple():
            return [_as_json(item) for item in cast("Sequence[Any]", value)]
        case Path():
            return str(value)
        case _:
            return value


def _explain(fault: ErrorDetails, schema: Mapping[str, Any]) -> str:
    """Rule, value and remedy of one fault."""
    message = fault["msg"]
    given = _brief(fault["input"])
    match fault["type"]:
        case "missing" | "missing_keyword_only_argument":
            return "is required; add it"
        case "unexpected_keyword_argument" | "extra_forbidden":
            wrong = str(fault["loc"][-1])
            return f"unknown key.{did_you_mean(wrong, _known_keys(schema, fault['loc'][:-1]))}"
        case "dataclass_type":
            return f"must be a mapping of settings, not {given}"
        case "part":
            return f"{message}, not {given}"
        case "literal_error" | "enum" if isinstance(fault["input"], str):
            choices = [word for word in message.split("'")[1::2] if word]
            return f"{_must(message)}, not {given}.{did_you_mean(fault['input'], choices)}"
        case "int_type" if isinstance(fault["input"], float) and fault["input"].is_integer():
            return f"{_must(message)}, not {given}; write {int(fault['input'])}"
        case "int_type" | "float_type" | "bool_type" if isinstance(fault["input"], str):
            return f"{_must(message)}, not {given}; write it without quotes"
        case _:
            return f"{_must(message)}, not {given}"


def _must(message: str) -> str:
    return message.replace("Input should", "must", 1).replace("Value error, ", "", 1)


def _visible_path(fault: ErrorDetails, data: JSON, where: str) -> str:
    """The path as the user wrote it: without the names that pydantic gives to union branches."""
    path = where
    last = len(fault["loc"]) - 1 if fault["type"].startswith("missing") else None
    for depth, step in enumerate(fault["loc"]):
        if isinstance(data, dict) and isinstance(step, str):
            mapping = cast("dict[str, JSON]", data)
            if step not in mapping and depth != last:
                continue
            data = mapping.get(step)
        elif isinstance(data, list) and isinstance(step, int):
            items = cast("list[JSON]", data)
            data = items[step] if step < len(items) else None
        else:
            continue
        path = _join(path, str(step))
    return path or "settings"


def _known_keys(schema: Mapping[str, Any], loc: Sequence[int | str]) -> set[str]:
    """Property names of the object at `loc`, over all branches of unions on the way."""
    nodes = _branches(schema, schema)
    for step in loc:
        below: list[Mapping[str, Any]] = []
        for node in nodes:
            child = node.get("properties", {}).get(step)
            child = child or node.get("items" if isinstance(step, int) else "additionalProperties")
            if isinstance(child, dict):
                below += _branches(cast("dict[str, Any]", child), schema)
        nodes = below or nodes  # the name of a union branch leads nowhere: stay
    return {key for node in nodes for key in node.get("properties", {})}


def _branches(node: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in node:
        return _branches(root["$defs"][str(node["$ref"]).rpartition("/")[2]], root)
    if "anyOf" in node:
        return [leaf for branch in node["anyOf"] for leaf in _branches(branch, root)]
    return [node]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _brief(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
