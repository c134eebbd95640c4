# pyright: standard
"""YAML 1.2 as plain data, and back: `load_yaml(dump_yaml(data)) == data`.

The core schema and nothing more: `1e-6` is a float; `on`, `yes`, `2024-01-01` and `1_000` are
strings. Duplicate keys, keys that are not strings, custom tags and recursive anchors are refused
with their line number, as is what no setting can mean: numbers beyond 64 bits, half characters,
thousands of levels, or aliases that unfold into millions of values. Anchors, aliases and the merge
key `<<` work.
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
from ruamel.yaml.scanner import Scanner, ScannerError

from outfox.core.errors import ConfigError
from outfox.core.text import MAX_DEPTH, is_unicode
from outfox.core.types import JSON

MAX_VALUES = 100_000
"""Most values in one document, aliases unfolded."""
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
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


class _Scanner(Scanner):
    """Stops at too many brackets; it would look at all of them again for each."""

    def fetch_flow_collection_start(self, *args: Any, **kwargs: Any) -> Any:
        if self.flow_level > MAX_DEPTH:
            raise ScannerError(None, None, _TOO_DEEP, self.reader.get_mark())
        return super().fetch_flow_collection_start(*args, **kwargs)


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
    yaml.Scanner = _Scanner
    yaml.Representer = _Representer
    return yaml


def load_yaml(source: Path | str) -> JSON:
    """The single document of a file (`Path`) or text (`str`) as plain data; empty means None.

    Raises ConfigError with file and line.
    """
    name = str(source) if isinstance(source, Path) else "<text>"
    text = read_text(source) if isinstance(source, Path) else source
    yaml = _yaml()
    yaml.composer.warn_double_anchors = False  # an anchor may be set anew
    try:
        node = yaml.compose(text)
    except RecursionError as error:
        raise ConfigError(f"{name}: not valid YAML: {_TOO_DEEP}") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{name}:{mark.line + 1}" if mark else name
        what = " ".join(str(error.problem or error.context).split())
        raise ConfigError(f"{line}: not valid YAML: {what}") from error
    except YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error
    return None if node is None else _Construction(name).value(node, ())


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
    yaml.width = 1 << 30  # a text that is folded is not always read back
    yaml.sort_base_mapping_type_on_output = False
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()


# -- nodes to data --------------------------------------------------------------------------------
class _Construction:
    """One document's nodes become plain data."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values = 0

    def value(self, node: Node, parents: tuple[Node, ...]) -> JSON:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._refuse(node, f"holds more than {MAX_VALUES} values; write less")
        if node in parents:
            raise self._refuse(node, "an anchor holds itself; write the value out")
        if len(parents) > MAX_DEPTH:
            raise self._refuse(node, f"{_TOO_DEEP}; write it flat")
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        inside = (*parents, node)
        if isinstance(node, SequenceNode):
            return [self.value(item, inside) for item in node.value]
        assert isinstance(node, MappingNode)
        return self._mapping(node, inside)

    def _mapping(self, node: MappingNode, parents: tuple[Node, ...]) -> dict[str, JSON]:
        own: dict[str, JSON] = {}
        merged: dict[str, JSON] = {}
        for key_node, value_node in node.value:
            value = self.value(value_node, parents)
            if str(key_node.tag) == _TAG + "merge":
                for base in value if isinstance(value, list) else [value]:
                    if not isinstance(base, dict):
                        raise self._refuse(value_node, f"`<<` merges mappings, not {base!r:.60}")
                    merged = {**base, **merged}
                continue
            key = self.value(key_node, parents)
            if not isinstance(key, str):
                raise self._refuse(key_node, f"keys are strings, not {key!r:.60}; put it in quotes")
            if key in own:
                raise self._refuse(key_node, f"duplicate key '{key}'; keep one of them")
            own[key] = value
        return {**merged, **own}

    def _scalar(self, node: ScalarNode) -> JSON:
        text: str = node.value
        kind = str(node.tag).removeprefix(_TAG)
        try:
            match kind:
                case "str" | "merge":
                    return text if is_unicode(text) else self._paired(node, text)
                case "null":
                    return None
                case "bool":
                    return {"true": True, "false": False}[text.lower()]
                case "int":
                    number = int(text, 0) if text[:2] in ("0x", "0o") else int(text)
                    if not -(2**63) <= number < 2**64:
                        raise self._refuse(node, f"{text:.60} does not fit into 64 bits")
                    return number
                case "float":
                    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
                case _:
                    raise self._refuse(
                        node, f"the tag {node.tag!s:.60} is not supported; remove it"
                    )
        except (ValueError, KeyError) as error:
            raise self._refuse(node, f"{text!r:.60} is no {kind}") from error

    def _paired(self, node: Node, text: str) -> str:
        """JSON escapes characters beyond the first 65,536 in two halves."""
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise self._refuse(node, f"{text!r:.60} holds half of a character") from error

    def _refuse(self, node: Node, why: str) -> ConfigError:
        mark: Any = node.start_mark
        return ConfigError(f"{self._name}:{mark.line + 1}: {why}")
