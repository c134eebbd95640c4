# pyright: standard
"""YAML 1.2 as plain data, and back: `load_yaml(dump_yaml(data)) == data`.

The core schema and nothing more: `1e-6` is a float; `on`, `yes`, `2024-01-01` and `1_000` are
strings. Duplicate keys, keys that are not strings, custom tags and recursive anchors are refused
with their line number. Anchors, aliases and the merge key `<<` work.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter
from ruamel.yaml.resolver import BaseResolver

from outfox.core.errors import ConfigError
from outfox.core.types import JSON

_TAG = "tag:yaml.org,2002:"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_PLAIN = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", _FLOAT + r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+0123456789."),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", r"<<", "<"),
)
"""What an unquoted scalar is (YAML 1.2.2, section 10.3.2): type, pattern, first characters."""


def _first_characters() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, pattern, firsts in _PLAIN:
        for first in firsts:
            table.setdefault(first, []).append((_TAG + kind, re.compile(rf"(?:{pattern})\Z")))
    return table


class _CoreSchema(BaseResolver):
    """Tells ruamel which plain scalars are not strings."""

    def __init__(self, version: object = None, loader: Any = None, loadumper: Any = None) -> None:
        super().__init__(loader if loadumper is None else loadumper)

    @property
    def processing_version(self) -> tuple[int, int]:
        return (1, 2)


_CoreSchema.yaml_implicit_resolvers = _first_characters()


class _Representer(SafeRepresenter):
    """Writes values out in full, and escapes what a reader would fold or lose."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> Any:
        style = None if data.isprintable() else '"'
        return self.represent_scalar(_TAG + "str", data, style=style)


_Representer.add_representer(str, _Representer.represent_str)


def _yaml() -> Any:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Resolver = _CoreSchema
    yaml.Representer = _Representer
    return yaml


def load_yaml(source: Path | str) -> JSON:
    """The single document of a file (`Path`) or text (`str`) as plain data; empty means None.

    Raises ConfigError with file and line.
    """
    name = str(source) if isinstance(source, Path) else "<text>"
    text = read_text(source) if isinstance(source, Path) else source
    try:
        node = _yaml().compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{name}:{mark.line + 1}" if mark else name
        what = " ".join(str(error.problem or error.context).split())
        raise ConfigError(f"{line}: not valid YAML: {what}") from error
    except YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error
    return None if node is None else _construct(node, name, ())


def read_text(path: Path) -> str:
    """A file's text. Raises ConfigError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {error}") from error


def dump_yaml(data: JSON) -> str:
    """Plain data as block-style YAML, keys in the order given."""
    yaml = _yaml()
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 100
    yaml.sort_base_mapping_type_on_output = False
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


# -- nodes to data --------------------------------------------------------------------------------
def _construct(node: Node, name: str, parents: tuple[Node, ...]) -> JSON:
    if node in parents:
        raise _refuse(node, name, "an anchor holds itself; write the value out")
    if isinstance(node, ScalarNode):
        return _scalar(node, name)
    inside = (*parents, node)
    if isinstance(node, SequenceNode):
        return [_construct(item, name, inside) for item in node.value]
    assert isinstance(node, MappingNode)
    return _mapping(node, name, inside)


def _mapping(node: MappingNode, name: str, parents: tuple[Node, ...]) -> dict[str, JSON]:
    own: dict[str, JSON] = {}
    merged: dict[str, JSON] = {}
    for key_node, value_node in node.value:
        value = _construct(value_node, name, parents)
        if str(key_node.tag) == _TAG + "merge":
            for base in value if isinstance(value, list) else [value]:
                if not isinstance(base, dict):
                    raise _refuse(value_node, name, f"`<<` merges mappings, not {base!r}")
                merged = {**base, **merged}
            continue
        key = _construct(key_node, name, parents)
        if not isinstance(key, str):
            raise _refuse(key_node, name, f"keys are strings, not {key!r}; put it in quotes")
        if key in own:
            raise _refuse(key_node, name, f"duplicate key '{key}'; keep one of them")
        own[key] = value
    return {**merged, **own}


def _scalar(node: ScalarNode, name: str) -> JSON:
    text: str = node.value
    tag = str(node.tag)
    try:
        match tag.removeprefix(_TAG):
            case "str" | "merge":
                return text
            case "null":
                return None
            case "bool":
                return {"true": True, "false": False}[text.lower()]
            case "int":
                return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
            case "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case _:
                raise _refuse(node, name, f"the tag {tag} is not supported; remove it")
    except (ValueError, KeyError) as error:
        raise _refuse(node, name, f"{text!r} is no {tag.removeprefix(_TAG)}") from error


def _refuse(node: Node, name: str, why: str) -> ConfigError:
    mark: Any = node.start_mark
    return ConfigError(f"{name}:{mark.line + 1}: {why}")
