"""What docstrings say of fields and parameters: one line each, for schemas, tools and pages."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable
from itertools import pairwise
from typing import Any


def notes_of(target: Callable[..., Any]) -> dict[str, str]:
    """Parameter to note: docstrings under the fields of a dataclass, else the `Args:` section."""
    return field_notes(target) if dataclasses.is_dataclass(target) else argument_notes(target)


def argument_notes(target: Callable[..., Any]) -> dict[str, str]:
    """Parameter to what the `Args:` section of the docstring says."""
    section = re.search(
        r"^Args:\n((?:[ \t]+.*\n?|\n)+)", inspect.getdoc(target) or "", re.MULTILINE
    )
    notes: dict[str, str] = {}
    current = ""
    for line in section.group(1).splitlines() if section else ():
        entry = re.match(r"\s{2,4}(\w+)(?: \([^)]*\))?:\s*(.*)", line)
        if entry:
            current = entry.group(1)
            notes[current] = entry.group(2)
        elif current and line.strip():
            notes[current] += " " + line.strip()
    return notes


def field_notes(cls: Any) -> dict[str, str]:
    """Field to the docstring under it, of one dataclass; none where there is no source."""
    try:
        body = ast.parse(inspect.getsource(sys.modules[cls.__module__])).body
    except (OSError, TypeError):
        return {}
    notes: dict[str, str] = {}
    for node in body:
        if not isinstance(node, ast.ClassDef) or node.name != cls.__name__:
            continue
        for before, after in pairwise(node.body):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(note))),
                ):
                    notes[name] = " ".join(note.split())
                case _:
                    pass
    return notes


def dataclasses_in(annotation: Any) -> dict[str, Any]:
    """Name to class of every dataclass that a type mentions, at any depth."""
    found: dict[str, Any] = {}
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        found[annotation.__name__] = annotation
        for hint in typing.get_type_hints(annotation, include_extras=True).values():
            found |= dataclasses_in(hint)
    for each in typing.get_args(annotation):
        found |= dataclasses_in(each)
    return found
