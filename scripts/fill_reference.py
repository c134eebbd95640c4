"""Tables of settings and commands in the docs, from the types and signatures themselves.

    python scripts/fill_reference.py            fill the pages
    python scripts/fill_reference.py --check    exit code 1: a page is out of date

A page shows a table between two comments: `settings` is every key of a recipe, `settings FAMILY`
the settings of a family's parts, `presets` the algorithms, `commands` the command line.

    <!-- settings codec -->
    <!-- /settings codec -->
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import typer

from outfox.cli import VERBS
from outfox.core.config import Part
from outfox.core.parts import built_ins
from outfox.core.recipe import Recipe
from outfox.core.schema import family_schema, json_schema
from outfox.learning.algorithms import PRESETS

ROOT = Path(__file__).resolve().parents[1]
_MARKER = re.compile(
    r"<!-- (?P<name>(?:settings|presets|commands)[\w -]*?) -->\n.*?<!-- /(?P=name) -->", re.DOTALL
)
_TYPES = {"string": "text", "boolean": "boolean", "object": "mapping", "null": "null"}


def filled(text: str) -> str:
    """A page with every marker's content as the code has it."""

    def put(found: re.Match[str]) -> str:
        kind, _, what = found["name"].partition(" ")
        lines = MAKERS[kind](what)
        return "\n".join([f"<!-- {found['name']} -->", *lines, f"<!-- /{found['name']} -->"])

    return _MARKER.sub(put, text)


# -- settings -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of a table. `default` None: it is required."""

    key: str
    default: str | None
    type: str
    note: str


def settings(schema: Mapping[str, Any], defs: Mapping[str, Any], where: str = "") -> list[Setting]:
    """All settings below a schema, nested ones by dotted key."""
    found: list[Setting] = []
    required = schema.get("required", ())
    for key, node in schema["properties"].items():
        if key in ("type", "extends"):
            continue
        inner = _referred(node, defs)
        if "properties" in inner:
            found += settings(inner, defs, f"{where}{key}.")
            continue
        entry = node.get("additionalProperties")
        values = _referred(entry, defs) if isinstance(entry, dict) else {}
        found.append(
            Setting(
                key=f"{where}{key}",
                default=None if key in required else _shown(node.get("default", {})),
                type=_type(node, defs),
                note=node.get("description", ""),
            )
        )
        if "properties" in values:
            found += settings(values, defs, f"{where}{key}.NAME.")
        for choice in node.get("anyOf", ()):  # a group of settings, or null
            if "properties" in (group := _referred(choice, defs)) and "default" in node:
                found += settings(group, defs, f"{where}{key}.")
    return found


def _referred(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    return defs[node["$ref"].removeprefix("#/$defs/")] if "$ref" in node else node


def _shown(default: Any) -> str:
    """A default as a recipe writes it."""
    if isinstance(default, list | tuple):
        return f"[{', '.join(map(_shown, default))}]"
    if isinstance(default, str) and default.strip() and "\n" not in default:
        return default
    return json.dumps(default, ensure_ascii=False)


def _type(node: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    match node:
        case {"$ref": _}:
            return "mapping" if "properties" in _referred(node, defs) else "part"
        case {"anyOf": list(choices)}:
            return " or ".join(dict.fromkeys(_type(each, defs) for each in choices))
        case {"enum": list(values)}:
            return ", ".join(f"`{value}`" for value in values)
        case {"type": "array", **rest}:
            items = rest.get("items") or (rest.get("prefixItems") or [{}])[0]
            return f"list: {_type(items, defs)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"mapping to {_type(values, defs)}"
        case {"type": str(kind)}:
            return _TYPES.get(kind, kind) + _bound(node)
        case _:
            return "any"


def _bound(node: Mapping[str, Any]) -> str:
    if "exclusiveMinimum" in node:
        return f" > {node['exclusiveMinimum']:g}"
    return f" ≥ {node['minimum']:g}" if "minimum" in node else ""


def table(rows: list[Setting]) -> Iterator[str]:
    yield "| key | default | type | meaning |"
    yield "|---|---|---|---|"
    for row in rows:
        default = "required" if row.default is None else f"`{row.default}`"
        yield f"| `{row.key}` | {default} | {row.type} | {_cell(row.note, row.key)} |"


def _cell(note: str, of: str) -> str:
    """The note as a table has it. Exits where there is none."""
    if not note:
        raise SystemExit(
            f"{of} does not say what it means: write a docstring under the field, a line in "
            "`Args:`, or an option's help"
        )
    text = note[0].upper() + note[1:] if note[0].isalpha() else note
    return text.rstrip(".").replace("|", "\\|")


def recipe_table(what: str) -> list[str]:
    if what:
        return family_tables(what)
    schema = json_schema(Recipe)
    known = dict(_defaults(Recipe))
    rows = settings(schema, schema["$defs"])
    return list(table([replace(row, default=known.get(row.key, row.default)) for row in rows]))


def _defaults(cls: Any, where: str = "") -> Iterator[tuple[str, str | None]]:
    """Dotted key and default of a recipe: the schema knows none that a function makes."""
    hints = get_type_hints(cls)
    for field in fields(cls):
        made = field.default if field.default_factory is MISSING else field.default_factory()
        if is_dataclass(hints[field.name]) and hints[field.name] is not Part:
            yield from _defaults(hints[field.name], f"{where}{field.name}.")
        elif made is MISSING:
            yield f"{where}{field.name}", None
        else:
            yield f"{where}{field.name}", _shown(made.type if isinstance(made, Part) else made)


def family_tables(family: str) -> list[str]:
    """Each part of a family: a line of what it is, and its settings."""
    defs = family_schema(family)
    lines: list[str] = []
    for name in built_ins(family):
        rows = settings(defs[f"part-{family}-{name}"], defs)
        lines += ["", f"**`{name}`**" + ("" if rows else ": no settings.")]
        lines += ["", *table(rows)] if rows else []
    return [*lines[1:], ""] if lines else []


def presets(_: str) -> list[str]:
    lines = ["| name | credit | loss | group size |", "|---|---|---|---|"]
    for name, (credit, loss, plan) in PRESETS.items():
        told = _settings_of(credit.settings)
        lines.append(
            f"| `{name}` | `{credit.type}`{', ' if told else ''}{told} "
            f"| {_settings_of(loss.settings)} | {plan['group_size']} |"
        )
    return lines


def _settings_of(data: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}: {_shown(value)}`" for key, value in data.items())


# -- commands -------------------------------------------------------------------------------------
def commands(_: str) -> list[str]:
    """Every verb: its help, arguments and options."""
    lines: list[str] = []
    for verb in VERBS:
        app: typer.Typer = import_module(f"outfox.cli.{verb}").app
        lines += _verb(typer.main.get_command(app), f"outfox {verb}")
    return [*lines, ""]


def _verb(found: Any, name: str) -> list[str]:
    children = vars(found).get("commands", {})
    if children:
        return [line for key, each in children.items() for line in _verb(each, f"{name} {key}")]
    context = found.make_context(name, [], resilient_parsing=True)
    lines = ["", f"## {name}", ""]
    lines += [" ".join(part.split()) for part in (found.help or "").split("\n\n")]
    lines += ["", "```text", context.get_usage().removeprefix("Usage: ").strip()]
    lines += [found.epilog.removeprefix("Example: "), "```"] if found.epilog else ["```"]
    told = [row for each in found.params if (row := each.get_help_record(context))]
    if told:
        lines += ["", "| argument or option | meaning |", "|---|---|"]
    return [
        *lines,
        *(f"| `{flag.partition(' <')[0].strip()}` | {_cell(s, name)} |" for flag, s in told),
    ]


MAKERS: Mapping[str, Callable[[str], list[str]]] = {
    "settings": recipe_table,
    "presets": presets,
    "commands": commands,
}


def main(arguments: list[str]) -> int:
    stale = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = filled(text)
        if made == text:
            continue
        stale += 1
        if "--check" in arguments:
            sys.stderr.write(
                f"{page.relative_to(ROOT)} is out of date: python scripts/fill_reference.py\n"
            )
        else:
            page.write_text(made, encoding="utf-8")
    return int("--check" in arguments and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
